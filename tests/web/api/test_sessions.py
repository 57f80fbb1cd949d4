"""Contents of sessions, turns, history, counsellors, bundles and the audit trail."""

import json
from typing import Any

import msgspec
import pytest

from stream_app.inference.bundles.bundle import MANIFEST
from stream_app.settings import DEFAULT_BUNDLE
from stream_app.store.accounts.people import People
from stream_app.web.api.sessions import _level_with_utf16
from stream_app.work.passwords import hash_password
from tests.store.batches import BUNDLE, turn
from tests.web.api.conftest import WORDS
from tests.web.server import Web


def trail(web: Web, **params: str) -> list[dict[str, Any]]:
    with web.client("ada") as ada:
        return list(ada.get("/audit", params=params).json()["items"])


def test_sessions_are_sorted_and_filtered(web: Web) -> None:
    with web.client() as sue:
        cards = sue.get("/sessions").json()["items"]
        risks = [card["low_empathy_risk"] for card in cards]
        assert risks == sorted(risks, reverse=True)
        assert {card["bundle"] for card in cards} == {BUNDLE}
        for params, expected in (
            ({"status": "open"}, {"north-2"}),
            ({"team": "north", "status": "closed"}, {"north-1"}),
            ({"channel": "phone"}, set()),
            ({"domain": "counselling", "team": "south"}, {"south-1"}),
            ({"started_before": "2026-01-05T10:00:00Z"}, set()),
            ({"started_from": "2026-01-05T11:00:00+01:00", "team": "south"}, {"south-1"}),
        ):
            found = sue.get("/sessions", params=params).json()["items"]
            assert {card["session_id"] for card in found} == expected, params
        who = next(card for card in cards if card["session_id"] == "north-2")["counsellors"]
        assert [
            card["session_id"]
            for card in sue.get("/sessions", params={"counsellor": who[0]}).json()["items"]
        ] == ["north-2"]


def test_a_session_has_its_empathy_index_and_opportunities(web: Web) -> None:
    at = "2026-01-06T10:00:00Z"
    facts = {"session_id": "helped", "team": "helpers", "domain": "peer-support"}
    [scored] = web.commit(*(turn(seq, occurred_at=at, **facts) for seq in range(30))).session_scores
    with web.client() as sue:
        card = sue.get("/sessions/helped").json()
        [point] = sue.get("/history", params={"team": "helpers"}).json()["items"]
        counselled = sue.get("/sessions/north-1").json()
    assert scored.empathy_index is not None
    assert scored.missed_opportunities
    assert card["empathy_index"] == point["empathy_index"] == scored.empathy_index
    assert card["empathy_interval"] == list(scored.empathy_interval or ())
    assert card["empathy_percentile"] == scored.empathy_percentile
    assert card["answered_share"] == scored.answered_share
    assert card["missed_opportunities"] == scored.missed_opportunities
    assert card["outcome_risks"] == scored.outcome_risks
    assert card["outcome_risks"].keys() == {"chat_failed"}
    assert counselled["outcome_risks"] == {}


def test_a_session_of_motivational_interviewing_has_a_miti_summary(web: Web) -> None:
    at = "2026-01-06T10:00:00Z"
    facts = {"session_id": "mi", "team": "mi", "approach": "motivational-interviewing"}
    [scored] = web.commit(*(turn(seq, occurred_at=at, **facts) for seq in range(24))).session_scores
    with web.client() as sue:
        found = sue.get("/sessions/mi").json()["miti"]
        assert sue.get("/sessions/north-1").json()["miti"] is None
    assert found == msgspec.to_builtins(scored.miti)
    assert (found["turns"], found["volleys"]) == (12, 12)
    measure = found["measures"]["reflection_to_question"]
    assert (measure["fair"], measure["good"], measure["manual"]) == (1.0, 2.0, "MITI 4.2.1")
    assert measure["standing"] in ("below", "fair", "good")


def test_turns_have_all_scores_and_evidence(web: Web) -> None:
    with web.client("nora") as nora:
        items = nora.get("/sessions/north-1/turns").json()["items"]
    assert [turn["seq"] for turn in items] == list(range(6))
    spoken = next(turn for turn in items if turn["role"] == "counsellor")
    assert WORDS in spoken["text"]
    assert [score["stage"] for score in spoken["scores"]] == ["final", "provisional"]
    for name in ("emotional_reactions", "interpretations", "explorations"):
        level = spoken["scores"][0]["expressed"][name]
        assert level["level"] in (0, 1, 2)
        for start, stop in level["rationale"]:
            assert 0 <= start < stop <= len(spoken["text"])
        assert level["rationale_utf16"] == level["rationale"]  # the text has no emoji


def test_rationales_are_given_in_utf16_too() -> None:
    said = "😭😭 I am so sorry 💛"
    level = {"level": 2, "rationale": [[3, 16]]}
    shown = _level_with_utf16(said, level)
    assert shown == {**level, "rationale_utf16": [(5, 18)]}
    units = said.encode("utf-16-le")
    assert units[2 * 5 : 2 * 18].decode("utf-16-le") == said[3:16] == "I am so sorry"
    assert _level_with_utf16(said, {"no": 0.5, "yes": 0.5}) == {"no": 0.5, "yes": 0.5}


def test_turns_are_paged(web: Web) -> None:
    seqs: list[int] = []
    cursor: str | None = None
    with web.client() as sue:
        while True:
            params = {"limit": "4", **({"cursor": cursor} if cursor else {})}
            page = sue.get("/sessions/north-1/turns", params=params).json()
            seqs += [turn["seq"] for turn in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    assert seqs == list(range(6))


@pytest.mark.parametrize("name", ["ana", "ada"])
def test_roles_without_transcripts_get_scores_without_text(web: Web, name: str) -> None:
    with web.client(name) as client:
        answer = client.get("/sessions/north-1/turns")
        everything = answer.text + client.get("/sessions/north-1").text
    assert WORDS not in everything
    assert {turn["text"] for turn in answer.json()["items"]} == {None}
    assert answer.json()["items"][1]["scores"]
    recorded = {entry["action"] for entry in trail(web, session="north-1", by=name)}
    assert recorded == {"read scores"}


def test_no_response_to_an_analyst_has_a_pseudonym(web: Web) -> None:
    with web.client() as sue, web.client("ana") as ana:
        pseudonyms = {
            c for card in sue.get("/sessions").json()["items"] for c in card["counsellors"]
        }
        assert len(pseudonyms) == 3
        pages = (
            "/sessions",
            "/sessions/north-1",
            "/sessions/north-1/turns",
            "/history",
            "/alerts",
            "/exports/sessions?format=jsonl",
            "/exports/turns?format=jsonl",
        )
        for path in pages:
            text = ana.get(path).text
            assert text
            assert not [name for name in pseudonyms if name in text], path
        asked = ana.get("/sessions", params={"counsellor": pseudonyms.pop()})
        assert asked.status_code == 403


def test_every_transcript_read_is_audited(web: Web) -> None:
    before = len(trail(web, session="south-1", by="sam"))
    with web.client("sam") as sam:
        sam.get("/sessions/south-1/turns")
        sam.get("/sessions/north-1/turns")
    after = trail(web, session="south-1", by="sam")
    assert len(after) == before + 1
    assert (after[0]["action"], after[0]["detail"]) == ("read transcript", "api")
    [foreign] = trail(web, session="north-1", by="sam")
    assert foreign["action"] == "refused"


def test_the_audit_trail_is_paged(web: Web) -> None:
    for _ in range(3):
        with web.client("sam") as sam:
            sam.get("/sessions/south-1/turns")
    everything = trail(web, limit="500")
    with web.client("ada") as ada:
        first = ada.get("/audit", params={"limit": "2"}).json()
        rest = ada.get("/audit", params={"limit": "500", "cursor": first["next_cursor"]}).json()
    assert [*first["items"], *rest["items"]] == everything


def test_history_has_one_point_per_counsellor_turn_or_session(web: Web) -> None:
    with web.client() as sue:
        points = sue.get("/sessions/north-1/history").json()["items"]
        assert [(point["seq"], point["stage"]) for point in points] == [
            (1, "final"),
            (3, "final"),
            (5, "final"),
        ]
        card = sue.get("/sessions/north-1").json()
        assert [[p["seq"], p["low_empathy_risk"]] for p in points] == card["risk_by_turn"]
        paged = sue.get("/sessions/north-1/history", params={"limit": "2"}).json()
        rest = sue.get(
            "/sessions/north-1/history", params={"cursor": paged["next_cursor"], "bundle": BUNDLE}
        ).json()
        assert [*paged["items"], *rest["items"]] == points
        assert sue.get("/sessions/north-1/history", params={"bundle": "x"}).json()["items"] == []
        over_time = sue.get("/history", params={"team": "south"}).json()["items"]
    assert [point["session_id"] for point in over_time] == ["south-1"]
    assert over_time[0]["low_empathy_risk"] is not None
    assert over_time[0]["empathy_index"] is not None


def test_a_counsellors_trend_has_no_mean_for_weeks_with_few_sessions(web: Web) -> None:
    with web.client("cleo") as cleo, web.client() as sue:
        me = cleo.get("/me").json()["speaker"]
        own = cleo.get(f"/speakers/{me}").json()
        assert own["counsellor"]["sessions"] == 1
        assert {trend["mechanism"] for trend in own["trends"]} == {
            "emotional_reactions",
            "interpretations",
            "explorations",
        }
        weeks = [week for trend in own["trends"] for week in trend["weeks"]]
        assert all(week["mean"] is None for week in weeks if week["n"] < own["fewest_sessions"])
        assert not trail(web, by="cleo", action="read counsellor")
        assert sue.get(f"/speakers/{me}").status_code == 200
    assert trail(web, by="sue", action="read counsellor")


def test_a_bundle_has_its_manifest_and_model_card(web: Web) -> None:
    manifest = json.loads((DEFAULT_BUNDLE / MANIFEST).read_text("utf-8"))
    shipped = f"{manifest['name']}-{manifest['version']}-{manifest['profile']}"
    web.store.prepare(shipped, "1" * 64, manifest, redact=True)
    with web.client("ana") as ana:
        assert {row["bundle"] for row in ana.get("/bundles").json()} == {BUNDLE, shipped}
        found = ana.get(f"/bundles/{shipped}").json()
        assert found["manifest"]["heads"] == manifest["heads"]
        assert found["model_card"].startswith("#")
        assert ana.get(f"/bundles/{BUNDLE}").json()["model_card"] is None
        assert ana.get("/bundles/none").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        ("/sessions?cursor=nonsense", 400, "bad-cursor"),
        ("/sessions?cursor=WyJyaXNrIiwgTmFOLCAieCJd", 400, "bad-cursor"),  # a risk of NaN
        ("/audit?cursor=WyJhdWRpdCIsIDk5OTk5OTk5OTk5OTk5OTk5OTk5OTldCg", 403, "forbidden"),
        ("/sessions?limit=0", 422, "invalid"),
        ("/sessions?started_from=2026-01-05T10:00:00", 422, "invalid"),
        ("/sessions/none", 404, "not-found"),
        ("/nowhere", 404, "not-found"),
        ("/sessions/north-1%00/turns", 422, "invalid"),
    ],
)
def test_errors_are_problem_details(web: Web, path: str, status: int, slug: str) -> None:
    with web.client() as sue:
        answer = sue.get(path)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:rapport:problem:{slug}"
    assert problem["status"] == status
    assert problem["detail"]
    assert answer.headers["cache-control"] == "no-store"
    assert "content-security-policy" in answer.headers


def test_errors_do_not_repeat_submitted_values(web: Web) -> None:
    with web.client() as sue:
        bad = sue.post("/mutes", json={"minutes": WORDS, WORDS * 2: 1, "reason": WORDS * 100})
    assert bad.status_code == 422
    assert {fault["where"] for fault in bad.json()["errors"]} >= {"body.minutes", "body.reason"}
    assert f'"{WORDS}"' not in bad.text


def test_a_wrong_method_is_a_problem(web: Web) -> None:
    with web.client() as sue:
        answer = sue.put("/sessions")
    assert answer.status_code == 405
    assert answer.json()["type"] == "urn:rapport:problem:method-not-allowed"


def test_cross_site_requests_with_a_cookie_change_nothing(web: Web) -> None:
    """With a cookie, requests that change something must come from the console's own pages."""
    People(web.store).set_password("sue", hash_password("long enough to pass"))
    with web.anonymous_client() as browser:
        form = {"name": "sue", "password": "long enough to pass"}
        assert browser.post("/sign-in", data=form).status_code == 303
        assert browser.get("/api/v1/me").json()["name"] == "sue"
        body = {"team": "north", "minutes": 1}
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
            answer = browser.post("/api/v1/mutes", json=body, headers=headers)
            assert answer.status_code == 403
            assert answer.headers["content-type"] == "application/problem+json"
        own = browser.post("/api/v1/mutes", json=body, headers={"Sec-Fetch-Site": "same-origin"})
        assert own.status_code == 201


def test_a_session_id_may_contain_a_slash(web: Web) -> None:
    web.commit(turn(session_id="a/b/turns of it", team="slashes"))
    with web.client() as sue:
        assert sue.get("/sessions/a%2Fb%2Fturns of it").json()["session_id"] == "a/b/turns of it"
        assert len(sue.get("/sessions/a%2Fb%2Fturns of it/turns").json()["items"]) == 1
