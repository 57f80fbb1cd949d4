"""The provisioned dashboards and their queries, expanded as Grafana expands them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

MONITORING: Final = Path(__file__).parents[2] / "servers" / "monitoring"
DASHBOARDS: Final = sorted((MONITORING / "grafana" / "dashboards").glob("*.json"))
RATE_INTERVAL: Final = "1m"


class Panel(NamedTuple):
    """One query of a panel."""

    dashboard: str
    title: str
    source: str
    query: str
    as_series: bool


def load(file: Path) -> dict[str, Any]:
    """A dashboard."""
    return json.loads(file.read_text("utf-8"))


def panels(source: str) -> list[Panel]:
    """Every query of a data source, by its uid, in all dashboards."""
    return [panel for file in DASHBOARDS for panel in _panels(file) if panel.source == source]


def _panels(file: Path) -> Iterator[Panel]:
    for panel in load(file)["panels"]:
        for target in panel["targets"]:
            query = target.get("rawSql") or target["expr"]
            series = target.get("format") == "time_series"
            yield Panel(file.stem, panel["title"], target["datasource"]["uid"], query, series)


def expand(query: str, begin: str, end: str, variables: Mapping[str, list[str]]) -> str:
    """SQL with Grafana's macros and variables replaced, as its PostgreSQL data source does."""

    def quoted(name: re.Match[str]) -> str:
        return ",".join("'" + value.replace("'", "''") + "'" for value in variables[name[1]])

    query = re.sub(r"\$\{(\w+):sqlstring\}", quoted, query)
    query = re.sub(r"\$__timeFilter\(([^()]+)\)", rf"\1 BETWEEN '{begin}' AND '{end}'", query)
    hours = r"to_timestamp(floor(extract(epoch FROM \1) / 3600) * 3600)"
    query = re.sub(r"\$__timeGroup\(([^(),]+), '1h'\)", hours, query)
    assert "$" not in query, f"something was not expanded: {query}"
    return query
