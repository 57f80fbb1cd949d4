"""The console's page of exports: what each role finds, and that its buttons download files."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from stream_app.store.stream.repository import Store
from tests.web.people.conftest import As, as_, filled
from tests.web.people.test_pages import proper

__all__ = ["as_", "filled"]
ALL = {"sessions", "turns", "ratings", "disputes", "alerts", "convokit"}


def tables(page: str) -> set[str]:
    return set(re.findall(r'name="table" value="(\w+)"', page))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sue", ALL | {"rollups"}), ("ana", ALL | {"rollups"}), ("noor", ALL)],
)
def test_each_role_finds_a_button_for_what_it_may_export(
    as_: As, name: str, expected: set[str]
) -> None:
    page = proper(as_(name).get("/exports"))
    assert tables(page) == expected
    assert len(re.findall(r'<button aria-label="Download: [^"]+">', page)) == len(expected)
    assert 'href="/exports" aria-current="page"' in page


def test_only_those_who_may_export_find_the_page(as_: As) -> None:
    proper(as_("ada").get("/exports"), 403)
    assert 'href="/exports"' not in as_("ada").get("/").text


def test_a_supervisor_of_a_team_is_offered_roll_ups_by_team_only(as_: As) -> None:
    assert 'value="cohort_month"' in as_("sue").get("/exports").text
    assert 'value="day"' not in as_("sue").get("/exports").text
    assert 'value="day"' in as_("pat").get("/exports").text


@pytest.mark.parametrize("table", sorted(ALL))
def test_a_button_downloads_the_file(filled: Store, as_: As, table: str) -> None:
    chosen = {"table": table, "format": "jsonl", "since": "2026-01-05", "until": "2026-01-06"}
    moved = as_("sue").get("/exports/file", params=chosen)
    assert moved.status_code == 303
    address = urlsplit(moved.headers["location"])
    assert address.path == f"/api/v1/exports/{table}"
    query = parse_qs(address.query)
    assert query["started_from"] == ["2026-01-05T00:00:00+00:00"]
    assert query["started_before"] == ["2026-01-06T00:00:00+00:00"]
    answer = as_("sue").get(html.unescape(moved.headers["location"]))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment")
    if table in ("sessions", "turns"):
        assert "north-0" in answer.text
        assert "That must have been hard" not in answer.text


def test_the_period_is_respected(as_: As) -> None:
    chosen = {"table": "sessions", "format": "jsonl", "since": "2026-01-06"}
    moved = as_("sue").get("/exports/file", params=chosen)
    assert as_("sue").get(moved.headers["location"]).text == ""


@pytest.mark.parametrize(
    ("chosen", "status"),
    [
        ({"table": "people"}, 404),
        ({"table": "../audit"}, 404),
        ({"table": "turns", "since": "2026-02-30"}, 422),
        ({"table": "turns", "since": "yesterday"}, 422),
    ],
)
def test_a_forged_form_is_refused(as_: As, chosen: dict[str, str], status: int) -> None:
    assert as_("sue").get("/exports/file", params=chosen).status_code == status


def test_a_counsellor_may_not_download_roll_ups(as_: As) -> None:
    assert as_("noor").get("/exports/file", params={"table": "rollups"}).status_code == 404
