"""Assigning reviews, and doing them: what the API and the console have in common.

Only the reviewer sees a review that is not released (``store.reviews``). The scores fill answers in
advance, except in a double review before its release: two people who start from the same answers
would agree more than they do. Proposals of a language model fill in nothing, are shown with their
quote and their agreement with people so far, and in a double review only after its release.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from stream_app.core.rules.proposals import Proposal, question_key
from stream_app.core.rules.scorecards import Criterion
from stream_app.findings import proposal_agreement
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions import sessions, transcripts
from stream_app.store.sessions.scored_turns import NotFound
from stream_app.store.sessions.sessions import SessionCard
from stream_app.store.work import proposals, reviews
from stream_app.store.work.reviews import Answer, Content, NewReview, Origin, Review, ReviewComment
from stream_app.work import acting
from stream_app.work.desk import Desk


@dataclass(frozen=True, slots=True)
class ReviewRead:
    """A review without its content."""

    review_id: str
    session_id: str
    episode_id: Annotated[str | None, Field(description="The alert that it is about")]
    reviewer: str
    assigned_by: str
    origin: Annotated[Origin, Field(description="Assigned by hand, or drawn at random or by risk")]
    double: Annotated[bool, Field(description="Somebody else reviews the session independently")]
    scorecard: str
    at: datetime
    due_at: datetime
    signed_at: datetime | None
    released: Annotated[
        bool, Field(description="Signed off, in a double review by both: others may see it")
    ]


@dataclass(frozen=True, slots=True)
class ProposalRead:
    """What a language model answered; the reader decides whether it is right."""

    value: Annotated[int, Field(description="An index of `scale`")]
    seq: Annotated[int, Field(description="The turn that it quotes")]
    quote: Annotated[str | None, Field(description="null: the text has been deleted")]
    model: str
    at: datetime
    agreement: Annotated[str, Field(description="With people, over your sessions so far")]


@dataclass(frozen=True, slots=True)
class CriterionRead:
    """A criterion with its answer; answers are indices of ``scale``."""

    name: str
    question: str
    scale: tuple[str, ...]
    weight: float
    measure: Annotated[str | None, Field(description="The measure that fills it in advance")]
    auto: Annotated[int | None, Field(description="What the scores give; null: nothing, or hidden")]
    value: Annotated[int | None, Field(description="The reviewer's answer")]
    proposal: Annotated[
        ProposalRead | None,
        Field(description="Of a language model, if the question is `asked`; counts nowhere"),
    ] = None

    @property
    def shown(self) -> int | None:
        """What the form has chosen: the answer, or what the scores give."""
        return self.auto if self.value is None else self.value

    @property
    def corrected(self) -> bool:
        """Whether the reviewer answered something else than the scores give."""
        return None not in (self.auto, self.value) and self.auto != self.value


@dataclass(frozen=True, slots=True)
class ReviewContent:
    """A review as one person may see it; ``total``: 0-1, the weighted mean of the answers."""

    review: ReviewRead
    yours: bool
    withdrawable: Annotated[bool, Field(description="Whether you may withdraw it now")]
    visible: Annotated[bool, Field(description="Whether you may see answers and comments")]
    criteria: list[CriterionRead]
    comments: list[ReviewComment]
    total: float | None


def reviewers(desk: Desk, card: SessionCard) -> list[str]:
    """Accounts that may review a session: supervisors who may read it."""
    return [each.name for each in desk.people.all() if _may_review(each, card.team)]


def assign(
    desk: Desk,
    person: Person,
    session_id: str,
    reviewer: str,
    due_at: datetime,
    scorecard: str | None = None,
    episode_id: str | None = None,
) -> ReviewRead:
    """Assign a review by hand; audited.

    Raises:
        NotFound: the session, the alert, the reviewer or the scorecard does not exist, or not for
            this person.
        StateConflict: without consent, or the reviewer already has an open review of the session.
    """
    card = sessions.one(desk.store, person.scope, session_id)
    if card is None:
        raise NotFound("no such session")
    if reviewer not in reviewers(desk, card):
        raise NotFound("no such supervisor of this session")
    chosen = scorecard or next(iter(desk.scorecards))
    if chosen not in desk.scorecards:
        raise NotFound("no such scorecard")
    new = NewReview(session_id, reviewer, person.name, desk.scorecards[chosen], due_at, episode_id)
    [review_id] = reviews.assign(desk.store, [new])
    detail = f"review by {reviewer}"
    audit.record(desk.store, person.name, AuditAction.ASSIGN, session_id, detail)
    return read_review(reviews.one(desk.store, person.scope, review_id))


def read_review(review: Review) -> ReviewRead:
    """A review without its content."""
    return ReviewRead(
        review_id=review.review_id,
        session_id=review.session_id,
        episode_id=review.episode_id,
        reviewer=review.reviewer,
        assigned_by=review.person,
        origin=review.origin,
        double=review.double,
        scorecard=review.scorecard.title,
        at=review.at,
        due_at=review.due_at,
        signed_at=review.signed_at,
        released=review.released,
    )


def read(desk: Desk, person: Person, review_id: str) -> ReviewContent:
    """A review; the caller records the read.

    Raises:
        NotFound: it does not exist, or not for this person.
    """
    review = reviews.one(desk.store, person.scope, review_id)
    yours = review.reviewer == person.name
    visible = yours or review.released
    content = reviews.content(desk.store, review) if visible else Content()
    auto = _auto(desk, person, review, content) if visible else {}
    proposed = _proposed(desk, person, review) if visible else {}
    return ReviewContent(
        read_review(review),
        yours,
        _may_withdraw(person, review) and review.signed_at is None,
        visible,
        [
            _criterion(
                each,
                auto.get(each.name),
                content.answers.get(each.name),
                proposed.get(each.name),
            )
            for each in review.scorecard.criteria
        ],
        content.comments,
        review.scorecard.total(content.values),
    )


def save(
    desk: Desk, person: Person, review_id: str, values: Mapping[str, int], *, sign: bool
) -> None:
    """Replace the answers of one's own review; ``sign``: and make it final.

    Raises:
        NotFound: it does not exist, or is somebody else's.
        StateConflict: it is signed off, or the reviewer has not read the session (``work.acting``).
        InvalidJudgement: there is no such criterion or step, or, to sign, an answer is missing.
    """
    review = _own(desk, person, review_id)
    auto = review.scorecard.fill(_measures(desk, person, review))
    if sign:
        acting.check_session_read(desk, person, review.session_id)
    store = reviews.sign_off if sign else reviews.save_answers
    store(desk.store, review, values, auto)


def comment(desk: Desk, person: Person, review_id: str, seq: int, text: str) -> None:
    """Comment on a turn in one's own review; an empty comment removes the earlier one.

    Raises:
        NotFound: the review or turn does not exist, or the review is somebody else's.
        StateConflict: it is signed off.
    """
    reviews.comment(desk.store, _own(desk, person, review_id), seq, text)


def withdraw(desk: Desk, person: Person, review_id: str) -> ReviewRead:
    """Delete an open review that this person assigned or was given; audited.

    Raises:
        NotFound: it does not exist, or was assigned by and to others.
        StateConflict: it is signed off.
    """
    review = reviews.one(desk.store, person.scope, review_id)
    if not _may_withdraw(person, review):
        raise NotFound("only who assigned a review and its reviewer can withdraw it")
    reviews.withdraw(desk.store, review)
    detail = f"review by {review.reviewer} withdrawn"
    audit.record(desk.store, person.name, AuditAction.ASSIGN, review.session_id, detail)
    return read_review(review)


def _may_withdraw(person: Person, review: Review) -> bool:
    return person.name in (review.person, review.reviewer)


def _own(desk: Desk, person: Person, review_id: str) -> Review:
    review = reviews.one(desk.store, person.scope, review_id)
    if review.reviewer != person.name:
        raise NotFound("this review is not yours")
    return review


def _may_review(person: Person, team: str | None) -> bool:
    own = person.all_teams if person.team is None else person.team == team
    return person.role is PersonRole.SUPERVISOR and own


def _measures(desk: Desk, person: Person, review: Review) -> dict[str, float]:
    card = sessions.one(desk.store, person.scope, review.session_id)
    return {} if card is None else reviews.measures_of(card)


def _auto(desk: Desk, person: Person, review: Review, content: Content) -> dict[str, int | None]:
    """What the scores give, by criterion; as stored once the review is signed off."""
    if review.double and not review.released:
        return {}
    if review.signed_at is not None:
        return {name: answer.auto for name, answer in content.answers.items()}
    return dict(review.scorecard.fill(_measures(desk, person, review)))


def _proposed(desk: Desk, person: Person, review: Review) -> dict[str, ProposalRead]:
    """The proposals to the review's questions, by criterion."""
    if review.double and not review.released:
        return {}
    store, scope = desk.store, person.scope
    stored = proposals.of_session(store, scope, review.session_id)
    found = {}
    for each in review.scorecard.criteria:
        one = stored.get(question_key(each))
        if one is not None:
            place = one.proposal
            agreement = proposal_agreement.of_question(store, scope, each, one.model)
            quote = _quote(desk, person, review.session_id, place)
            found[each.name] = ProposalRead(
                place.value, place.seq, quote, one.model, one.at, agreement.words
            )
    return found


def _quote(desk: Desk, person: Person, session_id: str, place: Proposal) -> str | None:
    turns = transcripts.read(desk.store, person.scope, session_id, only_seq=place.seq)
    text = turns[0].text if turns else None
    return None if text is None else text[place.start : place.end]


def _criterion(
    criterion: Criterion,
    auto: int | None,
    answer: Answer | None,
    proposal: ProposalRead | None,
) -> CriterionRead:
    return CriterionRead(
        criterion.name,
        criterion.question,
        criterion.scale,
        criterion.weight,
        criterion.source.measure if criterion.source else None,
        auto,
        answer.value if answer else None,
        proposal,
    )
