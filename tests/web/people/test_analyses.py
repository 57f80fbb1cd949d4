"""The pages of the seven analyses: the figures of the API in a sentence, a plot and a table."""

import csv
import html
import io
import re
from pathlib import Path
from typing import Any

import pytest

from stream_app import extras
from stream_app.analytics.questions import questions
from stream_app.web.console.analytics import analyses
from stream_app.web.console.analytics.asked_questions import ASKED
from stream_app.web.console.pseudonym_words import short_form
from tests.web.people.client import Client
from tests.web.people.longitudinal import Platform, platform

__all__ = ["platform"]

PARTS = [*(f"/analytics/{name}" for name in ASKED), "/analytics/report"]
TRAINING = "2026-04-01"
AT = f"at={TRAINING}"
DAYS = f"""date,kind,name,team
2026-03-02,training,Listening <b>,
{TRAINING},training,Reflections,south
2026-05-04,release,Chat 4.2,
"""


@pytest.fixture
def days(tmp_path: Path) -> Path:
    file = tmp_path / "days.csv"
    file.write_text(DAYS, "utf-8")
    return file


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page)).split())


def sentence(page: str) -> str:
    found = re.search(r'<p class="answer-sentence">(.*?)</p>', page)
    assert found, words(page)[:2000]
    return html.unescape(found[1])


def opened(client: Client, path: str) -> str:
    answer = client.get(f"/analytics/{path}")
    assert answer.status_code == 200, answer.text
    return answer.text


def links(page: str) -> list[str]:
    return re.findall(r'href="(/analytics/[^"?]+)"', page)


def test_every_question_has_a_page_and_every_page_leads_to_all(platform: Platform) -> None:
    assert set(ASKED) == set(questions.QUESTIONS)
    assert links(platform.as_("ana").get("/analytics").text) == PARTS
    assert links(platform.as_("ana").get("/teams").text) == PARTS


@pytest.mark.parametrize("name", ASKED)
def test_a_page_has_an_answer_with_its_method_and_table(platform: Platform, name: str) -> None:
    attributes = platform.attributes if name == "pairs" else None
    page = opened(platform.as_("ana", self_declared_attributes=attributes), f"{name}?stay=30")
    assert page.count("<h1") == 1
    assert links(page) == PARTS
    assert f'<a href="/analytics/{name}" aria-current="page">' in page
    said = sentence(page)
    assert said.endswith(".")
    assert "<" not in said
    assert "None" not in said
    method = page.split('<details class="method">')[1].split("</details>")[0]
    assert "<b>Method.</b>" in method
    assert "fewer than 11 clients" in method
    assert "not proof of a cause; not a performance rating" in page
    assert re.search(r'<table class="estimates">|<figure', page)
    assert "style=" not in page, "the content security policy forbids inline styles"
    for number in range(14):
        assert platform.pseudonym(f"counsellor-{number:04}")[:8] not in page
        assert short_form(platform.pseudonym(f"counsellor-{number:04}")) not in page


def test_the_page_shows_the_figures_of_the_api(platform: Platform) -> None:
    client = platform.as_("ana")
    choice = f"measure=explorations&{AT}"
    page = opened(client, f"service-levels?{choice}")
    api = client.get(
        f"/api/v1/analyses/service-levels?measure=explorations&at={TRAINING}T00:00:00Z"
    ).json()
    given = client.get(f"/analytics/service-levels/table?{choice}&format=json").json()
    assert given == api
    rows = re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td><td>([^<]*)</td>', page)
    table = {label: (value, ends) for label, value, ends in rows}
    for each in api["estimates"]:
        if each["value"] is None:
            assert each["problem"] in words(page)
            continue
        value, ends = table[each["name"][0].upper() + each["name"][1:]]
        assert float(value.replace("−", "-")) == pytest.approx(each["value"], abs=0.0006)
        if each["low"] is None:
            assert ends == "–"
            continue
        low, high = (float(end.replace("−", "-")) for end in ends.split(" to "))
        assert (low, high) == pytest.approx((each["low"], each["high"]), abs=0.0006)


def test_the_training_is_chosen_before_anybody_asks(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    page = opened(client, "service-levels")
    assert f'name="at" value="{TRAINING}"' in page
    assert "the training “Reflections” on 1 April 2026" in sentence(page)
    assert "(team south)" in sentence(opened(client, "service-levels?trained="))
    assert "training “Listening <b>”" in words(page)
    assert "<b>”" not in page
    assert "2026-05-04: release “Chat 4.2”" in words(page)
    north = opened(client, "service-levels?team=north")
    assert 'name="at" value="2026-03-02"' in north
    assert "Reflections" not in north


def test_marked_days_stand_below_every_curve_by_date(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    page = client.get("/analytics?from=2026-01-01&to=2026-07-01&measure=explorations").text
    assert words(page).count(f"{TRAINING}: training “Reflections” (team south)") == 2
    by_month = opened(client, "over-time?stay=30")
    assert "training “Reflections”" not in words(by_month)


def test_a_wrong_file_of_marked_days_stops_no_page(platform: Platform, days: Path) -> None:
    days.write_text("date,kind,name\nsome day,training,x\n", "utf-8")
    client = platform.as_("ana", marked_days=days)
    for path in ("/analytics", f"/analytics/service-levels?{AT}"):
        assert "not marked: days.csv, line 2" in words(client.get(path).text)


def test_a_zoom_shows_part_of_the_curve_and_the_same_answer(platform: Platform) -> None:
    client = platform.as_("ana")
    whole = opened(client, f"service-levels?{AT}")
    part = opened(client, f"service-levels?{AT}&first=2026-03-02&last=2026-04-26")
    assert sentence(part) == sentence(whole)
    weeks = re.findall(r'<th scope="row">(2026-\d\d-\d\d)', part)
    assert weeks
    assert min(weeks) == "2026-03-02"
    assert max(weeks) == "2026-04-20"
    assert len(weeks) < len(re.findall(r'<th scope="row">(2026-\d\d-\d\d)', whole))
    assert 'name="first" form="choice" value="2026-03-02"' in part
    assert "Show all dates" in part
    assert "Show all dates" not in whole


def test_the_form_keeps_what_was_chosen(platform: Platform) -> None:
    query = "measure=interpretations&team=south&from=2026-01-05&to=2026-06-01&stay=20&calendar=true"
    page = opened(platform.as_("sue"), f"over-time?{query}")
    form = page.split('id="choice"')[1].split("</form>")[0]
    assert '<option value="interpretations" selected>' in form
    assert "<option selected>south</option>" in form
    assert 'name="from" value="2026-01-05"' in form
    assert 'name="to" value="2026-06-01"' in form
    assert 'name="stay" min="0" max="3650" value="20"' in form
    assert '<option value="true" selected>' in form
    [address] = re.findall(r'href="/analytics/over-time/table\?([^"]*)&amp;format=csv"', page)
    assert html.unescape(address) == (
        "from=2026-01-05&to=2026-06-01&team=south&measure=interpretations&stay=20&calendar=True"
    ).replace("True", "true")


def test_groups_are_chosen_from_the_result(platform: Platform) -> None:
    client = platform.as_("ana")
    page = opened(client, "fairness")
    options = re.findall(r"<option>(channel [^<]*)</option>", page)
    assert options
    one = opened(client, f"fairness?group={options[0]}")
    assert f"<option selected>{options[0]}</option>" in one
    rows = re.findall(r'<tr><th scope="row">([^<]*)<', one)
    assert rows
    assert all(row.lower().startswith(options[0]) for row in rows)


def test_downloads_have_all_figures_and_are_audited(platform: Platform) -> None:
    client = platform.as_("ana")
    answer = client.get(f"/analytics/service-levels/table?{AT}")
    assert "service-levels.csv" in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert {row["part"] for row in rows} == {"estimate", "curve"}
    assert {row["measure"] for row in rows} == {"empathy_index"}
    md = client.get(f"/analytics/service-levels/table?{AT}&format=md").text
    assert md.startswith("# ")
    assert "| change at the date |" in md
    entries = platform.as_("ada").get("/api/v1/audit?action=export").json()["items"]
    found = {(entry["person"], entry["detail"]) for entry in entries}
    assert found == {("ana", "analysis service-levels")}


@pytest.mark.parametrize(("name", "status"), [("ana", 200), ("ada", 403), ("cleo", 403)])
def test_roles(platform: Platform, name: str, status: int) -> None:
    for path in ("pairs", "service-levels/table?measure=looked_at"):
        assert platform.as_(name).get(f"/analytics/{path}").status_code == status


def test_supervisors_of_a_team_ask_about_their_team(platform: Platform) -> None:
    client = platform.as_("nia")
    assert client.get("/analytics/service-levels?team=south").status_code == 403
    assert client.get("/analytics/service-levels/table?team=south").status_code == 403
    own = client.get("/analytics/service-levels/table?format=json&measure=looked_at").json()
    given = platform.as_("sue").get(
        "/analytics/service-levels/table?format=json&measure=looked_at&team=north"
    )
    assert own == given.json()


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("why", 404),
        ("service-levels?measure=salary", 404),
        ("service-levels?at=2026-02-30", 422),
        ("over-time?stay=9999", 422),
        ("service-levels?to=9999-12-31&measure=looked_at", 200),
        ("drift?measure=salary&group=nobody", 200),
    ],
)
def test_nonsense_is_refused_or_left_out(platform: Platform, path: str, status: int) -> None:
    assert platform.as_("ana").get(f"/analytics/{path}").status_code == status


def test_what_cannot_be_answered_says_why(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = platform.as_("ana")
    assert "RAPPORT_SELF_DECLARED_ATTRIBUTES" in words(opened(client, "pairs"))
    assert client.get("/analytics/pairs/table").status_code == 404
    gone = platform.as_("ana", self_declared_attributes=Path("gone.csv"))
    assert "cannot be read (FileNotFoundError)" in words(opened(gone, "fairness"))
    assert "There is no answer yet" in sentence(opened(client, "over-time?stay=3000"))
    monkeypatch.setattr(extras, "ANALYTICS", ("no_such_package",))
    assert "rapport-empathy[analytics]" in words(opened(client, "drift"))


def test_a_second_analysis_waits_and_then_says_so(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses, "PATIENCE", 0.05)
    client = platform.as_("ana")
    with client.app.state.services.analyses.alone():
        answer = client.get("/analytics/service-levels?measure=looked_at")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert "Another analysis is running" in answer.text
        assert client.get("/api/v1/analyses/drift").status_code == 503
    assert client.get("/analytics/service-levels?measure=looked_at").status_code == 200


def test_the_same_choice_is_computed_once(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    real = questions.answer
    monkeypatch.setattr(
        questions, "answer", lambda *args, **rest: calls.append(args[1]) or real(*args, **rest)
    )
    client = platform.as_("ana")
    for path in ("drift", "drift?measure=language", "drift?team=north"):
        opened(client, path)
    assert calls == ["drift", "drift"]


def test_a_training_of_a_team_compares_it_with_the_others(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    page = opened(client, "service-levels")
    assert '<option value="south" selected>team south, compared with the others' in page
    assert "the empathy index of team south" in sentence(page)
    assert "trained=south" in page, "downloads answer the same question"
    together = opened(client, "service-levels?trained=")
    assert "of team south" not in sentence(together)
    assert sentence(together) != sentence(page)
    asked = f"measure=empathy_index&at={TRAINING}"
    given = client.get(f"/analytics/service-levels/table?{asked}&format=json").json()
    api = f"/api/v1/analyses/service-levels?measure=empathy_index&at={TRAINING}T00:00:00Z"
    assert given == client.get(f"{api}&trained=south").json()
    assert given != client.get(api).json()


def test_who_reads_one_team_compares_no_teams(platform: Platform, days: Path) -> None:
    client = platform.as_("ana", marked_days=days)
    page = opened(client, "service-levels?team=south&trained=south")
    assert 'name="trained"' not in page
    assert "of team south" not in sentence(page)
    api = "/api/v1/analyses/service-levels?trained=south"
    for more in ("", f"&at={TRAINING}T00:00:00Z&team=south"):
        answer = client.get(api + more)
        assert answer.status_code == 422
        assert "trained needs at, and all teams" in answer.text
