"""A file of intents is valid as a whole, or refused with all its errors and their lines."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import SCORED_ROLES
from stream_app.core.measures.intents import IntentSet
from stream_app.core.rules.intent_file import IntentFileError, parse

HEAD = "version: 1\nintents:\n"


def intent(name: str = "refund", *, role: str = "client", more: str = "", count: int = 3) -> str:
    lines = "".join(f"      - I want my money back, {place} {name}.\n" for place in range(count))
    return f"  - name: {name}\n    role: {role}\n    examples:\n{lines}{more}"


def read(text: str, **shipped: str) -> IntentSet:
    sets = {name: content.encode() for name, content in shipped.items()}
    return parse(text.encode(), "mine.yaml", sets.get)


def faults(text: str | bytes) -> list[str]:
    raw = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(IntentFileError) as caught:
        parse(raw, "mine.yaml", lambda _: None)
    return caught.value.faults


def test_an_intent_has_examples_and_options() -> None:
    more = "    counter_examples: [I like money.]\n    title: wants a refund\n    threshold: 0.7\n"
    [found] = read(HEAD + intent(more=more, role="both")).intents
    assert (found.words, found.threshold, found.roles) == (
        "wants a refund",
        0.7,
        frozenset(SCORED_ROLES),
    )
    assert found.counter_examples == ("I like money.",)
    assert read(HEAD + intent("ask_more")).titles == {"ask_more": "ask more"}


def test_an_empty_file_has_no_intents() -> None:
    for text in ("", "# nothing\n", "version: 1\n", "version: 1\nintents: []\n"):
        assert read(text).names == ()


def test_all_errors_are_reported_with_their_lines() -> None:
    text = HEAD + intent("Refund!") + intent("b", role="boss") + intent("c", count=2)
    text += "  - name: d\n    role: client\n    words: x\n    examples: [1, '', a]\n"
    found = faults(text)
    assert [fault.split(":")[1] for fault in found] == ["3", "10", "17", "22", "23", "23", "23"]
    assert "a list of 3 to 10 sentences, not 2" in found[2]
    assert "unknown key `words`" in found[3]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        pytest.param(b"\xff", "not valid UTF-8", id="encoding"),
        pytest.param("- a\n", "begins with `version: 1`", id="list"),
        pytest.param("version: 2\n", "`version: 1` is required", id="version"),
        pytest.param("version: 1\nintents: 3\n", "`intents` is a list", id="number"),
        pytest.param("version: 1\ninclude: [nothing]\n", "no shipped set `nothing`", id="include"),
        pytest.param("version: 1\nintents: [", "not YAML", id="yaml"),
        pytest.param(
            HEAD + intent(more=f"    counter_examples: [{'x' * 65536}]\n"),
            "item 1 has 65536 characters; 1000 are allowed",
            id="64 kB example",
        ),
        pytest.param("#" * (5 << 20), "bytes are too many", id="5 MB"),
        pytest.param(HEAD + intent() + intent(), "already used at line 3", id="same name"),
        pytest.param(HEAD + intent(more="    threshold: 1\n"), "between 0 and 1", id="threshold"),
        pytest.param(
            HEAD + intent(more="    counter_examples: ['I want my money back, 1 refund.']\n"),
            "examples and counter-examples at once",
            id="both",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str | bytes, what: str) -> None:
    assert what in "\n".join(faults(text))


def test_a_thousand_intents_are_allowed_and_one_more_is_not() -> None:
    many = HEAD + "".join(intent(f"i{place}") for place in range(1000))
    assert len(read(many).intents) == 1000
    assert "1001 intents are too many" in faults(many + intent("last"))[0]


def test_shipped_sets_are_included_and_their_intents_can_be_replaced() -> None:
    shipped = HEAD + intent("refund") + intent("cancel")
    found = read(
        "version: 1\ninclude: [service]\n" + HEAD[11:] + intent("refund", role="both"),
        service=shipped,
    )
    assert found.names == ("refund", "cancel")
    assert found.intents[0].roles == frozenset(SCORED_ROLES)
    assert found.digest != read("version: 1\ninclude: [service]\n", service=shipped).digest


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(IntentFileError):
        assert isinstance(read(text), IntentSet)
