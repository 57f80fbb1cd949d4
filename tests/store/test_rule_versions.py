"""Versions of the rules: saved, adopted, rolled back; on both databases."""

import pytest

from stream_app.core.rules.yaml_file import digest_of
from stream_app.store.alerts import rule_versions
from stream_app.store.sessions.scored_turns import NotFound, StateConflict
from stream_app.store.stream.repository import Store


def test_the_newest_adoption_is_in_force_and_the_history_keeps_all(store: Store) -> None:
    assert rule_versions.in_force(store) is None
    one = rule_versions.save(store, "first: 'ä'\n", "sue", "a try")
    two = rule_versions.save(store, "second\n", "ada", "another")
    assert rule_versions.in_force(store) is None, "a proposal is not in force"
    rule_versions.adopt(store, two, "ada", "go")
    rule_versions.adopt(store, one, "eve", "back", replaces=two)
    now = rule_versions.in_force(store)
    assert now == rule_versions.find(store, one)
    assert (now.text, now.digest) == ("first: 'ä'\n", digest_of("first: 'ä'\n".encode()))
    rule_versions.adopt(store, two, "ada", "forth")
    newest, oldest = rule_versions.history(store)
    assert (newest.version, newest.in_force, oldest.in_force) == (two, True, False)
    assert [each.reason for each in newest.adoptions] == ["forth", "go"]
    assert [(each.person, each.reason) for each in oldest.adoptions] == [("eve", "back")]


def test_what_is_in_force_or_unknown_or_was_replaced_is_not_adopted(store: Store) -> None:
    one, two, three = (rule_versions.save(store, f"{n}\n", "sue", "r") for n in range(3))
    rule_versions.adopt(store, one, "ada", "r")
    with pytest.raises(StateConflict, match="in force already"):
        rule_versions.adopt(store, one, "ada", "r")
    with pytest.raises(NotFound):
        rule_versions.adopt(store, 999, "ada", "r")
    rule_versions.adopt(store, two, "ada", "r", replaces=one)
    with pytest.raises(StateConflict, match=f"version {two} was adopted in the meantime"):
        rule_versions.adopt(store, three, "ada", "r", replaces=one)
