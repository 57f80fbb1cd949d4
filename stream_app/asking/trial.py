"""Tries questions on past sessions before they are adopted: what would people say to the answers?

The sessions are those whose reviews answer the same question. Nothing is stored.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from stream_app.asking.asker import Asker
from stream_app.core.rules.proposals import Dropped
from stream_app.core.rules.scorecards import Criterion
from stream_app.findings import proposal_agreement
from stream_app.findings.proposal_agreement import ProposalAgreement
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals


class Tried(Struct, frozen=True):
    """How a question did.

    ``reviewed``: sessions whose reviews answer it. ``asked``: those of them with text and consent.
    ``dropped``: answers that were no proposal, by reason. ``seconds``: for one session.
    """

    question: str
    reviewed: int
    asked: int
    dropped: dict[str, int]
    seconds: float
    agreement: ProposalAgreement


def run(
    store: Store,
    asker: Asker,
    questions: Sequence[Criterion],
    most: int,
    clock: Callable[[], float],
) -> Iterator[Tried]:
    """Ask each question about the last ``most`` sessions that people have answered it about.

    Raises:
        EndpointFailed: the endpoint gives no answer.
    """
    for question in questions:
        reviewed = proposals.by_people(store, ALL_SESSIONS, question)
        pairs: list[tuple[int, int]] = []
        dropped: Counter[str] = Counter()
        asked, started = 0, clock()
        for people in reversed(reviewed):
            if asked == most:
                break
            for _, found in asker.ask(people.session_id, [question]):
                asked += 1
                if isinstance(found, Dropped):
                    dropped[found.value] += 1
                else:
                    pairs.append((people.value, found.value))
        yield Tried(
            question.question,
            len(reviewed),
            asked,
            dict(dropped),
            (clock() - started) / asked if asked else 0.0,
            proposal_agreement.of_pairs(pairs, len(question.scale), len(pairs)),
        )
