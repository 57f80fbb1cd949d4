"""Reads files of JSON lines as programs and people write them.

Also read: a byte order mark before any line, UTF-16 and UTF-32, all line ends, the separators of
JSON text sequences, and JSON that is no line: one array, or objects over several lines, beside each
other or with commas between them.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from stream_app.contracts.batch_body import NotAnArray, elements
from stream_app.contracts.json_bytes import as_utf8, without_mark
from stream_app.errors import RapportError

_COMPRESSED: Final = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")
_LINE_END: Final = re.compile(rb"\r\n?|\n")
_OBJECT: Final = re.compile(r"[\s,]*(?=\{)")
_SEPARATOR: Final = b"\x1e"
"""Stands before each object of a JSON text sequence (RFC 7464)."""


class NotJsonLines(RapportError):
    """A file is compressed, or in no encoding of JSON."""


def read_lines(path: Path, on_read: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """The lines of a file as UTF-8, without line ends; a blank one is ``b""``.

    Of an array, each element; of objects over several lines, each object. ``on_read`` gets the
    number of bytes before they are yielded.

    Raises:
        NotJsonLines: it can be no JSON lines; the message says what to do.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        head = file.peek(4)[:4]
        if head.startswith(_COMPRESSED):
            raise NotJsonLines(f"{path} is compressed: unpack it first")
        if b"\0" in head or head.startswith(_MARKS):
            yield from _of_other_encoding(path, file.read(), on_read)
        else:
            yield from _read(file, on_read)


def _of_other_encoding(path: Path, raw: bytes, on_read: Callable[[int], object]) -> Iterator[bytes]:
    found = as_utf8(raw)
    if found is raw and raw.startswith(_MARKS):
        raise NotJsonLines(f"{path} is no JSON in UTF-16: save it as JSON lines in UTF-8")
    on_read(len(raw))
    yield from _read(io.BytesIO(found), lambda _: None)


def _read(file: IO[bytes], on_read: Callable[[int], object]) -> Iterator[bytes]:
    begun = False
    for line in file:
        text = without_mark(line).strip()
        if not begun and _is_no_line(text):
            rest = file.read()
            on_read(len(line) + len(rest))
            whole = without_mark(line) + rest
            yield from _documents(whole) or _lines(whole)
            return
        begun = begun or bool(text)
        on_read(len(line))
        yield from _lines(line)


def _is_no_line(text: bytes) -> bool:
    """Whether the first line begins an array, or an object that does not end with it."""
    if text[:1] != b"{":
        return text[:1] == b"["
    try:
        json.loads(text)
    except (UnicodeDecodeError, RecursionError):
        return False
    except ValueError:
        return True
    return False


def _lines(raw: bytes) -> Iterator[bytes]:
    r"""The lines; a line end is none within JSON's strings, where it is written ``\n``."""
    if raw.endswith(b"\n"):
        raw = raw[:-1].removesuffix(b"\r")
    for line in _LINE_END.split(raw):
        bare = without_mark(line).lstrip(_SEPARATOR)
        yield bare if bare.strip() else b""


def _documents(raw: bytes) -> list[bytes]:
    """The elements of an array, or objects one after the other; empty if it is something else."""
    if raw.lstrip()[:1] == b"[":
        try:
            return elements(raw)
        except NotAnArray:
            return []
    found, at = [], 0
    decoder = json.JSONDecoder()
    try:
        text = raw.decode("utf-8")
        while match := _OBJECT.match(text, at):
            _, at = decoder.raw_decode(text, match.end())
            found.append(text[match.end() : at].encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return []
    return found if not text[at:].strip(" \t\r\n,") else []
