"""Escalation paths: who is notified when nobody answers an alert."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from stream_app.notifications.rota import Rota
from stream_app.store.alerts.deliveries import DueAlert


class AlertFilter(Protocol):
    """Which alerts a path is for."""

    def wants(self, alert: DueAlert) -> bool:
        """Whether it is for this alert."""


class EscalationStep(Struct, frozen=True):
    """``after`` this time without an answer, ``to`` these targets and rotas."""

    after: timedelta
    to: tuple[str, ...]


class EscalationPath(Struct, frozen=True):
    """Steps for the alerts that pass a filter."""

    chosen: AlertFilter
    steps: tuple[EscalationStep, ...]


class Escalation(Struct, frozen=True):
    """All paths, of which the first that fits an alert counts, and the rotas.

    ``targets``: names of all targets.
    """

    paths: tuple[EscalationPath, ...]
    rotas: Mapping[str, Rota]
    targets: frozenset[str]

    def path_of(self, alert: DueAlert) -> EscalationPath | None:
        """The path of an alert; None if it is not escalated."""
        return next((path for path in self.paths if path.chosen.wants(alert)), None)

    def knows(self, recipient: str) -> bool:
        """Whether there is a target or a rota of this name."""
        return recipient in self.targets or recipient in self.rotas

    def target_of(self, recipient: str, now: datetime) -> str | None:
        """The target of a recipient now; None if nobody is on call."""
        rota = self.rotas.get(recipient)
        return rota.on_call(now) if rota is not None else recipient

    @property
    def reached(self) -> Sequence[str]:
        """The targets that an escalation can reach."""
        named = {name for path in self.paths for step in path.steps for name in step.to}
        on_call = {
            shift.target
            for name in named
            if name in self.rotas
            for shift in self.rotas[name].shifts
        }
        return sorted((named | on_call) & self.targets)
