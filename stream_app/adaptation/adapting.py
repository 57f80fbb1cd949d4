"""Fits a bundle to what people judged here, and writes a new one."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, structs

from stream_app.adaptation import judgements
from stream_app.adaptation.choosing import RECALIBRATION
from stream_app.adaptation.comparison import Comparison, OutcomeResult
from stream_app.adaptation.fitting import Fit
from stream_app.adaptation.head_results import HeadResult, evaluated
from stream_app.adaptation.new_bundle import Changes, DataCounts, write
from stream_app.adaptation.outcome_risks import OutcomeDefinition, of_outcome
from stream_app.adaptation.references import ReferenceFit, SessionIndex, refit
from stream_app.adaptation.rescored import rescored
from stream_app.contracts.scores import SessionScore
from stream_app.core.measures.empathy import DomainEmpathy
from stream_app.core.pipeline.recorded_session import (
    BundleModels,
    NotReproducible,
    RecordedSession,
    rebuild,
)
from stream_app.core.session.environment import Policy
from stream_app.errors import BundleError, RowRefused
from stream_app.inference.bundles.adaptations import Recalibration
from stream_app.inference.bundles.bundle import Bundle, HeadSpec
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import recorded_sessions
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream import baselines
from stream_app.store.stream.repository import Store
from stream_app.store.work import judged_turns
from stream_app.store.work.judged_turns import Judged


class Request(Struct, frozen=True):
    """Arguments of the command; ``sessions``: the newest ended sessions used for references."""

    wordings: tuple[str, ...]
    out: Path
    name: str | None
    outcomes: tuple[OutcomeDefinition, ...]
    sessions: int
    command: tuple[str, ...]


class Adapted(Struct, frozen=True):
    """What was found; ``bundle`` is None if nothing passed the gate."""

    comparison: Comparison
    counts: DataCounts
    bundle: Bundle | None


def run(settings: Settings, store: Store, parent: Bundle, request: Request) -> Adapted:
    """Fit, cross-validate, and write the new bundle if anything passes the gate.

    Raises:
        BundleError: the folder cannot be written, or an outcome names a risk that the bundle lacks.
    """
    manifest = parent.manifest
    for definition in request.outcomes:
        if definition.risk not in manifest.outcomes:
            known = ", ".join(sorted(manifest.outcomes)) or "none"
            raise BundleError(
                f"{manifest.bundle_id} has no outcome risk {definition.risk}; it has: {known}"
            )
    if request.out.exists():
        raise BundleError(f"{request.out} exists: name another folder with --out")
    judged = judged_turns.read(store, manifest.bundle_id, request.wordings)
    counts = counts_of(judged, request.wordings)
    audit.record(
        store,
        audit.COMMAND_LINE,
        AuditAction.READ_RECORDS,
        detail=f"adaptation of {manifest.bundle_id}: {counts.ratings} rated turns, "
        f"{counts.disputes} disputes of {counts.sessions} sessions",
    )
    heads, changes = _heads(judged, manifest.heads)
    platform = _Sessions(settings, store, parent, request, changes, heads, judged.counsellors)
    references = list(_references(parent, platform))
    outcomes = [
        OutcomeResult(one, _outcome(store, one, platform, request.wordings))
        for one in request.outcomes
    ]
    comparison = Comparison(heads, references, outcomes)
    if not comparison.passes:
        return Adapted(comparison, counts, None)
    made = write(
        parent,
        request.out,
        request.name,
        Changes(changes),
        comparison,
        counts,
        request.command,
        datetime.now(UTC),
    )
    return Adapted(comparison, counts, made)


def counts_of(judged: Judged, wordings: Sequence[str]) -> DataCounts:
    """What the judged turns are, in numbers."""
    rated = {(one.session_id, one.seq) for one in judged.turns if not one.disputed}
    sessions = {one.session_id for one in judged.turns}
    times = [one.last_at for one in judged.turns]
    return DataCounts(
        ratings=len(rated),
        blind=len({(one.session_id, one.seq) for one in judged.turns if one.blind}),
        disputes=sum(one.disputed for one in judged.turns),
        raters=judged.raters,
        counsellors=len({judged.counsellors.get(session) for session in sessions}),
        sessions=len(sessions),
        first=min(times, default=None),
        last=max(times, default=None),
        wordings=tuple(wordings),
        left_out=dict(judged.left_out),
    )


def _heads(
    judged: Judged, specs: Sequence[HeadSpec]
) -> tuple[list[HeadResult[Fit]], dict[str, Recalibration]]:
    """Results of all heads with judgements, and the recalibrations that pass the gate."""
    results: list[HeadResult[Fit]] = []
    changes: dict[str, Recalibration] = {}
    for spec in specs:
        data = judgements.of_head(judged, spec, specs)
        if data is None:
            continue
        result = evaluated(data, RECALIBRATION, judged.raters)
        results.append(result)
        if result.passes and result.fitted is not None:
            changes[spec.name] = result.fitted.fit.recalibration(data)
    return results, changes


class _Sessions:
    """The newest ended sessions with consent, as the adapted heads would have scored them."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        parent: Bundle,
        request: Request,
        changes: dict[str, Recalibration],
        heads: Sequence[HeadResult[Fit]],
        counsellors: dict[str, str],
    ) -> None:
        manifest = parent.manifest
        self.models = BundleModels(
            manifest.empathy,
            manifest.outcomes,
            manifest.heads,
            (manifest.window.before, manifest.window.after),
        )
        self.policy = _policy(settings, self.models)
        names = {name: place for place, name in enumerate(sorted(set(counsellors.values())))}
        self.group = {session: names[name] for session, name in counsellors.items()}
        specs = _changed(manifest.heads, heads)
        self.recorded = [
            rescored(one, changes, specs) for one in _recorded(settings, store, parent, request)
        ]

    def scores(self, models: BundleModels) -> Iterator[tuple[RecordedSession, SessionScore]]:
        """Every session's score under these models; what cannot be replayed is left out."""
        for one in self.recorded:
            try:
                session, _, _ = rebuild(one, self.policy, models)
            except NotReproducible:
                continue
            yield one, session.score()


def _recorded(
    settings: Settings, store: Store, parent: Bundle, request: Request
) -> Iterator[RecordedSession]:
    bundle = parent.manifest.bundle_id
    covered = judged_turns.scored_sessions(store, bundle, request.wordings)
    book = baselines.read(store, bundle)
    for session in recorded_sessions.ended(store, ALL_SESSIONS, request.sessions):
        if session.bundle != bundle or session.session_id not in covered:
            continue
        try:
            yield recorded_sessions.read(store, session, settings.approach_by_group, book)
        except (NotReproducible, RowRefused):
            continue


def _changed(specs: Sequence[HeadSpec], results: Sequence[HeadResult[Fit]]) -> list[HeadSpec]:
    """The heads with the thresholds of the new bundle."""
    passing = {one.head: one for one in results if one.passes}
    found = []
    for spec in specs:
        one = passing.get(spec.name)
        if one is None or one.fitted is None:
            found.append(spec)
            continue
        own = spec.abstain_below if one.abstain_below is None else one.abstain_below
        found.append(structs.replace(spec, offsets=list(one.fitted.offsets), abstain_below=own))
    return found


def _references(parent: Bundle, platform: _Sessions) -> Iterator[ReferenceFit]:
    model = parent.manifest.empathy
    if model is None:
        return
    for domain, shipped in model.domains.items():

        def measure(here: DomainEmpathy, domain: str = domain) -> list[SessionIndex]:
            changed = structs.replace(model, domains=model.domains | {domain: here})
            models = structs.replace(platform.models, empathy=changed)
            return [
                SessionIndex(score.empathy_index, score.answered_share, group)
                for one, score in platform.scores(models)
                if score.empathy_index is not None
                and (one.domain or model.default) == domain
                and one.approach not in model.approaches
                and (group := platform.group.get(one.session_id)) is not None
            ]

        if (found := refit(domain, shipped, measure)) is not None:
            yield found


def _outcome(
    store: Store, definition: OutcomeDefinition, platform: _Sessions, wordings: Sequence[str]
) -> HeadResult[Fit]:
    happened = {
        one.session_id: definition.happened(one.value)
        for one in judged_turns.outcome_values(store, definition.kind, wordings)
    }
    cases = [
        (risk, happened[one.session_id], group)
        for one, score in platform.scores(platform.models)
        if one.session_id in happened
        and (risk := score.outcome_risks.get(definition.risk)) is not None
        and (group := platform.group.get(one.session_id)) is not None
    ]
    if not cases:
        return HeadResult(definition.risk, 0, 0, 0, "as shipped: no session has risk and outcome")
    return evaluated(of_outcome(definition.risk, cases), RECALIBRATION)


def _policy(settings: Settings, models: BundleModels) -> Policy:
    """The core's policy for stored sessions, without rules."""
    return Policy(
        settings.window_of(models.window),
        require_consent=False,
        restrictions=settings.restrictions,
    )
