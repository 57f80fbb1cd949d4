"""Every line of the sample sessions that feedback would quote, for reading.

Each line of ``sample_quotes.tsv`` was read beside its session: a supervisor would accept each
strength, and each suggestion is fair to the counsellor. A line that is added, removed or changes
sides fails this test, which writes the new file beside pytest's temporary files; read it before it
replaces the old one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from stream_app import bootstrap
from stream_app.contracts.scores import MECHANISMS
from stream_app.core.pipeline.pipeline import Source, receive
from stream_app.findings.feedback import loading, turn_loading
from stream_app.findings.feedback.composition import Feedback, quote_turn
from stream_app.findings.feedback.judgements import CounsellorTurn, Finding, finding, missed
from stream_app.findings.feedback.turns import TurnFeedback
from stream_app.recordings.event_files import sample_sessions
from stream_app.recordings.replay import recently_ended_samples
from stream_app.settings import Settings
from stream_app.store.accounts.people import Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.sessions.sessions import SessionFilter, find
from tests.store.databases import sqlite

REVIEWED = Path(__file__).with_name("sample_quotes.tsv")
pytestmark = pytest.mark.slow
PAT = Person("pat", PersonRole.SUPERVISOR, all_teams=True)


@dataclass
class Sample:
    """A sample session with the feedback on its only counsellor."""

    name: str
    turns: list[CounsellorTurn]
    feedback: Feedback
    by_turn: list[TurnFeedback]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sample]]:
    """The sample sessions, scored by the default bundle."""
    url = sqlite(tmp_path_factory.mktemp("samples") / "rapport.db")
    settings = Settings().model_copy(update={"database_url": SecretStr(url)})
    scorer = bootstrap.offline_scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    log = [
        receive(Source("samples", 0, offset), event.value)
        for offset, event in enumerate(recently_ended_samples(sample_sessions(), "s"))
    ]
    store.commit(bootstrap.pipeline(settings, scorer).process(log, {}))
    found = []
    for card in find(store, PAT.scope, SessionFilter(), limit=100).items:
        ended = loading.read_ended(store, PAT, card.session_id)
        [feedback] = loading.session_feedback(ended)
        by_turn = turn_loading.turn_feedback(store, PAT, ended, range(1000))
        name = card.session_id.split("-", 2)[2]
        [turns] = ended.counsellors.values()
        found.append(Sample(name, turns, feedback, by_turn[feedback.counsellor]))
    yield sorted(found, key=lambda sample: sample.name)
    store.close()


def quoted(sample: Sample) -> list[list[str]]:
    """Side, session, turn, mechanism or kind of answer, and words of what may be quoted."""
    found = []
    for turn in sample.turns:
        if how := missed(turn):
            words = (turn.text or "")[:160]
            found.append(["suggestion", sample.name, str(turn.seq), how.value, words])
        for name in MECHANISMS:
            if finding(turn, name) is Finding.PRESENT:
                quote = quote_turn(turn, name)
                assert quote is not None
                found.append(["strength", sample.name, str(turn.seq), name, quote.words])
    return found


def test_every_quote_was_read(samples: list[Sample], tmp_path: Path) -> None:
    lines = ["\t".join(each) for sample in samples for each in quoted(sample)]
    new = tmp_path / REVIEWED.name
    new.write_text("\n".join(lines) + "\n", "utf-8")
    reviewed = REVIEWED.read_text("utf-8").splitlines()
    added, removed = set(lines) - set(reviewed), set(reviewed) - set(lines)
    assert (sorted(added), sorted(removed)) == ([], []), f"read {new}"
    assert {line.split("\t")[0] for line in lines} == {"strength", "suggestion"}


def test_no_line_is_strength_and_suggestion(samples: list[Sample]) -> None:
    for sample in samples:
        praised = {quote.turn.seq for part in sample.feedback.mechanisms for quote in part.quotes}
        praised |= {turn.turn.seq for turn in sample.by_turn if turn.shown}
        criticised = {ref.seq for part in sample.feedback.mechanisms for ref in part.turns}
        criticised |= {turn.turn.seq for turn in sample.by_turn if turn.missing}
        points = sample.feedback.points
        if points.strength:
            praised.add(points.strength.turn.seq)
        if points.suggestion:
            criticised.add(points.suggestion.turn.seq)
        assert not praised & criticised, sample.name


def test_what_is_shown_is_among_what_was_read(samples: list[Sample]) -> None:
    reviewed = {
        (side, name, int(seq))
        for side, name, seq, *_ in (
            line.split("\t") for line in REVIEWED.read_text("utf-8").splitlines()
        )
    }
    for sample in samples:
        points, parts = sample.feedback.points, sample.feedback.mechanisms
        praised = {quote.turn.seq for part in parts for quote in part.quotes}
        praised |= {turn.turn.seq for turn in sample.by_turn if turn.shown}
        praised |= {points.strength.turn.seq} if points.strength else set()
        criticised = {ref.seq for part in parts for ref in part.turns}
        criticised |= {turn.turn.seq for turn in sample.by_turn if turn.missing}
        criticised |= {points.suggestion.turn.seq} if points.suggestion else set()
        assert {("strength", sample.name, seq) for seq in praised} <= reviewed
        assert {("suggestion", sample.name, seq) for seq in criticised} <= reviewed


def test_a_form_question_is_no_strength_and_a_reflection_no_absence(samples: list[Sample]) -> None:
    turns = {(sample.name, turn.turn.seq): turn for sample in samples for turn in sample.by_turn}
    pregnant = turns["counselling-02-patches-and-leaflets", 7]
    assert pregnant.text == "So no conditions yourself. Are you pregnant?"
    assert not pregnant.shown
    tenderness = turns["counselling-06-separate-rooms", 7]
    assert tenderness.text is not None
    assert tenderness.text.startswith("You needed that tenderness")
    assert "interpretations" in tenderness.shown
    assert not tenderness.missing
