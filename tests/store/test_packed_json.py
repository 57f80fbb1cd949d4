"""Scores are packed: what is read is what was written, in Python and in SQL."""

import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from servers.postgres import Server
from stream_app.contracts.scores import Expressed, Level
from stream_app.errors import StoreError
from stream_app.inference import bundle as bundles
from stream_app.store.database.packed_json import NAMES, pack, unpack
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store import databases

names = st.sampled_from(NAMES) | st.text(max_size=12)
shares = st.integers(0, 10_000).map(lambda unit: unit / 10_000) | st.floats(0, 1)
numbers = shares | st.floats(-1e6, 1e6) | st.integers(-(2**31), 2**31)
spans = st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535)), max_size=3)
levels = st.builds(Level, st.integers(0, 2), st.lists(shares, min_size=3, max_size=3), spans)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=12) | levels,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.dictionaries(names, parts, max_size=6)
        | st.dictionaries(names, shares, max_size=6)
    ),
    max_leaves=12,
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
normal = shares.filter(lambda share: share == 0 or share > sys.float_info.min)
normal_levels = st.builds(Level, st.integers(0, 2), st.lists(normal, max_size=4), spans)
distributions = st.dictionaries(st.sampled_from(NAMES) | texts, normal, max_size=6)
heads = st.lists(st.sampled_from(NAMES) | texts, max_size=4) | st.dictionaries(
    st.sampled_from(NAMES) | texts,
    distributions | normal_levels | st.integers(0, 70_000) | st.none() | texts,
    max_size=6,
)
"""As bundles have them. In SQL texts have no zero byte, and the smallest doubles are zero."""
EXAMPLES: dict[str, Any] = {
    "nothing": {},
    "probabilities": {"strategy": {"question": 0.1234, "others": 0.8766}},
    "longer probabilities": {"strategy": {"question": 0.12345, "others": 0.87655}},
    "a long one among them": {"strategy": {"question": 0.5, "others": 0.123456}},
    "unknown names": {"tonality": {"wärm": 0.5, "kühl": 0.5}},
    "probabilities at the ends": {"perceived": {"engagement": 0.0, "sympathy": 1.0}},
    "a level": {
        "explorations": {"level": 2, "probabilities": [0.1, 0.2, 0.7], "rationale": [[0, 3]]},
        "empathy_total": 2,
    },
    "a level with a long probability": {
        "explorations": {"level": 0, "probabilities": [1 / 3, 1 / 3, 0.3], "rationale": []}
    },
    "a level with more": {"level": 1, "probabilities": [0.5], "rationale": [], "note": "x"},
    "other numbers": [1.5, -2.25, 70000, -3, 3, 12345.6789, 0.1, 1e-30, 1 / 3, 1e6, 0.0],
    "a level without probabilities": {
        "explorations": {"level": 1, "probabilities": [], "rationale": [[1, 2], [300, 65535]]}
    },
    "all kinds of heads": {
        "strategy": {"question": 0.0255, "others": 0.9745},
        "explorations": {"level": 2, "probabilities": [0.1, 0.2, 0.7], "rationale": []},
        "empathy_total": 256,
        "reflection": {"no": 1.0},
    },
    "a level alone": {"level": 1, "probabilities": [0.3, 0.7], "rationale": [[0, 1]]},
    "names": ["strategy", "reflection", "input"],
    "levels in a list": [{"level": 1, "probabilities": [0.5], "rationale": []}],
    "a name written out at the end": {"strategy": {"question": 0.1, "x" * 200: 0.2}},
    "a head written out": {"strategy": {"question": 0.1}, "tonality": {"question": 0.2}},
    "a null at the end": {"strategy": {"question": 0.1}, "client": None},
    "a null in a list": ["strategy", None],
    "nothing in a head": {"strategy": {}, "reflection": {"no": 0.5}},
    "a number alone": 7,
    "words": ["strategy", 'a "quoted" one', "", None, True, False],
}


def plain(value: Any) -> Any:
    """The value as it is read from JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.fixture
def database(server: Server, opened: Callable[[str], Store]) -> Store:
    return opened(databases.postgresql(server))


@settings(deadline=None)
@given(values)
def test_a_value_is_read_as_it_was_packed(value: Any) -> None:
    found = unpack(pack(value))
    assert found == plain(value)
    assert unpack(pack(found)) == found


def test_a_struct_is_packed_like_its_json() -> None:
    level = Level(1, [0.2, 0.7, 0.1], [(3, 9)])
    expressed = Expressed(explorations=level, empathy_total=1)
    assert pack(expressed) == pack(plain(expressed))


READ = ("answer", "lapse", "opportunity")
"""Heads of the reader, younger than the list of names; they are spelt out."""


def test_the_names_of_the_shipped_bundles_are_one_byte() -> None:
    for folder in bundles.DEFAULT_BUNDLE.parent.iterdir():
        manifest = bundles.load(folder).manifest
        older = [head for head in manifest.heads if head.name not in READ]
        used = {name for head in older for name in (head.name, *head.labels)}
        assert used <= set(NAMES)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\x08\x01\x00",
        b"\x0d",
        b"\x0b\xfe",
        b"\x0b\x01\x00\x01",
        b"\x08\x00\x01\x00",
        b"\x05\x01",
    ],
)
def test_damaged_bytes_are_refused(damage: bytes) -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack(damage)


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(StoreError, match="too large"):
        pack([0] * 256)


@pytest.mark.parametrize("name", EXAMPLES)
def test_sql_reads_and_packs_the_same(database: Store, name: str) -> None:
    value = EXAMPLES[name]
    with database.reading() as connection:
        query = sa.text("SELECT rapport_json(:packed), rapport_pack(CAST(:json AS jsonb))")
        given = {"packed": pack(value), "json": json.dumps(value)}
        found, packed = connection.execute(query, given).one()
    assert found == plain(value)
    assert unpack(packed) == plain(value)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(heads)
def test_sql_reads_any_value_as_python_does(database: Store, value: Any) -> None:
    """The common shapes have a way of their own, and any bytes may lie where it looks."""
    query = sa.text("SELECT rapport_json(:packed)")
    with database.reading() as connection:
        assert connection.scalar(query, {"packed": pack(value)}) == plain(value)


@pytest.mark.parametrize("name", ["all kinds of heads", "a head written out", "nothing"])
def test_sql_reads_at_least_the_wanted_members(database: Store, name: str) -> None:
    value = EXAMPLES[name]
    wanted = ["strategy", "explorations", "sympathy"]
    with database.reading() as connection:
        query = sa.text("SELECT rapport_json(:packed, :wanted)")
        found = connection.scalar(query, {"packed": pack(value), "wanted": wanted})
        first = connection.scalar(query, {"packed": pack(value), "wanted": wanted[:2]})
    assert found == plain(value)
    assert first.items() <= plain(value).items()
    assert {each: first.get(each) for each in wanted[:2]} == {
        each: plain(value).get(each) for each in wanted[:2]
    }


def test_sql_stops_at_the_last_wanted_member(database: Store) -> None:
    value = EXAMPLES["all kinds of heads"]
    with database.reading() as connection:
        query = sa.text("SELECT rapport_json(:packed, ARRAY['strategy'])")
        found = connection.scalar(query, {"packed": pack(value)})
    assert found == {"strategy": value["strategy"]}


def test_names_in_the_migration_are_those_of_the_store(database: Store) -> None:
    with database.reading() as connection:
        assert connection.scalar(sa.text("SELECT rapport_names()")) == list(NAMES)


def test_scores_survive_the_migration_down_and_up(database: Store) -> None:
    store = database
    insert = sa.text(
        "INSERT INTO shadow_scores (session_id, seq, stage, bundle, expressed, perceived, client, "
        "abstained) VALUES ('s', 1, 'final', 'b', :expressed, :perceived, :client, :abstained)"
    )
    written = [EXAMPLES[name] for name in ("a level", "nothing", "probabilities")]
    written.append(["strategy", "reflection"])
    columns = ("expressed", "perceived", "client", "abstained")
    query = sa.text(f"SELECT {', '.join(columns)} FROM shadow_scores")
    with store.transaction() as connection:
        connection.execute(insert, dict(zip(columns, map(pack, written), strict=True)))
    schema.downgrade(store, "0038")
    read = f"SELECT {', '.join(f'rapport_json({name})' for name in columns)} FROM shadow_scores"
    with store.reading() as connection:
        assert list(connection.execute(sa.text(read)).one()) == plain(written)
    schema.downgrade(store, "0037")
    with store.reading() as connection:
        assert list(connection.execute(query).one()) == plain(written)
    schema.upgrade(store)
    with store.reading() as connection:
        assert [unpack(bytes(part)) for part in connection.execute(query).one()] == plain(written)
