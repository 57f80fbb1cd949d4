"""What was said stands nowhere in plain, and after an erasure only where the receipt says.

Every byte of what the service owns is searched: database files with their logs, its own log files,
its topics.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from servers.postgres import Server
from stream_app.cli import app
from stream_app.contracts.events import Role
from stream_app.processes.child_processes import environment
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import alert_actions, alerts
from stream_app.store.alerts.alerts import ActionKind, AlertFilter
from stream_app.store.database import tables
from stream_app.store.database.judgements import Reason
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes
from stream_app.store.work.disputes import Decision
from tests import topic_log
from tests.conftest import NewService
from tests.e2e.service import Service
from tests.rule_texts import EAGER_TEXT, HEAD
from tests.store import databases
from tests.store.reading import rows
from tests.web.api.test_live import open_stream
from tests.web.server import Web

GONE, KEPT = "4711-gone", "4712-kept"
SAID = "quagmirelle"
"""In every turn of the session, in its end's reason, and in a dead letter."""
WRITTEN = "obstrepant"
"""In everything that people write about it."""
SUE = Person("sue", PersonRole.SUPERVISOR, all_teams=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, new_service: NewService, tmp_path: Path) -> Service:
    rules = tmp_path / "rules.yaml"
    rules.write_text(HEAD + EAGER_TEXT, "utf-8")
    changes = {"rules": rules, "log_level": "DEBUG"}
    if request.param == "postgresql":
        server: Server = request.getfixturevalue("server")
        changes["database_url"] = SecretStr(databases.postgresql(server))
    return new_service(**changes)


def event(kind: str, session_id: str, **more: object) -> bytes:
    at = datetime.now(UTC) - timedelta(minutes=1)
    return json.dumps(
        {"type": kind, "session_id": session_id, "occurred_at": at.isoformat(), **more}
    ).encode()


def turn(session_id: str, seq: int, word: str) -> bytes:
    role = (Role.CLIENT, Role.COUNSELLOR)[seq % 2].value
    return event(
        "turn",
        session_id,
        seq=seq,
        role=role,
        speaker_id=f"{role} of {session_id}",
        text=f"I never told anybody of the {word} before, it is the {seq}th time.",
        team="north",
        consent=True,
    )


def session(session_id: str, word: str) -> list[bytes]:
    turns = [turn(session_id, seq, word) for seq in range(10)]
    return [*turns, event("session_end", session_id, reason=f"the {word} came up")]


def files_of(service: Service, server: Server | None) -> dict[str, bytes]:
    """All files that the service has written, but those of its keys."""
    found = {}
    folders = [service.folder]
    if server is not None:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
        folders.append(server.folder)
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and not path.name.endswith("-key"):
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def holding(files: dict[str, bytes], *words: str) -> set[str]:
    return {name for name, raw in files.items() if any(word.encode() in raw for word in words)}


def topics_holding(service: Service, word: str) -> set[str]:
    return {
        topic
        for topic in service.settings.topics
        for record in topic_log.records(service.settings, topic)
        if word.encode() in b"".join(part for part in (record.key, record.value) if part)
    }


def speak_of_it(store: Store) -> None:
    """A note on an alert, a dispute and its answer, mutes of the session and of its rule."""
    alert = next(iter(alerts.find(store, ALL_SESSIONS, AlertFilter(session_id=GONE)).items))
    note = f"the {WRITTEN} one"
    alert_actions.record_action(
        store, ALL_SESSIONS, alert.episode_id, ActionKind.NOTE, "sue", Reason.JUSTIFIED, note
    )
    until = datetime.now(UTC) + timedelta(hours=1)
    for rule, session_id in ((alert.rule, None), (None, GONE)):
        alert_actions.create_mute(
            store,
            rule=rule,
            session_id=session_id,
            team=None,
            until=until,
            reason=note,
            person="sue",
        )
    own = next(
        row
        for row in rows(store, tables.turn_scores)
        if row["session_id"] == GONE and row["role"] == "counsellor" and row["stage"] == "final"
    )
    counsellor = store.privacy.pseudonym(f"counsellor of {GONE}")
    noor = Person("noor", PersonRole.COUNSELLOR, None, counsellor)
    head = next(
        name
        for name in ("emotional_reactions", "interpretations", "explorations")
        if name not in own["abstained"]
    )
    made = disputes.contest(store, noor, GONE, own["seq"], head, None, note)
    disputes.decide(store, SUE, made.dispute_id, Decision.UPHELD, note)


def test_after_an_erasure_words_remain_only_where_the_receipt_says(
    service: Service, request: pytest.FixtureRequest, log_settings_kept: object
) -> None:
    postgres = "postgresql" in service.settings.database_url.get_secret_value()
    server: Server | None = request.getfixturevalue("server") if postgres else None
    settings = service.settings
    service.start_worker()
    web = Web(
        service.folder,
        settings.kafka_brokers,
        {
            name: getattr(settings, name)
            for name in ("topic_prefix", "kafka_group", "topic_partitions", "database_url")
        },
    )
    web.start()
    try:
        with web.client() as client:
            service.wait_for(lambda: client.get("/me").json()["live"], "topics are read")
        with open_stream(web) as stream:
            began = stream.first_id
        letter = event("turn", GONE, seq=0, text=f"and {SAID} without a role")
        service.send([*session(GONE, SAID), letter, *session(KEPT, "kettle")])
        service.wait_for(
            lambda: (
                {row["status"] for row in service.rows(tables.session_scores)} == {"closed"}
                and service.count(tables.sessions) == 2
                and service.count(tables.outbox) == 0
            ),
            "both sessions are over",
        )
        service.wait_for(
            lambda: alerts.find(web.store, ALL_SESSIONS, AlertFilter()).items, "alerts"
        )
        speak_of_it(web.store)
        read = transcripts.read(web.store, ALL_SESSIONS, GONE)
        assert len(read) == 10
        assert all(SAID in (each.text or "") for each in read)
        with web.client() as client:
            exported = client.get("/exports/turns", params={"text": "true"})
            assert SAID in exported.text
            shown = client.get(f"/sessions/{GONE}")
            assert SAID in shown.json()["end_reason"]

        holders = {settings.turns_topic, settings.dead_letter_topic}
        assert holding(files_of(service, server), SAID, WRITTEN) == set()
        assert topics_holding(service, SAID) == holders
        [wrapped] = [
            row["wrapped"]
            for row in rows(web.store, tables.session_keys)
            if row["session_id"] == GONE
        ]

        erased = CliRunner().invoke(
            app, ["erase", "--session", GONE, "--yes"], env=environment(settings)
        )
        assert erased.exit_code == 0, erased.output
        done, _, not_reached = erased.output.partition("Not reached:")
        assert "1 dead letters withdrawn" in done
        assert "mutes of a rule or team: 1 reasons deleted" in done
        assert not [name for name in holders if f"{name}: " not in not_reached]

        files = files_of(service, server)
        assert holding(files, SAID, WRITTEN) == set()
        assert topics_holding(service, SAID) == holders, "as the receipt says"
        if server is None:
            assert holding(files, GONE) == set(), "the file is rewritten"
            assert [name for name, raw in files.items() if wrapped in raw] == []
        else:
            assert "PostgreSQL's deleted rows and its log" in not_reached
        listed = CliRunner().invoke(app, ["dead-letters", "list"], env=environment(settings))
        assert listed.stdout == "", "the letter is withdrawn"

        for entry in audit.latest(web.store):
            named = (None, KEPT, f"erased:{web.store.privacy.pseudonym(GONE)}")
            assert entry.session_id in named

        def replayed() -> str:
            with open_stream(web, last_id=began) as stream:
                events = stream.until(lambda event: event.event == "resync")
            return json.dumps([each.data for each in events])

        service.wait_for(lambda: GONE not in replayed(), "live events of it are gone")
        assert [each.text for each in transcripts.read(web.store, ALL_SESSIONS, KEPT)][:1] != [None]
    finally:
        web.stop()
        web.store.close()
