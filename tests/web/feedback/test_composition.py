"""Feedback to the counsellor after a session."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS, Level, SessionStatus
from stream_app.findings.feedback import composition
from stream_app.findings.feedback.composition import Feedback
from stream_app.findings.feedback.judgements import (
    CounsellorTurn,
    Finding,
    TurnRef,
    finding,
    missed,
)

RATING_WORDS = re.compile(
    r"\b(good|bad|poor|weak|strong|excellent|great|fail\w*|wrong(?!\?)|better|worse|score\w*)\b",
    re.IGNORECASE,
)
ER, IP, EX = MECHANISMS


def level(value: int, *spans: tuple[int, int], sure: float = 0.8) -> Level:
    rest = (1 - sure) / 2
    return Level(value, [sure if i == value else rest for i in range(3)], list(spans))


def heads(
    answer: float = 0.8,
    lapse: float = 0.3,
    opened: float = 0.0,
    closed: float = 0.0,
    reflection: float = 0.0,
    **strategy: float,
) -> dict[str, dict[str, float]]:
    return {
        "answer": {"no": 1 - answer, "yes": answer},
        "lapse": {"no": 1 - lapse, "yes": lapse},
        "question": {"none": 1 - opened - closed, "closed": closed, "open": opened},
        "reflection": {"none": 1 - reflection, "simple": reflection, "complex": 0.0},
        **({"strategy": strategy} if strategy else {}),
    }


GOOD = heads()
FORM = heads(answer=0.1, lapse=0.9, closed=0.8)


def turn(
    seq: int, er: int = 0, ip: int = 0, ex: int = 0, text: str | None = "x" * 40, **changes: object
) -> CounsellorTurn:
    """A good answer if it has any mechanism, otherwise a question for the form."""
    levels = {
        name: level(value, (0, 10)) if value else level(0)
        for name, value in zip(MECHANISMS, (er, ip, ex), strict=True)
    }
    good = heads(opened=0.9 if ex else 0.0) if er or ip or ex else FORM
    given = {"session_id": "s", "seq": seq, "text": text, "levels": levels, "heads": good}
    return CounsellorTurn(**given | {"asked": 0.9} | changes)  # type: ignore[arg-type]


def of(*turns: CounsellorTurn, status: SessionStatus = SessionStatus.CLOSED) -> Feedback:
    return composition.compose("s", "h", status, turns)


def present(feedback: Feedback) -> dict[str, int]:
    """Turns with each mechanism of which anything is said."""
    return {part.mechanism: part.present for part in feedback.mechanisms}


levels = st.builds(
    lambda value, sure, spans: level(value, *spans, sure=sure),
    st.integers(0, 2),
    st.floats(0.34, 1.0),
    st.lists(st.tuples(st.integers(-5, 80), st.integers(-5, 80)), max_size=3),
)
counsellor_turns = st.lists(
    st.builds(
        CounsellorTurn,
        session_id=st.just("s"),
        seq=st.integers(0, 500),
        text=st.none() | st.text(max_size=60),
        levels=st.dictionaries(st.sampled_from(MECHANISMS), levels),
        heads=st.just({})
        | st.builds(
            heads,
            st.floats(0, 1),
            st.floats(0, 1),
            st.floats(0, 0.5),
            st.floats(0, 0.5),
            st.floats(0, 1),
        )
        | st.sampled_from([GOOD, FORM]),
        abstained=st.lists(st.sampled_from([*MECHANISMS, "strategy", "question"]), unique=True),
        late=st.booleans(),
        asked=st.none() | st.floats(0, 1),
    ),
    max_size=12,
    unique_by=lambda item: item.seq,
)


def sentences(given: Feedback) -> list[str]:
    points = [p for p in (given.points.strength, given.points.suggestion) if p]
    parts = [text for m in given.mechanisms for text in (m.found, m.missing, m.typical)]
    return [*parts, *(p.text for p in points), *given.points.notes, *given.notes]


@given(counsellor_turns, st.none() | st.sampled_from(Domain), st.integers(0, 3))
def test_feedback_is_supported_by_the_scores(
    turns: list[CounsellorTurn], domain: Domain | None, withheld: int
) -> None:
    feedback = composition.compose("s", "h", SessionStatus.IDLE, turns, domain, withheld)
    by_seq = {item.seq: item for item in turns}

    praised, criticised = set(), set()
    for part in feedback.mechanisms:
        assert 0 <= part.present <= part.judged
        for quote in part.quotes:
            assert finding(by_seq[quote.turn.seq], part.mechanism) is Finding.PRESENT
            praised.add(quote.turn.seq)
        for ref in part.turns:
            assert finding(by_seq[ref.seq], part.mechanism) is Finding.ABSENT
            assert part.mechanism not in by_seq[ref.seq].abstained
            criticised.add(ref.seq)
    strength, suggestion = feedback.points.strength, feedback.points.suggestion
    if strength:
        assert finding(by_seq[strength.turn.seq], strength.mechanism) is Finding.PRESENT
        praised.add(strength.turn.seq)
    if suggestion:
        assert missed(by_seq[suggestion.turn.seq]) is not None
        criticised.add(suggestion.turn.seq)
    assert not praised & criticised
    assert not any(by_seq[seq].late for seq in praised | criticised)
    points = [p for p in (strength, suggestion) if p]
    for quote in [q for m in feedback.mechanisms for q in m.quotes] + [
        p.quote for p in points if p.quote
    ]:
        text = by_seq[quote.turn.seq].text
        assert text is not None
        assert quote.words == text[quote.start : quote.end]
        assert quote.words.strip()
        assert len(quote.words) <= composition.MAX_QUOTE


@given(counsellor_turns, st.none() | st.sampled_from(Domain), st.randoms())
def test_feedback_does_not_depend_on_the_order_of_turns(
    turns: list[CounsellorTurn], domain: Domain | None, random: object
) -> None:
    shuffled = list(turns)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    once = composition.compose("s", "h", SessionStatus.CLOSED, turns, domain)
    assert once == composition.compose("s", "h", SessionStatus.CLOSED, shuffled, domain)


@given(counsellor_turns, st.none() | st.sampled_from(Domain))
def test_sentences_are_short_and_do_not_rate(
    turns: list[CounsellorTurn], domain: Domain | None
) -> None:
    feedback = composition.compose("s", "h", SessionStatus.CLOSED, turns, domain)
    for sentence in sentences(feedback):
        assert not RATING_WORDS.search(sentence), sentence
        assert len(sentence) < 320
        assert "None" not in sentence


def test_an_open_session_has_no_feedback() -> None:
    with pytest.raises(composition.TooEarly):
        of(turn(1), status=SessionStatus.OPEN)


def test_the_most_frequent_mechanism_is_the_strength_and_the_worst_lapse_the_suggestion() -> None:
    worse = heads(answer=0.1, lapse=0.95, closed=0.8)
    feedback = of(
        turn(1, er=1, ip=2), turn(3, er=1, ip=1), turn(5), turn(7, ip=1, ex=1), turn(9, heads=worse)
    )
    strength, suggestion = feedback.points.strength, feedback.points.suggestion
    assert strength
    assert (strength.mechanism, strength.turn) == (IP, TurnRef("s", 1))
    assert suggestion
    assert suggestion.turn == TurnRef("s", 9)
    assert "asks a closed question" in suggestion.text


def test_the_best_answer_is_quoted_first() -> None:
    feedback = of(turn(1, ip=2), turn(3, ip=1, heads=heads(answer=0.9)), turn(5, ip=2))
    assert [quote.turn.seq for quote in feedback.mechanisms[0].quotes] == [3, 1]


def test_weak_and_strong_levels_get_the_same_feedback() -> None:
    weak = of(*(turn(seq, er=1, ip=1, ex=1) for seq in (1, 3, 5)))
    strong = of(*(turn(seq, er=2, ip=2, ex=2) for seq in (1, 3, 5)))
    assert sentences(weak) == sentences(strong)
    assert weak.points.suggestion is None
    assert "Nothing stands out" in weak.points.notes[0]


def test_a_form_question_is_no_exploration() -> None:
    """The level alone says nothing: the head gives it to "Are you pregnant?"."""
    feedback = of(*(turn(seq, ex=2, heads=FORM) for seq in (1, 3, 5)))
    assert feedback.points.strength is None
    assert all(not part.quotes for part in feedback.mechanisms)
    assert feedback.points.suggestion


def test_an_open_question_that_does_not_fit_is_neither_praised_nor_criticised() -> None:
    misplaced = heads(answer=0.1, lapse=0.9, opened=0.9)
    feedback = of(*(turn(seq, ex=2, heads=misplaced) for seq in (1, 3, 5)))
    assert (feedback.points.strength, feedback.points.suggestion) == (None, None)
    assert feedback.mechanisms == []


@pytest.mark.parametrize(
    "shown",
    [
        heads(answer=0.47, lapse=0.38, reflection=0.9),
        heads(answer=0.47, lapse=0.38, restatement_or_paraphrasing=0.4, reflection_of_feelings=0.3),
    ],
)
def test_reflections_show_understanding(shown: dict[str, dict[str, float]]) -> None:
    feedback = of(*(turn(seq, heads=shown) for seq in (1, 3, 5)))
    assert present(feedback)[IP] == 3
    assert feedback.points.strength
    assert feedback.points.strength.mechanism == IP


def test_an_affirmation_shows_warmth_unless_the_head_abstained() -> None:
    affirms = heads(affirmation_and_reassurance=0.6)
    assert present(of(turn(1, heads=affirms))) == {ER: 1}
    assert present(of(turn(1, heads=affirms, abstained=["strategy"]))) == {}


def test_a_story_of_ones_own_shows_no_understanding() -> None:
    feedback = of(*(turn(seq, ip=2, heads=heads(self_disclosure=0.8)) for seq in (1, 3, 5)))
    assert present(feedback) == {}


def test_a_calm_message_gives_no_suggestion() -> None:
    assert of(*(turn(seq, asked=0.4) for seq in (1, 3, 5))).points.suggestion is None
    assert of(*(turn(seq, asked=None) for seq in (1, 3, 5))).points.suggestion is None


def test_abstention_is_no_absence() -> None:
    feedback = of(*(turn(seq, abstained=[ER]) for seq in (1, 3, 5)))
    assert present(feedback) == {IP: 0, EX: 0}, "nothing is said of warmth"
    doubtful = heads(answer=0.3, lapse=0.6, closed=0.8)
    unsure = of(*(turn(seq, heads=doubtful, abstained=[ER]) for seq in (1, 3, 5)))
    assert unsure.points.suggestion is None


def test_a_bundle_without_a_reader_gives_no_points() -> None:
    feedback = of(*(turn(seq, er=2, heads={}) for seq in (1, 3, 5)))
    assert (feedback.points.strength, feedback.points.suggestion) == (None, None)
    assert "does not judge" in feedback.points.notes[0]
    assert all(not part.quotes for part in feedback.mechanisms)


def test_two_turns_give_no_strength() -> None:
    feedback = of(turn(1, er=2), turn(3, er=2))
    assert (feedback.points.strength, feedback.points.suggestion) == (None, None)
    assert "Fewer than 3 turns" in feedback.points.notes[0]


def test_late_and_withheld_turns_are_left_out_and_counted() -> None:
    late = [turn(seq, er=2, late=True) for seq in (1, 3, 5)]
    feedback = composition.compose("s", "h", SessionStatus.CLOSED, late, withheld=1)
    assert feedback.mechanisms == []
    assert feedback.notes == [
        "3 turns that arrived late were left out.",
        "1 turn without the client's consent was not analysed.",
    ]


def test_erased_text_is_not_quoted() -> None:
    feedback = of(*(turn(seq, er=2, text=None) for seq in (1, 3, 5)))
    assert all(not part.quotes for part in feedback.mechanisms)
    assert "erased" in feedback.notes[0]


def test_a_long_rationale_is_cut_at_a_sentence_otherwise_at_a_word() -> None:
    text = "I hear you. " * 40
    [quote] = (
        of(turn(1, text=text, levels={ER: level(2, (0, len(text)))}, heads=GOOD))
        .mechanisms[0]
        .quotes
    )
    assert quote.words.endswith("you.")
    text = "I hear you " * 40
    [quote] = (
        of(turn(1, text=text, levels={ER: level(2, (0, len(text)))}, heads=GOOD))
        .mechanisms[0]
        .quotes
    )
    assert quote.words.endswith(("hear", "you", "I"))


def test_a_service_conversation_gets_its_own_examples() -> None:
    turns = [turn(seq) for seq in (1, 3, 5)]
    plain = composition.compose("s", "h", SessionStatus.CLOSED, turns)
    service = composition.compose("s", "h", SessionStatus.CLOSED, turns, Domain.CUSTOMER_SERVICE)
    assert plain.mechanisms[0].typical != service.mechanisms[0].typical
