"""The status of every route for every role; fails if a route is missing here."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from stream_app.store import studies
from tests.web.server import PERSONS, Web

ROLES = ("supervisor", "counsellor", "analyst", "admin", "ingest", "study")
NAMES = {"supervisor": "sue", "counsellor": "cleo", "analyst": "ana", "admin": "ada"}
NAMES |= {"ingest": "pump", "study": "stu"}
MEMBERS = "yyyy--"
READERS = "yy----"
SUPERVISORS = "y-----"
EXPORTERS = "yyy---"
STUDIES = "yyy--y"
TABLE: dict[tuple[str, str], str] = {
    ("get", "/live"): MEMBERS,
    ("get", "/alerts"): MEMBERS,
    ("get", "/alerts/precision"): MEMBERS,
    ("get", "/alerts/{episode_id}"): MEMBERS,
    ("post", "/alerts/{episode_id}/acknowledge"): SUPERVISORS,
    ("post", "/alerts/{episode_id}/resolve"): SUPERVISORS,
    ("post", "/alerts/{episode_id}/note"): SUPERVISORS,
    ("get", "/mutes"): SUPERVISORS,
    ("post", "/mutes"): SUPERVISORS,
    ("delete", "/mutes/{mute_id}"): SUPERVISORS,
    ("get", "/sessions"): MEMBERS,
    ("get", "/sessions/{session_id}"): MEMBERS,
    ("get", "/sessions/{session_id}/turns"): MEMBERS,
    ("get", "/sessions/{session_id}/history"): MEMBERS,
    ("get", "/sessions/{session_id}/feedback"): READERS,
    ("put", "/sessions/{session_id}/readers/{name}"): SUPERVISORS,
    ("delete", "/sessions/{session_id}/readers/{name}"): SUPERVISORS,
    ("get", "/sessions/{session_id}/consents"): SUPERVISORS,
    ("post", "/sessions/{session_id}/consents"): SUPERVISORS,
    ("get", "/history"): MEMBERS,
    ("get", "/speakers"): READERS,
    ("get", "/speakers/{speaker}"): READERS,
    ("post", "/ratings"): READERS,
    ("get", "/ratings"): READERS,
    ("delete", "/ratings/{rating_id}"): READERS,
    ("post", "/disputes"): "-y----",
    ("get", "/disputes"): READERS,
    ("post", "/disputes/{dispute_id}/decide"): SUPERVISORS,
    ("get", "/agreement"): "yyyy--",
    ("get", "/analyses"): "y-y---",
    ("get", "/analyses/{question}"): "y-y---",
    ("get", "/samples"): "y-y---",
    ("post", "/samples"): SUPERVISORS,
    ("get", "/samples/{sample_id}"): "y-y---",
    ("get", "/samples/{sample_id}/turns/{place}"): SUPERVISORS,
    ("post", "/samples/{sample_id}/turns/{place}"): SUPERVISORS,
    ("get", "/samples/{sample_id}/report"): "y-y---",
    ("get", "/exports/sessions"): STUDIES,
    ("get", "/exports/turns"): STUDIES,
    ("get", "/exports/convokit"): STUDIES,
    ("get", "/exports/ratings"): EXPORTERS,
    ("get", "/exports/disputes"): EXPORTERS,
    ("get", "/exports/alerts"): EXPORTERS,
    ("get", "/exports/rollups"): "y-y---",
    ("post", "/events"): "----y-",
    ("get", "/bundles"): MEMBERS,
    ("get", "/bundles/{bundle}"): MEMBERS,
    ("get", "/me"): "yyyyyy",
    ("get", "/audit"): "---y--",
}
STUDY = "S-1"
PARTS = {"session_id": "north-2", "place": "1"}


@pytest.fixture(scope="module")
def clients(web: Web) -> Iterator[dict[str, httpx.Client]]:
    made = {role: web.client(name) for role, name in NAMES.items()}
    yield made
    for client in made.values():
        client.close()


@pytest.fixture(scope="module", autouse=True)
def in_a_study(web: Web) -> None:
    studies.admit(web.store, STUDY, "stu", datetime.now(UTC) + timedelta(days=1))


def head_of(client: httpx.Client, method: str, path: str) -> httpx.Response:
    """Request only the headers, because the live stream is endless."""
    filled = path.format_map(
        {name: PARTS.get(name, "0" * 32) for name in ("place", "session_id")}
        | {name: "0" * 32 for name in path.replace("}", "{").split("{")[1::2] if name not in PARTS}
    )
    if (method, path) in TABLE and TABLE[method, path] == STUDIES:
        filled += f"?study={STUDY}"
    body: dict[str, Any] = {"json": {}} if method == "post" else {}
    with client.stream(method.upper(), filled, **body) as response:
        if response.headers["content-type"].startswith("application/problem+json"):
            response.read()
        return response


def test_the_table_covers_every_route(web: Web) -> None:
    document = web.anonymous_client().get("/api/v1/openapi.json").json()
    found = {(method, path) for path, each in document["paths"].items() for method in each}
    assert found == TABLE.keys()


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_roles(clients: dict[str, httpx.Client], method: str, path: str) -> None:
    for role, letter in zip(ROLES, TABLE[method, path], strict=True):
        response = head_of(clients[role], method, path)
        if letter == "-":
            assert response.status_code == 403, role
            assert response.json()["title"] == "Forbidden"
        else:
            assert response.status_code not in (401, 403), (role, response.status_code)
            assert response.status_code < 500, role


@pytest.mark.parametrize(("method", "path"), TABLE)
def test_requests_without_a_valid_token_are_rejected(web: Web, method: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer rapport_made-up"}):
        with web.anonymous_client(path="/api/v1", headers=headers) as nobody:
            response = head_of(nobody, method, path)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert response.json()["status"] == 401


def test_the_table_covers_every_role() -> None:
    assert {person.role.value for person in PERSONS} == set(ROLES)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("sue", {"north-1", "north-2", "south-1"}),
        ("nora", {"north-1", "north-2"}),
        ("sam", {"south-1"}),
        ("cleo", {"north-2"}),
        ("ana", {"north-1", "north-2", "south-1"}),
        ("ada", {"north-1", "north-2", "south-1"}),
    ],
)
def test_anything_outside_the_scope_is_404(web: Web, name: str, seen: set[str]) -> None:
    everything = {"north-1", "north-2", "south-1"}
    with web.client("sue") as sue:
        episodes = {a["episode_id"]: a["session_id"] for a in sue.get("/alerts").json()["items"]}
        speakers = {
            card["counsellors"][0]: card["session_id"]
            for card in sue.get("/sessions").json()["items"]
        }
    with web.client(name) as client:
        for path in ("/sessions", "/history", "/alerts"):
            items = client.get(path).json()["items"]
            assert {item["session_id"] for item in items} == seen, path
        for path in ("/exports/sessions", "/exports/turns"):
            if name != "ada":
                lines = client.get(path, params={"format": "jsonl"}).text.splitlines()
                assert {httpx.Response(200, text=line).json()["session_id"] for line in lines} == (
                    seen
                ), path
        for session_id in everything:
            expected = 200 if session_id in seen else 404
            for path in ("", "/turns", "/history"):
                answer = client.get(f"/sessions/{session_id}{path}")
                assert answer.status_code == expected, (session_id, path)
        for episode_id, session_id in episodes.items():
            expected = 200 if session_id in seen else 404
            assert client.get(f"/alerts/{episode_id}").status_code == expected
        if name in ("sue", "nora", "sam", "cleo"):
            for speaker, session_id in speakers.items():
                expected = 200 if session_id in seen else 404
                assert client.get(f"/speakers/{speaker}").status_code == expected
            found = {each["speaker"] for each in client.get("/speakers").json()["items"]}
            assert found == {one for one, session_id in speakers.items() if session_id in seen}


def test_another_supervisors_team_is_inaccessible_by_filters_and_actions(web: Web) -> None:
    with web.client("sue") as sue, web.client("nora") as nora:
        found = sue.get("/alerts", params={"session": "south-1"}).json()["items"]
        assert nora.get("/sessions", params={"team": "south"}).json()["items"] == []
        assert nora.get("/alerts", params={"team": "south"}).json()["items"] == []
        for action in ("acknowledge", "resolve", "note"):
            body = {"reason": "justified"} if action != "note" else {"note": "n"}
            path = f"/alerts/{found[0]['episode_id']}/{action}"
            assert nora.post(path, json=body).status_code == 404
        mute = {"session_id": "south-1", "minutes": 5}
        assert nora.post("/mutes", json=mute).status_code == 404
        assert nora.post("/mutes", json={"team": "south", "minutes": 5}).status_code == 403
