"""Output files that appear only when they are complete."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

SUFFIX: Final = ".partial"


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """Write next to ``path``, and rename to it when the ``with`` block has succeeded.

    After an error or Ctrl-C the partial file is removed, and an earlier file at ``path`` is
    unchanged. Devices and pipes, such as /dev/null, cannot be replaced and are written directly.

    Raises:
        OSError: the file cannot be written.
    """
    target = path.resolve()  # a link stays a link
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", str(target))
    partial = target.with_name(f"{target.name}.{secrets.token_hex(4)}{SUFFIX}")
    try:
        with partial.open("xb") as stream:
            yield stream
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
