"""Reads the model's label of each turn and head from the columns of ``fact_turn``."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pandas as pd

from stream_app.analytics.views.columns import Kind
from stream_app.analytics.views.heads import PROBES, Field
from stream_app.contracts.events import Role
from stream_app.core.measures.heads import Dimension, HeadKind

ABSTAINED: Final = "abstained"
HEAD: Final = "head."
PERCEIVED: Final = "perceived."
INTENT: Final = "intent."


def needed(fields: Iterable[Field]) -> list[str]:
    """The columns that ``of`` reads."""
    return [field.column.name for field in fields if not _is_expected(field)]


def of(turns: pd.DataFrame, fields: Iterable[Field], binary: Mapping[str, str]) -> pd.DataFrame:
    """A column for each head: ``head.NAME`` label or ``abstained``, ``perceived.NAME`` 0-1.

    Missing where a turn lacks the head; heads that no turn has are left out.

    Args:
        turns: with the columns of ``needed``.
        fields: of the heads.
        binary: the other label of each head that has the probability of one label only.
    """
    by_head: dict[str, list[Field]] = {}
    for field in fields:
        by_head.setdefault(field.head, []).append(field)
    found: dict[str, Any] = {}
    for head, own in by_head.items():
        gone = _abstained(turns, own)
        if own[0].dimension == Dimension.PERCEIVED.value:
            [value] = [field for field in own if field.column.kind is Kind.NUMBER]
            numbers = turns[value.column.name].astype(float)
            found[PERCEIVED + head] = numbers.mask(gone)
        elif own[0].kind == HeadKind.LEVEL.value:
            [level] = [field for field in own if field.column.kind is Kind.INTEGER]
            found[HEAD + head] = _levels(turns[level.column.name], gone)
        else:
            labelled = [field for field in own if field.label is not None]
            found[HEAD + head] = _likeliest(turns, labelled, binary.get(head), gone)
    return pd.DataFrame(found, index=turns.index).dropna(axis="columns", how="all")


def other_labels(manifests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The first label of each binary head, whose second has the probability's column."""
    found = dict.fromkeys(PROBES.values(), "no")
    for manifest in manifests:
        for head in manifest.get("heads", ()):
            if head["kind"] == HeadKind.BINARY.value:
                found[head["name"]] = str(head["labels"][0])
    return found


def _is_expected(field: Field) -> bool:
    return field.kind == HeadKind.LEVEL.value and field.column.kind is Kind.NUMBER


def _abstained(turns: pd.DataFrame, own: Sequence[Field]) -> pd.Series:
    gone = pd.Series(data=False, index=turns.index)
    for field in own:
        if field.column.kind is Kind.BOOLEAN:
            gone |= turns[field.column.name].fillna(value=False).astype(bool)
    return gone


def _levels(levels: pd.Series, gone: pd.Series) -> pd.Series:
    known = levels.notna()
    found = pd.Series(np.nan, index=levels.index, dtype=object)
    found[known] = levels[known].astype(int).astype(str)
    found[gone] = ABSTAINED
    return found


def _likeliest(
    turns: pd.DataFrame, labelled: Sequence[Field], other: str | None, gone: pd.Series
) -> pd.Series:
    probabilities = turns[[field.column.name for field in labelled]].to_numpy(dtype=float)
    labels = [str(field.label) for field in labelled]
    if other is not None:
        probabilities = np.column_stack([1 - probabilities[:, 0], probabilities])
        labels = [other, *labels]
    asked = ~np.isnan(probabilities).all(axis=1)
    best = np.nan_to_num(probabilities, nan=-1.0).argmax(axis=1)
    found = pd.Series(np.array(labels, dtype=object)[best], index=turns.index, dtype=object)
    found[~asked] = np.nan
    found[gone] = ABSTAINED
    return found


def of_intents(turns: pd.DataFrame) -> pd.DataFrame:
    """A column ``intent.NAME`` for each live intent that counsellors' turns have: 1 or 0.

    Missing before the first turn with it, when the operator's file may not have had it; and in
    turns of clients. ``turns``: with ``intents`` as ``fact_turn`` has it, and in any order.
    """
    said = turns["role"] == Role.COUNSELLOR.value
    written = turns.loc[said & turns["intents"].notna() & (turns["intents"] != "{}"), "intents"]
    places: dict[str, list[int]] = {}
    for text, rows in written.groupby(written).groups.items():
        for name in msgspec.json.decode(str(text), type=dict[str, float]):
            places.setdefault(name, []).extend(rows)
    found = {}
    for name, rows in sorted(places.items()):
        occurs = pd.Series(0.0, index=turns.index)
        occurs[rows] = 1.0
        first = turns.loc[rows, "occurred_at"].min()
        found[INTENT + name] = occurs.where(said & (turns["occurred_at"] >= first))
    return pd.DataFrame(found, index=turns.index)
