"""No output that a policy restricts leaves by any way: what leaves is walked, not listed.

A session is scored by the shipped nano bundle, with a rule that always fires and would quote
restricted outputs. Then every table, view, message, route, notification and metric is read, with
and without ``illinois-therapy``. A new route, parameter or field of a message that is not known
here fails the tests.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import sqlalchemy as sa

from stream_app import bootstrap
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema as views
from stream_app.contracts import schema, scores
from stream_app.contracts.scores import AlertState
from stream_app.core.measures.heads import PERCEIVED, Dimension
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.batch import BatchResult
from stream_app.inference.bundles import bundle as bundles
from stream_app.notifications import alertmanager, message_text
from stream_app.notifications.notification import single
from stream_app.settings import Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import rule_versions
from stream_app.store.alerts.deliveries import DueAlert
from stream_app.store.database import tables
from stream_app.store.lifecycle import restricted
from stream_app.web import api
from stream_app.worker.batches.metrics import WorkerMetrics
from tests.store.batches import end, received, turn
from tests.store.reading import rows
from tests.web.api.role_table import API, PAGES, ROLES
from tests.web.in_process import InProcessWeb

POLICY: Final = "illinois-therapy"
CLEO: Final = "cleo@example.org"
TEXTS: Final = (
    "I want to die, I am desperate and nobody cares.",
    "That sounds very hard. What happened?",
)
RULES: Final = """
version: 1
rules:
  - name: always
    summary: "Risk {risk}, distress {waiting_distress}, satisfaction {client.satisfaction}."
    severity: info
    when: risk >= 0.0
    for: 1 turn
  - name: crisis
    summary: "Words of a crisis ({crisis_language})."
    severity: critical
    when: crisis_language >= 0.0
    for: 0s
"""
RESTRICTED: Final = {
    "turn_score": {"client", "perceived"},
    "session_score": {"outcome_risks", "missed_opportunities", "answered_share"},
}
"""Fields of messages that are empty under the policy, beside the intents of client turns."""
OTHERS: Final = {
    "turn_score": "session_id seq stage bundle role occurred_at late truncated expressed "
    "confidence abstained low_empathy_risk intents",
    "session_score": "session_id bundle status started_at last_activity_at turns late_turns "
    "withheld_turns unscored_turns low_empathy_risk empathy_index empathy_interval "
    "empathy_percentile risk_by_turn miti counsellor_turns mechanisms empathy_total_mean "
    "talk_share reflection_to_question complex_reflection_share open_question_share",
    "alert": "alert_id episode_id rule severity labels session_id bundle state previous episode "
    "seq occurred_at reason value threshold values turns rules_digest protocol",
}
"""All other fields of what a worker publishes: sort a new one into one of the two."""
DESCRIPTIONS: Final = re.compile(r"/(api/v1/|admin/)?(bundles|rules|help)(/|$)")
"""Routes that describe the model and the rules, and name heads without a session's value."""
SCORECARD: Final = "understanding"
"""Also the name of a criterion that people answer in a review."""
DESCRIBED: Final = frozenset({"bundles", "rule_versions"})
"""Tables with manifests and rules. Those of roll-ups have columns of the names: see the views."""
VALUE: Final = re.compile(r"0\.\d{2,}|\d+ ?%")


@dataclass
class Scored:
    """A session, what was published of it, and the console on its database."""

    web: InProcessWeb
    settings: Settings
    result: BatchResult
    names: list[str]
    core: Pipeline

    def cleo(self) -> str:
        return self.web.store.privacy.pseudonym(CLEO)

    def told(self, text: str) -> list[str]:
        """The restricted outputs that a text names, as a key, a column or a word of a page."""
        return [
            name
            for name in self.names
            for words in (f'"{name}"', f"perceived_{name}", f"client_{name}", f"{name}:")
            if words in text or name.replace("_", " ").capitalize() in text
        ]


def scored(folder: Path, policy: str | None) -> Scored:
    (folder / "rules.yaml").write_text(RULES, "utf-8")
    web = InProcessWeb(folder, changes={"policy": policy})
    settings = web.settings.model_copy(
        update={
            "bundle": bundles.find(Path("nano")),
            "rules": folder / "rules.yaml",
            "intents": Path("crisis"),
        }
    )
    web.settings = settings
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    core = bootstrap.pipeline(settings, scorer)
    log = [
        turn(
            seq,
            text=TEXTS[seq % 2],
            domain="peer-support",
            speaker_id=CLEO if seq % 2 else "client",
        )
        for seq in range(12)
    ]
    result = core.process(received([*log, end()]), {})
    store.commit(result)
    list(rollups.update(store))
    views.create_views(store, settings.bundle)
    store.close()
    people = People(web.store)
    if people.find("cleo") is None:
        people.add(Person("cleo", PersonRole.COUNSELLOR, speaker=web.store.privacy.pseudonym(CLEO)))
    web.start()
    heads = [each.name for each in scorer.heads if each.dimension is not Dimension.EXPRESSED]
    return Scored(
        web, settings, result, [*heads, "distress", "crisis_language", "chat_failed"], core
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tmp_path_factory.mktemp("free"), tmp_path_factory.mktemp("bound")


@pytest.fixture(scope="module")
def free(folders: tuple[Path, Path]) -> Iterator[Scored]:
    session = scored(folders[0], None)
    yield session
    session.web.stop()


@pytest.fixture(scope="module")
def bound(folders: tuple[Path, Path]) -> Iterator[Scored]:
    session = scored(folders[1], POLICY)
    yield session
    session.web.stop()


def test_every_field_that_is_published_is_sorted() -> None:
    for name, others in OTHERS.items():
        fields = {field.name for field in msgspec.structs.fields(schema.MESSAGES[name])}
        assert fields == set(others.split()) | RESTRICTED.get(name, set()), name


def published(session: Scored) -> Iterator[bytes]:
    result = session.result
    for output in (*result.turn_scores, *result.session_scores, *result.alerts):
        yield scores.encode(output)


def test_no_message_has_a_restricted_output(free: Scored, bound: Scored) -> None:
    said = b"".join(published(free)).decode()
    assert free.told(said)
    assert bound.told(b"".join(published(bound)).decode()) == []


def test_the_fields_of_messages_are_empty(free: Scored, bound: Scored) -> None:
    for session, empty in ((free, False), (bound, True)):
        for name, outputs in (
            ("turn_score", session.result.turn_scores),
            ("session_score", session.result.session_scores),
        ):
            for field in RESTRICTED[name]:
                values = [getattr(output, field) for output in outputs]
                assert (not any(values)) == empty, (name, field, empty)
    clients = [score for score in bound.result.turn_scores if score.role.value == "client"]
    assert not any(score.intents or score.abstained for score in clients)
    assert any(score.intents for score in free.result.turn_scores)


def test_no_rule_fires_on_a_restricted_output_or_quotes_one(free: Scored, bound: Scored) -> None:
    assert {alert.rule for alert in free.result.alerts} == {"always", "crisis"}
    assert {alert.rule for alert in bound.result.alerts} == {"always"}
    for alert in bound.result.alerts:
        assert alert.values.keys() <= {"risk"}
        assert not VALUE.search(alert.reason.partition("distress")[2]), alert.reason


def test_no_notification_has_one(bound: Scored) -> None:
    for alert in bound.result.alerts:
        names = set(DueAlert.__struct_fields__) & set(alert.__struct_fields__)
        known = {name: getattr(alert, name) for name in names} | {"severity": alert.severity.value}
        if alert.state is AlertState.FIRING:
            sent = single(DueAlert(**known, began_at=alert.occurred_at))
            body = message_text.text(sent, "") + str(alertmanager.body(sent, "all", ""))
            assert not VALUE.search(body.partition("distress")[2].partition(".")[0]), body
            assert "crisis" not in body


def test_no_table_has_one(free: Scored, bound: Scored) -> None:
    stored = {
        session.web.folder: repr(
            [
                {name: value for name, value in row.items() if value is not None}
                for table in tables.metadata.sorted_tables
                if table.name not in DESCRIBED and not table.name.startswith("rollup_")
                for row in rows(session.web.store, table)
            ]
        )
        for session in (free, bound)
    }
    for name in free.names:
        assert name in stored[free.web.folder] or name == "chat_failed", name
        assert f"'{name}'" not in stored[bound.web.folder], name
    assert {row["measure"] for row in rows(bound.web.store, tables.rollup_means)}.isdisjoint(
        PERCEIVED
    )


def test_no_reporting_view_has_one(free: Scored, bound: Scored) -> None:
    filled = restricted_columns(free)
    assert filled
    assert not any(restricted_columns(bound).values())
    assert any(filled.values())


def restricted_columns(session: Scored) -> dict[str, int]:
    """Number of values in every column of a view that is named after a restricted output."""
    found = {}
    with session.web.store.reading() as connection:
        for view in views.wanted(connection, session.settings.bundle):
            for column in view.columns:
                parts = column.name
                if view.name.startswith("fact") and any(name in parts for name in session.names):
                    number = sa.text(f'SELECT count(nullif("{parts}", 0)) FROM {view.name}')
                    if not parts.endswith("abstained"):
                        found[f"{view.name}.{parts}"] = connection.scalar(number) or 0
    return found


def test_no_metric_has_one_as_a_label(bound: Scored) -> None:
    registries = (WorkerMetrics().registry, bound.web.app.state.services.metrics.registry)
    labels = {
        label
        for registry in registries
        for metric in registry.collect()
        for sample in metric.samples
        for pair in sample.labels.items()
        for label in pair
    }
    assert labels.isdisjoint(bound.names)
    assert "session_id" not in labels


def test_no_route_shows_one(free: Scored, bound: Scored) -> None:
    """With the routes of the role tables, which another test compares with the application."""
    shown = dict(answers(free))
    assert sum(bool(free.told(text)) for text in shown.values()) > 10
    told = {address: bound.told(text) for address, text in answers(bound)}
    leaks = {each: set(names) for each, names in told.items() if names and not describes(each)}
    assert {
        each for each in leaks if "/reviews/" not in each or leaks[each] != {SCORECARD}
    } == set()


def test_what_was_stored_before_leaves_the_roll_ups_and_alerts(free: Scored) -> None:
    """Also of archived sessions, whose roll-ups are not computed again."""
    store = free.web.store
    assert "'engagement'" in repr(rows(store, tables.rollup_means))
    list(restricted.remove(store, Settings(policy=POLICY).restrictions))
    assert {alert["rule"] for alert in rows(store, tables.alerts)} == {"restricted"}
    for table in (tables.rollup_means, tables.rollup_sessions, tables.rollup_turns):
        for row in rows(store, table):
            assert row.get("measure") not in PERCEIVED
            assert not any(row.get(name) for name in PERCEIVED)
            assert not any(row.get(f"{name}_total") for name in PERCEIVED)


def describes(address: str) -> bool:
    return DESCRIPTIONS.match(address) is not None


def answers(session: Scored) -> Iterator[tuple[str, str]]:
    """What every GET route answers, for the first of the roles that may read most."""
    parts = made_for(session)
    for prefix, table in ((api.PREFIX, API), ("", PAGES)):
        for (method, path), row in table.items():
            if method != "get" or path in ("/live", "/sign-in/oidc", "/sign-in/oidc/callback"):
                continue
            name = next((NAMES[r] for r, c in zip(ROLES, row.roles, strict=True) if c == "y"), "")
            address = prefix + re.sub(r"{(\w+)}", lambda found: parts[found[1]], path)
            query = {k: "s" if v == "{session}" else v for k, v in row.query.items()}
            query = {k: v for k, v in query.items() if k != "study"}
            token = session.web.tokens[name]
            with session.web.anonymous_client(headers={"Authorization": f"Bearer {token}"}) as who:
                answer = who.get(address, params=query, follow_redirects=False)
            assert answer.status_code in {200, 204, 303, 404, 409}, (address, answer.text[:300])
            yield address, answer.text


NAMES: Final = {
    "supervisor": "sue",
    "counsellor": "cleo",
    "analyst": "ana",
    "admin": "ada",
    "ingest": "pump",
    "study": "stu",
}


def made_for(session: Scored) -> dict[str, str]:
    """What stands in the addresses, made as far as it has to be."""
    bundle = session.result.session_scores[0].bundle
    with session.web.client("sue") as sue:

        def new(path: str, key: str, **body: Any) -> str:
            return str(sue.post(path, json=body).raise_for_status().json()[key])

        due = datetime(2100, 1, 1, tzinfo=UTC).isoformat()
        sue.get("/sessions/s/turns").raise_for_status()
        with session.web.client("cleo") as cleo:
            contested = {"session_id": "s", "seq": 1, "head": "explorations", "note": "n"}
            dispute = cleo.post("/disputes", json=contested).raise_for_status().json()
        alert = next(alert for alert in session.result.alerts if alert.rule == "always")
        return {
            "session_id": "s",
            "seq": "1",
            "place": "1",
            "bundle": bundle,
            "name": "cleo",
            "question": "drift",
            "topic": "risk",
            "speaker": session.cleo(),
            "pseudonym": session.cleo(),
            "episode_id": alert.episode_id,
            "dispute_id": dispute["dispute_id"],
            "version": str(rule_versions.save(session.web.store, RULES, "sue", "r")),
            "review_id": new("/reviews", "review_id", session_id="s", reviewer="sue", due_at=due),
            "sample_id": new("/samples", "sample_id", title="t", bundle=bundle, size=5),
            "goal_id": new(
                "/goals",
                "goal_id",
                counsellor=session.cleo(),
                measure="explorations",
                goal="g",
                starts_on="2026-01-05",
                ends_on="2026-03-30",
            ),
        }
