"""No cell of a CSV export is a formula, whatever separator and quoting a spreadsheet assumes."""

import codecs
import csv
import io
import json
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stream_app.analytics.views.columns import Kind
from stream_app.findings.exports import formats
from stream_app.findings.exports.columns import Column
from stream_app.findings.exports.formats import Format
from stream_app.findings.exports.spreadsheet import safe_text

SIGNS = "=+-@＝＋－＠"
COLUMNS = [
    Column("first", Kind.TEXT, ""),
    Column("number", Kind.NUMBER, ""),
    Column("whole", Kind.INTEGER, ""),
    Column("parts", Kind.JSON, ""),
    Column("last", Kind.TEXT, ""),
]
texts = (
    st.text(st.sampled_from("=+-@＝＋－＠;,|\t\r\n\v\f \u00a0\u200b\ufeff\"'\\a1\u2028\x00"))
    | st.text()
)
values = st.recursive(
    texts | st.integers(0, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


def written(row: dict[str, object]) -> str:
    return b"".join(formats.encode(Format.CSV, COLUMNS, iter([[row]]))).decode("utf-8-sig")


def cells(raw: str, delimiter: str, *, quoted: bool) -> Iterator[str]:
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    for line in csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter, quoting=quoting):
        for cell in line:
            yield cell
            yield from cell.splitlines()


def is_formula(cell: str) -> bool:
    """Whether the first character that a spreadsheet might see is a sign, except in a number."""
    try:
        float(cell)
    except ValueError:
        basic = {c for c in cell if c <= "\uffff"}
        skipped = {c for c in basic if unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc", "Cf")}
        seen = cell.lstrip('"' + "".join(skipped))
        return seen.startswith(tuple(SIGNS))
    return False


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(first=texts, last=texts, number=st.floats(-9, 9), whole=st.integers(), parts=values)
def test_no_cell_is_a_formula_and_numbers_stay_numbers(
    first: str, last: str, number: float, whole: int, parts: object
) -> None:
    row = {"first": first, "number": number, "whole": whole, "parts": parts, "last": last}
    raw = written(row)
    for delimiter in ",;\t|":
        for quoted in (True, False):
            found = [cell for cell in cells(raw, delimiter, quoted=quoted) if is_formula(cell)]
            assert not found, (delimiter, quoted)
    [_, line] = csv.reader(io.StringIO(raw, newline=""))
    assert (float(line[1]), int(line[2])) == (number, whole)
    assert json.loads(line[3]) == parts
    assert not line[0].startswith(("\t", "\r"))
    assert line[0].replace("'", "") == first.replace("'", "")


def test_excel_recognises_the_encoding() -> None:
    """Without the mark it reads a file in the encoding of the machine: Jürgen as JÃ¼rgen."""
    row = {"first": "Jürgen", "number": 1.0, "whole": 1, "parts": [], "last": "Zoë"}
    pages: list[list[dict[str, object]]] = [[row], [row]]
    raw = b"".join(formats.encode(Format.CSV, COLUMNS, iter(pages)))
    assert raw.startswith(codecs.BOM_UTF8)
    assert raw.count(codecs.BOM_UTF8) == 1, "at the beginning only"
    assert "Jürgen" in raw.decode()
    assert b"".join(formats.encode(Format.CSV, COLUMNS, iter([]))).startswith(codecs.BOM_UTF8)
    assert not b"".join(formats.encode(Format.JSONL, COLUMNS, iter(pages))).startswith(b"\xef")


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("before", ["", " ", '"', "a;", "a\n", "a; ", 'a;"', "\ufeff", "\t", "\r"])
def test_a_formula_gets_an_apostrophe(before: str, sign: str) -> None:
    assert f"{before}'{sign}HYPERLINK(1)" in safe_text(f"{before}{sign}HYPERLINK(1)")


@pytest.mark.parametrize("text", ["I - well - think", "a+b", "me@example.org", "'tis", "well; yes"])
def test_other_text_is_unchanged(text: str) -> None:
    assert safe_text(text) == text
