"""Compiled alert rules, and the digest of their file."""

from datetime import timedelta
from typing import Final

from msgspec import Struct, field, structs

from stream_app.contracts.scores import Severity
from stream_app.core.measures.catalogue import Use, used
from stream_app.core.measures.watch import Facts
from stream_app.core.rules.conditions import Compiled
from stream_app.core.rules.variables import CATALOGUE, Catalogue
from stream_app.errors import RapportError

SEEN: Final = "seen"
"""Placeholder for the evidence of the low-empathy risk."""
_ABOUT_EMPATHY: Final = frozenset(
    {"low_empathy_risk", "risk", "risk_rise", "empathy_index", "index", "index_recent"}
)
"""Variables that rest on the same evidence."""
_OF_COUNSELLOR: Final = frozenset(
    {
        "risk_rise",
        "index_recent",
        "opportunities",
        "missed_opportunities",
        *(name for each in used(Use.RULES) if each.of_exchanges for name in each.variables),
    }
)
"""Variables that are computed from the exchanges of the counsellor who speaks."""


class Duration(Struct, frozen=True):
    """A number of counsellor turns, or a period of event time."""

    turns: int = 0
    time: timedelta | None = None


class AppliesTo(Struct, frozen=True):
    """The sessions that a rule applies to; an empty set matches all."""

    domains: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    channels: frozenset[str] = frozenset()

    def covers(self, facts: Facts) -> bool:
        """Whether the rule applies to a session with these facts."""
        return (
            (not self.domains or facts.domain in self.domains)
            and (not self.teams or facts.team in self.teams)
            and (not self.channels or facts.channel in self.channels)
        )


class Rule(Struct, frozen=True):
    """One rule; ``clear`` None means as soon as ``when`` does not hold.

    ``shown``: the variables whose values an alert includes. ``placeholders``: those in ``summary``.
    ``protocol``: the operator's own text on what to do, shown with the alert.
    """

    name: str
    summary: str
    severity: Severity
    when: Compiled
    clear: Compiled | None
    lasts: Duration
    cooldown: Duration
    min_scored_turns: int
    labels: dict[str, str]
    value: Compiled | None
    threshold: Compiled | None
    applies_to: AppliesTo
    shown: tuple[str, ...]
    placeholders: tuple[str, ...]
    protocol: str | None = None

    def uses(self, source: str) -> bool:
        """Whether this is one of the rule's expressions."""
        parts = (self.when, self.clear, self.value, self.threshold)
        return any(part is not None and part.source == source for part in parts)

    @property
    def variables(self) -> frozenset[str]:
        """The variables of its expressions."""
        parts = (self.when, self.clear, self.value, self.threshold)
        return frozenset(name for part in parts if part is not None for name in part.names)

    @property
    def about_empathy(self) -> bool:
        """Whether it is about the empathy of the counsellor who speaks."""
        return not _OF_COUNSELLOR.isdisjoint(self.when.names)

    @property
    def needs_evidence(self) -> bool:
        """Whether it is about the low-empathy risk and quotes the evidence for it."""
        return SEEN in self.placeholders and not _ABOUT_EMPATHY.isdisjoint(self.when.names)

    @property
    def by_time(self) -> bool:
        """Whether the rule is timed: evaluated after every turn, not only counsellor turns."""
        return self.lasts.time is not None


class RuleSet(Struct, frozen=True):
    """The rules in force. ``digest``: 16 hex digits of the file's SHA-256.

    ``catalogue``: the variables that they may use.
    """

    rules: tuple[Rule, ...] = ()
    digest: str = ""
    catalogue: Catalogue = field(default_factory=lambda: CATALOGUE)

    @property
    def names(self) -> frozenset[str]:
        """Names of the rules."""
        return frozenset(rule.name for rule in self.rules)

    def for_bundle(self, catalogue: Catalogue, bundle: str) -> "RuleSet":
        """These rules for sessions of another bundle, whose heads give ``catalogue``.

        Raises:
            RulesDoNotFit: they use variables that the bundle lacks.
        """
        lacking = {rule.name: sorted(rule.variables - catalogue.keys()) for rule in self.rules}
        if faults := [
            f"{bundle} lacks {', '.join(names)}, which the rule {name} uses"
            for name, names in lacking.items()
            if names
        ]:
            raise RulesDoNotFit(faults)
        return structs.replace(self, catalogue=catalogue)


class RulesDoNotFit(RapportError):
    """Rules in force use variables of heads that a bundle lacks; ``faults``: a sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


NO_RULES: Final = RuleSet()
