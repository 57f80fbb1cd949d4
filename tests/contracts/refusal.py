"""The error of an event that is refused."""

import pytest

from stream_app.contracts.events import decode
from stream_app.errors import ContractError


def refusal(raw: bytes) -> ContractError:
    with pytest.raises(ContractError) as caught:
        decode(raw)
    return caught.value
