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
    store = f"s.{dimension.value}"
    if kind is HeadKind.LEVEL:
        columns = _of_levels(dialect, stem, name, labels)
    elif dimension is Dimension.PERCEIVED:
        said = "0-1, probability that a listener says yes"
        columns = [(None, Column(stem, Kind.NUMBER, dialect.number(store, name), said))]
    elif kind is HeadKind.BINARY:
        yes = labels[-1]
        columns = [(yes, _probability(dialect, stem, store, name, yes))]
    else:
        columns = [
            (label, _probability(dialect, f"{stem}_{label}", store, name, label))
            for label in labels
        ]
    if name not in PROBES.values():
        columns.append((None, _abstained(dialect, stem, store, name)))
    return [
        Field(name, dimension.value, kind.value, label, _renamed_column(column, _name(column.name)))
        for label, column in columns
    ]


def _of_levels(
    dialect: Dialect, stem: str, name: str, labels: list[str]
) -> list[tuple[str | None, Column]]:
    expressed = "s.expressed"
    level = dialect.number(expressed, name, "level")
    if name in MECHANISMS:
        level = f"s.{name}"
    listed = dialect.contains("s.abstained", name)
    known = f"CASE WHEN NOT {listed} THEN {level} END"
    expected = " + ".join(
        f"{place} * {dialect.number(expressed, name, 'probabilities', place)}"
        for place in range(1, len(labels))
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


def _probability(dialect: Dialect, column: str, store: str, head: str, label: str) -> Column:
    meaning = f"0-1, probability of `{label}`"
    return Column(column, Kind.NUMBER, dialect.number(store, head, label), meaning)


def _abstained(dialect: Dialect, stem: str, store: str, name: str) -> Column:
    """Null where the head was not asked."""
    asked = dialect.text(store, name)
    listed = dialect.contains("s.abstained", name)
    sql = f"CASE WHEN {asked} IS NOT NULL THEN {listed} END"
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
