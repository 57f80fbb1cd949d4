"""Shared inputs of all sessions: settings, the bundle's models, rules and baselines."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from stream_app.core.measures.baselines import BaselineBook
from stream_app.core.measures.empathy import EmpathyModel
from stream_app.core.measures.heads import Kept
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.rules.rules import NO_RULES, RuleSet
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.approaches import Approaches
from stream_app.core.session.restrictions import NO_RESTRICTIONS, Restrictions


class Policy(Struct, frozen=True):
    """Settings of the core."""

    window: WindowPolicy
    rules: RuleSet = NO_RULES
    require_consent: bool = True
    approaches: Approaches = Approaches()
    restrictions: Restrictions = NO_RESTRICTIONS

    def covers(self, consent: bool | None) -> bool:
        """Whether a session may be analysed; None means that no consent was stated.

        >>> [Policy(WindowPolicy()).covers(consent) for consent in (None, True, False)]
        [False, True, False]
        """
        return not self.require_consent if consent is None else consent


class Environment(Struct):
    """Rules (``alerting.adopt``) and baselines may be replaced between batches.

    ``kept``: what sessions keep of heads that are not read by name.
    """

    policy: Policy
    bundle_id: str
    empathy: EmpathyModel | None
    outcomes: Mapping[str, OutcomeModel]
    alerting: Alerting
    baselines: BaselineBook
    kept: Sequence[Kept] = ()
