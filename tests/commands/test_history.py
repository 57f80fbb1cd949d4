"""The demo's synthetic history: written in bulk, marked, and told by the console's pages."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from ruamel.yaml import YAML

from stream_app import bootstrap
from stream_app.analytics.questions import marked_days, shown_curves
from stream_app.analytics.views import schema
from stream_app.analytics.views.shown import ALL
from stream_app.demo import history
from stream_app.recordings.event_files import DEMO_TEAM, sample_counsellor
from stream_app.settings import DEFAULT_RULES, Settings
from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import alerts
from stream_app.store.alerts.alerts import AlertFilter, ShownState
from stream_app.store.database import tables
from stream_app.store.lifecycle import retention
from stream_app.store.sessions import bundle_info, sessions
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.sessions.sessions import SessionFilter
from tests.store import databases
from tests.store.reading import rows
from tests.web.people.client import Client


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a database with the history in it."""
    file: Path = tmp_path_factory.mktemp("history") / "rapport.db"
    url = SecretStr(databases.sqlite(file))
    days = file.with_name("days.csv")
    marked_days.write(days, [])
    made = Settings().model_copy(update={"database_url": url, "marked_days": days})
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "duckdb", None)  # `make demo` does not install it
        with bootstrap.opened(made, privacy=True) as store:
            assert history.write(store, days) > 5000
            schema.create_views(store)
    return made


def test_it_lasts_half_a_year_and_everything_is_marked(settings: Settings) -> None:
    store = bootstrap.store(settings)
    now = datetime.now(UTC)
    with store.reading() as connection:
        times = list(connection.scalars(sa.select(tables.sessions.c.started_at)))
        names = list(connection.scalars(sa.select(tables.sessions.c.session_id)))
        bundles = set(connection.scalars(sa.select(tables.session_scores.c.bundle)))
    assert timedelta(days=170) < max(times) - min(times) < timedelta(days=190)
    assert max(times) <= now
    assert all(name.startswith("synthetic-") for name in names)
    assert len(bundles) == 2
    assert bundles == bundle_info.synthetic(store)
    store.close()


def test_the_curves_show_the_training_and_the_new_model(settings: Settings) -> None:
    store = bootstrap.store(settings)
    today = datetime.now(UTC).date()
    curves = shown_curves.weekly(
        store, "emotional_reactions", ALL, today - timedelta(days=200), today
    )
    assert [curve.bundle for curve in curves] == ["synthetic-1", "synthetic-2"]
    values = [point.value for point in curves[0].points if point.value is not None]
    assert len(values) >= 8
    assert values[-1] > values[0] + 0.1
    store.close()


def test_the_training_is_a_marked_day(settings: Settings) -> None:
    [training] = marked_days.read(settings.marked_days)
    assert training.kind == "training"
    ago = datetime.now(UTC).date() - training.day
    assert timedelta(days=85) < ago < timedelta(days=100)


def test_no_alert_waits_for_anybody(settings: Settings) -> None:
    store = bootstrap.store(settings)
    waiting = frozenset({ShownState.FIRING, ShownState.PENDING, ShownState.ACKNOWLEDGED})
    assert not alerts.find(store, ALL_SESSIONS, AlertFilter(states=waiting)).items
    resolved = AlertFilter(states=frozenset({ShownState.RESOLVED}))
    assert alerts.find(store, ALL_SESSIONS, resolved).items
    store.close()


def test_its_alerts_are_those_of_the_shipped_rules(settings: Settings) -> None:
    rules = YAML(typ="safe").load(DEFAULT_RULES)["rules"]
    shipped = {(rule["name"], rule["severity"]) for rule in rules}
    store = bootstrap.store(settings)
    found = {(row["rule"], row["severity"]) for row in rows(store, tables.alerts)}
    store.close()
    assert found
    assert found <= shipped


def test_the_demos_counsellor_has_a_development(settings: Settings) -> None:
    store = bootstrap.store(settings)
    store.load_privacy(redact=True)
    speaker = store.privacy.pseudonym(sample_counsellor(DEMO_TEAM, 0))
    People(store).add(Person("cleo", PersonRole.COUNSELLOR, None, speaker), None)
    own = SessionFilter(counsellor=speaker)
    assert len(sessions.find(store, ALL_SESSIONS, own, limit=50).items) > 20
    page = Client(bootstrap.web(settings), People(store).create_token("cleo", "test"))
    shown = page.get("/me/development").text
    assert "<polygon" in shown
    assert 'class="tag synthetic"' in shown
    store.close()


def test_a_worker_may_purge_it(settings: Settings) -> None:
    """Most of its texts are older than the retention time."""
    store = bootstrap.store(settings)
    planned = retention.due(store, settings.keep_text, settings.keep_scores, datetime.now(UTC))
    assert planned is not None
    assert next(each.expiring for each in planned.expiring(store) if each.what == "texts") > 0
    planned.check(store)
    store.close()
