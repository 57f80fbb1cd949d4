"""Prose keeps out wording that describes a thing instead of using its term."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import sources

ROOT = Path(__file__).parent.parent
PYTHON = (
    "stream_app",
    "models",
    "export",
    "research",
    "benchmarks",
    "migrations",
    "servers",
    "tests",
)
DOCUMENTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/*/*.md")
TEMPLATES = "stream_app/web/console/**/templates/*.html"
TERMINAL = (
    "stream_app/cli/*.py",
    "stream_app/demo/*.py",
    "stream_app/processes/*.py",
    "stream_app/recordings/*.py",
)
"""Modules whose strings are printed: help and messages of the commands."""

OPEN: tuple[str, ...] = ()
"""Files and folders that are not reworded yet; shorten this list, never extend it."""

HABITS = {
    r"\b(is|are|was|were) told\b(?! apart)": "is notified, is reported, receives",
    r"\btold (about|of)\b": "reported",
    r"\bheld against\b": "compared with, combined with",
    r"\blies? apart\b": "is stored separately",
    r"\bbesides? (it|them|that|this|the (others?|score|model|file))\b": "next to, in addition to",
    r"\bwhoever\b": "name the subject",
    r"\bwhat (there is|has come|came of|becomes? of|became of)\b": "name the thing",
    r"\b(good|bad|one|its|in) moods?\b": "state, load",
    r"\bof (its|their) own accord\b": "automatically",
    r"\blooks? after\b": "flush, purge, run",
    r"\bkeeps? books\b": "tracks, records",
    r"\bfor want of\b": "for lack of, because there is no",
    r"\b(is|are|was) asked for\b": "is requested, is required",
    r"\b(goes|go) (well|on) with\b": "continues with",
    r"\bin a nutshell\b": "as a summary",
    r"\bput to use\b": "used, introduced",
    r"\bworthless\b": "revoked, invalid",
    r"\banew\b": "again, or a verb with re-: recreate, recompute",
    r"\btakes? up (changes|what)\b": "applies, includes",
    r"\bin hand\b": "in progress",
    r"\bas things stand\b": "currently",
    r"\bcalls? nobody\b": "raises no alert, sends no notification",
    r"\blet(s|ting)? (\w+ )?call again\b": "end the mute",
    r"\bhears? (of|from) it\b": "receives it",
    r"\bsays? of itself\b": "states",
    r"\bwords? it\b": "formats it",
}
PATTERN = re.compile(
    rf"\b(?:{'|'.join(f'(?P<h{n}>{habit})' for n, habit in enumerate(HABITS))})", re.IGNORECASE
)
QUICK = [re.compile(habit.removeprefix(r"\b")) for habit in HABITS]
"""For text in lower case: patterns that start with a letter are searched ten times as fast."""
PARTS, ESCAPE = re.compile(r"""['"]\s*[frbFRB]*['"]"""), re.compile(r"\\(?:.|\n)")
"""What interrupts the text of a string in the source: it ends and continues, or has an escape."""


class Text(NamedTuple):
    """A piece of prose and the line on which it starts."""

    line: int
    content: str


def _comments(source: str) -> Iterator[Text]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], token.string)


def _strings(source: str, *, every: bool) -> Iterator[Text]:
    """Docstrings, also of attributes, and with ``every`` all other strings."""
    tree = ast.parse(source)
    for node in ast.walk(tree) if every else _documentation(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Text(node.lineno, node.value)


def _documentation(tree: ast.Module) -> Iterator[ast.expr]:
    for statement in sources.statements(tree):
        if isinstance(statement, ast.Expr):
            yield statement.value


def _may_have_habits(source: str) -> bool:
    """Whether a text of this Python file can have one; parsing all files takes far longer."""
    lower = source.lower()
    joined = PARTS.sub("", ESCAPE.sub(" ", lower))
    return any(quick.search(text) for quick in QUICK for text in (lower, joined))


def _prose(path: Path, *, every_string: bool) -> Iterator[Text]:
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        yield Text(1, source)
        return
    if not _may_have_habits(source):
        return
    yield from _comments(source)
    yield from _strings(source, every=every_string)


def _habits(text: Text) -> Iterator[tuple[int, str, str]]:
    """Line, wording and suggestion of each habit in a text."""
    for match in PATTERN.finditer(text.content):
        number = int(str(match.lastgroup)[1:]) if match.lastgroup else 0
        line = text.line + text.content.count("\n", 0, match.start())
        yield line, match[0], list(HABITS.values())[number]


def _files() -> list[Path]:
    found = [file for folder in PYTHON for file in sorted((ROOT / folder).rglob("*.py"))]
    for pattern in (*DOCUMENTS, TEMPLATES):
        found += sorted(ROOT.glob(pattern))
    return [file for file in found if file != Path(__file__) and not _is_open(file)]


def _is_open(file: Path) -> bool:
    return any(file.is_relative_to(ROOT / name) for name in OPEN)


def test_prose_uses_the_terms_of_the_field() -> None:
    printed = {file for pattern in TERMINAL for file in ROOT.glob(pattern)}
    found = [
        f'{file.relative_to(ROOT)}:{line}: "{wording}"; better: {better}'
        for file in _files()
        for text in _prose(file, every_string=file in printed)
        for line, wording, better in _habits(text)
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "source", "line"),
    [
        ("a.py", '"""Plain."""\n\n\nclass A:\n    """Plain.\n\n    Nobody is told.\n    """\n', 7),
        ("a.py", "LIMIT = 3\n# whoever comes first\n", 2),
        ("a.py", 'LIMIT = 3\n"""Held against the score."""\n', 2),
        ("a.md", "# Title\n\nFor want of consent.\n", 3),
    ],
)
def test_wording_is_found_with_its_line(tmp_path: Path, name: str, source: str, line: int) -> None:
    file = tmp_path / name
    file.write_text(source, "utf-8")
    found = [where for text in _prose(file, every_string=False) for where, *_ in _habits(text)]
    assert found == [line]


def test_only_printed_strings_are_prose(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text('print("nobody is told")\n', "utf-8")
    assert not list(_prose(file, every_string=False))
    assert [text.content for text in _prose(file, every_string=True)] == ["nobody is told"]


@pytest.mark.parametrize("source", ['"nobody is " "told"', '("so\\nis "\n  f"told {1}")'])
def test_wording_is_found_in_strings_of_several_parts(tmp_path: Path, source: str) -> None:
    file = tmp_path / "a.py"
    file.write_text(source, "utf-8")
    assert list(_prose(file, every_string=True))


def test_open_files_exist() -> None:
    assert all((ROOT / name).exists() for name in OPEN)
