"""Grafana's files: each query of each panel runs on real data, read by the login of Grafana."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
import yaml

from servers.postgres import Server
from servers.prometheus import promtool
from stream_app.analytics.rollups import rollups
from stream_app.analytics.views import schema
from stream_app.analytics.views.schema import READER
from stream_app.demo import simulated_store
from stream_app.demo.simulator import World, simulate
from tests.monitoring.conftest import exported_names
from tests.monitoring.dashboards import (
    DASHBOARDS,
    MONITORING,
    RATE_INTERVAL,
    Panel,
    expand,
    load,
    panels,
)
from tests.store import batches, databases

ROLE: Final = READER
PASSWORD: Final = "it's 'quoted' \\ secret"
NAMES: Final = {"operations", "live-supervision", "longitudinal", "data-health"}
WORLD: Final = World(
    counsellors=24,
    months=1.3,
    joining_months=0.1,
    sessions_a_month=18.0,
    turns=2,
    leaving=0.001,
    rated=0.2,
)
"""Few sessions, but enough in a day that its cell is shown."""
CHOSEN: Final = {"team": ["all"], "measure": ["empathy_index"]}
"""What the variables with one value have in a new dashboard."""


@pytest.fixture(scope="module")
def reader(server: Server) -> Iterator[str]:
    """Address of a filled database, with the login that the shipped script makes."""
    url = databases.postgresql(server)
    store = batches.prepare(databases.open_store(url))
    simulated_store.write(simulate(WORLD), store)
    now = datetime.now(UTC)
    for number in range(3):
        began = now - timedelta(hours=2 + number)
        events = [
            batches.turn(
                seq,
                session_id=f"open-{number}",
                team="north",
                lang="en",
                channel="chat",
                occurred_at=(began + timedelta(minutes=seq)).isoformat(),
            )
            for seq in range(8)
        ]
        store.commit(batches.process(events))
    schema.upgrade(store)
    rollups.rebuild(store)
    store.close()
    make_login(url)
    yield url.replace("rapport@", "rapport_grafana@")
    server.drop(url)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("DROP ROLE rapport_grafana")


def make_login(url: str) -> None:
    """As the compose file does."""
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    given = ("--set", f"password={PASSWORD}", "--set", f"role={ROLE}")
    script = MONITORING / "reader.sql"
    subprocess.run(["psql", "--quiet", *given, "--file", script, url], check=True, timeout=60)


@pytest.fixture(scope="module")
def period(reader: str) -> tuple[str, str]:
    """From before the first session to now."""
    return WORLD.begins.isoformat(), datetime.now(UTC).isoformat()


@pytest.fixture
def connection(reader: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(reader) as opened:
        yield opened


def values(connection: psycopg.Connection[Any], dashboard: str) -> dict[str, list[str]]:
    """Values of a dashboard's variables: all that the query finds, or the chosen one."""
    [file] = [file for file in DASHBOARDS if file.stem == dashboard]
    found = {}
    for variable in load(file)["templating"]["list"]:
        options = [row[0] for row in connection.execute(variable["query"]).fetchall()]
        assert options, variable["name"]
        if not variable["multi"]:
            assert set(CHOSEN[variable["name"]]) <= set(options)
        found[variable["name"]] = options if variable["multi"] else CHOSEN[variable["name"]]
    return found


SQL: Final = panels("rapport-reader")
PROMQL: Final = panels("rapport-prometheus")


def test_there_are_four_dashboards_with_both_kinds_of_queries() -> None:
    assert {file.stem for file in DASHBOARDS} == NAMES
    assert {panel.dashboard for panel in SQL + PROMQL} == NAMES


@pytest.mark.parametrize("panel", SQL, ids=lambda panel: f"{panel.dashboard}: {panel.title}")
def test_every_panel_shows_rows_to_the_reading_login(
    connection: psycopg.Connection[Any], period: tuple[str, str], panel: Panel
) -> None:
    query = expand(panel.query, *period, values(connection, panel.dashboard))
    cursor = connection.execute(query)  # type: ignore[call-overload]
    rows = cursor.fetchall()
    assert rows
    names = [column.name for column in cursor.description or ()]
    if panel.as_series:
        times = [row[names.index("time")] for row in rows]
        assert all(isinstance(time, datetime) for time in times)
        assert times == sorted(times)
        numbers = [name for name in names if name not in ("time", "metric")]
        for name in numbers:
            assert any(row[names.index(name)] is not None for row in rows), name
    else:
        assert any(value is not None for row in rows for value in row)


def test_the_login_reads_views_and_writes_nothing(reader: str) -> None:
    with psycopg.connect(reader) as connection:
        assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
    for statement in ("SELECT * FROM turns", "DELETE FROM turns", "CREATE TABLE mine (x int)"):
        with psycopg.connect(reader, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_the_script_can_be_repeated_and_takes_any_password(reader: str, server: Server) -> None:
    url = reader.replace("rapport_grafana@", "rapport@")
    make_login(url)
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT rolpassword FROM pg_authid WHERE rolname = 'rapport_grafana'"
        ).fetchone()
        assert found is not None
        assert found[0].startswith("SCRAM-SHA-256$")


@pytest.mark.parametrize("panel", PROMQL, ids=lambda panel: f"{panel.dashboard}: {panel.title}")
def test_every_metric_of_a_panel_is_exported(panel: Panel) -> None:
    used = set(re.findall(r"\brapport_[a-z_]+", panel.query))
    assert used <= exported_names()
    assert used or re.search(r"\b(up|ALERTS)\{", panel.query)


def test_promtool_can_read_every_expression(prometheus_installed: None, tmp_path: Path) -> None:
    rules = [
        {"record": f"panel:{number}", "expr": rate_interval(panel.query)}
        for number, panel in enumerate(PROMQL)
    ]
    file = tmp_path / "expressions.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}), "utf-8")
    promtool("check", "rules", file)


def rate_interval(expression: str) -> str:
    expression = expression.replace("$__rate_interval", RATE_INTERVAL)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_have_names_ids_places_and_data_sources(file: Path) -> None:
    dashboard = load(file)
    provisioned = yaml.safe_load(
        (MONITORING / "grafana/provisioning/datasources/rapport.yml").read_text("utf-8")
    )
    sources = {source["uid"]: source["type"] for source in provisioned["datasources"]}
    assert dashboard["uid"].startswith("rapport-")
    assert dashboard["editable"] is False
    taken: set[tuple[int, int]] = set()
    for number, panel in enumerate(dashboard["panels"], start=1):
        assert panel["id"] == number
        assert panel["title"]
        assert panel["description"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
        for each in (panel["datasource"], *(t["datasource"] for t in panel["targets"])):
            assert sources[each["uid"]] == each["type"]
    for variable in dashboard["templating"]["list"]:
        assert sources[variable["datasource"]["uid"]] == variable["datasource"]["type"]


def test_longitudinal_figures_come_from_views_that_hide_small_cells() -> None:
    for panel in SQL:
        read = re.findall(r"\b(?:FROM|JOIN) (\w+)", panel.query)
        if panel.dashboard == "longitudinal":
            assert all(view.startswith("shown_") or view == "both_views" for view in read)
        assert "fact_counsellor_week" not in read
        people = r"\b(counsellor|speaker|client|rater)\b"
        assert not re.search(people, re.sub(r"'[^']*'", "", panel.query)), "a panel names people"


def test_the_provider_of_dashboards_reads_the_mounted_folder() -> None:
    provider = yaml.safe_load(
        (MONITORING / "grafana/provisioning/dashboards/rapport.yml").read_text("utf-8")
    )
    compose = yaml.safe_load((MONITORING.parents[1] / "docker-compose.yml").read_text("utf-8"))
    volumes = [v for v in compose["services"]["grafana"]["volumes"] if isinstance(v, dict)]
    mounted = {volume["target"]: volume["source"] for volume in volumes}
    [each] = provider["providers"]
    assert mounted[each["options"]["path"]].endswith("grafana/dashboards")
