"""Files of scorecards: the shipped one, every kind of error, and answers filled from measures."""

from pathlib import Path

import pytest

from stream_app.core.measures.catalogue import Use, table
from stream_app.core.rules.scorecards import ScorecardFileError, asked, pack, parse, unpack
from stream_app.settings import DEFAULT_SCORECARDS

FILE = """
version: 1
scorecards:
  - name: short
    title: Short
    criteria:
      - name: asking
        question: Did they ask?
        scale: [no, partly, yes]
        weight: 3
        from: {measure: explorations_mean, steps: [0.5, 1]}
      - name: room
        question: Was there room?
        scale: ["little", "some", "ample"]
        from: {measure: talk_share, steps: [0.7, 0.5]}
"""


def test_the_shipped_file_is_valid_and_survives_storing() -> None:
    cards = parse(DEFAULT_SCORECARDS.read_bytes(), "scorecards.yaml")
    assert list(cards) == ["empathy", "handling"]
    assert [unpack(pack(card)) for card in cards.values()] == list(cards.values())


@pytest.mark.parametrize(
    ("measures", "answers"),
    [
        ({}, {}),
        ({"explorations_mean": 0.49, "talk_share": 0.9}, {"asking": 0, "room": 0}),
        ({"explorations_mean": 0.5, "talk_share": 0.7}, {"asking": 1, "room": 1}),
        ({"explorations_mean": 2.0, "talk_share": 0.5}, {"asking": 2, "room": 2}),
        ({"talk_share": 0.6}, {"room": 1}),
    ],
)
def test_measures_fill_answers(measures: dict[str, float], answers: dict[str, int]) -> None:
    card = parse(FILE.replace("[no, partly, yes]", "[a, b, c]").encode(), "f")["short"]
    assert card.fill(measures) == answers


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("version: 1", "version: 2", "`version: 1` is required"),
        ("weight: 3", "weight: 0", r"Expected `float` > 0.*criteria\[0\].weight"),
        ("weight: 3", "wieght: 3", "unknown field `wieght`"),
        ("[no, partly, yes]", "[only]", "Expected `array` of length >= 2"),
        ("[no, partly, yes]", "[a, a, b]", "short, asking: the scale names a step twice"),
        ("[no, partly, yes]", "[a, b]", "a scale of 2 steps needs 1 limits in `from.steps`, not 2"),
        (
            "explorations_mean",
            "exploration",
            "unknown measure `exploration`; known are low_empathy_risk",
        ),
        ("[0.5, 1]", "[1, 1]", "`from.steps` must rise or fall"),
        ("name: room", "name: asking", "short: the name `asking` is used 2 times"),
        ("name: room", "name: Room", "`Room`: a name consists of lower-case letters"),
        ("version: 1", "version: [", "not YAML"),
        ("weight: 3", "asked: true", "filled `from` a measure or `asked`, not both"),
    ],
)
def test_errors_name_the_place(old: str, new: str, fault: str) -> None:
    text = FILE.replace("[no, partly, yes]", "[a, b, c]") if "partly" not in old else FILE
    with pytest.raises(ScorecardFileError, match=fault) as caught:
        parse(text.replace(old, new, 1).encode(), "cards.yaml")
    assert all(each.startswith("cards.yaml: ") for each in caught.value.faults)


def test_an_unquoted_no_is_a_truth_value_or_a_word_as_yaml_1_2_says() -> None:
    card = parse(FILE.encode(), "f")["short"]
    assert card.criteria[0].scale == ("no", "partly", "yes")


def test_weights_count() -> None:
    card = parse(FILE.encode(), "f")["short"]
    assert card.total({"asking": 2, "room": 0}) == pytest.approx(0.75)
    assert card.total({"room": 1}) == pytest.approx(0.5)
    assert card.total({}) is None
    assert card.missing({"room": 1}) == ["asking"]


def test_asked_questions_are_put_once_and_survive_storing() -> None:
    twice = FILE.replace("from: {measure: talk_share, steps: [0.7, 0.5]}", "asked: true")
    twice += twice[twice.index("  - name: short") :].replace("name: short", "name: other")
    cards = parse(twice.encode(), "f")
    assert [each.name for each in asked(cards)] == ["room"]
    assert asked({"short": unpack(pack(cards["short"]))}) == asked(cards)
    assert asked(parse(FILE.encode(), "f")) == []


def test_measures_may_have_names_of_earlier_releases() -> None:
    card = parse(FILE.replace("explorations_mean", "explorations").encode(), "s.yaml")["short"]
    assert card == parse(FILE.encode(), "s.yaml")["short"]
    stored = pack(card)
    stored["criteria"][0]["from"]["measure"] = "explorations"
    assert unpack(stored) == card


def test_the_documented_measures_are_those_of_the_catalogue() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reviews.md").read_text("utf-8")
    assert table(Use.SCORECARDS) in text, "paste `catalogue.table(Use.SCORECARDS)`"
