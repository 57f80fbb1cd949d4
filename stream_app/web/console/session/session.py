"""The page of one session: a desk to decide at, with the evidence for every score below it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from stream_app.contracts.scores import MECHANISMS, AlertState, SessionStatus
from stream_app.core.measures.catalogue import SHARE, Measure, Use, used
from stream_app.core.measures.heads import badge_of, title_of
from stream_app.findings import agreement
from stream_app.findings.feedback import loading
from stream_app.findings.feedback.composition import Feedback
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.alerts import alert_counsellors, alerts
from stream_app.store.alerts import interventions as stored_interventions
from stream_app.store.alerts.alerts import AlertFilter, AlertRead, ShownState
from stream_app.store.sessions import (
    bundle_info,
    comparable,
    consents,
    questionnaires,
    sessions,
    transcripts,
)
from stream_app.store.sessions.bundle_info import BundleInfo
from stream_app.store.sessions.comparable import Place
from stream_app.store.sessions.consents import SessionConsent
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.sessions.transcripts import TurnRead
from stream_app.store.work import disputes, ratings
from stream_app.web.console import alert_evidence
from stream_app.web.console.counsellor_names import names_for
from stream_app.web.console.formatting import duration, number
from stream_app.web.console.plots.charts import AlertLane, risk_curve
from stream_app.web.console.rendering import live_address, render
from stream_app.web.console.session import evidence, interventions, looking, reviews
from stream_app.web.console.session.language_words import unscored_sentence
from stream_app.web.console.session.outcome_words import outcome_sentences
from stream_app.web.console.session.questionnaires import courses
from stream_app.web.http.fields import Identifier, Seq
from stream_app.web.http.path_segments import SESSION_ID
from stream_app.web.services import Services, ServicesDep
from stream_app.web.sign_in.auth import Reader
from stream_app.work import reader_assignment
from stream_app.work.reader_assignment import Readers

PAGE_TURNS: Final = 200
"""Page k has the turns with seq k * 200 to k * 200 + 199."""
ASIDES: Final = 20
"""Turns of bots and supervisors among those of a window: how many more are read for it."""
LINKS_AROUND: Final = 5
MAX_ALERTS: Final = 50
MAX_UNFIRED: Final = 200
_OPEN_STATES: Final = (ShownState.FIRING, ShownState.ACKNOWLEDGED)
_CLOSED_STATES: Final = (ShownState.RESOLVED, ShownState.LAPSED)
router = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class SessionView:
    """The part of the page above the transcript. Pages are blocks of ``PAGE_TURNS`` turns.

    ``alerts`` have fired; ``unfired`` were only ever pending. ``place``: of the empathy index.
    ``spoke``: of several counsellors, the one who spoke when an alert was raised.
    ``unscored``: says which turns have no score for their language.
    """

    card: SessionCard
    info: BundleInfo
    alerts: list[AlertRead]
    unfired: list[AlertRead]
    page: int
    pages: int
    place: Place | None = None
    spoke: Mapping[str, list[str]] = field(default_factory=dict)
    unscored: str | None = None

    @property
    def contradicts(self) -> bool:
        """Whether the place of the index would be an argument against the warning on the page."""
        warned = self.at_risk or self.is_unanswered or self.is_acknowledged
        return warned and self.place is not None and self.place.above >= 1 / 2

    @property
    def live(self) -> bool:
        """Whether more turns may arrive."""
        return self.card.status is not SessionStatus.CLOSED

    @property
    def at_risk(self) -> bool:
        """Whether the risk is at or above the bundle's threshold."""
        risk, enter = self.card.low_empathy_risk, self.info.enter
        return risk is not None and enter is not None and risk >= enter

    @property
    def is_unanswered(self) -> bool:
        """Whether an unmuted alert is firing and nobody has acknowledged it."""
        return any(each.state is ShownState.FIRING and not each.muted for each in self.alerts)

    @property
    def is_acknowledged(self) -> bool:
        """Whether somebody has acknowledged an open alert."""
        return any(each.state is ShownState.ACKNOWLEDGED for each in self.alerts)

    @property
    def shown_first(self) -> int | None:
        """Seq at which the transcript is opened: where the first alert fired, if it is here."""
        fired = firing_seq(self.alerts[0]) if self.alerts else None
        return fired if fired is not None and page_of(fired) == self.page else None

    @property
    def lasted(self) -> str | None:
        """How long the session took; None if its end is not known."""
        began, ended = self.card.started_at, self.card.ended_at
        return duration((ended - began).total_seconds()) if began and ended else None

    @property
    def pending(self) -> list[AlertRead]:
        """Rules whose condition holds, but not yet for long enough."""
        return [each for each in self.unfired if each.state is ShownState.PENDING]

    @property
    def lapsed(self) -> list[AlertRead]:
        """Rules whose condition ended before they fired."""
        return [each for each in self.unfired if each.state is not ShownState.PENDING]

    @property
    def closing(self) -> float | None:
        """The risk at the session's end; None before it."""
        return self.card.low_empathy_risk if self.card.status is SessionStatus.CLOSED else None

    @property
    def measures(self) -> list[tuple[Measure, str]]:
        """The measures of the list, formatted; without those that the MITI's table has."""
        of_miti = self.card.miti.measures if self.card.miti else ()
        found = [each for each in used(Use.PAGE) if each.name not in of_miti]
        values = [(each, getattr(self.card, each.name)) for each in found]
        return [
            (each, f"{100 * value:.0f} %" if each.unit == SHARE else number(value))
            for each, value in values
            if value is not None
        ]

    @property
    def marked(self) -> list[tuple[str, str]]:
        """Title and badge of the heads whose rationales are marked in the transcript."""
        heads = [head for head in self.info.heads if evidence.has_level(head)]
        found = [(head.title, head.badge) for head in heads]
        return found or [(title_of(name), badge_of(name)) for name in MECHANISMS]

    @property
    def last_seq(self) -> int:
        """Seq of the last known turn."""
        return last_seq(self.card)

    @property
    def links(self) -> list[int]:
        """Page numbers to link: the first, those around this page, the last."""
        around = range(self.page - LINKS_AROUND, self.page + LINKS_AROUND + 1)
        wanted = {0, self.pages - 1, *around}
        return sorted(page for page in wanted if 0 <= page < self.pages)

    @property
    def curve(self) -> Markup:
        """The risk curve with the alerts below it."""
        lanes = [
            _alert_lane(alert)
            for alert in reversed(self.alerts)
            if alert.transitions[0].seq is not None
        ]
        return risk_curve(
            self.card.risk_by_turn,
            self.info.enter,
            lanes,
            self.last_seq,
            self.address_of,
            self.closing,
        )

    def address_of(self, seq: int) -> str:
        """The address of a turn, on this page or another."""
        page = page_of(seq)
        anchor = f"#turn-{seq}"
        return anchor if page == self.page else f"?page={page}{anchor}"


@router.get(f"/sessions/{SESSION_ID}")
def session(
    request: Request,
    session_id: Identifier,
    services: ServicesDep,
    person: Reader,
    page: int | None = Query(None, ge=0, le=10_000_000),
) -> Response:
    """Show the session. The read is audited and has no effect on the session."""
    position = services.hub.position
    consent = _consent(services, person, session_id)
    if consent is not None and consent.hidden:
        return render(request, "session_hidden.html", person, consent=consent)
    top = _session(services, person, session_id, page)
    audit.record(services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id)
    first = top.page * PAGE_TURNS
    info = top.info
    limit = PAGE_TURNS + info.before + info.after + 2 * ASIDES
    turns = transcripts.read(
        services.store,
        person.scope,
        session_id,
        after_seq=first - 1 - info.before - ASIDES,
        only_best=top.card.bundle,
        limit=limit,
    )
    seqs = [turn.seq for turn in turns if turn.role.is_scored]
    titles = services.intents.read().titles
    supervises = person.role is PersonRole.SUPERVISOR
    shown = [
        evidence.turn_view(turn, top.card.bundle, seqs, info, titles)
        for turn in turns
        if first <= turn.seq < first + PAGE_TURNS
    ]
    sent = interventions.load(services, person, session_id)
    return render(
        request,
        "session.html",
        person,
        top=top,
        quotes=alert_evidence.load(services.store, person, top.alerts),
        others=looking.report(services, person, session_id) if supervises else None,
        names=names_for(services, person, top.card.counsellors),
        outcomes=outcome_sentences(top.card.outcome_risks, info.outcomes),
        courses=courses(questionnaires.of_client(services.store, person.scope, session_id)),
        consent=consent,
        interventions=sent,
        leader=stored_interventions.leader(sent),
        turns=shown,
        several=transcripts.several(services.store, session_id),
        reviews=reviews.load_reviews(services.store, person, session_id),
        feedbacks=_feedback(services, person, top, turns if len(turns) < limit else None),
        readers=_readers(services, person, consent),
        agreements=agreement.of_bundle(services.store, top.card.bundle),
        dispute_counts=disputes.counts(services.store, top.card.bundle),
        page_turns=PAGE_TURNS,
        session_head=ratings.SESSION_RATING,
        max_rating=ratings.MAX_RATING,
        address=live_address(session=session_id),
        position=position,
        broker_live=services.hub.live,
    )


@router.get(f"/sessions/{SESSION_ID}/now")
def now(
    request: Request,
    session_id: Identifier,
    services: ServicesDep,
    person: Reader,
    page: int | None = Query(None, ge=0, le=10_000_000),
) -> Response:
    """Render the part above the transcript again, for live updates."""
    top = _session(services, person, session_id, page)
    quotes = alert_evidence.load(services.store, person, top.alerts)
    if quotes:
        audit.record(services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, "alerts")
    return render(
        request,
        "session_now.html",
        person,
        top=top,
        quotes=quotes,
        names=names_for(services, person, top.card.counsellors),
        outcomes=outcome_sentences(top.card.outcome_risks, top.info.outcomes),
    )


@router.get(f"/sessions/{SESSION_ID}/turns/{{seq}}")
def turn(
    request: Request, session_id: Identifier, seq: Seq, services: ServicesDep, person: Reader
) -> Response:
    """Render one turn, for live updates."""
    bundle = sessions.bundle_of(services.store, person.scope, session_id)
    if bundle is None:
        raise HTTPException(404)
    info = bundle_info.one(services.store, bundle)
    audit.record(
        services.store, person.name, AuditAction.READ_TRANSCRIPT, session_id, f"turn {seq}"
    )
    around = transcripts.read(
        services.store,
        person.scope,
        session_id,
        after_seq=seq - 1 - info.before - ASIDES,
        only_best=bundle,
        limit=info.before + 1 + info.after + 2 * ASIDES,
    )
    found = next((turn for turn in around if turn.seq == seq), None)
    if found is None:
        raise HTTPException(404)
    titles = services.intents.read().titles
    seqs = [turn.seq for turn in around if turn.role.is_scored]
    shown = evidence.turn_view(found, bundle, seqs, info, titles)
    own_reviews = reviews.load_reviews(services.store, person, session_id)
    return render(
        request,
        "turn_alone.html",
        person,
        shown=shown,
        reviews=own_reviews,
        several=transcripts.several(services.store, session_id),
        names=names_for(services, person, [found.speaker]),
    )


def page_of(seq: int) -> int:
    """The page that has a turn."""
    return seq // PAGE_TURNS


def last_seq(card: SessionCard) -> int:
    """Seq of the last turn known to a card, also when seqs have gaps."""
    last_scored = card.risk_by_turn[-1][0] if card.risk_by_turn else 0
    return max(card.turns - 1, last_scored, 0)


def _feedback(
    services: Services, person: Person, top: SessionView, turns: list[TurnRead] | None
) -> list[Feedback]:
    """Feedback for the first page of an ended session, otherwise none.

    ``turns``: those of the page if they are the whole transcript, otherwise it is read.
    """
    if top.card.status is SessionStatus.OPEN or top.page:
        return []
    if turns is not None:
        return loading.session_feedback(loading.ended_session(top.card, turns, person))
    ended = loading.read_ended(services.store, person, top.card.session_id)
    return loading.session_feedback(ended)


def _readers(services: Services, person: Person, consent: SessionConsent | None) -> Readers | None:
    """Readers of the session, for supervisors, who assign sessions."""
    return reader_assignment.readers(services, person, consent) if consent is not None else None


def _consent(services: Services, person: Person, session_id: str) -> SessionConsent | None:
    """The consent records, for supervisors."""
    if person.role is not PersonRole.SUPERVISOR:
        return None
    return consents.of_session(services.store, person.scope, session_id)


def _card(services: Services, person: Person, session_id: str) -> tuple[SessionCard, BundleInfo]:
    """The session and its bundle; 404 outside the access scope."""
    card = sessions.one(services.store, person.scope, session_id)
    if card is None:
        raise HTTPException(404)
    return card, bundle_info.one(services.store, card.bundle)


def _session(services: Services, person: Person, session_id: str, page: int | None) -> SessionView:
    card, info = _card(services, person, session_id)
    fired, unfired = _alerts(services, person, session_id)
    last = page_of(last_seq(card))
    shown = sorted((each for each in fired if each.bundle == card.bundle), key=_urgency)
    if page is None:
        began = firing_seq(shown[0]) if shown else None
        page = page_of(began or 0) if card.status is SessionStatus.CLOSED else last
    return SessionView(
        card,
        info,
        shown,
        [alert for alert in unfired if alert.bundle == card.bundle],
        page,
        max(last, page) + 1,
        comparable.place(services.store, card),
        _spoke(services, card, shown),
        _unscored(services, person, card),
    )


def _spoke(
    services: Services, card: SessionCard, found: Sequence[AlertRead]
) -> Mapping[str, list[str]]:
    if len(card.counsellors) < 2:  # also of who may not know them
        return {}
    counsellors = {card.session_id: card.counsellors}
    return alert_counsellors.of_alerts(services.store, found, counsellors)


def _unscored(services: Services, person: Person, card: SessionCard) -> str | None:
    if not card.unscored_turns:
        return None
    found = transcripts.unscored_languages(services.store, person.scope, card.session_id)
    return unscored_sentence(found)


def _alerts(
    services: Services, person: Person, session_id: str
) -> tuple[list[AlertRead], list[AlertRead]]:
    """The newest alerts that have fired, and the newest that have not."""
    everything = AlertFilter(session_id=session_id)
    found = alerts.find(services.store, person.scope, everything, limit=MAX_ALERTS)
    if found.next_cursor is None:  # nearly every session: a single query for both
        fired = [alert for alert in found.items if alert.has_fired]
        return fired, [alert for alert in found.items if not alert.has_fired]
    by_firing = (
        alerts.find(services.store, person.scope, replace(everything, fired=has_fired), limit=most)
        for has_fired, most in ((True, MAX_ALERTS), (False, MAX_UNFIRED))
    )
    first, second = (page.items for page in by_firing)
    return first, second


def firing_seq(alert: AlertRead) -> int | None:
    """Seq of the turn at which an alert fired; None at the end of the session."""
    fired = (each for each in alert.transitions if each.state is AlertState.FIRING)
    return next((each.seq for each in fired), None)


def _urgency(alert: AlertRead) -> int:
    """Sorts what waits for a person first; otherwise the order stays, newest first."""
    waits = alert.state is ShownState.FIRING and not alert.muted
    return 0 if waits else 1 if alert.state in _OPEN_STATES else 2


def _alert_lane(alert: AlertRead) -> AlertLane:
    over = alert.state in _CLOSED_STATES
    last = next((s.seq for s in reversed(alert.transitions) if s.seq is not None), None)
    return AlertLane(
        alert.rule, alert.state.value, alert.transitions[0].seq or 0, last if over else None
    )
