"""Questionnaires: read, stored, shown over time, exported, erased, and in no score."""

from typing import Any

import msgspec
import pytest

from stream_app.contracts.events import decode
from stream_app.contracts.questionnaires import Instrument, total
from stream_app.core.measures.reliable_change import Change, change
from stream_app.errors import ContractError
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure, subject_access
from stream_app.store.stream.repository import Store
from tests.fakes import questionnaire
from tests.store import batches, judging
from tests.store.reading import rows
from tests.web.people.conftest import As

MIA = "mia@example.org"
FIRST, LATEST, OTHER = "mia-1", "mia-2", "other"


@pytest.fixture
def filled_in(filled: Store) -> Store:
    """Two sessions of Mia with PHQ-9 and CARE, and one of another client."""
    events = []
    for day, (name, client) in enumerate(((FIRST, MIA), (LATEST, MIA), (OTHER, "noa@example.org"))):
        events += [
            batches.turn(
                seq,
                session_id=name,
                team="north",
                speaker_id=judging.NOOR if seq % 2 else client,
                occurred_at=f"2026-01-{day + 5:02}T10:{seq:02}:00Z",
            )
            for seq in range(4)
        ]
    answers: tuple[tuple[str, dict[str, Any]], ...] = (
        (FIRST, {"items": [2] * 9, "occurred_at": "2026-01-05T09:00:00Z"}),
        (LATEST, {"items": [1] * 8 + [0], "occurred_at": "2026-01-06T09:00:00Z"}),
        (OTHER, {"items": [3] * 9, "occurred_at": "2026-01-07T09:00:00Z"}),
        (LATEST, {"instrument": "care", "items": [4] * 8 + [None] * 2}),
    )
    events += [questionnaire(name, **given) for name, given in answers]
    filled.commit(batches.process(events))
    return filled


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"items": [1] * 8}, "phq-9 has 9 items"),
        ({"items": [1] * 8 + [4]}, "an item of phq-9 is outside 0-3"),
        ({"items": [1] * 8 + [0.5]}, "the items of phq-9 are whole numbers"),
        ({"items": [1] * 8 + [None]}, "phq-9 may lack 0 items"),
        ({"instrument": "gad-7", "items": [0] * 9}, "gad-7 has 7 items"),
        ({"instrument": "care", "items": [0] * 10}, "an item of care is outside 1-5"),
        ({"instrument": "care", "items": [5] * 7 + [None] * 3}, "care may lack 2 items"),
        ({"instrument": "session-rating", "items": [10.5] * 4}, "$.items"),
    ],
)
def test_answers_outside_the_questionnaire_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ContractError) as refused:
        decode(questionnaire(**given))
    assert refused.value.code == "schema"
    assert reason in refused.value.detail


@pytest.mark.parametrize(
    ("instrument", "items"),
    [
        ("phq-9", [0, 1, 2, 3, 0, 1, 2, 3, 0]),
        ("gad-7", [3] * 7),
        ("session-rating", [0, 9.5, 10, 7.25]),
        ("care", [1, 5, None, 2, 3, 4, 5, None, 1, 1]),
    ],
)
def test_answers_within_it_are_read(instrument: str, items: list[float | None]) -> None:
    event = decode(questionnaire(instrument=instrument, items=items))
    assert msgspec.to_builtins(event)["items"] == items


def test_a_change_is_reliable_from_the_published_number_on() -> None:
    assert change(Instrument.GAD_7, 15, 9) is Change.IMPROVED
    assert change(Instrument.GAD_7, 9, 15) is Change.WORSE
    assert change(Instrument.GAD_7, 15, 9.5) is Change.NONE
    assert change(Instrument.SESSION_RATING, 40, 0) is None
    assert total([4.0] * 8 + [None] * 2) == 40


def test_the_session_page_shows_the_clients_course(filled_in: Store, as_: As) -> None:
    page = " ".join(as_("sue").get(f"/sessions/{LATEST}").text.split())
    shown = page.partition("Questionnaires of the client")[2].partition("</section>")[0]
    assert "PHQ-9, total 0–27: reliable improvement from the first to the latest" in shown
    assert "<td>18</td>" in shown
    assert "<td>8</td>" in shown
    assert "<td>27</td>" not in shown, "of another client"
    assert "CARE, total 10–50<" in shown
    assert "<td>40</td>" in shown
    assert f'href="/sessions/{FIRST}"' in shown
    assert "above 0" not in shown
    assert "is above 0" in as_("sue").get(f"/sessions/{OTHER}").text
    assert "Questionnaires of the client" not in as_("sue").get("/sessions/north%2F1").text
    assert as_("sam").get(f"/sessions/{LATEST}").status_code == 404


def test_the_archive_of_the_client_has_them_and_the_counsellors_has_not(filled_in: Store) -> None:
    for speaker, number in ((MIA, 3), (judging.NOOR, 0)):
        subject = subject_access.find_subject(filled_in, speaker)
        assert subject is not None
        found = list(subject_access.rows_of(filled_in, subject, tables.questionnaires))
        assert len(found) == number


def test_they_are_erased_with_the_person(filled_in: Store) -> None:
    erasure.erase(filled_in, erasure.sessions_of(filled_in, MIA), filled_in.clock())
    assert {row["session_id"] for row in rows(filled_in, tables.questionnaires)} == {OTHER}


def test_the_same_one_is_stored_once_and_none_without_consent(filled_in: Store) -> None:
    before = rows(filled_in, tables.questionnaires)
    again = questionnaire(FIRST, items=[2] * 9, occurred_at="2026-01-05T09:00:00Z")
    log = [batches.turn(0, session_id=FIRST), again, again]
    log += [batches.turn(0, session_id="unasked", consent=None), questionnaire("unasked")]
    result = batches.process(log)
    assert [each.session_id for each in result.questionnaires] == [FIRST, FIRST]
    assert len(before) == 4


def test_no_score_or_alert_rests_on_them() -> None:
    log = [*(batches.turn(seq) for seq in range(8)), batches.end()]
    worst = questionnaire(items=[3] * 9)
    with_one, without = batches.process([worst, *log, worst]), batches.process(log)
    for name in ("turn_scores", "session_scores", "alerts"):
        assert getattr(with_one, name) == getattr(without, name), name
