"""Feedback on single turns: what is missing, and how it typically sounds."""

from datetime import UTC, datetime

from stream_app.contracts.events import Domain
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.measures.exchanges import Opportunity
from stream_app.findings.feedback import turns
from stream_app.findings.feedback.judgements import CounsellorTurn, TurnRef
from stream_app.findings.feedback.phrasings import phrasings
from stream_app.findings.feedback.turns import OwnWords, TurnFeedback, Way
from tests.web.feedback.test_composition import EX, IP, heads, turn

ER = MECHANISMS[0]
TUESDAY = datetime(2026, 1, 6, 10, tzinfo=UTC)


def composed(
    given: list[CounsellorTurn],
    called: list[Opportunity],
    own: dict[str, list[OwnWords]] | None = None,
    domain: Domain | None = None,
) -> dict[int, TurnFeedback]:
    missing = turns.missing_mechanisms(given, called)
    found = turns.compose(given, called, missing, own or {}, domain)
    return {each.turn.seq: each for each in found}


def lacking(feedback: TurnFeedback) -> list[str]:
    return [each.mechanism for each in feedback.missing]


def own_words(count: int) -> list[OwnWords]:
    return [OwnWords(TurnRef("old", n), TUESDAY, f"words {n}") for n in range(count)]


def test_a_turn_shows_its_mechanisms_with_their_words() -> None:
    found = composed([turn(1, er=2, ex=1)], [])
    assert found[1].shown == {ER: [(0, 10)], EX: [(0, 10)]}
    assert found[1].missing == []
    assert found[1].answers is None


def test_nothing_is_missing_without_an_opportunity() -> None:
    found = composed([turn(1), turn(3)], [Opportunity(2, [3])])
    assert lacking(found[1]) == []
    assert lacking(found[3]) == [ER, IP, EX]
    assert found[3].answers == 2


def test_nothing_is_missing_if_any_turn_of_the_answer_fits() -> None:
    """What is missing stands at the last turn of the answer."""
    found = composed([turn(1), turn(2, er=2), turn(3)], [Opportunity(0, [1, 2, 3])])
    assert [lacking(found[seq]) for seq in (1, 2, 3)] == [[], [], []]
    found = composed([turn(1), turn(2), turn(3)], [Opportunity(0, [1, 2, 3])])
    assert [lacking(found[seq]) for seq in (1, 2, 3)] == [[], [], [ER, IP, EX]]


def test_a_reflection_is_shown_and_nothing_is_missing() -> None:
    """ "You needed that tenderness to be real." has none of EPITOME's mechanisms."""
    reflects = turn(1, heads=heads(answer=0.47, lapse=0.38, reflection=0.99))
    found = composed([reflects], [Opportunity(0, [1])])[1]
    assert (found.shown, found.missing) == ({IP: []}, [])


def test_a_complete_answer_is_recognised_as_one() -> None:
    found = composed([turn(1, er=1, ip=1, ex=1)], [Opportunity(0, [1])])
    assert (found[1].missing, found[1].answers) == ([], 0)


def test_nothing_is_missing_where_the_model_cannot_tell() -> None:
    unsure = turn(1, abstained=[ER])
    found = composed([unsure, turn(2)], [Opportunity(0, [1, 2])])
    assert lacking(found[2]) == [IP, EX]
    assert found[1].unsure == (ER,)
    doubtful = turn(1, heads=heads(answer=0.45, lapse=0.6, closed=0.8))
    assert lacking(composed([doubtful], [Opportunity(0, [1])])[1]) == []
    unscored = turn(1, levels={})
    assert lacking(composed([unscored], [Opportunity(0, [1])])[1]) == []
    assert not composed([unscored], [])[1].scored


def test_an_answer_with_an_unknown_turn_lacks_nothing() -> None:
    assert composed([turn(3)], [Opportunity(0, [1, 3])])[3].missing == []


def test_a_late_turn_is_not_analysed() -> None:
    late = composed([turn(1, er=2, late=True)], [])[1]
    assert (late.shown, late.scored) == ({}, False)


def test_own_words_come_first_and_alternate() -> None:
    given = [turn(1), turn(3), turn(5)]
    called = [Opportunity(0, [1]), Opportunity(2, [3]), Opportunity(4, [5])]
    found = composed(given, called, {ER: own_words(4)})
    words = [[way.words for way in found[seq].missing[0].ways] for seq in (1, 3, 5)]
    assert words == [["words 0", "words 1"], ["words 2", "words 3"], ["words 0", "words 1"]]
    assert found[1].missing[0].ways[0].own == own_words(1)[0]


def test_phrasings_fill_up_to_two_ways() -> None:
    one = composed([turn(1)], [Opportunity(0, [1])], {ER: own_words(1)})[1].missing
    general = phrasings(ER, None)
    assert one[0].ways == [Way("words 0", own_words(1)[0]), Way(general[0])]
    assert one[1].ways == [Way(words) for words in phrasings(IP, None)[:2]]


def test_customer_service_has_its_own_phrasings() -> None:
    service = Domain.CUSTOMER_SERVICE
    found = composed([turn(1)], [Opportunity(0, [1])], domain=service)[1]
    assert [way.words for way in found.missing[2].ways] == list(phrasings(EX, service)[:2])
    assert set(phrasings(EX, service)).isdisjoint(phrasings(EX, Domain.COUNSELLING))


def test_one_counsellor_gets_what_is_missing_in_the_answer_of_both() -> None:
    given = [turn(1, levels={}), turn(2)]
    called = [Opportunity(0, [2])]
    missing = turns.missing_mechanisms(given, called)
    [mine] = turns.compose(given[1:], called, missing, {})
    assert lacking(mine) == [ER, IP, EX]
    assert turns.missing_mechanisms(given, [Opportunity(0, [1, 2])]) == {2: []}
