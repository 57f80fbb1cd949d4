"""What the counsellor is told after a session."""

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
    return composition.of_session("s", "h", status, turns)


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
def test_says_nothing_that_the_scores_do_not_hold(
    turns: list[CounsellorTurn], domain: Domain | None, withheld: int
) -> None:
    told = composition.of_session("s", "h", SessionStatus.IDLE, turns, domain, withheld)
    by_seq = {item.seq: item for item in turns}

    def judged(name: str, seq: int) -> Level:
        item = by_seq[seq]
        assert name not in item.abstained
        assert not item.late
        return item.levels[name]

    for part in told.mechanisms:
        assert 0 <= part.present <= part.judged
        for quote in part.quotes:
            assert judged(part.mechanism, quote.turn.seq).level > 0
        for ref in part.turns:
            assert judged(part.mechanism, ref.seq).level == 0
    strength, suggestion = told.points.strength, told.points.suggestion
    if strength:
        assert judged(strength.mechanism, strength.turn.seq).level > 0
    if suggestion:
        assert judged(suggestion.mechanism, suggestion.turn.seq).level < 2
    points = [p for p in (strength, suggestion) if p]
    for quote in [q for m in told.mechanisms for q in m.quotes] + [
        p.quote for p in points if p.quote
    ]:
        text = by_seq[quote.turn.seq].text
        assert text is not None
        assert quote.words == text[quote.start : quote.end]
        assert quote.words.strip()
        assert len(quote.words) <= composition.MAX_QUOTE


@given(counsellor_turns, st.none() | st.sampled_from(Domain), st.randoms())
def test_is_the_same_whatever_the_order_of_the_turns(
    turns: list[CounsellorTurn], domain: Domain | None, random: object
) -> None:
    shuffled = list(turns)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    once = composition.of_session("s", "h", SessionStatus.CLOSED, turns, domain)
    assert once == composition.of_session("s", "h", SessionStatus.CLOSED, shuffled, domain)


@given(counsellor_turns, st.none() | st.sampled_from(Domain))
def test_no_sentence_rates_and_all_are_short(
    turns: list[CounsellorTurn], domain: Domain | None
) -> None:
    told = composition.of_session("s", "h", SessionStatus.CLOSED, turns, domain)
    for sentence in sentences(told):
        assert not RATING_WORDS.search(sentence), sentence
        assert len(sentence) < 320
        assert "None" not in sentence.replace("None of the three", "")


def test_comes_after_the_session_only() -> None:
    with pytest.raises(composition.TooEarly):
        of(turn(1), status=SessionStatus.OPEN)


def test_strength_is_what_came_through_in_most_turns_and_the_suggestion_what_came_least() -> None:
    told = of(turn(1, er=1, ip=2), turn(3, er=1, ip=1), turn(5), turn(7, ip=1, ex=1))
    strength, suggestion = told.points.strength, told.points.suggestion
    assert strength
    assert (strength.mechanism, strength.turn) == (IP, TurnRef("s", 1))
    assert suggestion
    assert suggestion.mechanism == EX


def test_the_suggestion_shows_the_turn_before_which_the_client_had_said_most() -> None:
    told = of(
        turn(1, er=2, client_said=0), turn(3, er=2, client_said=60), turn(5, er=2, client_said=9)
    )
    assert told.points.suggestion
    assert told.points.suggestion.turn == TurnRef("s", 3)


def test_general_words_lead_to_a_suggestion_to_be_specific() -> None:
    told = of(*(turn(seq, er=2, ip=2, ex=1) for seq in (1, 3, 5)))
    assert told.points.suggestion
    assert told.points.suggestion.mechanism == EX
    assert "brief or general" in told.points.suggestion.text


def test_a_weak_interpretation_is_spoken_of_as_any_other() -> None:
    """The model hardly ever finds weak ones, so nothing is said about how full they were."""
    weak = of(*(turn(seq, er=2, ip=1, ex=2) for seq in (1, 3, 5)))
    strong = of(*(turn(seq, er=2, ip=2, ex=2) for seq in (1, 3, 5)))
    assert sentences(weak) == sentences(strong)
    assert weak.points.suggestion is None
    assert weak.mechanisms[1].present == 3
    assert not re.search("brief|general|specific", weak.mechanisms[1].found)


def test_a_level_between_wins_no_tie_for_interpretations() -> None:
    told = of(*(turn(seq, er=1, ip=2, ex=2) for seq in (1, 3, 5)))
    assert told.points.strength
    assert told.points.strength.mechanism == EX


def test_the_interpretation_shown_is_the_one_whose_presence_is_surest() -> None:
    levels = [Level(2, [0.3, 0.1, 0.6], [(0, 5)]), Level(1, [0.1, 0.5, 0.4], [(0, 5)])]
    turns = [CounsellorTurn("s", seq, "x" * 9, {IP: own}) for seq, own in enumerate(levels)]
    shown = [quote.turn.seq for quote in of(*turns).mechanisms[0].quotes]
    assert shown == [1, 0]


def test_where_everything_was_there_in_specific_words_nothing_is_suggested() -> None:
    told = of(*(turn(seq, er=2, ip=2, ex=2) for seq in (1, 3, 5)))
    assert told.points.suggestion is None
    assert "Nothing stands out" in told.points.notes[0]


def test_two_turns_are_too_few_for_a_strength() -> None:
    told = of(turn(1, er=2), turn(3, er=2))
    assert (told.points.strength, told.points.suggestion) == (None, None)
    assert "Fewer than 3 turns" in told.points.notes[0]


def test_a_mechanism_whose_head_abstained_everywhere_is_not_spoken_about() -> None:
    told = of(*(turn(seq, er=2, abstained=[ER]) for seq in (1, 3, 5)))
    assert [part.mechanism for part in told.mechanisms] == [IP, EX]
    assert not any("warmth" in sentence for sentence in sentences(told))


def test_late_and_withheld_turns_are_counted_and_left_out() -> None:
    late = [turn(seq, er=2, late=True) for seq in (1, 3, 5)]
    told = composition.of_session("s", "h", SessionStatus.CLOSED, late, withheld=1)
    assert told.mechanisms == []
    assert told.notes == [
        "3 turns that arrived late were left out.",
        "1 turn without the client's consent was not looked at.",
    ]


def test_erased_text_is_not_quoted() -> None:
    told = of(*(turn(seq, er=2, text=None) for seq in (1, 3, 5)))
    assert all(not part.quotes for part in told.mechanisms)
    assert "erased" in told.notes[0]


def test_a_long_rationale_is_quoted_up_to_a_word() -> None:
    text = "I hear you. " * 40
    long = CounsellorTurn("s", 1, text, {ER: level(2, (0, len(text)))})
    [quote] = of(long).mechanisms[0].quotes
    assert quote.words.endswith(("hear", "you.", "I"))


def test_a_service_conversation_gets_its_own_examples() -> None:
    turns = [turn(seq) for seq in (1, 3, 5)]
    plain = composition.of_session("s", "h", SessionStatus.CLOSED, turns)
    service = composition.of_session("s", "h", SessionStatus.CLOSED, turns, Domain.CUSTOMER_SERVICE)
    assert plain.mechanisms[0].typical != service.mechanisms[0].typical
