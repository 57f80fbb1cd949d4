"""The past-sessions page: filters, pages, saved views, and what each role sees."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app.store.accounts import saved_views
from stream_app.store.accounts.people import People
from stream_app.store.accounts.saved_views import MOST, SavedView
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.sessions import bundle_info
from stream_app.store.sessions.sessions import LOW_RATING
from stream_app.web.console.pseudonym_words import short_form
from tests.store.reading import rows
from tests.web.people.longitudinal import LINKED, Platform, platform

__all__ = ["platform"]


def listed(page: str) -> list[str]:
    return re.findall(r'<th scope="row">(?:<a [^>]*>)?<bdi>(.*?)</bdi>', page)


def all_pages(platform: Platform, name: str, query: str) -> list[str]:
    """The sessions of all pages, following the link to older ones."""
    client, found, address = platform.as_(name), [], f"/sessions?{query}"
    while True:
        page = client.get(address).text
        found += listed(page)
        older = re.search(r'href="(/sessions\?[^"]*)">Next', page)
        if older is None:
            return found
        address = html.unescape(older[1])


def ids(platform: Platform, query: sa.Select[Any]) -> set[str]:
    with platform.store.reading() as connection:
        return set(connection.scalars(query))


def fired(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(tables.alerts.c.session_id).where(*conditions)


def outcomes(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(tables.outcomes.c.session_id).where(*conditions)


score, session, outcome = tables.session_scores.c, tables.sessions.c, tables.outcomes.c
EVERY = sa.select(session.session_id)
FILTERS: dict[str, sa.Select[Any]] = {
    "from=2026-03-02&to=2026-03-08": sa.select(score.session_id).where(
        sa.func.date(score.started_at).between("2026-03-02", "2026-03-08")
    ),
    "team=south": EVERY.where(session.team == "south"),
    "domain=peer-support": EVERY.where(session.domain == "peer-support"),
    "alert=any": fired(),
    "alert=rule%3Alow-empathy-risk": fired(tables.alerts.c.rule == "low-empathy-risk"),
    "alert=rule%3Aanother": fired(tables.alerts.c.rule == "another"),
    "alert=none": EVERY.except_(fired()),  # type: ignore[dict-item]
    "risk=0.75": sa.select(score.session_id).where(score.low_empathy_risk >= 0.75),
    "index=0.3": sa.select(score.session_id).where(score.empathy_index <= 0.3),
    "outcome=follow": outcomes(outcome.kind == "follow"),
    "outcome=low-rating": outcomes(outcome.kind == "rating", outcome.value <= LOW_RATING),
    "outcome=none": EVERY.except_(outcomes()),  # type: ignore[dict-item]
    "search=session-0000": EVERY.where(session.session_id.contains("session-0000")),
    "search=%25": EVERY.where(sa.false()),
}


@pytest.mark.parametrize("query", FILTERS)
def test_filters(platform: Platform, query: str) -> None:
    found = all_pages(platform, "sue", query)
    assert len(found) == len(set(found))
    assert set(found) == ids(platform, FILTERS[query])


@pytest.mark.parametrize(
    ("order", "column"), [("risk", "low_empathy_risk"), ("index", "empathy_index")]
)
def test_sessions_are_sorted_over_all_pages(platform: Platform, order: str, column: str) -> None:
    """The highest risk and the lowest index first; sessions without a value last."""
    found = all_pages(platform, "sue", f"order={order}")
    with platform.store.reading() as connection:
        query = sa.select(score.session_id, score[column])
        values = {row[0]: row[1] for row in connection.execute(query)}
    assert set(found) == set(values)
    known = [values[each] for each in found if values[each] is not None]
    assert known == sorted(known, reverse=order == "risk")
    assert all(values[each] is None for each in found[len(known) :])


def test_a_saved_period_moves_on(platform: Platform) -> None:
    """The last week is counted from now, not from the day on which it was chosen."""
    last = datetime.now(UTC) - timedelta(days=7)
    own = sa.select(score.session_id)
    newest = ids(platform, own.where(score.started_at >= last))
    assert set(all_pages(platform, "sue", "period=week")) == newest
    moved = next(iter(sorted(ids(platform, own))))
    with platform.store.transaction() as connection:
        row = tables.session_scores.c.session_id == moved
        before = connection.scalar(sa.select(score.started_at).where(row))
        now = datetime.now(UTC) - timedelta(days=2)
        connection.execute(sa.update(tables.session_scores).where(row).values(started_at=now))
    try:
        assert set(all_pages(platform, "sue", "period=week")) == newest | {moved}
    finally:
        with platform.store.transaction() as connection:
            back = sa.update(tables.session_scores).where(row).values(started_at=before)
            connection.execute(back)


def test_synthetic_sessions_are_left_out_or_shown_alone(platform: Platform) -> None:
    simulated = bundle_info.synthetic(platform.store)
    assert simulated
    own = sa.select(score.session_id)
    alone = ids(platform, own.where(score.bundle.in_(simulated)))
    assert set(all_pages(platform, "sue", "data=synthetic")) == alone
    assert set(all_pages(platform, "sue", "data=real")) == ids(platform, own) - alone


@pytest.mark.parametrize("query", ["order=no", "period=no", "data=no", "index=nan", "index=much"])
def test_a_value_that_does_not_exist_is_refused(platform: Platform, query: str) -> None:
    assert platform.as_("sue").get(f"/sessions?{query}").status_code == 422


def test_filters_are_combined_and_pages_are_newest_first(platform: Platform) -> None:
    found = all_pages(platform, "sue", "team=south&alert=any&from=2026-02-01")
    assert set(found) < set(all_pages(platform, "sue", "alert=any"))
    began = sa.select(session.session_id, session.started_at)
    with platform.store.reading() as connection:
        at = {row.session_id: row.started_at for row in connection.execute(began)}
    assert found == sorted(found, key=at.__getitem__, reverse=True)


def test_a_counsellor_is_chosen_by_name_or_pseudonym(platform: Platform) -> None:
    page = platform.as_("sue").get("/sessions").text
    speaker, unlinked = platform.pseudonym(LINKED), platform.pseudonym("counsellor-0000")
    assert f'<option value="{speaker}">cleo</option>' in page
    assert f'<option value="{unlinked}">{short_form(unlinked)}</option>' in page
    of = sa.select(tables.session_speakers.c.session_id).where(
        tables.session_speakers.c.speaker == speaker
    )
    assert set(all_pages(platform, "sue", f"counsellor={speaker}")) == ids(platform, of)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("nia", lambda _: EVERY.where(session.team == "north")),
        (
            "cleo",
            lambda p: sa.select(tables.session_speakers.c.session_id).where(
                tables.session_speakers.c.speaker == p.pseudonym(LINKED)
            ),
        ),
        ("ana", lambda _: EVERY),
    ],
)
def test_everybody_sees_the_own_scope(
    platform: Platform, name: str, own: Callable[[Platform], sa.Select[Any]]
) -> None:
    assert set(all_pages(platform, name, "")) == ids(platform, own(platform))


def test_the_scope_holds_whatever_is_asked_for(platform: Platform) -> None:
    assert all_pages(platform, "nia", "team=south") == []
    assert all_pages(platform, "nia", f"counsellor={platform.pseudonym(LINKED)}") == []


def test_analysts_see_no_counsellors_and_no_transcripts(platform: Platform) -> None:
    page = platform.as_("ana").get("/sessions").text
    assert "Counsellor" not in page
    assert platform.pseudonym(LINKED)[:8] not in page
    assert short_form(platform.pseudonym(LINKED)) not in page
    assert 'href="/sessions/' not in page
    answer = platform.as_("ana").get(f"/sessions?counsellor={platform.pseudonym(LINKED)}")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "query", ["risk=high", "from=2026-02-31", "outcome=salary", "to=9999-12-31"]
)
def test_values_that_make_no_sense_are_refused(platform: Platform, query: str) -> None:
    assert platform.as_("sue").get(f"/sessions?{query}").status_code == 422
    assert platform.as_("sue").get("/sessions?cursor=made-up").status_code == 404


def test_a_view_is_saved_for_its_person_alone(platform: Platform) -> None:
    speaker = platform.pseudonym(LINKED)
    query = f"search=session-0001&team=south&alert=any&counsellor={speaker}"
    answer = platform.as_("sue").post("/saved-views", data={"name": "My view", "query": query})
    assert answer.status_code == 303
    [stored] = rows(platform.store, tables.saved_views)
    assert (stored["query"], stored["counsellor"]) == ("team=south&alert=any", speaker)
    page = platform.as_("sue").get("/sessions").text
    address = f"/sessions?team=south&amp;alert=any&amp;counsellor={speaker}"
    assert f'<a href="{address}">My view</a>' in page
    assert "My view" not in platform.as_("ana").get("/sessions").text
    platform.as_("ana").post("/saved-views/delete", data={"name": "My view"})
    assert saved_views.find(platform.store, "sue"), "it is not ana's to delete"
    platform.as_("sue").post("/saved-views/delete", data={"name": "My view"})
    assert saved_views.find(platform.store, "sue") == []


def test_a_view_of_the_same_name_is_replaced_and_their_number_is_limited(
    platform: Platform,
) -> None:
    sue = platform.as_("sue")
    for query in ("team=south", "team=north"):
        sue.post("/saved-views", data={"name": "one", "query": query})
    assert saved_views.find(platform.store, "sue") == [SavedView("one", "team=north")]
    for number in range(1, MOST):
        saved_views.save(platform.store, "sue", SavedView(str(number), ""))
    refused = sue.post("/saved-views", data={"name": "one more", "query": "team=south"})
    assert "delete one first" in refused.text
    sue.post("/saved-views", data={"name": "one", "query": "alert=any"})
    assert len(saved_views.find(platform.store, "sue")) == MOST
    assert SavedView("one", "alert=any") in saved_views.find(platform.store, "sue")


def test_saved_views_hold_only_known_fields(platform: Platform) -> None:
    sue = platform.as_("sue")
    sue.post("/saved-views", data={"name": "x", "query": "team=a%26b&secret=1&cursor=abc"})
    assert saved_views.find(platform.store, "sue") == [SavedView("x", "team=a%26b")]
    bad = sue.post("/saved-views", data={"name": "y", "query": "risk=high"})
    assert bad.status_code == 422
    forbidden = platform.as_("ana").post(
        "/saved-views", data={"name": "z", "query": "counsellor=abc"}
    )
    assert forbidden.status_code == 403


def test_saved_views_go_with_the_account_and_with_the_counsellor(platform: Platform) -> None:
    speaker = platform.pseudonym(LINKED)
    saved_views.save(platform.store, "sue", SavedView("hers", "", speaker))
    saved_views.save(platform.store, "sue", SavedView("all", ""))
    assert erasure.forget_counsellor(platform.store, LINKED)["saved_views"] == 1
    assert saved_views.find(platform.store, "sue") == [SavedView("all", "")]
    People(platform.store).disable("sue")
    assert rows(platform.store, tables.saved_views) == []
