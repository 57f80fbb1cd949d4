"""Every route and stream for every role, with own data, the team's and foreign data.

The tables are in ``role_table``; a route without a row fails the test. ``cleo`` is the counsellor
of ``OWN``; ``nora`` supervises its team, to which ``TEAM`` belongs, too; ``FOREIGN`` belongs to
another team.
"""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from aiokafka.errors import KafkaConnectionError
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount
from starlette.types import Message

from stream_app.contracts.scores import Alert, AlertAction, SessionScore, TurnScore
from stream_app.store.accounts import studies
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole, Right
from stream_app.store.alerts import alert_actions, alerts, drift_changes, rule_versions
from stream_app.store.alerts.alerts import AlertFilter
from stream_app.store.alerts.drift_changes import FoundChange
from stream_app.store.database import tables
from stream_app.store.sessions.routing import read_routing
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.work import calibration_samples, coaching_goals, disputes, ratings, reviews
from stream_app.store.work.calibration_samples import NewCalibrationSample
from stream_app.store.work.ratings import Judgement
from stream_app.store.work.reviews import NewReview
from stream_app.web import api
from stream_app.web.live.publisher import Publisher
from tests.store.batches import BUNDLE, process, turn
from tests.web.api.conftest import CLEO, WORDS
from tests.web.api.role_table import API, PAGES, ROLES, STUDY, Row
from tests.web.in_process import InProcessWeb, without_streams
from tests.web.server import PERSONS, Web

OWN, TEAM, FOREIGN = "north-2", "north-1", "south-1"
EVERYTHING = frozenset({OWN, TEAM, FOREIGN})
COUNSELLORS = {
    OWN: ("cleo", CLEO),
    TEAM: ("joan", "joan@example.org"),
    FOREIGN: ("jim", "jim@example.org"),
}
SEES = {
    "sue": EVERYTHING,
    "nora": {OWN, TEAM},
    "tess": frozenset(),
    "sam": {FOREIGN},
    "cleo": {OWN},
    "ana": EVERYTHING,
    "ada": EVERYTHING,
    "pump": frozenset(),
    "stu": EVERYTHING,
}
"""By person; Tess is a supervisor without a team."""
PEOPLE = {person.name: person.role for person in PERSONS} | {"tess": PersonRole.SUPERVISOR}
HEAD = "explorations"
FILLED = ("session", "counsellor")
"""What a row's body can stand for."""
WITHOUT_STREAMS = ("pump", "stu")
PUBLIC = {("get", f"/{name}") for name in ("openapi.json", "asyncapi.json", "schemas/{name}.json")}
"""Descriptions of the API and its messages, without data."""
LiveMessage = TurnScore | SessionScore | Alert | AlertAction
ROWS = [(api.PREFIX, *key, row) for key, row in API.items()]
ROWS += [("", *key, row) for key, row in PAGES.items()]
WITH_ROW = pytest.mark.parametrize(
    ("prefix", "method", "path", "row"),
    [pytest.param(*each, id=" ".join(each[:3])) for each in ROWS],
)


@pytest.fixture(scope="module")
def filled(web: InProcessWeb) -> InProcessWeb:
    """With accounts of all counsellors and of a supervisor without a team."""
    people = People(web.store)
    for name, speaker in COUNSELLORS.values():
        if people.find(name) is None:
            pseudonym = web.store.privacy.pseudonym(speaker)
            people.add(Person(name, PersonRole.COUNSELLOR, speaker=pseudonym), None)
    people.add(Person("tess", PersonRole.SUPERVISOR), None)
    web.tokens["tess"] = people.create_token("tess", "test")
    studies.admit(web.store, STUDY, "stu", datetime.now(UTC) + timedelta(days=1))
    return web


@pytest.fixture
async def client(
    filled: InProcessWeb, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    """Asks the application, which has no broker."""

    async def no_broker(_: Publisher) -> None:
        raise KafkaConnectionError

    monkeypatch.setattr(Publisher, "_connected", no_broker)
    transport = httpx.ASGITransport(without_streams(filled.app))
    async with httpx.AsyncClient(transport=transport, base_url=filled.url) as made:
        yield made


def routes(app: FastAPI) -> Iterator[tuple[str, str]]:
    """All routes of an application, without those of mounted ones."""
    for each in iter_route_contexts(app.routes):
        if each.methods is not None:
            path = re.sub(r":\w+", "", each.path)
            yield from ((m.lower(), path) for m in each.methods if m not in ("HEAD", "OPTIONS"))


def test_the_tables_cover_every_route(web: InProcessWeb) -> None:
    mounted = {r.path: r.app for r in web.app.routes if isinstance(r, Mount)}
    assert mounted.keys() == {"/static", api.PREFIX}
    assert set(routes(web.app)) == PAGES.keys()
    assert set(routes(mounted[api.PREFIX])) - PUBLIC == API.keys()


def test_the_only_websocket_has_a_test_of_its_own(web: InProcessWeb) -> None:
    """``test_event_socket.py`` tries every role."""
    mounted = {r.path: r.app for r in web.app.routes if isinstance(r, Mount)}
    sockets = {
        each.path
        for app in (web.app, mounted[api.PREFIX])
        for each in iter_route_contexts(app.routes)
        if each.methods is None and "WebSocket" in type(each.original_route).__name__
    }
    assert sockets == {"/events/ws"}


def test_the_tables_cover_every_role() -> None:
    assert {role.value for role in PEOPLE.values()} == set(ROLES)


@dataclass(frozen=True)
class Asker:
    """Sends the requests of one row."""

    web: InProcessWeb
    client: httpx.AsyncClient
    prefix: str
    method: str
    path: str
    row: Row

    @property
    def about_a_session(self) -> bool:
        """Whether path or body name data that belongs to a session or team.

        An intervention is confirmed by programs, whose tokens reach all sessions.
        """
        named = set(re.findall(r"{(\w+)}", self.path)) - {
            "bundle",
            "question",
            "topic",
            "intervention_id",
            "version",
            "change_id",
        }
        return bool(named) or any(f"{{{each}}}" in str(self.row.body) for each in FILLED)

    async def ask(self, name: str, session: str, token: str | None = None) -> httpx.Response:
        """Ask as this person, about data of this session."""
        path = re.sub(r"{(\w+)}", lambda found: self._part(found[1], name, session), self.path)
        options: dict[str, Any] = {}
        if self.row.body is not None:
            body = {k: self._filled(v, session) for k, v in self.row.body.items()}
            options = {"json" if self.prefix else "data": body}
        query = {k: session if v == "{session}" else v for k, v in self.row.query.items()}
        headers = {"Authorization": f"Bearer {token or self.web.tokens[name]}"} if name else {}
        return await self.client.request(
            self.method, self.prefix + path, headers=headers, params=query, **options
        )

    def _filled(self, value: Any, session: str) -> Any:
        if value == "{counsellor}":
            return self.web.store.privacy.pseudonym(COUNSELLORS[session][1])
        return session if value == "{session}" else value

    def _part(self, part: str, name: str, session: str) -> str:
        """What stands in the path for a parameter; objects are made as needed."""
        store = self.web.store
        made: dict[str, Callable[[], str]] = {
            "intervention_id": lambda: self._intervention(session),
            "dispute_id": lambda: self._dispute(session),
            "review_id": lambda: self._review(name or "sue", session),
            "goal_id": lambda: self._goal(name, session),
        }
        if part in made:
            return made[part]()
        match part:
            case "episode_id":
                chosen = AlertFilter(session_id=session)
                return alerts.find(store, ALL_SESSIONS, chosen, limit=1).items[0].episode_id
            case "speaker" | "pseudonym":
                return store.privacy.pseudonym(COUNSELLORS[session][1])
            case "mute_id":
                until = datetime.now(UTC) + timedelta(minutes=5)
                mute = alert_actions.create_mute(
                    store,
                    rule=None,
                    session_id=session,
                    team=None,
                    until=until,
                    reason=None,
                    person="x",
                )
                return mute.mute_id
            case "rating_id":
                rater = name if session == OWN and name else "joan"
                given = Judgement(OWN, 1, HEAD, 1)
                return ratings.rate(store, ALL_SESSIONS, rater, [given])[0].rating_id
            case "sample_id":
                new = NewCalibrationSample("t", BUNDLE, session.partition("-")[0], 5, 1)
                sue = Person("sue", PersonRole.SUPERVISOR, all_teams=True)
                return calibration_samples.draw(store, sue, new).sample_id
            case "change_id":
                found = FoundChange("index", "length", "all", datetime.now(UTC), 0.1)
                drift_changes.record(store, [found])
                return drift_changes.all_of(store)[0].change_id
            case "version":
                return str(rule_versions.save(store, "version: 1\nrules: []\n", "sue", "r"))
            case _:
                parts = {
                    "session_id": session,
                    "name": "cleo",
                    "seq": "1",
                    "place": "1",
                    "bundle": BUNDLE,
                    "question": "none",
                    "topic": "er",
                }
                return parts[part]

    def _review(self, reviewer: str, session: str) -> str:
        store = self.web.store
        known = reviews.find(
            store, ALL_SESSIONS, session_id=session, reviewer=reviewer, signed=False
        )
        if known:
            return known[0].review_id
        card = self.web.app.state.services.scorecards["empathy"]
        new = NewReview(session, reviewer, "x", card, datetime.now(UTC))
        return reviews.assign(store, [new])[0]

    def _goal(self, name: str, session: str) -> str:
        """Of the supervisor who asks, for Cleo; elsewhere of somebody else, for somebody else."""
        store = self.web.store
        mine = session == OWN and PEOPLE.get(name) is PersonRole.SUPERVISOR
        person = Person(name if mine else "x", PersonRole.SUPERVISOR)
        speaker = store.privacy.pseudonym(COUNSELLORS[session][1])
        days = date(2026, 1, 5), date(2026, 3, 30)
        return coaching_goals.add(store, person, speaker, "explorations", "g", *days).goal_id

    def _intervention(self, session: str) -> str:
        row = {"intervention_id": str(uuid.uuid4()), "session_id": session, "kind": "take-over"}
        with self.web.store.transaction() as connection:
            values = {**row, "person": "sue", "at": datetime.now(UTC)}
            connection.execute(sa.insert(tables.interventions).values(values))
        return row["intervention_id"]

    def _dispute(self, session: str) -> str:
        store, name = self.web.store, COUNSELLORS[session][0]
        known = disputes.find(store, ALL_SESSIONS, session_id=session)
        if not known:
            person = People(store).find(name)
            assert person is not None
            return disputes.contest(store, person, session, 1, HEAD, None, "n").dispute_id
        return known[0].dispute_id


Ask = Callable[[str, str, str, Row], Asker]


@pytest.fixture
def asker(filled: InProcessWeb, client: httpx.AsyncClient) -> Ask:
    return lambda *row: Asker(filled, client, *row)


def expected(asker: Asker, name: str, session: str) -> str:
    """``denied``, ``missing`` or ``done``."""
    row, role = asker.row, PEOPLE[name]
    if not row.public and row.roles[ROLES.index(role.value)] == "-":
        return "missing" if row.unseen else "denied"
    if row.team and name == "tess":
        return "denied"
    if row.own:
        return "done" if session == OWN else "missing"
    if asker.about_a_session and session not in SEES[name]:
        return "missing"
    return "done"


@WITH_ROW
async def test_roles(asker: Ask, prefix: str, method: str, path: str, row: Row) -> None:
    asking = asker(prefix, method, path, row)
    pseudonyms = {
        session: asking.web.store.privacy.pseudonym(speaker)
        for session, (_, speaker) in COUNSELLORS.items()
    }
    for name, role in PEOPLE.items():
        letter = row.roles[ROLES.index(role.value)]
        for session in (OWN, TEAM, FOREIGN) if asking.about_a_session and letter == "y" else (OWN,):
            answer = await asking.ask(name, session)
            case, wanted = (name, session, answer.status_code), expected(asking, name, session)
            if wanted == "denied":
                assert answer.status_code == 403, case
            elif wanted == "missing":
                assert answer.status_code == 404, case
            else:
                assert answer.status_code in {200, 201, 202, 204, 303} | row.also, case
            if method != "get" or path == "/exports/convokit":
                continue
            named = {session} if asking.about_a_session else set()
            hidden = EVERYTHING - SEES[name] - named
            assert not {each for each in hidden if each in answer.text}, case
            unknown = EVERYTHING - named if role is PersonRole.ANALYST else hidden
            assert not {each for each in unknown if pseudonyms[each] in answer.text}, case
            if role in (PersonRole.ANALYST, PersonRole.ADMIN, PersonRole.INGEST):
                assert WORDS not in answer.text, case
            if row.lists and wanted == "done":
                assert {each for each in EVERYTHING if each in answer.text} == SEES[name], case


@WITH_ROW
async def test_requests_without_a_valid_token_are_rejected(
    asker: Ask, prefix: str, method: str, path: str, row: Row
) -> None:
    asking = asker(prefix, method, path, row)
    for name, token in (("", None), ("sue", "rapport_made-up")):
        answer = await asking.ask(name, OWN, token)
        if row.public:
            assert answer.status_code in {200, 303} | row.also
        elif prefix:
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json()["status"] == 401
        else:
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/sign-in")


@WITH_ROW
async def test_a_token_needs_the_rights_of_the_route(
    asker: Ask, prefix: str, method: str, path: str, row: Row
) -> None:
    """Pages accept no token with limited rights."""
    asking = asker(prefix, method, path, row)
    if row.public:
        return
    role = ROLES[row.roles.index("y")]
    name = next(name for name in PEOPLE if PEOPLE[name].value == role)
    people = People(asking.web.store)

    async def status(*rights: str) -> int:
        token = people.create_token(name, "test", rights=frozenset(map(Right, rights)))
        return (await asking.ask(name, OWN, token)).status_code

    if row.rights is None:
        return
    for lacking in row.rights:
        assert await status(*(set(row.rights) - {lacking})) == 403, lacking
    assert await status(*row.rights) in {200, 201, 202, 204} | row.also


@pytest.mark.parametrize("path", [path for (method, path) in PAGES if method == "get"])
async def test_pages_accept_no_limited_token(asker: Ask, path: str) -> None:
    row = PAGES["get", path]
    asking = asker("", "get", path, row)
    every = frozenset({Right.READ_SCORES, Right.READ_TEXT, Right.ACT})
    token = People(asking.web.store).create_token("sue", "test", rights=every)
    answer = await asking.ask("sue", OWN, token)
    assert (answer.status_code == 403) != row.public


class Stream:
    """One client of the live stream."""

    def __init__(self, app: FastAPI, token: str) -> None:
        self._app = app
        self._token = token
        self._leaving = asyncio.Event()
        self._resync = asyncio.Event()
        self.status = 0
        self.text = ""

    async def run(self) -> None:
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"{api.PREFIX}/live",
            "raw_path": f"{api.PREFIX}/live".encode(),
            "query_string": b"",
            "headers": [(b"authorization", f"Bearer {self._token}".encode())],
        }
        await self._app(scope, self._receive, self._send)

    async def read_to_the_end(self) -> None:
        """Read until the events before the ``resync`` have arrived, then disconnect."""
        await self._resync.wait()
        self._leaving.set()

    async def _receive(self) -> Message:
        await self._leaving.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"").decode()
        if "event: resync" in self.text:
            self._resync.set()


async def test_streams(filled: InProcessWeb) -> None:
    """Every kind of event about every session, to everyone who may open a stream."""
    hub = filled.app.state.services.hub
    streams = {name: Stream(filled.app, filled.tokens[name]) for name in SEES}
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for stream in streams.values():
            group.create_task(stream.run())
        while hub.clients < len(streams) - 2 or not all(streams[n].status for n in WITHOUT_STREAMS):
            await asyncio.sleep(0.01)
        for session, message in live_messages(filled):
            routing = read_routing(filled.store, [session])[session]
            if isinstance(message, AlertAction):
                hub.broadcast_action(message, routing)
            else:
                hub.broadcast_message(message, routing)
        hub.mark_live()
        for name, stream in streams.items():
            if name not in WITHOUT_STREAMS:
                await stream.read_to_the_end()
    pseudonyms = [filled.store.privacy.pseudonym(speaker) for _, speaker in COUNSELLORS.values()]
    for name, stream in streams.items():
        assert stream.status == (403 if name in WITHOUT_STREAMS else 200)
        blocks = [block for block in stream.text.split("\r\n\r\n") if "session_id" in block]
        found = {
            (kind[1], session[1])
            for block in blocks
            if (kind := re.search(r"event: (\S+)", block))
            and (session := re.search(r'"session_id":"([^"]+)"', block))
        }
        seen = SEES[name] if stream.status == 200 else frozenset()
        kinds = ("turn", "session", "alert", "alert-action")
        assert found == {(kind, session) for kind in kinds for session in seen}, name
        assert WORDS not in stream.text
        if name == "ana":
            assert not any(each in stream.text for each in (*pseudonyms, "by-somebody"))


def live_messages(web: Web) -> Iterator[tuple[str, LiveMessage]]:
    """A message of every kind about every session."""
    for session, (_, speaker) in COUNSELLORS.items():
        team = session.partition("-")[0]
        turns = [
            turn(seq, session_id=session, team=team, speaker_id=speaker if seq % 2 else "client")
            for seq in range(6)
        ]
        result = process(turns)
        yield session, result.turn_scores[0]
        yield session, result.session_scores[0]
        yield session, result.alerts[0]
        yield (
            session,
            AlertAction(
                action_id=f"action on {session}",
                episode_id=result.alerts[0].episode_id,
                session_id=session,
                kind="note",
                reason=None,
                person="by-somebody",
                at=datetime.now(UTC).isoformat(),
                state="firing",
            ),
        )


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
