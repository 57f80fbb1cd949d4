"""The queries of the Grafana dashboards, over the dashboard's usual range of time."""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from benchmarks.load.processes import REPOSITORY

FOLDER: Final = REPOSITORY / "servers" / "monitoring" / "grafana" / "dashboards"
_RANGES: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "y": timedelta(days=365)}
_HOUR: Final = r"date_trunc('hour', \1)"


class Query(Struct, frozen=True):
    """A panel's query, expanded."""

    dashboard: str
    title: str
    sql: str


def queries(end: datetime, variables: Mapping[str, Mapping[str, str]]) -> list[Query]:
    """All SQL queries of all dashboards.

    Args:
        end: the newest time.
        variables: by dashboard, values of its variables as SQL literals.
    """
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        dashboard = json.loads(file.read_text("utf-8"))
        begin = end - _range(dashboard["time"]["from"])
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                if "rawSql" in target:
                    known = variables.get(file.stem, {})
                    sql = _expanded(target["rawSql"], begin, end, known)
                    found.append(Query(file.stem, _title(panel, known), sql))
    return found


def examples(page: Path) -> list[str]:
    """The SQL queries in a document that read facts."""
    blocks = re.findall(r"```sql\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    return [block for block in blocks if "FROM fact_" in block]


def _range(text: str) -> timedelta:
    number, unit = re.fullmatch(r"now-(\d+)([hdy])", text).groups()  # type: ignore[union-attr]
    return int(number) * _RANGES[unit]


def _title(panel: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    plain = {name: value.strip("'") for name, value in variables.items()}
    return re.sub(r"\$\{(\w+)\}", lambda name: plain[name[1]], panel["title"])


def _expanded(sql: str, begin: datetime, end: datetime, variables: Mapping[str, str]) -> str:
    sql = re.sub(r"\$\{(\w+):sqlstring\}", lambda name: variables[name[1]], sql)
    within = rf"\1 BETWEEN '{begin:%Y-%m-%d %H:%M:%S+00}' AND '{end:%Y-%m-%d %H:%M:%S+00}'"
    sql = re.sub(r"\$__timeFilter\(([^()]+)\)", within, sql)
    return re.sub(r"\$__timeGroup\(([^(),]+), '1h'\)", _HOUR, sql)
