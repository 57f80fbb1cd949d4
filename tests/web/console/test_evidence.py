"""Marked text and scores of a turn, also when the model abstained."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Stage
from stream_app.core.measures.perceived import PerceivedGroup, Validity
from stream_app.store.sessions.bundle_info import BundleInfo
from stream_app.store.sessions.transcripts import ScoreOfTurn, TurnRead
from stream_app.web.console.session.evidence import Bar, Chip, segments, turn_view

ER, IP, EX = MECHANISMS
FACTS = BundleInfo(3, 3)
places = st.integers(0, 45)
spans = st.dictionaries(
    st.sampled_from(MECHANISMS), st.lists(st.tuples(places, places), max_size=4)
)


@given(st.text(max_size=40), spans)
def test_segments_cover_the_text_and_have_exactly_their_marks(
    text: str, found: dict[str, list[tuple[int, int]]]
) -> None:
    pieces = segments(text, found)
    assert "".join(piece.text for piece in pieces) == text
    place = 0
    for piece in pieces:
        assert piece.text
        for offset in range(place, place + len(piece.text)):
            marks = {n for n, each in found.items() if any(s <= offset < e for s, e in each)}
            assert set(piece.marks) == marks
        place += len(piece.text)


@given(st.text(min_size=1, max_size=40), spans)
def test_every_mark_begins_and_ends_once(
    text: str, found: dict[str, list[tuple[int, int]]]
) -> None:
    for piece in segments(text, found):
        assert set(piece.begins) <= set(piece.marks)


def test_overlapping_marks_are_split() -> None:
    """::

    I am so sorry, what happened
    └─ER──────────┘
            └─EX───────────────┘
    """
    pieces = segments("I am so sorry, what happened", {ER: [(0, 14)], EX: [(8, 28)]})
    assert [(piece.text, piece.marks, piece.begins) for piece in pieces] == [
        ("I am so ", (ER,), (ER,)),
        ("sorry,", (ER, EX), (EX,)),
        (" what happened", (EX,), ()),
    ]


def turn(score: ScoreOfTurn) -> TurnRead:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    return TurnRead("s", 3, None, "h", Role.COUNSELLOR, "So sorry.", at, late=False, scores=[score])


def score(stage: Stage = Stage.FINAL, abstained: tuple[str, ...] = ()) -> ScoreOfTurn:
    level = {"level": 2, "probabilities": [0.1, 0.1, 0.8], "rationale": [[0, 9]]}
    return ScoreOfTurn(
        bundle="b",
        stage=stage,
        late=False,
        truncated=False,
        empathy_total=2,
        confidence=0.7,
        low_empathy_risk=0.2,
        expressed={ER: level, "strategy": {"question": 0.9, "others": 0.1}},
        perceived={"sympathy": 0.6},
        client={},
        abstained=list(abstained),
    )


def test_an_abstained_head_has_no_number_mark_or_chip() -> None:
    found = turn_view(turn(score(abstained=(ER, "strategy", "sympathy"))), "b", [], FACTS)
    assert (found.levels[0].word, found.levels[0].level, found.levels[0].confidence) == (
        "abstained",
        None,
        None,
    )
    assert [piece.marks for piece in found.segments] == [()]
    assert found.chips == []
    assert found.abstained == ["strategy"]
    assert found.explained, "that it abstained is said, too"


RATED = Validity("ESConv empathy", "seekers' empathy ratings", 0.37, 0.31, 0.43, 851, 851)
ONE = PerceivedGroup(
    "Understanding and sympathy", ["understanding", "sympathy"], "sympathy", [RATED]
)
GROUPED = replace(FACTS, perceived=(ONE,))


def listened(abstained: tuple[str, ...] = (), **perceived: float) -> TurnRead:
    return turn(replace(score(abstained=abstained), perceived=perceived))


def test_a_group_of_heads_is_one_bar_with_its_validity() -> None:
    scored = listened(engagement=0.2, understanding=0.4, sympathy=0.6, helpfulness=0.8)
    found = turn_view(scored, "b", [], GROUPED).perceived
    assert found == [Bar("Understanding and sympathy", 0.6, (RATED,))]


@pytest.mark.parametrize("r", [0.29, -0.5])
def test_a_value_that_does_not_agree_with_every_rating_is_not_shown(r: float) -> None:
    """Each rating that it was compared with counts, not the best one."""
    group = structs.replace(ONE, validity=[RATED, structs.replace(RATED, r=r)])
    scored = listened(understanding=0.4, sympathy=0.6)
    found = turn_view(scored, "b", [], replace(GROUPED, perceived=(group,)))
    assert found.perceived == []


def test_a_value_that_was_never_compared_with_ratings_is_not_shown() -> None:
    scored = listened(understanding=0.4, sympathy=0.6)
    assert turn_view(scored, "b", [], FACTS).perceived == []
    unmeasured = replace(FACTS, perceived=(structs.replace(ONE, validity=[]),))
    assert turn_view(scored, "b", [], unmeasured).perceived == []


def test_a_group_abstains_if_its_shown_head_does() -> None:
    scored = listened(abstained=("understanding",), understanding=0.4, sympathy=0.6)
    assert [b.probability for b in turn_view(scored, "b", [], GROUPED).perceived] == [0.6]
    scored = listened(abstained=("sympathy",), understanding=0.4, sympathy=0.6)
    assert [b.probability for b in turn_view(scored, "b", [], GROUPED).perceived] == [None]


def test_a_group_without_a_score_has_no_bar() -> None:
    assert turn_view(listened(understanding=0.4), "b", [], GROUPED).perceived == []


def client_turn(**client: dict[str, float]) -> TurnRead:
    at = datetime(2026, 1, 5, tzinfo=UTC)
    own = replace(score(), empathy_total=None, expressed={}, perceived={}, client=client)
    return TurnRead("s", 4, None, "c", Role.CLIENT, "Fine.", at, late=False, scores=[own])


def test_a_client_turn_has_chips_for_talk_and_distress_and_none_for_satisfaction() -> None:
    talk, distress = {"change": 0.7, "neutral": 0.3}, {"no": 0.1, "yes": 0.9}
    scored = client_turn(talk_type=talk, distress=distress, satisfaction={"no": 0.9, "yes": 0.1})
    found = turn_view(scored, "b", [], FACTS)
    assert found.chips == [Chip("talk", "change", 0.7), Chip("distress", "yes", 0.9)]


def test_crisis_language_has_a_chip_with_the_words_of_the_list() -> None:
    text = "Fine. I want to kill myself, goodbye everyone."
    turn = replace(client_turn(crisis_language={"no": 0.0, "yes": 1.0}), text=text)
    found = turn_view(turn, "b", [], FACTS)
    assert found.chips == [Chip("crisis language", "“kill myself”; “goodbye everyone”", None)]
    for unread in ("Fine.", None):
        found = turn_view(replace(turn, text=unread), "b", [], FACTS)
        assert found.chips == [Chip("crisis language", "yes", None)]
    by_probe = client_turn(crisis_language={"no": 0.2, "yes": 0.8})
    assert turn_view(by_probe, "b", [], FACTS).chips == []


def test_a_negative_label_gets_no_chip() -> None:
    scored = client_turn(distress={"no": 0.9, "yes": 0.1}, talk_type={"none": 0.8, "change": 0.2})
    assert turn_view(scored, "b", [], FACTS).chips == []


def test_a_hidden_head_is_not_listed_as_abstained() -> None:
    scored = client_turn(satisfaction={"no": 0.5, "yes": 0.5}, talk_type={"change": 1.0})
    [only] = scored.scores
    unsure = replace(scored, scores=[replace(only, abstained=["satisfaction", "talk_type"])])
    found = turn_view(unsure, "b", [], FACTS)
    assert (found.chips, found.abstained) == ([], ["talk"])


def test_the_window_depends_on_the_stage() -> None:
    around = [0, 1, 2, 3, 4, 5, 6, 7]
    final = turn_view(turn(score()), "b", around, BundleInfo(2, 3))
    assert (final.before, final.after) == ([1, 2], [4, 5, 6])
    provisional = turn_view(turn(score(Stage.PROVISIONAL)), "b", around, BundleInfo(2, 3))
    assert (provisional.before, provisional.after) == ([1, 2], [])


def test_scores_of_another_bundle_are_not_shown() -> None:
    found = turn_view(turn(score()), "other", [2, 4], FACTS)
    assert found.score is None
    assert (found.levels, found.chips, found.perceived, found.before) == ([], [], [], [])
