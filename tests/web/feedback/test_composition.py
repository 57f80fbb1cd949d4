"""Feedback to the counsellor after a session."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS, Level, SessionStatus
from stream_app.web.feedback import composition
from stream_app.web.feedback.composition import CounsellorTurn, Feedback, TurnRef

RATING_WORDS = re.compile(
    r"\b(good|bad|poor|weak|strong|excellent|great|fail\w*|wrong(?!\?)|better|worse|score\w*)\b",
    re.IGNORECASE,
)
ER, IP, EX = MECHANISMS


def level(value: int, *spans: tuple[int, int], sure: float = 0.8) -> Level:
    rest = (1 - sure) / 2
    return Level(value, [sure if i == value else rest for i in range(3)], list(spans))


def turn(
    seq: int, er: int = 0, ip: int = 0, ex: int = 0, text: str | None = "x" * 40, **changes: object
) -> CounsellorTurn:
    levels = {
        name: level(value, (0, 10)) if value else level(0)
        for name, value in zip(MECHANISMS, (er, ip, ex), strict=True)
    }
    return CounsellorTurn(
        **{"session_id": "s", "seq": seq, "text": text, "levels": levels} | changes
    )  # type: ignore[arg-type]


def of(*turns: CounsellorTurn, status: SessionStatus = SessionStatus.CLOSED) -> Feedback:
    return composition.compose("s", "h", status, turns)


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
        abstained=st.lists(st.sampled_from([*MECHANISMS, "strategy"]), unique=True),
        late=st.booleans(),
        client_said=st.integers(0, 200),
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

    def judged(name: str, seq: int) -> Level:
        item = by_seq[seq]
        assert name not in item.abstained
        assert not item.late
        return item.levels[name]

    for part in feedback.mechanisms:
        assert 0 <= part.present <= part.judged
        for quote in part.quotes:
            assert judged(part.mechanism, quote.turn.seq).level > 0
        for ref in part.turns:
            assert judged(part.mechanism, ref.seq).level == 0
    strength, suggestion = feedback.points.strength, feedback.points.suggestion
    if strength:
        assert judged(strength.mechanism, strength.turn.seq).level > 0
    if suggestion:
        assert judged(suggestion.mechanism, suggestion.turn.seq).level < 2
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
        assert "None" not in sentence.replace("None of the three", "")


def test_an_open_session_has_no_feedback() -> None:
    with pytest.raises(composition.TooEarly):
        of(turn(1), status=SessionStatus.OPEN)


def test_the_most_frequent_mechanism_is_the_strength_and_the_rarest_the_suggestion() -> None:
    feedback = of(turn(1, er=1, ip=2), turn(3, er=1, ip=1), turn(5), turn(7, ip=1, ex=1))
    strength, suggestion = feedback.points.strength, feedback.points.suggestion
    assert strength
    assert (strength.mechanism, strength.turn) == (IP, TurnRef("s", 1))
    assert suggestion
    assert suggestion.mechanism == EX


def test_the_suggestion_refers_to_the_turn_after_the_longest_client_text() -> None:
    feedback = of(
        turn(1, er=2, client_said=0), turn(3, er=2, client_said=60), turn(5, er=2, client_said=9)
    )
    assert feedback.points.suggestion
    assert feedback.points.suggestion.turn == TurnRef("s", 3)


def test_mostly_general_words_give_a_suggestion_to_be_specific() -> None:
    feedback = of(*(turn(seq, er=2, ip=2, ex=1) for seq in (1, 3, 5)))
    assert feedback.points.suggestion
    assert feedback.points.suggestion.mechanism == EX
    assert "brief or general" in feedback.points.suggestion.text


def test_weak_and_strong_interpretations_get_the_same_feedback() -> None:
    """The model hardly ever detects weak interpretations, so their level is not mentioned."""
    weak = of(*(turn(seq, er=2, ip=1, ex=2) for seq in (1, 3, 5)))
    strong = of(*(turn(seq, er=2, ip=2, ex=2) for seq in (1, 3, 5)))
    assert sentences(weak) == sentences(strong)
    assert weak.points.suggestion is None
    assert weak.mechanisms[1].present == 3
    assert not re.search("brief|general|specific", weak.mechanisms[1].found)


def test_level_two_does_not_break_ties_for_interpretations() -> None:
    feedback = of(*(turn(seq, er=1, ip=2, ex=2) for seq in (1, 3, 5)))
    assert feedback.points.strength
    assert feedback.points.strength.mechanism == EX


def test_the_most_probable_interpretation_is_quoted_first() -> None:
    levels = [Level(2, [0.3, 0.1, 0.6], [(0, 5)]), Level(1, [0.1, 0.5, 0.4], [(0, 5)])]
    turns = [CounsellorTurn("s", seq, "x" * 9, {IP: own}) for seq, own in enumerate(levels)]
    shown = [quote.turn.seq for quote in of(*turns).mechanisms[0].quotes]
    assert shown == [1, 0]


def test_only_specific_words_give_no_suggestion() -> None:
    feedback = of(*(turn(seq, er=2, ip=2, ex=2) for seq in (1, 3, 5)))
    assert feedback.points.suggestion is None
    assert "Nothing stands out" in feedback.points.notes[0]


def test_two_turns_give_no_strength() -> None:
    feedback = of(turn(1, er=2), turn(3, er=2))
    assert (feedback.points.strength, feedback.points.suggestion) == (None, None)
    assert "Fewer than 3 turns" in feedback.points.notes[0]


def test_a_mechanism_that_always_abstained_is_not_mentioned() -> None:
    feedback = of(*(turn(seq, er=2, abstained=[ER]) for seq in (1, 3, 5)))
    assert [part.mechanism for part in feedback.mechanisms] == [IP, EX]
    assert not any("warmth" in sentence for sentence in sentences(feedback))


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


def test_a_long_rationale_is_cut_at_a_word() -> None:
    text = "I hear you. " * 40
    long = CounsellorTurn("s", 1, text, {ER: level(2, (0, len(text)))})
    [quote] = of(long).mechanisms[0].quotes
    assert quote.words.endswith(("hear", "you.", "I"))


def test_a_service_conversation_gets_its_own_examples() -> None:
    turns = [turn(seq) for seq in (1, 3, 5)]
    plain = composition.compose("s", "h", SessionStatus.CLOSED, turns)
    service = composition.compose("s", "h", SessionStatus.CLOSED, turns, Domain.CUSTOMER_SERVICE)
    assert plain.mechanisms[0].typical != service.mechanisms[0].typical
