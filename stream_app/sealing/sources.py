"""Reads keys from a setting or a file, and creates key files.

A key is 32 random bytes in base64 (URL alphabet). A file or setting contains one or more, separated
by line breaks, spaces or commas; lines that start with ``#`` are comments.
"""

import binascii
import os
import tempfile
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from stream_app.errors import SealingError
from stream_app.sealing.envelope import KEY_BYTES, new_key

log = structlog.get_logger(__name__)

OWNER_ONLY: Final = 0o600
OTHERS: Final = 0o077
GROUP_READS: Final = 0o040


class KeySource:
    """The keys for one purpose.

    Args:
        setting: name of the setting, without ``RAPPORT_``.
        text: the keys, if they are in the setting itself.
        file: a file with the keys.
        create: whether to create the file with a new key if it is missing.
    """

    def __init__(
        self,
        setting: str,
        text: str | None = None,
        file: Path | None = None,
        *,
        create: bool = False,
    ) -> None:
        self.setting = setting
        self.file = file
        self._text = text
        self._create = create
        self._read_at: tuple[int, int] | None = None
        self._keys: list[bytes] = []

    @classmethod
    def in_memory(cls, setting: str) -> "KeySource":
        """A new key that is not stored, for databases in memory."""
        return cls(setting, text=as_text(new_key()))

    @property
    def is_set(self) -> bool:
        """Whether keys or a file are configured."""
        return self._text is not None or self.file is not None

    @property
    def creates(self) -> bool:
        """Whether a missing file is created."""
        return self._create

    @property
    def is_missing(self) -> bool:
        """Whether the file does not exist."""
        return self._text is None and self.file is not None and not self.file.exists()

    def read(self) -> list[bytes]:
        """Return all keys; the file is reloaded when it has changed.

        Raises:
            SealingError: no key is set, or it cannot be read.
        """
        if self._text is not None:
            self._keys = self._keys or parse(self._text, f"RAPPORT_{self.setting}")
        elif self.file is None:
            raise SealingError(
                f"RAPPORT_{self.setting}_FILE is not set: text is stored encrypted, and its keys "
                "must not be in the database. Make a key with `rapport keys new FILE` and set "
                f"RAPPORT_{self.setting}_FILE=FILE for every process (docs/security.md, Keys)"
            )
        else:
            if self.is_missing and self._create:
                create(self.file, new_key())
                log.info("key.created", setting=self.setting, file=str(self.file))
            self._reload(self.file)
        return self._keys

    def _reload(self, file: Path) -> None:
        try:
            stat = file.stat()
            if self._read_at != (stat.st_mtime_ns, stat.st_ino):
                self._keys = parse(file.read_text("utf-8"), str(file))
                self._read_at = (stat.st_mtime_ns, stat.st_ino)
        except (OSError, UnicodeDecodeError) as problem:
            reason = getattr(problem, "strerror", None) or type(problem).__name__
            raise SealingError(
                f"the key file {file} (RAPPORT_{self.setting}_FILE) cannot be read: {reason}"
            ) from problem


def parse(text: str, where: str) -> list[bytes]:
    """Parse keys.

    Raises:
        SealingError: there is none, or one is invalid.
    """
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    words = [word for line in lines for word in line.replace(",", " ").split()]
    try:
        found = [urlsafe_b64decode(word + "=" * (-len(word) % 4)) for word in words]
    except (binascii.Error, ValueError):
        found = [b""]
    if not found or any(len(key) != KEY_BYTES for key in found):
        raise SealingError(
            f"{where} does not contain valid keys: create one with `rapport keys new`"
        )
    return found


def as_text(key: bytes) -> str:
    """Encode a key for a file or setting."""
    return urlsafe_b64encode(key).decode()


def create(file: Path, *keys: bytes) -> bool:
    """Create a key file with mode 0600; return False if it exists.

    Atomic, so that several processes can do it at the same time.

    Raises:
        SealingError: it cannot be written.
    """
    try:
        temporary = _written(file, keys)
        try:
            os.link(temporary, file)
        finally:
            temporary.unlink()
    except FileExistsError:
        return False
    except OSError as problem:
        raise SealingError(f"the key file {file} cannot be written: {problem.strerror}") from None
    return True


def replace(file: Path, keys: Sequence[bytes]) -> None:
    """Replace the keys in a file atomically.

    Raises:
        SealingError: it cannot be written.
    """
    try:
        _written(file, keys).replace(file)
    except OSError as problem:
        raise SealingError(f"the key file {file} cannot be written: {problem.strerror}") from None


def readable_by_others(file: Path) -> bool:
    """Whether anyone but this process's user has any permission on a file.

    A file of another user may be readable by this process's own group: Kubernetes mounts secrets
    as root's, readable by the pod's group.
    """
    with suppress(OSError):
        found = file.stat()
        mounted = found.st_uid != os.geteuid() and found.st_gid == os.getegid()
        return bool(found.st_mode & OTHERS & ~(GROUP_READS if mounted else 0))
    return False


def _written(file: Path, keys: Sequence[bytes]) -> Path:
    handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # 0600
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.writelines(f"{as_text(key)}\n" for key in keys)
        stream.flush()
        os.fsync(stream.fileno())
    return Path(name)
