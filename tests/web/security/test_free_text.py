"""Free text of events and people is redacted, counts as text, and stays inside the service."""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts
from pydantic import BaseModel
from starlette.routing import Mount

from stream_app.store.accounts.people import People
from stream_app.store.accounts.roles import Right
from stream_app.store.alerts.suppressions import find_suppressions
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.web import api
from tests.store import batches
from tests.store.batches import BUNDLE
from tests.store.reading import dump, rows
from tests.web.people.client import Client
from tests.web.people.conftest import As

NOTE = "write to client@example.org"


def test_notes_and_reasons_are_redacted_as_turns_are(filled: Store, as_: As) -> None:
    pat = as_("pat")
    alert = pat.get("/api/v1/alerts").json()["items"][0]
    path = f"/api/v1/alerts/{alert['episode_id']}"
    assert pat.post(f"{path}/note", json={"note": NOTE}).status_code == 200
    mute = {"session_id": alert["session_id"], "minutes": 5, "reason": NOTE}
    assert pat.post("/api/v1/mutes", json=mute).status_code == 201
    pat.post(
        f"/alerts/{alert['episode_id']}/acknowledge", data={"reason": "justified", "note": NOTE}
    )
    notes = [row["note"] for row in rows(filled, tables.alert_actions)]
    reasons = [row["reason"] for row in rows(filled, tables.mutes)]
    assert len(notes) == 2
    for words in (*notes, *reasons):
        assert words == "write to ••••••••••••••••••"


def test_the_reason_of_a_mute_is_not_in_deliveries(filled: Store, as_: As) -> None:
    pat = as_("pat")
    alert = pat.get("/api/v1/alerts").json()["items"][0]
    mute = {"session_id": alert["session_id"], "minutes": 5, "reason": "she told me in private"}
    assert pat.post("/api/v1/mutes", json=mute).status_code == 201

    class Subject:
        episode_id, rule = alert["episode_id"], alert["rule"]
        session_id, team = alert["session_id"], alert["team"]

    with filled.reading() as connection:
        later = datetime.now(UTC) + timedelta(seconds=1)
        found = find_suppressions(connection, [Subject()], later)
    assert found[alert["episode_id"]].reason == "muted"


TOLD = "Sarah Connor, 07700 900123, hung up"
NAMES = frozenset(
    {
        "alert",
        "answers",
        "bundle",
        "chosen",
        "counsellor",
        "episode_id",
        "head",
        "label",
        "measure",
        "name",
    }
    | {"reviewer", "rule", "sample_id", "scorecard", "seed", "session_id", "speaker"}
    | {"speaker_id", "team", "to", "version", "what", "proposed", "sign_in", "query"}
    | {"password", "current", "new", "repeated"}
    | {"sessions", "new_team"}
)
"""Fields that name something or choose it; every other string is free text."""
NOT_ABOUT_PEOPLE = frozenset({("rules", "text"), ("practice", "text"), ("holds", "reason")})
"""The file of rules, what is never stored, and a case's number, which redaction would take for a
date and only administrators read; by a part of the path."""
ALERT, REVIEW, DISPUTE = "alerts/{episode_id}", "reviews/{review_id}", "disputes/{dispute_id}"
SESSION = "sessions/{session_id}"
GOAL = {"measure": "explorations", "starts_on": "2026-01-05", "ends_on": "2026-03-30"}
MUTE = {"what": "session", "minutes": "5"}
RULES = {"text": "version: 1\nrules: []\n"}
OF_API: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    (f"/{ALERT}/acknowledge", "note"): ("pat", {"reason": "justified"}),
    (f"/{ALERT}/note", "note"): ("pat", {}),
    (f"/{ALERT}/judge", "note"): ("pat", {"judgement": "justified"}),
    (f"/{ALERT}/resolve", "note"): ("pat", {}),
    (f"/{SESSION}/consents", "source"): ("pat", {"status": "given"}),
    ("/disputes", "note"): (
        "olu",
        {"session_id": "{session_id}", "seq": 1, "head": "explorations"},
    ),
    (f"/{DISPUTE}/decide", "answer"): ("pat", {"decision": "upheld"}),
    ("/goals", "goal"): ("pat", {**GOAL, "counsellor": "{counsellor}"}),
    (f"/{SESSION}/interventions", "text"): ("pat", {"kind": "note"}),
    ("/mutes", "reason"): ("pat", {"session_id": "{session_id}", "minutes": 5}),
    ("/ratings", "comment"): (
        "pat",
        {"session_id": "{session_id}", "seq": 1, "head": "explorations", "value": 1},
    ),
    (f"/{REVIEW}/comments", "comment"): ("pat", {"seq": 1}),
    ("/rules/versions", "reason"): ("pat", RULES),
    ("/rules/versions/{version}/adopt", "reason"): ("ada", {}),
    ("/samples", "title"): ("pat", {"bundle": BUNDLE, "size": 5}),
}
OF_FORMS: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("/admin/bundles/promote", "reason"): ("ada", {"bundle": "0" * 64}),
    ("/admin/bundles/rollback", "reason"): ("ada", {}),
    (f"/{ALERT}/acknowledge", "note"): ("pat", {"reason": "justified"}),
    (f"/{ALERT}/note", "note"): ("pat", {}),
    (f"/{ALERT}/judge", "note"): ("pat", {"judgement": "justified"}),
    (f"/{ALERT}/mute", "reason"): ("pat", MUTE),
    (f"/{ALERT}/resolve", "note"): ("pat", {}),
    ("/calibration", "title"): ("pat", {"bundle": BUNDLE, "size": "5", "team": "", "seed": ""}),
    ("/counsellors/{pseudonym}/goals", "goal"): ("pat", GOAL),
    (f"/{DISPUTE}", "answer"): ("pat", {"decision": "upheld"}),
    (f"/{REVIEW}/comments", "comment"): ("pat", {"seq": "1"}),
    ("/rules/draft/save", "reason"): ("pat", RULES),
    ("/rules/versions/{version}/adopt", "reason"): ("ada", {}),
    ("/saved-views", "name"): ("pat", {"query": ""}),
    (f"/{SESSION}/dispute", "note"): ("olu", {"seq": "1", "head": "explorations"}),
    (f"/{SESSION}/interventions", "text"): ("pat", {"kind": "note"}),
    (f"/{SESSION}/session-rating", "comment"): ("pat", {"rating": "4"}),
    (f"/{SESSION}/turn-rating", "comment"): ("pat", {"seq": "1", "explorations": "1"}),
}
"""Who sends each free text, with what else the request needs."""


def strings(fields: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """The names of fields that take any string."""
    for name, annotation in fields:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation.model_fields
            yield from strings((key, field.annotation) for key, field in model.items())
        elif takes_text(annotation):
            yield name


def takes_text(annotation: Any) -> bool:
    return annotation is str or any(map(takes_text, get_args(annotation)))


def dependants(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for each in dependant.dependencies:
        yield from dependants(each)


def free_texts(app: FastAPI) -> set[tuple[str, str]]:
    """Path and name of every free text that a request to this application has."""
    found = set()
    for each in iter_route_contexts(app.routes):
        if not isinstance(each.original_route, APIRoute):
            continue
        path = re.sub(r":\w+", "", each.path or "")
        for part in dependants(each.original_route.dependant):
            body = [(field.name, field.field_info.annotation) for field in part.body_params]
            found |= {(path, name) for name in strings(body) if name not in NAMES}
    return {
        (path, name)
        for path, name in found
        if not any(part in path and name == field for part, field in NOT_ABOUT_PEOPLE)
    }


def test_every_free_text_of_the_api_and_of_forms_is_known(as_: As) -> None:
    app = as_("").app
    mounted = {route.path: route.app for route in app.routes if isinstance(route, Mount)}
    assert free_texts(mounted[api.PREFIX]) == OF_API.keys()
    assert free_texts(app) | {("/saved-views", "name")} == OF_FORMS.keys()


@pytest.mark.parametrize("prefix", ["/api/v1", ""])
def test_no_free_text_of_the_api_or_of_forms_is_stored_unmasked(
    filled: Store, as_: As, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_RULES_SOURCE", "database")
    pat = as_("pat")
    alert = pat.get("/api/v1/alerts").json()["items"][0]
    session = "south-0"
    opened = {"session_id": session, "seq": 3, "head": "explorations", "note": "n"}
    due = {"session_id": session, "reviewer": "pat", "due_at": "2100-01-02T00:00:00Z"}
    names = {
        "session_id": session,
        "episode_id": alert["episode_id"],
        "counsellor": filled.privacy.pseudonym("olu@example.org"),
        "pseudonym": filled.privacy.pseudonym("olu@example.org"),
        "dispute_id": as_("olu").post("/api/v1/disputes", json=opened).json()["dispute_id"],
        "review_id": pat.post("/api/v1/reviews", json=due).json()["review_id"],
        "version": "1",
    }
    sent = 0
    for (path, field), (person, more) in (OF_API if prefix else OF_FORMS).items():
        body = {
            key: value.format(**names) if key in ("session_id", "counsellor") else value
            for key, value in more.items()
        }
        way = "json" if prefix else "data"
        answer = as_(person)._ask(
            "PUT" if (prefix and "comments" in path) else "POST",
            prefix + path.format(**names),
            **{way: {**body, field: TOLD}},
        )
        assert answer.status_code != 404, path
        sent += answer.status_code < 400
        assert answer.status_code < 500 or path.endswith("consents"), (path, answer.text)
    stored = dump(filled)
    assert "•" in stored
    assert "Connor" not in stored
    assert "900123" not in stored
    assert sent >= 10, "the requests were refused before anything was stored"


def test_the_reason_of_an_end_counts_as_text(filled: Store, as_: As) -> None:
    events = [
        *(batches.turn(seq, session_id="told", team="north") for seq in range(4)),
        batches.end(session_id="told", reason="hung up in anger"),
    ]
    filled.commit(batches.process(events))
    tokens = {
        "scores": People(filled).create_token(
            "sue", "scores", rights=frozenset({Right.READ_SCORES})
        ),
        "text": People(filled).create_token(
            "sue", "text", rights=frozenset({Right.READ_SCORES, Right.READ_TEXT})
        ),
    }
    of_rights = {name: Client(as_("").app, token) for name, token in tokens.items()}
    exports = "/api/v1/exports/{}?format=jsonl"
    for who in (as_("ana"), as_("ada"), of_rights["scores"]):
        assert who.get("/api/v1/sessions/told").json()["end_reason"] is None
        assert "hung up" not in who.get("/api/v1/sessions?limit=500").text
        for path in ("sessions", "turns", "convokit"):
            refused = who.get(exports.format(path) + "&text=true")
            assert refused.status_code == 403
        assert "hung up" not in who.get(exports.format("sessions")).text
    for reader in (as_("sue"), of_rights["text"]):
        assert reader.get("/api/v1/sessions/told").json()["end_reason"] == "hung up in anger"
        assert "hung up" not in reader.get(exports.format("sessions")).text
        assert "hung up in anger" in reader.get(exports.format("sessions") + "&text=true").text


def test_a_corpus_without_text_has_no_reasons(filled: Store, as_: As) -> None:
    events = [batches.turn(session_id="told", team="north"), batches.turn(1, session_id="told")]
    ended = batches.end(session_id="told", reason="hung up in anger")
    filled.commit(batches.process([*events, ended]))
    for text, expected in (("true", True), ("false", False)):
        raw = as_("sue").get(f"/api/v1/exports/convokit?text={text}").content
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            found = b"hung up" in archive.read("rapport-corpus/conversations.json")
        assert found is expected


def test_the_source_of_a_consent_counts_as_text(filled: Store, as_: As) -> None:
    filled.commit(
        batches.process(
            [
                batches.turn(session_id="told", team="north"),
                batches.consent(session_id="told", source="said on the phone"),
            ]
        )
    )
    token = People(filled).create_token("sue", "scores", rights=frozenset({Right.READ_SCORES}))
    path = "/api/v1/sessions/told/consents"
    assert "on the phone" in as_("sue").get(path).text
    answer = Client(as_("").app, token).get(path)
    assert answer.status_code == 200
    assert "on the phone" not in answer.text
