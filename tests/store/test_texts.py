"""Text is stored unchanged or redacted; speakers only as pseudonyms."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stream_app.contracts.events import MAX_EVENT_BYTES
from stream_app.store.database import tables
from stream_app.store.database.privacy import Privacy
from stream_app.store.stream import schema
from stream_app.store.stream.repository import Store
from tests.store.batches import prepare, process, turn
from tests.store.reading import dump, rows

FAMILY = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
TEXTS = [
    "x" * (MAX_EVENT_BYTES - 1000),
    f"{FAMILY} \N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16} \U0001f642",
    "\N{RIGHT-TO-LEFT MARK}שלום, \u2067أنا متعب\u2069 tonight",
    "e\u0301 \u2028 \u0085 \t\r\n ' \" \\ %s :name $1 ; --",
    "\U0010ffff\ufeff\x7f\x1b",
]


@pytest.mark.parametrize("text", TEXTS, ids=["long", "emoji", "rtl", "odd", "edges"])
def test_text_is_stored_unchanged(store: Store, text: str) -> None:
    store.commit(process([turn(text=text, session_id=text[:50])]))
    [row] = rows(store, tables.turns)
    assert row["text"] == text
    assert row["session_id"] == text[:50]
    assert rows(store, tables.session_states)[0]["session_id"] == text[:50]


def test_identifiers_of_maximum_length_are_stored(store: Store) -> None:
    long = "\N{SNOWMAN}" * 200
    ids = dict.fromkeys(("session_id", "turn_id", "speaker_id", "channel", "team"), long)
    store.commit(process([turn(**ids, lang="x" * 35)]))
    assert rows(store, tables.sessions)[0]["team"] == long


def test_personal_details_are_masked_in_the_stored_text(store: Store) -> None:
    said = "My name is Joan Ark, joan@example.org, 4111 1111 1111 1111."
    store.commit(process([turn(text=said)]))
    [row] = rows(store, tables.turns)
    assert row["text"] == Privacy(key=b"k").redacted(said)
    assert not any(word in dump(store) for word in ("Joan", "joan", "4111"))


def test_without_redaction_the_text_is_stored_unchanged(store: Store) -> None:
    said = "My name is Joan Ark, joan@example.org."
    prepare(store, redact=False).commit(process([turn(text=said)]))
    assert rows(store, tables.turns)[0]["text"] == said


def test_speakers_have_stable_pseudonyms(store: Store, other: Store) -> None:
    store.commit(process([turn(speaker_id="joan@example.org"), turn(1, speaker_id="counsellor-7")]))
    other.commit(process([turn(session_id="t", speaker_id="joan@example.org")]))
    client, counsellor, again = (row["speaker"] for row in rows(store, tables.turns))
    assert client == again
    assert client != counsellor
    assert not any(name in dump(store) for name in ("joan", "counsellor-7"))


def test_two_installations_give_different_pseudonyms(
    tmp_path: Path, opened: Callable[[str], Store]
) -> None:
    names = []
    for place in "ab":
        store = opened(f"sqlite:///{tmp_path}/{place}/test.db")
        schema.upgrade(store)
        prepare(store)
        names.append(store.privacy.pseudonym("joan"))
    assert names[0] != names[1]


def test_the_key_and_the_bundle_are_kept_when_the_store_is_prepared_again(store: Store) -> None:
    before = rows(store, tables.installation), rows(store, tables.bundles)
    prepare(store)
    assert (rows(store, tables.installation), rows(store, tables.bundles)) == before
    assert len(store.privacy.key) == 32
