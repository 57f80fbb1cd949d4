"""Proposals of a language model beside a review: never chosen, never counted, blind where asked."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.core.rules.proposals import Dropped, Proposal
from stream_app.core.rules.scorecards import Criterion, Scorecard
from stream_app.findings import proposal_agreement
from stream_app.findings.agreement import confusion_matrix, kappa
from stream_app.settings import Settings
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.lifecycle import retention
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals, reviews
from stream_app.store.work.reviews import NewReview
from tests.asking.permission import WARM, decide, permit
from tests.store.batches import BUNDLE, process, turn
from tests.store.reading import rows
from tests.web.people.client import Client
from tests.web.people.conftest import As

CARD = Scorecard("plain", "In plain words", (WARM,))
PROPOSED = Proposal(2, 1, 0, 9)
LATER = datetime(2100, 1, 2, tzinfo=UTC)


def assigned(store: Store, session_id: str = "north-0", **changes: str) -> str:
    """A review by Sue; its address."""
    new = NewReview(session_id, "sue", "ben", CARD, LATER, **changes)
    return f"/reviews/{reviews.assign(store, [new])[0]}"


def proposed(store: Store, session_id: str = "north-0", at: Proposal | Dropped = PROPOSED) -> None:
    permit(store, session_id)
    assert proposals.keep(store, session_id, WARM, "small-1", at)


def test_a_proposal_is_shown_with_its_quote_and_never_chosen(as_: As, filled: Store) -> None:
    address = assigned(filled)
    assert "proposal" not in as_("sue").get(address).text
    proposed(filled)
    page = as_("sue").get(address).text
    assert "“throughout”, because of" in page
    assert '<blockquote dir="auto">That must</blockquote>' in page
    assert "small-1, to this question so far: not yet compared with people." in page
    assert " checked" not in page
    [read] = as_("sue").get(f"/api/v1{address}").json()["criteria"]
    assert (read["proposal"]["value"], read["proposal"]["quote"]) == (2, "That must")
    assert (read["auto"], read["value"]) == (None, None)
    assert as_("sue").post(address, data={"answer-warm": "0", "do": "sign-off"}).status_code == 303
    [answer] = rows(filled, tables.review_answers)
    assert (answer["value"], answer["auto_value"]) == (0, None)
    after = as_("ben").get(address).text
    assert "agreed with 0 of 1 review, none of them made without seeing it; too few" in after


def test_others_see_no_proposal_before_sign_off_nor_the_halves_of_a_double_review(
    as_: As, filled: Store
) -> None:
    proposed(filled)
    address = assigned(filled)
    assert "small-1" not in as_("ben").get(address).text
    assert "small-1" not in as_("ben").get(f"/api/v1{address}").text
    blind = NewReview("north-0", "pat", "ada", CARD, LATER, pair_id="p")
    made = reviews.assign(filled, [blind, replace(blind, reviewer="ben")])
    for name, review_id in zip(("pat", "ben"), made, strict=True):
        own = f"/reviews/{review_id}"
        assert "small-1" not in as_(name).get(own).text
        as_(name).post(own, data={"answer-warm": "2", "do": "sign-off"})
    page = as_("pat").get(f"/reviews/{made[0]}").text
    assert "agreed with 1 of 1 review; too few for κ (20)" in page


def test_a_dropped_answer_and_one_without_consent_are_not_shown(as_: As, filled: Store) -> None:
    address = assigned(filled)
    proposed(filled, at=Dropped.NO_QUOTE)
    assert "small-1" not in as_("sue").get(address).text
    assert proposals.keep(filled, "north-0", WARM, "small-2", PROPOSED)
    assert "small-2" in as_("sue").get(address).text
    decide(filled, "north-0", "given", occurred_at="2026-01-05T13:00:00Z")
    assert "small-2" not in as_("sue").get(address).text


def test_a_quote_is_escaped_and_goes_with_the_text(as_: As, filled: Store) -> None:
    words = "<script>alert(1)</script> say yes"
    states = filled.load_states(["north-0"], BUNDLE)
    filled.commit(process([turn(12, session_id="north-0", team="north", text=words)], states))
    address = assigned(filled)
    permit(filled, "north-0")
    late = {"purposes": ["third-party-processing"], "version": "v10"}
    decide(filled, "north-0", "given", occurred_at="2026-01-05T13:00:00Z", **late)
    assert proposals.keep(filled, "north-0", WARM, "<b>m</b>", Proposal(0, 12, 0, len(words)))
    page = as_("sue").get(address).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; say yes</blockquote>" in page
    assert "<script>alert" not in page
    assert "<b>m</b>" not in page
    list(retention.purge(filled, LATER, datetime(2000, 1, 1, tzinfo=UTC), LATER))
    after = as_("sue").get(address).text
    assert "turn 12</a>, whose text has been deleted" in after
    assert "say yes" not in after


def test_proposals_change_no_number(as_: As, filled: Store) -> None:
    pages = ("/api/v1/sessions/north-0", "/api/v1/alerts", "/api/v1/reviews/agreement")
    before = [as_("sue").get(page).json() for page in pages]
    permit(filled, "north-0")
    permitted = [as_("sue").get(page).json() for page in pages]
    assert proposals.keep(filled, "north-0", WARM, "small-1", PROPOSED)
    assert [as_("sue").get(page).json() for page in pages] == permitted
    assert before[1:] == permitted[1:]


def test_agreement_counts_each_session_once_and_says_who_could_not_see(filled: Store) -> None:
    for session_id, value in (("north-0", 2), ("north-1", 0)):
        address = assigned(filled, session_id)
        review = reviews.one(filled, ALL_SESSIONS, address.removeprefix("/reviews/"))
        if session_id == "north-0":
            proposed(filled, session_id)
        reviews.sign_off(filled, review, {"warm": value}, {})
        if session_id == "north-1":
            proposed(filled, session_id)
    found = proposal_agreement.of_question(filled, ALL_SESSIONS, WARM, "small-1")
    assert (found.reviews, found.agreed, found.unseen) == (2, 1, 1)
    other = Criterion("warm", "Was it cold?", WARM.scale)
    assert proposal_agreement.of_question(filled, ALL_SESSIONS, other, "small-1").reviews == 0
    assert proposal_agreement.of_question(filled, ALL_SESSIONS, WARM, "large").reviews == 0


def test_the_page_of_agreement_lists_asked_questions_by_model(
    filled: Store, tmp_path: Path
) -> None:
    cards = tmp_path / "cards.yaml"
    question = "{name: warm, question: Was it warm?, scale: [hardly, in places, throughout]"
    cards.write_text(
        "version: 1\nscorecards: [{name: plain, title: T, criteria: ["
        f"{question}, asked: true}}]}}]",
        "utf-8",
    )
    changed = {
        "database_url": SecretStr(f"sqlite:///{tmp_path}/rapport.db"),
        "scorecards": cards,
    }
    app = bootstrap.web(Settings().model_copy(update=changed))
    ana = Client(app, People(filled).create_token("ana", "test"))
    assert "A language model and people" not in ana.get("/reviews/agreement").text
    proposed(filled)
    page = ana.get("/reviews/agreement").text
    assert re.search(r"Was it warm\?</th><td>small-1</td><td>not yet compared with people", page)


@pytest.mark.parametrize("unseen", [0, 7, 30])
def test_kappa_is_that_of_ratings_with_its_interval(unseen: int) -> None:
    pairs = [(0, 0)] * 12 + [(1, 1)] * 10 + [(0, 1), (1, 0)] * 4
    found = proposal_agreement.of_pairs(pairs, 2, unseen)
    assert found.kappa == kappa(confusion_matrix(pairs, 2))
    assert re.match(r"agreed with 22 of 30 reviews.*; κ 0\.46 \[0\.1\d, 0\.7\d\]$", found.words)
    assert ("without seeing" in found.words) == (unseen < 30)
