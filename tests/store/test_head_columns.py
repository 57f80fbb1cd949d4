"""Heads of turns are stored in columns, and are read whole whether they have columns or not."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.scores import Expressed, Level
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
from stream_app.store.database import head_columns, tables
from stream_app.store.database.rows import turn_score_row
from stream_app.store.stream import schema
from stream_app.store.stream.past_sessions import turn_score
from stream_app.store.stream.repository import Store
from tests.store.batches import process, turn
from tests.store.reading import rows

BUNDLES = DEFAULT_BUNDLE.parent
SHARES = st.integers(0, 10_000).map(lambda number: number / 10_000)
LEVELS = st.builds(
    Level,
    st.integers(0, 2),
    st.lists(SHARES, min_size=3, max_size=3),
    st.lists(st.tuples(st.integers(0, 9), st.integers(10, 20)), max_size=2),
)
DISTRIBUTIONS = st.dictionaries(st.sampled_from(("no", "yes", "open", "it's")), SHARES)
LEVEL_HEADS = st.dictionaries(st.sampled_from(("explorations", "interpretations", "calm")), LEVELS)
HEADS = st.dictionaries(st.sampled_from(("lapse", "question", "humour")), DISTRIBUTIONS)
CLIENT = st.dictionaries(st.sampled_from(("distress", "talk_type", "hope")), DISTRIBUTIONS)
PERCEIVED = st.dictionaries(st.sampled_from(("sympathy", "helpfulness", "warmth")), SHARES)
[SCORE] = process([turn(0)]).turn_scores


@settings(
    deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(LEVEL_HEADS, HEADS, PERCEIVED, CLIENT)
def test_a_score_is_read_as_it_was_stored(
    store: Store, levels: dict[str, Level], heads: Any, perceived: Any, client: Any
) -> None:
    score = structs.replace(
        SCORE, expressed=Expressed(levels | heads), perceived=perceived, client=client
    )
    with store.transaction() as connection:
        store.upsert(connection, tables.turn_scores, [turn_score_row(score)], keep=False)
        aliased = tables.turn_scores.alias()
        for query in (sa.select(tables.turn_scores), sa.select(aliased)):
            assert turn_score(connection.execute(query).mappings().one()) == score


def test_plain_sql_reads_the_heads_that_json_lacks(store: Store) -> None:
    store.commit(process([turn(seq) for seq in range(4)]))
    query = sa.text(
        "SELECT question_open, question_closed, explorations_strong, sympathy, distress_yes, "
        "expressed FROM turn_scores WHERE seq = :seq AND stage = 'provisional'"
    ).columns(expressed=sa.JSON)
    whole = {row["seq"]: row for row in rows(store, tables.turn_scores)}
    with store.reading() as connection:
        client, own = (connection.execute(query, {"seq": seq}).one() for seq in (0, 1))
    heads = whole[1]["expressed"]
    assert own[:2] == (heads["question"].get("open"), heads["question"].get("closed"))
    assert own.explorations_strong == heads["explorations"]["probabilities"][2]
    assert own.distress_yes is None
    assert own.expressed == {}
    assert client.distress_yes == whole[0]["client"]["distress"]["yes"]
    assert client.question_open is None


@pytest.mark.parametrize("name", ["default", "nano"])
def test_every_shipped_head_has_a_column_for_each_label(name: str) -> None:
    """The service knows no training code: its list of labels is compared with the manifests."""
    manifest = json.loads(Path(BUNDLES, name, "bundle.json").read_text("utf-8"))
    assert len(manifest["heads"]) >= 15
    for head in manifest["heads"]:
        known = head["dimension"] in head_columns.NAMES
        found = head_columns.of_head(head["dimension"] if known else "client", head["name"])
        labels = ["yes"] if head["dimension"] == "perceived" else head["labels"]
        assert list(found) == labels, head["name"]


def test_heads_move_into_columns_and_back(store: Store) -> None:
    store.commit(process([turn(seq) for seq in range(6)]))
    before = rows(store, tables.turn_scores)
    schema.downgrade(store, "0048")
    json = dict.fromkeys(head_columns.NAMES, sa.JSON)
    query = sa.text("SELECT * FROM turn_scores ORDER BY session_id, seq, stage").columns(**json)
    with store.reading() as connection:
        plain = {(row.seq, row.stage): row for row in connection.execute(query)}
    for row in before:
        kept = plain[row["seq"], row["stage"]]._mapping
        assert "rationales" not in kept
        assert {name: kept[name] for name in json} == {name: row[name] for name in json}
    schema.upgrade(store)
    columns = [name for names in head_columns.NAMES.values() for name in names]
    for row, known in zip(rows(store, tables.turn_scores), before, strict=True):
        assert {name: row[name] for name in (*json, *columns)} == {
            name: known[name] for name in (*json, *columns)
        }
