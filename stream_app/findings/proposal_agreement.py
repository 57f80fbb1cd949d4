"""How far a language model's proposals agree with people: in how many reviews, and Cohen's kappa.

One pair for each session, as for ratings. Who has seen a proposal may follow it, so the number of
reviews that were signed off without seeing it is part of the answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from stream_app.core.rules.scorecards import Criterion
from stream_app.findings.agreement import MIN_PAIRS, Kappa, confusion_matrix, kappa
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals


@dataclass(frozen=True, slots=True)
class ProposalAgreement:
    """``reviews``, of which ``agreed`` agree; ``unseen``: signed off without having seen it."""

    reviews: int
    agreed: int
    unseen: int
    kappa: Kappa

    @property
    def words(self) -> str:
        """As shown beside a proposal.

        >>> ProposalAgreement(0, 0, 0, Kappa(0)).words
        'not yet compared with people'
        >>> ProposalAgreement(18, 14, 18, Kappa(18)).words
        'agreed with 14 of 18 reviews; too few for κ (20)'
        >>> ProposalAgreement(40, 31, 9, Kappa(40, 0.52, 0.2, 0.8)).words
        'agreed with 31 of 40 reviews, 9 of them made without seeing it; κ 0.52 [0.20, 0.80]'
        """
        if not self.reviews:
            return "not yet compared with people"
        seen = self.unseen < self.reviews
        blind = f", {self.unseen or 'none'} of them made without seeing it" if seen else ""
        plural = "s" if self.reviews != 1 else ""
        return (
            f"agreed with {self.agreed} of {self.reviews} review{plural}{blind}; "
            f"{_kappa_words(self.kappa)}"
        )


def of_question(store: Store, scope: Scope, criterion: Criterion, model: str) -> ProposalAgreement:
    """Agreement over all sessions in the scope that have both a proposal and a review."""
    proposed = proposals.of_question(store, scope, criterion, model)
    both = [
        (people, proposed[people.session_id])
        for people in proposals.by_people(store, scope, criterion)
        if people.session_id in proposed
    ]
    pairs = [(people.value, model.proposal.value) for people, model in both]
    unseen = sum(people.blind or people.signed_at < model.at for people, model in both)
    return of_pairs(pairs, len(criterion.scale), unseen)


def of_all(
    store: Store, scope: Scope, questions: Sequence[Criterion]
) -> list[tuple[str, str, ProposalAgreement]]:
    """Question, model and agreement, for every model that has answered one of the questions."""
    return [
        (each.question, model, of_question(store, scope, each, model))
        for each in questions
        for model in proposals.models(store, each)
    ]


def of_pairs(pairs: Sequence[tuple[int, int]], steps: int, unseen: int) -> ProposalAgreement:
    """Agreement of pairs: a person's answer and the proposal."""
    agreed = sum(person == model for person, model in pairs)
    return ProposalAgreement(len(pairs), agreed, unseen, kappa(confusion_matrix(pairs, steps)))


def _kappa_words(found: Kappa) -> str:
    if found.kappa is not None and found.low is not None and found.high is not None:
        return f"κ {found.kappa:.2f} [{found.low:.2f}, {found.high:.2f}]"
    if found.kappa is not None:
        return f"κ {found.kappa:.2f}"
    return f"too few for κ ({MIN_PAIRS})" if found.n < MIN_PAIRS else "no κ: one side never varied"
