"""The evidence for the risk: quoted beside what is usual, and only if it is worse."""

import pytest
from msgspec.structs import replace

from stream_app.core.measures.aggregates import Aggregates
from stream_app.core.measures.baselines import Baseline, Pinned, Usual
from stream_app.core.measures.empathy import ENOUGH_SESSIONS, DomainEmpathy, EmpathyModel
from stream_app.core.measures.empathy_words import Evidence, evidence, reference
from stream_app.core.measures.watch import Facts, Watch
from stream_app.core.rules.variables import Reading
from tests.core.test_empathy import ELSEWHERE, HERE, MODEL, exchanges, of

MISSED = "3 of the last 3 emotional messages got no empathic answer"
COLD = [(1.0, 0.0)] * 3
INDEX = Usual(ENOUGH_SESSIONS, 0.83, 0.1)


def found(
    *latest: tuple[int, bool], here: DomainEmpathy = HERE, recent: float = 0.31
) -> Evidence | None:
    """Evidence in a session of the domain whose latest opportunities were answered or not."""
    summary = replace(of((1.0, 0.3)), recent_opportunities=list(latest), recent=recent)
    return evidence(summary, here, reference(here, None, stated=True))


def words(*latest: tuple[int, bool], here: DomainEmpathy = HERE, recent: float = 0.31) -> str:
    given = found(*latest, here=here, recent=recent)
    return given.words if given else ""


def of_session(
    *pairs: tuple[float, float],
    channel: Baseline | None = None,
    domain: str | None = "peer-support",
    model: EmpathyModel = MODEL,
) -> str:
    facts = Facts(domain, baselines=Pinned(channel=channel))
    reading = Reading(Aggregates(), Watch(), facts, 0.5, model, None, exchanges(*pairs))
    return reading.evidence.words if reading.evidence else ""


def test_more_unanswered_messages_than_usual_are_evidence() -> None:
    assert found((2, False), (6, True), (8, False), (12, False)) == Evidence(
        "3 of the last 4 emotional messages got no empathic answer; usual in peer support: 1 of 4",
        [2, 8, 12],
    )


@pytest.mark.parametrize(
    ("answered_share", "missed", "quoted"),
    [(0.25, 2, False), (0.25, 3, True), (0.3, 3, True), (0.5, 2, True), (0.05, 3, False)],
)
def test_as_many_as_usual_or_fewer_are_none(
    answered_share: float, missed: int, quoted: bool
) -> None:
    """Neither as computed nor as printed: 3 of 3 is no more than a usual "4 of 4"."""
    here = replace(HERE, answered_share=answered_share)
    latest = [(seq, seq >= missed) for seq in range(3)]
    assert ("got no empathic answer" in words(*latest, here=here)) is quoted


def test_an_index_below_the_usual_one_is_evidence_of_its_weakest_answers() -> None:
    pairs = [(0.1, 0.3), (0.1, 0.0), (0.1, 0.2), (0.1, 0.1)]
    summary = replace(of(*pairs), recent=0.31)
    assert evidence(summary, HERE, reference(HERE, None, stated=True)) == Evidence(
        "the recent answers show little empathy, index 0.31; usual in peer support: 0.50",
        [2, 4, 6],
    )


@pytest.mark.parametrize("latest", [[], [(4, False)], [(2, True), (6, True)]])
def test_with_too_few_missed_messages_the_index_is_compared(
    latest: list[tuple[int, bool]],
) -> None:
    assert words(*latest).endswith("index 0.31; usual in peer support: 0.50")


@pytest.mark.parametrize(("recent", "quoted"), [(0.49, True), (0.496, False), (0.6, False)])
def test_an_index_that_prints_like_the_usual_one_is_none(recent: float, quoted: bool) -> None:
    assert bool(words(recent=recent)) is quoted


def test_words_name_what_counts_in_the_domain() -> None:
    here = replace(HERE, service="counselling", messages="messages about feelings or change")
    assert words((2, False), (6, False), here=here) == (
        "2 of the last 2 messages about feelings or change got no empathic answer; "
        "usual in counselling: 1 of 4"
    )
    assert "usual in customer service" in words((2, False), (6, False), here=ELSEWHERE)


@pytest.mark.parametrize("domain", [None, "elsewhere"])
def test_a_session_of_no_known_domain_is_not_compared_with_the_default_one(
    domain: str | None,
) -> None:
    assert of_session(*COLD, domain=domain) == f"{MISSED}; no comparable sessions yet"
    quiet = of_session(*[(0.0, 0.0)] * 30, domain=domain)
    assert quiet.startswith("the recent answers show little empathy, index 0.")
    assert quiet.endswith("; no comparable sessions yet")


def test_without_a_comparison_most_messages_must_be_unanswered() -> None:
    assert of_session((1.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 0.0), domain=None) == ""


def test_sessions_that_are_all_alike_are_no_reference() -> None:
    alike = replace(HERE, quantiles=[0.5, 0.505, 0.51])
    assert reference(alike, None, stated=True) is None
    own = Baseline(index=Usual(ENOUGH_SESSIONS, 0.5, 0.001))
    assert of_session(*COLD, channel=own) == f"{MISSED}; no comparable sessions yet"


def test_the_channels_share_is_quoted_if_it_is_the_reference() -> None:
    """The domain's sessions miss 1 of 4, the channel's 2 of 4."""
    own = Baseline(index=INDEX, answered=Usual(40, 0.55, 0.2))
    assert of_session(*COLD, channel=own) == f"{MISSED}; usual in this channel: 2 of 4"


def test_the_domain_is_quoted_while_the_channel_has_too_few_sessions() -> None:
    few = Usual(ENOUGH_SESSIONS - 1, 0.83, 0.1)
    for index in (few, None):
        own = Baseline(index=index, answered=Usual(400, 0.55, 0.2))
        assert of_session(*COLD, channel=own) == f"{MISSED}; usual in peer support: 1 of 4"


def test_the_index_is_compared_if_the_channels_share_is_unknown() -> None:
    said = of_session(*COLD, channel=Baseline(index=INDEX))
    assert said.startswith(f"{MISSED}; index 0.")
    assert said.endswith("; usual in this channel: 0.83")
    low = Baseline(index=Usual(ENOUGH_SESSIONS, 0.0, 0.1))
    assert of_session(*COLD, channel=low) == ""
