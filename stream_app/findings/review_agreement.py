"""Agreement of double reviews: Cohen's weighted kappa of each criterion, as for ratings."""

from collections import defaultdict
from dataclasses import dataclass

from stream_app.findings.agreement import Kappa, confusion_matrix, kappa
from stream_app.store.sessions.scope import Scope
from stream_app.store.stream.repository import Store
from stream_app.store.work import reviews


@dataclass(frozen=True, slots=True)
class CriterionAgreement:
    """Agreement of two reviewers on a criterion; each session gives one pair of answers."""

    scorecard: str
    criterion: str
    question: str
    kappa: Kappa


def of_double_reviews(store: Store, scope: Scope) -> list[CriterionAgreement]:
    """Agreement by criterion over all double reviews that both people have signed off.

    Criteria whose question or scale was changed are separate.
    """
    pairs: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[int, int]]] = defaultdict(list)
    for card, answers in reviews.released_pairs(store, scope):
        for each in card.criteria:
            if each.name in answers:
                key = card.title, each.name, each.question, each.scale
                pairs[key].append(answers[each.name])
    return [
        CriterionAgreement(title, name, question, kappa(confusion_matrix(found, len(scale))))
        for (title, name, question, scale), found in sorted(pairs.items())
    ]
