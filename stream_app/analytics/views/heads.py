"""Columns of ``fact_turn`` for the heads of the bundles that have scored."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from stream_app.analytics.views.columns import Column, Kind
from stream_app.analytics.views.dialects import Dialect, literal
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.heads import LEVELS, Dimension, HeadKind
from stream_app.store.database import head_columns

LONGEST: Final = 63
"""PostgreSQL's longest name in bytes."""
PROBES: Final = {"distress": "distress", "crisis": "crisis_language"}
"""Probes of client turns, by their key in a manifest; they stand in no list of heads."""


class Field(Struct, frozen=True):
    """One number of a head; ``label`` is None where the number is about the whole head."""

    head: str
    dimension: str
    kind: str
    label: str | None
    column: Column


def fields(manifests: Iterable[Mapping[str, Any]], dialect: Dialect) -> list[Field]:
    """The numbers of all heads of these bundles; the three mechanisms are always among them.

    Where bundles disagree about a head's labels, it has the columns of all of them.
    """
    found: dict[str, Field] = {}
    heads: list[Mapping[str, Any]] = [_mechanism(name) for name in MECHANISMS]
    for manifest in manifests:
        heads += manifest.get("heads", ())
        heads += [_probe(name) for key, name in PROBES.items() if manifest.get(key)]
    taken: dict[str, tuple[str, str | None, str]] = {}
    for head in heads:
        for field in _fields_of(head, dialect):
            key = (field.head, field.label, field.column.meaning)
            name = field.column.name
            if taken.setdefault(name, key) != key:
                name = _distinct(name, "/".join(map(str, key)))
            found.setdefault(name, _renamed(field, name))
    return list(found.values())


def _probe(name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "dimension": Dimension.CLIENT.value,
        "kind": HeadKind.BINARY.value,
        "labels": ["no", "yes"],
    }


def _mechanism(name: str) -> Mapping[str, Any]:
    return {
        "name": name,
        "dimension": Dimension.EXPRESSED.value,
        "kind": HeadKind.LEVEL.value,
        "labels": list(LEVELS),
    }


def _fields_of(head: Mapping[str, Any], dialect: Dialect) -> list[Field]:
    dimension, kind = Dimension(head["dimension"]), HeadKind(head["kind"])
    if dimension is Dimension.OUTCOME:
        return []
    name, labels = str(head["name"]), [str(label) for label in head["labels"]]
    stem = name if name in MECHANISMS else f"{dimension.value}_{name}"
    part = dimension.value
    if kind is HeadKind.LEVEL:
        columns = _of_levels(dialect, stem, name, labels)
    elif dimension is Dimension.PERCEIVED:
        said = "0-1, probability that a listener says yes"
        columns = [(None, Column(stem, Kind.NUMBER, number(dialect, "s", part, name), said))]
    elif kind is HeadKind.BINARY:
        yes = labels[-1]
        columns = [(yes, _probability(dialect, stem, part, name, yes))]
    else:
        columns = [
            (label, _probability(dialect, f"{stem}_{label}", part, name, label)) for label in labels
        ]
    if name not in PROBES.values():
        columns.append((None, _abstained(dialect, stem, part, name)))
    return [
        Field(name, dimension.value, kind.value, label, _renamed_column(column, _name(column.name)))
        for label, column in columns
    ]


def _of_levels(
    dialect: Dialect, stem: str, name: str, labels: list[str]
) -> list[tuple[str | None, Column]]:
    level = dialect.number("s.expressed", name, "level")
    if name in MECHANISMS:
        level = f"s.{name}"
    listed = dialect.contains("s.abstained", name)
    known = f"CASE WHEN NOT {listed} THEN {level} END"
    expected = " + ".join(
        f"{place} * {level_number(dialect, 's', name, place)}" for place in range(1, len(labels))
    )
    steps = ", ".join(f"{place} {label}" for place, label in enumerate(labels))
    return [
        (None, Column(stem, Kind.INTEGER, known, f"Level: {steps}; null: abstained")),
        (
            None,
            Column(
                f"{stem}_expected",
                Kind.NUMBER,
                expected,
                f"0-{len(labels) - 1}, expected level by the probabilities, abstained or not",
            ),
        ),
    ]


def number(dialect: Dialect, table: str, part: str, head: str, label: str | None = None) -> str:
    """The probability of a label, or of a perceived head: from its column, or from JSON."""
    path = (head,) if label is None else (head, label)
    known = head_columns.of_head(part, head).get(label or "yes")
    return _either(table, known, dialect.number(f"{table}.{part}", *path))


def level_number(dialect: Dialect, table: str, head: str, level: int) -> str:
    """The probability of a level: from its column, or from JSON."""
    known = head_columns.of_head("expressed", head).get(LEVELS[level])
    json = dialect.number(f"{table}.expressed", head, "probabilities", level)
    return _either(table, known, json)


def _either(table: str, column: str | None, json: str) -> str:
    return f"coalesce({table}.{column}, {json})" if column else json


def _probability(dialect: Dialect, column: str, part: str, head: str, label: str) -> Column:
    meaning = f"0-1, probability of `{label}`"
    return Column(column, Kind.NUMBER, number(dialect, "s", part, head, label), meaning)


def _abstained(dialect: Dialect, stem: str, part: str, name: str) -> Column:
    """Null where the head was not asked."""
    known = (f"s.{column}" for column in head_columns.of_head(part, name).values())
    given = (*known, dialect.text(f"s.{part}", name))
    asked = " OR ".join(f"{each} IS NOT NULL" for each in given)
    listed = dialect.contains("s.abstained", name)
    sql = f"CASE WHEN {asked} THEN {listed} END"
    return Column(f"{stem}_abstained", Kind.BOOLEAN, sql, "The confidence was too low to use")


def _name(text: str) -> str:
    """A name that needs no quotes, as short as PostgreSQL demands."""
    plain = re.sub(r"[^a-z0-9_]+", "_", text.lower()).strip("_") or "head"
    return plain if len(plain) <= LONGEST else _distinct(plain, text)


def _distinct(name: str, of: str) -> str:
    digest = hashlib.sha256(of.encode()).hexdigest()[:8]
    return f"{name[: LONGEST - 9]}_{digest}"


def _renamed(field: Field, name: str) -> Field:
    column = _renamed_column(field.column, name)
    return Field(field.head, field.dimension, field.kind, field.label, column)


def _renamed_column(column: Column, name: str) -> Column:
    return Column(name, column.kind, column.sql, column.meaning)


def described(found: Iterable[Field], bundles: Mapping[str, Mapping[str, Any]]) -> str:
    """SELECTs of literals: which column holds what of each bundle's heads."""
    by_head: dict[str, list[Field]] = {}
    for field in found:
        by_head.setdefault(field.head, []).append(field)
    rows = []
    for bundle, manifest in sorted(bundles.items()):
        listed = [str(head["name"]) for head in manifest.get("heads", ())] or list(MECHANISMS)
        listed += [name for key, name in PROBES.items() if manifest.get(key)]
        for head in listed:
            rows += [
                ", ".join(
                    "CAST(NULL AS text)" if value is None else literal(value)
                    for value in (
                        bundle,
                        field.head,
                        field.dimension,
                        field.kind,
                        field.label,
                        field.column.name,
                        field.column.meaning,
                    )
                )
                for field in by_head.get(head, ())
            ]
    nothing = ", ".join(["CAST(NULL AS text)"] * 7) + " WHERE 1 = 0"
    return " UNION ALL ".join(f"SELECT {row}" for row in (rows or [nothing]))
