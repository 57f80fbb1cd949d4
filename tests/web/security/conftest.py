import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

from stream_app.work import passwords
from tests.web.people.conftest import as_, filled

__all__ = ["as_", "filled"]


@pytest.fixture
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords at the lowest cost, in tests that are not about guessing."""
    cheap = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
    monkeypatch.setattr(passwords, "_hashes", cheap)
