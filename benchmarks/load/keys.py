"""Keys of an installation that lives for one benchmark."""

from pydantic import SecretStr

from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import as_text


def keys() -> dict[str, SecretStr]:
    """Settings of new keys."""
    return {name: SecretStr(as_text(new_key())) for name in ("master_key", "pseudonym_key")}
