"""Counsellor, dispute and calibration pages: contents by role, and HTML that the CSP allows."""

import re
from datetime import UTC, datetime, timedelta

import httpx
import msgspec
import pytest
import sqlalchemy as sa

from stream_app.contracts.scores import MECHANISMS
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.sessions import comparable
from stream_app.store.sessions.comparable import Place
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples, disputes
from stream_app.web.console.pseudonym_words import short_form
from stream_app.web.console.session import session
from tests.fakes import FakeScorer
from tests.store import batches
from tests.store.batches import BUNDLE
from tests.store.judging import NOOR
from tests.store.reading import rows
from tests.web.feedback.test_composition import heads
from tests.web.people.conftest import As

ER, _, EX = MECHANISMS
HOSTILE = "<script>alert(1)</script> That must have been hard. How was it?"
MI = "motivational-interviewing"
THRESHOLD = '<line class="threshold"'
ONES = dict.fromkeys(MECHANISMS, 1)


def recent(
    store: Store, name: str, days: float, text: str | None = None, team: str = "north"
) -> None:
    """A closed session of Noor's that began this many days ago."""
    start = datetime.now(UTC) - timedelta(days=days)
    changes = {"text": text} if text else {}
    events = [
        batches.turn(
            seq,
            session_id=name,
            team=team,
            speaker_id=NOOR if seq % 2 else "client",
            occurred_at=(start + timedelta(minutes=seq)).isoformat(),
            **changes,
        )
        for seq in range(12)
    ]
    over = (start + timedelta(hours=1)).isoformat()
    store.commit(batches.process([*events, batches.end(session_id=name, occurred_at=over)]))


def test_a_turn_and_a_session_are_rated_by_forms(filled: Store, as_: As) -> None:
    sue = as_("sue")
    page = proper(sue.get("/sessions/north-0"))
    assert page.count('class="rating-card"') == 6
    assert 'action="/sessions/north-0/session-rating"' in page
    levels = {"seq": 3, "emotional_reactions": 0, "explorations": 2, "comment": " <b>soon</b> "}
    answer = sue.post("/sessions/north-0/turn-rating", data=levels, headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        "/sessions/north-0?page=0#turn-3",
    )
    rated = {"rating": 5, "comment": "well done"}
    assert sue.post("/sessions/north-0/session-rating", data=rated).status_code == 204
    page = proper(sue.get("/sessions/north-0"))
    assert "&lt;b&gt;soon&lt;/b&gt;" in page
    assert "sue</b> rated it <b>5</b> of 5" in page
    assert 'name="explorations" value="2" checked' in page
    assert "well done" in proper(as_("noor").get("/sessions/north-0"))
    for wrong in ({"seq": 3}, {"seq": 3, "explorations": 3}, {"seq": 2, "explorations": 1}):
        assert sue.post("/sessions/north-0/turn-rating", data=wrong).status_code == 422
    assert as_("sam").post("/sessions/north-0/turn-rating", data=levels).status_code == 404


def test_a_counsellor_disputes_by_a_form_and_the_supervisors_badge_counts(
    filled: Store, as_: As
) -> None:
    given = {"seq": 1, "head": "explorations", "note": "I did ask."}
    assert as_("noor").post("/sessions/north-0/dispute", data=given).status_code == 204
    assert as_("noor").post("/sessions/north-0/dispute", data=given).status_code == 409
    badge = '<span class="count">1<span class="unseen"> waiting</span>'
    assert badge in proper(as_("sue").get("/alerts"))
    assert badge not in proper(as_("sam").get("/alerts")), "another team"
    page = proper(as_("sue").get("/disputes"))
    assert "is-disputed" in page
    read = audit.find(filled, person="sue", action=audit.AuditAction.READ_TRANSCRIPT)
    assert [entry.detail for entry in read.items] == ["turn 1, disputed"]


def noor(store: Store) -> str:
    return store.privacy.pseudonym(NOOR)


def proper(answer: httpx.Response, status: int = 200) -> str:
    """The page's text, after checking that the content security policy blocks nothing in it."""
    assert answer.status_code == status, answer.text[:500]
    page = answer.text
    assert not re.search(r"<[^>]*\s(style|on\w+)=", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    assert len(re.findall(r"<h1", page)) == 1
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    return page


@pytest.mark.parametrize(
    ("path", "open_to"),
    [
        ("/me", {"noor", "olu"}),
        ("/counsellors/{noor}", {"sue", "pat"}),
        ("/sessions/north-0/feedback", {"sue", "pat", "noor"}),
        ("/calibration", {"sue", "pat", "sam", "noor", "olu", "ana", "ada"}),
        ("/disputes", {"sue", "pat", "sam"}),
    ],
)
def test_pages_are_open_to_these_roles(
    as_: As, filled: Store, path: str, open_to: set[str]
) -> None:
    address = path.format(noor=noor(filled))
    for name in ("sue", "pat", "sam", "noor", "olu", "ana", "ada"):
        answer = as_(name).get(address)
        assert answer.status_code in ((200,) if name in open_to else (403, 404)), name
        if name in open_to:
            proper(answer)
    assert as_("").get(address).status_code == 303


def test_a_counsellors_page_shows_no_one_else(as_: As, filled: Store) -> None:
    recent(filled, "mine", 3)
    page = proper(as_("noor").get("/me"))
    assert "mine" in page
    assert "north-2" in page
    assert "south" not in page
    assert filled.privacy.pseudonym("olu@example.org")[:8] not in page
    assert short_form(filled.privacy.pseudonym("olu@example.org")) not in page


def test_a_supervisor_sees_only_the_own_teams_sessions_and_is_audited(
    as_: As, filled: Store
) -> None:
    recent(filled, "elsewhere", 3, team="south")
    page = proper(as_("sue").get(f"/counsellors/{noor(filled)}"))
    assert "north-0" in page
    assert "elsewhere" not in page
    [trace] = [t for t in audit.latest(filled) if t.action == "read counsellor"]
    assert (trace.person, trace.detail) == ("sue", f"counsellor {noor(filled)}")


def test_weeks_have_n_and_interval_or_too_few_sessions(as_: As, filled: Store) -> None:
    monday = datetime.now(UTC) - timedelta(days=datetime.now(UTC).weekday() + 7)
    back = (datetime.now(UTC) - monday).total_seconds() / 86400
    for number in range(4):
        recent(filled, f"week-a-{number}", back - number * 0.3)
    recent(filled, "week-b", back + 14)
    page = proper(as_("noor").get("/me"))
    assert page.count("too few sessions</td>") == 3, "one week, three mechanisms"
    assert len(re.findall(r"<td>4</td><td>\d\.\d\d</td><td>\d\.\d\d to \d\.\d\d</td>", page)) == 3
    assert (
        len(re.findall(r'<svg class="trend" role="img" aria-label="[^"]+ 4 sessions"', page)) == 3
    )
    assert "From the last 5 ended sessions" in page


def test_the_page_says_when_no_session_is_recent(as_: As) -> None:
    page = proper(as_("olu").get("/me"))
    assert "No session has ended in the last 26 weeks." in page
    assert page.count("Nothing to show yet.") == 3


def fitting(store: Store, session_id: str) -> None:
    """Make the counsellor's turns of a session answers that fit, with an open question."""
    score = tables.turn_scores
    here = score.c.session_id == session_id, score.c.role == "counsellor"
    with store.transaction() as connection:
        for seq, said in connection.execute(
            sa.select(score.c.seq, score.c.expressed).where(*here)
        ).all():
            level = {"level": 2, "probabilities": [0.1, 0.1, 0.8], "rationale": []}
            fits = {**said, EX: level, **heads(opened=0.9)}
            connection.execute(
                sa.update(score)
                .where(*here, score.c.seq == seq)
                .values(expressed=fits, abstained=[])
            )


def test_feedback_quotes_are_escaped(as_: As, filled: Store) -> None:
    recent(filled, "hostile", 1, HOSTILE)
    fitting(filled, "hostile")
    page = proper(as_("noor").get("/sessions/hostile/feedback"))
    assert "&lt;script&gt;" in page
    assert "?page=0#turn-" in page
    assert "Strength" in page


def test_a_sessions_page_shows_agreement_with_its_scores(as_: As) -> None:
    given = {"session_id": "north-0", "seq": 1, "head": ER, "value": 2}
    as_("sue").post("/api/v1/ratings", json=given)
    page = proper(as_("noor").get("/sessions/north-0"))
    assert "Agreement between people and the model" in page
    assert "not enough ratings yet: 1" in page


def shown_feedback(page: str) -> str:
    start = page.index('<section class="feedback"')
    return page[start : page.index("</section>", start)]


def test_the_page_of_an_ended_session_reads_its_transcript_once(
    as_: As, filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads() -> int:
        found = audit.latest(filled, "north-0")
        return sum(entry.action == AuditAction.READ_TRANSCRIPT.value for entry in found)

    fitting(filled, "north-0")
    whole = proper(as_("sue").get("/sessions/north-0"))
    assert reads() == 1
    monkeypatch.setattr(session, "PAGE_TURNS", 2)
    monkeypatch.setattr(session, "ASIDES", 0)
    first = proper(as_("sue").get("/sessions/north-0?page=0"))
    assert reads() == 3, "the page's turns, and all for the feedback"
    assert shown_feedback(first) == shown_feedback(whole)
    assert "Strength" in shown_feedback(whole)


def test_an_open_session_has_no_feedback_yet(as_: As, filled: Store) -> None:
    events = [batches.turn(seq, session_id="open", team="north") for seq in range(4)]
    filled.commit(batches.process(events))
    page = proper(as_("sue").get("/sessions/open/feedback"))
    assert "still open" in page


def test_disputes_are_answered_on_their_page_and_shown_to_the_counsellor(
    as_: As, filled: Store
) -> None:
    person = People(filled).find("noor")
    assert person
    made = disputes.contest(filled, person, "north-0", 1, ER, None, HOSTILE)
    waiting = proper(as_("sue").get("/disputes"))
    assert "&lt;script&gt;" in waiting
    assert "No answer yet." in proper(as_("noor").get("/me"))
    given = {"decision": "rejected", "answer": "Heard it as the model did."}
    assert as_("sam").post(f"/disputes/{made.dispute_id}", data=given).status_code == 404
    assert as_("sue").post(f"/disputes/{made.dispute_id}", data=given).status_code == 303
    assert as_("sue").post(f"/disputes/{made.dispute_id}", data=given).status_code == 409
    assert "Heard it as the model did." in proper(as_("noor").get("/me"))
    assert "0 open, 0 upheld, 1 rejected" in proper(as_("noor").get("/calibration"))


def test_a_sample_is_drawn_rated_blind_and_reported_without_javascript(
    as_: As, filled: Store
) -> None:
    sue, ben = as_("sue"), as_("ben")
    form = {"title": "Autumn & winter", "bundle": BUNDLE, "size": 5, "team": "", "seed": "4"}
    address = sue.post("/calibration", data=form).headers["location"]
    assert "Autumn &amp; winter" in proper(ben.get("/calibration"))
    for client in (sue, ben):
        assert "The report opens when at least two people" in proper(client.get(address))
        to = f"{address}/turns/1"
        for place in range(1, 6):
            assert to == f"{address}/turns/{place}"
            page = proper(client.get(to))
            assert "north-" not in page
            assert "checked" not in page.partition("</main>")[0]
            to = client.post(to, data={**ONES, ER: place % 3}).headers["location"]
        assert to == address
    report = proper(ben.get(address))
    assert re.search("you are [AB]", report)
    assert report.count("not enough ratings yet: 5") == 9
    assert "Your ratings are final" in report
    assert proper(as_("ana").get(address))
    assert as_("ana").get(f"{address}/turns/1").status_code == 403
    reads = [t for t in audit.latest(filled) if t.action == "read transcript"]
    assert len(reads) == 10


def test_turns_with_differences_are_shown_after_both_raters_finished(
    as_: As, filled: Store
) -> None:
    form = {"title": "t", "bundle": BUNDLE, "size": 5}
    address = as_("sue").post("/calibration", data=form).headers["location"]
    for name, level in (("sue", 0), ("ben", 2)):
        assert "Rater A" not in proper(as_(name).get(f"{address}/turns/2"))
        for place in range(1, 6):
            values = {**ONES, ER: level if place == 2 else 1}
            as_(name).post(f"{address}/turns/{place}", data=values)
    report = proper(as_("sue").get(address))
    assert report.count(f'href="{address}/turns/') == 1, "they differ on one turn"
    page = proper(as_("sue").get(f"{address}/turns/2"))
    assert re.search(r"Rater [AB] \(you\)", page)
    assert "Model" in page


def test_a_rating_without_all_three_levels_is_not_stored(as_: As, filled: Store) -> None:
    form = {"title": "t", "bundle": BUNDLE, "size": 5}
    address = as_("sue").post("/calibration", data=form).headers["location"]
    for given in ({}, {ER: 1}, {**ONES, ER: 3}, {**ONES, ER: "x"}):
        assert as_("sue").post(f"{address}/turns/1", data=given).status_code == 422
    assert rows(filled, tables.ratings) == []


def test_drawing_without_turns_shows_an_error_above_the_form(as_: As) -> None:
    form = {"title": "t", "bundle": "another", "size": 5}
    page = proper(as_("sue").post("/calibration", data=form), 409)
    assert "no turns with final scores" in page


def test_an_erased_turn_is_skipped(as_: As, filled: Store) -> None:
    form = {"title": "t", "bundle": BUNDLE, "size": 5}
    address = as_("sue").post("/calibration", data=form).headers["location"]
    person = People(filled).find("sue")
    assert person
    turn = calibration_samples.collect_ratings(
        filled, calibration_samples.find(filled, person.scope)[0]
    ).turns[0]
    with filled.transaction() as connection:
        connection.execute(
            sa.update(tables.turns)
            .where(tables.turns.c.session_id == turn.session_id, tables.turns.c.seq == turn.seq)
            .values(text=None)
        )
    assert "cannot be rated" in proper(as_("sue").get(f"{address}/turns/1"))
    assert "Begin with turn 2" in proper(as_("sue").get(address))


def summary_of(page: str, label: str) -> str:
    """The text of one part of a session's page."""
    found = re.search(
        rf'<section class="summary" aria-label="{label}">(.*?)</section>', page, re.DOTALL
    )
    words = re.sub(r"</?d[td]>", " ", found[1]) if found else ""
    return " ".join(re.sub(r"<[^>]+>", "", words).split())


def test_a_session_shows_its_index_and_missed_opportunities(as_: As, filled: Store) -> None:
    log = [
        batches.turn(seq, session_id="helped", team="north", domain="peer-support")
        for seq in range(30)
    ]
    [score] = batches.process(log).session_scores
    filled.commit(batches.process(log))
    page = proper(as_("sue").get("/sessions/helped"))
    summary = summary_of(page, "Expressed so far")
    assert score.empathy_interval is not None
    low, high = score.empathy_interval
    assert (
        f"Empathy index {score.empathy_index:.2f} ({low:.2f} to {high:.2f}); "
        "no comparable sessions yet"
    ) in summary
    assert f"Opportunities answered {round(100 * (score.answered_share or 0))} %" in summary
    assert score.missed_opportunities
    latest = ", ".join(f"turn {seq}" for seq in score.missed_opportunities[-5:])
    assert f"Opportunities missed {latest}" in summary
    assert f'href="#turn-{score.missed_opportunities[-1]}"' in page


@pytest.mark.parametrize(
    ("low", "shown"), [(0.858, True), (0.49, False), (None, False)], ids=["valid", "weak", "none"]
)
def test_an_outcome_risk_is_a_sentence_with_an_interval(
    as_: As, filled: Store, low: float | None, shown: bool
) -> None:
    """Without figures, or where they include chance, the page says nothing of the outcome."""
    log = [
        batches.turn(seq, session_id="helped", team="north", domain="peer-support")
        for seq in range(30)
    ]
    [score] = batches.process(log).session_scores
    filled.commit(batches.process(log))
    measured = {"value": 0.896, "low": low, "high": 0.929, "sessions": 795, "positive": 95}
    figures = {"out_of_fold": {"chat_failed": measured}} if low is not None else {}
    with filled.transaction() as connection:
        manifest = {"name": "fake", "metrics": {"outcomes": figures}}
        connection.execute(sa.update(tables.bundles).values(manifest=manifest))
    outcomes = summary_of(proper(as_("sue").get("/sessions/helped")), "Predicted outcomes")
    if not shown:
        assert outcomes == ""
        return
    chance = round(100 * score.outcome_risks["chat_failed"])
    assert f"a chance of {chance} % that this chat would be filed as failed" in outcomes
    assert "90 % of pairs (95 % interval 86 to 93 %, 795 sessions)." in outcomes
    assert "do not measure empathy" in outcomes


@pytest.mark.parametrize(
    ("alert", "above", "words"),
    [
        (True, 0.84, "0.31)"),
        (True, 0.2, "0.31), above 20 % of 132 comparable sessions"),
        (False, 0.84, "0.31), above 84 % of 132 comparable sessions"),
    ],
)
def test_a_comparison_is_not_shown_beside_the_warning_that_it_contradicts(
    as_: As, filled: Store, monkeypatch: pytest.MonkeyPatch, alert: bool, above: float, words: str
) -> None:
    monkeypatch.setattr(comparable, "place", lambda *_: Place(132, above))
    name = {"session_id": "compared", "team": "north", "domain": "peer-support"}
    filled.commit(batches.process([batches.turn(seq, **name) for seq in range(4)]))
    scores = tables.session_scores
    with filled.transaction() as connection:
        connection.execute(
            sa.update(scores)
            .where(scores.c.session_id == "compared")
            .values(empathy_index=0.3, empathy_low=0.29, empathy_high=0.31)
        )
        if not alert:
            connection.execute(sa.delete(tables.alerts))
    summary = summary_of(proper(as_("sue").get("/sessions/compared")), "Expressed so far")
    assert summary.startswith(f"Empathy index 0.30 (0.29 to {words} Opportunities")


def words_of_miti(page: str) -> str:
    found = re.search(r'<section class="summary miti".*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", found[0]).split()) if found else ""


def test_a_session_of_motivational_interviewing_shows_measures_and_the_manuals_thresholds(
    as_: As, filled: Store
) -> None:
    log = [batches.turn(seq, session_id="mi", team="north", approach=MI) for seq in range(24)]
    [score] = batches.process(log).session_scores
    filled.commit(batches.process(log))
    miti = score.miti
    assert miti is not None
    page = proper(as_("sue").get("/sessions/mi"))
    summary = words_of_miti(page)
    ratio, share = (
        miti.measures[name] for name in ("reflection_to_question", "open_question_share")
    )
    assert ratio.value is not None
    assert ratio.standing is not None
    assert share.value is not None
    assert share.standing is not None
    shown = f"{ratio.value:.2f}".rstrip("0").rstrip(".")
    assert (
        f"Reflections to questions {shown} : 1 1 : 1 2 : 1 {ratio.standing.value} MITI 4.2.1"
    ) in summary
    assert (
        f"Open questions {100 * share.value:.0f} % 50 % 70 % {share.standing.value} MITI 3.1.1"
    ) in summary
    assert f"MI-adherent {miti.mi_adherent:.1f} no threshold" in summary
    assert f"MI-non-adherent {miti.mi_non_adherent:.1f} no threshold" in summary
    assert f"seeking collaboration {miti.counts['seeking_collaboration']:.1f}" in summary
    assert "12 volleys (12 counsellor turns)" in summary
    assert "affirm, emphasizing autonomy, confront are not counted" in summary
    assert "global ratings are not computed" in summary
    general = summary_of(page, "Expressed so far")
    assert "Open questions" not in general
    assert "per question" not in general


def test_early_in_a_session_no_threshold_is_applied(as_: As, filled: Store) -> None:
    filled.commit(
        batches.process(
            [batches.turn(seq, session_id="mi", team="north", approach=MI) for seq in range(2)]
        )
    )
    summary = words_of_miti(proper(as_("sue").get("/sessions/mi")))
    assert "too early" in summary
    assert "1 volley (1 counsellor turn)" in summary


def test_a_session_of_another_approach_shows_no_miti(as_: As, filled: Store) -> None:
    log = [batches.turn(seq, session_id="other", team="north") for seq in range(24)]
    filled.commit(batches.process(log))
    page = proper(as_("sue").get("/sessions/other"))
    assert words_of_miti(page) == ""
    assert "Open questions" in summary_of(page, "Expressed so far")


def test_a_session_without_index_or_outcome_model_shows_neither(as_: As, filled: Store) -> None:
    filled.commit(batches.process([batches.turn(session_id="begun", team="north")]))
    page = proper(as_("sue").get("/sessions/begun"))
    assert "Empathy index" not in page
    assert "Opportunities answered" not in page
    assert "Predicted outcomes" not in page


@pytest.mark.parametrize("has_threshold", [False, True])
def test_the_curve_shows_the_bundles_threshold(as_: As, filled: Store, has_threshold: bool) -> None:
    filled.commit(batches.process([batches.turn(seq, team="north") for seq in range(12)]))
    if has_threshold:
        manifest = {"name": "fake", "empathy": msgspec.to_builtins(FakeScorer.empathy)}
        with filled.transaction() as connection:
            connection.execute(sa.update(tables.bundles).values(manifest=manifest))
    assert (THRESHOLD in proper(as_("sue").get("/sessions/s"))) == has_threshold


def perceived_groups() -> dict[str, object]:
    """One group that agrees with ratings, and one that does not."""
    about = {"rating": "ESConv empathy", "words": "seekers' <ratings>", "n": 851, "sessions": 850}
    groups = [
        {
            "name": name,
            "members": members,
            "shown": members[-1],
            "validity": [about | {"r": r, "low": r - 0.06, "high": r + 0.06}],
        }
        for name, members, r in (
            ("Understanding and sympathy", ["understanding", "sympathy"], 0.37),
            ("Helpfulness", ["helpfulness"], 0.17),
        )
    ]
    return {"protocol": "made up", "groups": groups}


def test_a_transcript_shows_grouped_heads_once_and_no_satisfaction(as_: As, filled: Store) -> None:
    """Scores keep all heads; the page shows the group with its coefficient, nothing of the
    one that hardly agrees with ratings, and client turns without the satisfaction that one sentence
    cannot say."""
    recent(filled, "listened", 1)
    heads = {"understanding": 0.41, "sympathy": 0.62, "helpfulness": 0.33}
    client = {"satisfaction": {"no": 0.09, "yes": 0.91}, "distress": {"no": 0.2, "yes": 0.8}}
    score = tables.turn_scores
    with filled.transaction() as connection:
        own = score.c.session_id == "listened"
        seen = sa.select(tables.turns.c.seq).where(tables.turns.c.role == "client")
        connection.execute(sa.update(score).where(own).values(perceived=heads))
        of_client = own & score.c.seq.in_(seen)
        connection.execute(sa.update(score).where(of_client).values(perceived={}, client=client))
        manifest = {"name": "fake", "perceived": perceived_groups()}
        connection.execute(sa.update(tables.bundles).values(manifest=manifest))
    for address in (
        "/sessions/listened",
        "/sessions/listened/turns/1",
        "/sessions/listened/turns/2",
    ):
        page = as_("sue").get(address).text
        if not address.endswith("2"):
            bars = re.search(r'<div class="perceived".*?</dl>', page, re.DOTALL)
            assert bars is not None
            assert re.findall(r"<dt>([^<]+)</dt>", bars[0]) == ["Understanding and sympathy"]
            assert re.findall(r'<span class="p">([\d.]+)</span>', bars[0]) == ["0.62"]
            assert "r = 0.37 with seekers&#39; &lt;ratings&gt;</dd>" in bars[0]
            assert "(0.31 to 0.43)" in bars[0]
        if not address.endswith("1"):
            assert "<b>yes</b> " in page, "distress is shown"
            assert "distress" in page
        assert "satisf" not in page
        assert "0.91" not in page
    answer = as_("sue").get("/api/v1/sessions/listened/turns").json()
    [satisfaction] = {str(turn["scores"][0]["client"]["satisfaction"]) for turn in answer["items"]
              if turn["role"] == "client"}  # fmt: skip
    assert "0.91" in satisfaction, "the API returns all heads"
    kept = next(turn for turn in answer["items"] if turn["role"] == "counsellor")
    assert kept["scores"][0]["perceived"] == heads
