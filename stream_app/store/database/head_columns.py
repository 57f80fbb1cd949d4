"""The probabilities of known heads as columns of ``turn_scores``; the rest of a part is JSON.

A column a label takes eight bytes where JSON takes thirty, and plain SQL averages it. A head that
is not listed here, or has other labels, stays in the JSON column of its part; a query of that
column gives the whole part.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sqlalchemy import JSON, Column, ColumnElement, Dialect, Double, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from stream_app.contracts.scores import MECHANISMS, TOTAL, Distribution, Expressed
from stream_app.core.measures.heads import LEVELS, PERCEIVED

RATIONALES: Final = "rationales"
_YES: Final = ("no", "yes")
_LABELS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "expressed": {
        **dict.fromkeys(MECHANISMS, LEVELS),
        "strategy": (
            "question",
            "restatement_or_paraphrasing",
            "reflection_of_feelings",
            "self_disclosure",
            "affirmation_and_reassurance",
            "providing_suggestions",
            "information",
            "others",
        ),
        "behaviour": ("question", "reflection", "therapist_input", "other"),
        "question": ("none", "closed", "open"),
        "reflection": ("none", "simple", "complex"),
        "input": ("none", "information", "advice", "options", "negotiation"),
        "empathic_intent": (
            "acknowledging",
            "agreeing",
            "consoling",
            "encouraging",
            "questioning",
            "suggesting",
            "sympathizing",
            "wishing",
            "neutral",
        ),
        "answer": _YES,
        "lapse": _YES,
    },
    "client": {
        "talk_type": ("change", "neutral", "sustain"),
        **dict.fromkeys(("satisfaction", "opportunity", "distress", "crisis_language"), _YES),
    },
}
"""Labels by part and head."""
_COLUMNS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "perceived": {name: {"yes": name} for name in PERCEIVED},
    **{
        part: {
            head: {label: f"{head}_{label}" for label in labels} for head, labels in heads.items()
        }
        for part, heads in _LABELS.items()
    },
}
"""Columns by part, head and label; a perceived head has one."""
NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    part: tuple(name for labels in heads.values() for name in labels.values())
    for part, heads in _COLUMNS.items()
}
"""The columns of each part."""
_ALL: Final = [name for names in NAMES.values() for name in names]


def columns() -> Iterable[Column[float]]:
    """New columns for a table."""
    return (Column(name, Double) for name in _ALL)


def of_head(part: str, head: str) -> Mapping[str, str]:
    """The columns of a head by label, that of a perceived one as ``yes``; empty if it has none.

    >>> of_head("perceived", "sympathy"), of_head("expressed", "lapse")
    ({'yes': 'sympathy'}, {'no': 'lapse_no', 'yes': 'lapse_yes'})
    """
    return _COLUMNS[part].get(head, {})


def row(
    expressed: Expressed, perceived: Distribution, client: Mapping[str, Distribution]
) -> dict[str, Any]:
    """The heads of a score as columns, and as JSON what has none."""
    found: dict[str, Any] = dict.fromkeys(_ALL)
    known = {name: level for name, level in expressed.levels.items() if name in MECHANISMS}
    for name, level in known.items():
        found |= zip(of_head("expressed", name).values(), level.probabilities, strict=True)
    found |= {name: perceived[name] for name in PERCEIVED if name in perceived}
    spans = {name: level.rationale for name, level in known.items() if level.rationale}
    rest = {
        "expressed": {
            name: part
            for name, part in expressed.items()
            if name not in known and name != TOTAL and not _listed(found, "expressed", name, part)
        },
        "perceived": {name: part for name, part in perceived.items() if name not in PERCEIVED},
        "client": {
            name: part for name, part in client.items() if not _listed(found, "client", name, part)
        },
    }
    return {**found, **rest, RATIONALES: spans or None}


def _listed(found: dict[str, Any], part: str, head: str, values: Any) -> bool:
    """Put a head's values into their columns, if it has one for each."""
    known = of_head(part, head)
    if not known or not isinstance(values, dict) or not values or not values.keys() <= known.keys():
        return False
    for label, value in values.items():
        found[known[label]] = value
    return True


class Part(TypeDecorator[Any]):
    """JSON of the heads without columns; in a query's result all heads of the part."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """JSONB on PostgreSQL."""
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else JSON())

    def column_expression(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """The part with the heads of its columns."""
        table = getattr(column, "table", None)
        if table is None or RATIONALES not in table.c:
            return column
        beside = [table.c[name] for name in NAMES[column.name]]
        if column.name == "expressed":
            beside += [table.c[name] for name in (*MECHANISMS, TOTAL, RATIONALES)]
        return _Whole(column, *beside)


class _Whole(FunctionElement[Any]):
    """All heads of a part; the arguments are its JSON column and its other columns."""

    name = "whole_part"
    type = JSON().with_variant(JSONB(), "postgresql")
    inherit_cache = True


class _PostgreSQL:
    """JSON functions of PostgreSQL; null members are stripped at the end."""

    obj, array = "jsonb_build_object", "jsonb_build_array"

    def number(self, sql: str) -> str:
        return sql

    def value(self, sql: str) -> str:
        return sql

    def member(self, column: str, name: str) -> str:
        return f"coalesce({column}->'{name}', '[]'::jsonb)"

    def merged(self, whole: str, rest: str) -> str:
        return f"(jsonb_strip_nulls({whole}) || {rest})"


class _SQLite:
    """JSON functions of SQLite, which would write numbers with 15 digits."""

    obj, array = "json_object", "json_array"

    def number(self, sql: str) -> str:
        return f"json(CASE WHEN {sql} IS NOT NULL THEN printf('%!.17g', {sql}) END)"

    def value(self, sql: str) -> str:
        return f"json({sql})"

    def member(self, column: str, name: str) -> str:
        return f"json(coalesce(json_extract({column}, '$.{name}'), '[]'))"

    def merged(self, whole: str, rest: str) -> str:
        return f"json_patch(json_patch('{{}}', {whole}), {rest})"


_DIALECTS: Final[Mapping[str, _PostgreSQL | _SQLite]] = {
    "postgresql": _PostgreSQL(),
    "sqlite": _SQLite(),
}


@compiles(_Whole)
def _compiled(element: _Whole, compiler: Any, **options: Any) -> str:
    dialect = _DIALECTS[compiler.dialect.name]
    rest, *beside = element.clauses
    sql = {one.name: compiler.process(one, **options) for one in beside}
    part = rest.name
    if part == "perceived":
        heads = {name: dialect.number(sql[name]) for name in PERCEIVED}
    else:
        heads = {head: _head(dialect, head, labels, sql) for head, labels in _COLUMNS[part].items()}
    if part == "expressed":
        heads[TOTAL] = sql[TOTAL]
    members = ", ".join(f"'{name}', {value}" for name, value in heads.items())
    return dialect.merged(f"{dialect.obj}({members})", compiler.process(rest, **options))


def _head(
    dialect: _PostgreSQL | _SQLite, head: str, labels: Mapping[str, str], sql: Mapping[str, str]
) -> str:
    numbers = {label: sql[name] for label, name in labels.items()}
    if head in MECHANISMS:
        listed = ", ".join(map(dialect.number, numbers.values()))
        members = (
            f"'level', {sql[head]}, 'probabilities', {dialect.array}({listed}), "
            f"'rationale', {dialect.member(sql[RATIONALES], head)}"
        )
    else:
        members = ", ".join(
            f"'{label}', {dialect.number(number)}" for label, number in numbers.items()
        )
    known = f"coalesce({', '.join(numbers.values())})"
    return dialect.value(f"CASE WHEN {known} IS NOT NULL THEN {dialect.obj}({members}) END")
