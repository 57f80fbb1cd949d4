"""The report of two pages: the answers and figures of the analyses, in the console and a file."""

import html
import re
from pathlib import Path

import pytest

from stream_app.web.console.analytics import report_page
from stream_app.web.console.pseudonym_words import short_form
from tests.web.people.longitudinal import Platform, platform
from tests.web.people.test_analyses import days, sentence, words

__all__ = ["days", "platform"]

REPORT = "/analytics/report?from=2026-01-01&to=2026-07-31"
FILE = REPORT.replace("report?", "report/file?")


def said(page: str) -> dict[str, str]:
    answers = page.split('<dl class="said">')[1].split("</dl>", maxsplit=1)[0]
    parts = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", answers)
    return {html.unescape(heading): html.unescape(text) for heading, text in parts}


def test_it_says_what_the_pages_of_the_questions_say(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    page = client.get(REPORT).text
    told = said(page)
    assert set(told) == {"Did the training help?", "Empathy over time", "Drift", "Fairness"}
    assert 'name="at" value="2026-04-01"' in page
    dates = "from=2026-01-01&to=2026-07-31"
    training = client.get(f"/analytics/service-levels?{dates}").text
    assert told["Did the training help?"] == sentence(training)
    assert told["Drift"] == sentence(client.get(f"/analytics/drift?{dates}").text)


def test_it_has_what_changed_how_sure_by_which_model_and_what_to_look_at(
    platform: Platform, days: Path
) -> None:
    page = platform.as_("ana", marked_days=days).get(f"{REPORT}&team=south").text
    headings = re.findall(r"<h2>([^<]*)</h2>", page)
    assert headings[:5] == [
        "What changed",
        "How sure",
        "By which model",
        "What to look at",
        "Week by week",
    ]
    assert "Team south, 2026-01-01 to 2026-07-31" in words(page)
    assert re.search(r"<th scope=\"row\">Empathy index</th><td>Change at the date</td>", page)
    assert "beyond chance" in page or "may be chance" in page
    assert re.search(r"synthetic-2 synthetic, curves from 2026-\d\d-\d\d", words(page))
    assert re.search(r"2026-\d\d-\d\d: model synthetic-2 begins to score\. Compare figures", page)
    assert re.search(r"\d+ of \d+ weeks are not shown: too few people", page)
    assert "style=" not in page


def test_the_file_says_the_same_and_needs_nothing_else(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    answer = client.get(FILE)
    assert "report.html" in answer.headers["content-disposition"]
    page = answer.text
    assert said(page) == said(client.get(REPORT).text)
    assert not re.findall(r"""(?:src|href)=|url\(|@import|<script""", page)
    assert "break-before: page" in page, "the styles for paper"
    for number in range(14):
        assert platform.pseudonym(f"counsellor-{number:04}")[:8] not in page
        assert short_form(platform.pseudonym(f"counsellor-{number:04}")) not in page
    entries = platform.as_("ada").get("/api/v1/audit?action=export").json()["items"]
    assert [(entry["person"], entry["detail"]) for entry in entries] == [("ana", "report")]


def test_nothing_happened_and_nobody_was_there(platform: Platform) -> None:
    empty = platform.as_("ana").get("/analytics/report?from=2020-01-01&to=2020-02-01").text
    assert "No change could be estimated in this time" in empty
    assert "No session was scored in this time" in empty
    assert "0 sessions of 0 counsellors" in words(empty)
    without = said(platform.as_("ana").get(REPORT).text)["Did the training help?"]
    assert "Choose a date" in without


@pytest.mark.parametrize(("name", "status"), [("ana", 200), ("ada", 403), ("cleo", 403)])
def test_roles(platform: Platform, name: str, status: int) -> None:
    for path in (REPORT, FILE):
        assert platform.as_(name).get(path).status_code == status


def test_supervisors_of_a_team_report_on_it(platform: Platform) -> None:
    client = platform.as_("nia")
    page = client.get(REPORT).text
    assert "Team north" in page
    assert "south" not in page
    for path in (REPORT, FILE):
        assert client.get(f"{path}&team=south").status_code == 403


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("from=2026-02-01&to=2026-01-01", 422),
        ("at=2026-02-30", 422),
        ("from=2026-01-01&to=9999-12-31", 200),
    ],
)
def test_nonsense_is_refused(platform: Platform, query: str, status: int) -> None:
    assert platform.as_("ana").get(f"/analytics/report?{query}").status_code == status


def test_it_waits_for_other_analyses_and_then_says_so(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_page, "PATIENCE", 0.05)
    client = platform.as_("ana")
    with client.app.state.services.analyses.alone():
        for path in (REPORT, FILE):
            answer = client.get(path)
            assert answer.status_code == 503
            assert "Another analysis is running" in answer.text
