"""Which counsellors read a session: its first one, and those it is assigned to."""

import pytest

from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from tests.store import batches, judging
from tests.store.reading import rows
from tests.web.people.conftest import As

PATHS = ("/api/v1/sessions/taken", "/api/v1/sessions/taken/turns", "/sessions/taken")


@pytest.fixture
def taken(filled: Store) -> None:
    """A session of Noor's, into which somebody has sent a turn under Olu's speaker id."""
    of_noor = [
        batches.turn(
            seq,
            session_id="taken",
            team="north",
            speaker_id=judging.NOOR if seq % 2 else "cl",
            role="counsellor" if seq % 2 else "client",
        )
        for seq in range(4)
    ]
    filled.commit(batches.process(of_noor))
    intruder = batches.turn(4, session_id="taken", speaker_id="olu@example.org", role="counsellor")
    states = filled.load_states(["taken"], batches.BUNDLE)
    filled.commit(batches.process([intruder], states))


def statuses(as_: As, name: str) -> list[int]:
    return [as_(name).get(path).status_code for path in PATHS]


@pytest.mark.usefixtures("taken")
def test_a_turn_under_somebodys_speaker_id_gives_them_no_access(as_: As) -> None:
    assert statuses(as_, "noor") == [200] * 3
    assert statuses(as_, "olu") == [404] * 3
    found = as_("olu").get("/api/v1/sessions").json()["items"]
    assert "taken" not in {card["session_id"] for card in found}


@pytest.mark.usefixtures("taken")
def test_a_supervisor_of_the_team_assigns_a_session_and_withdraws_it(as_: As) -> None:
    path = "/api/v1/sessions/taken/readers/olu"
    assert as_("sam").put(path).status_code == 404  # of another team
    assert as_("noor").put(path).status_code == 403
    assert statuses(as_, "olu") == [404] * 3
    for _ in range(2):
        assert as_("sue").put(path).status_code == 204
    assert statuses(as_, "olu") == [200] * 3
    assert as_("sue").delete(path).status_code == 204
    assert statuses(as_, "olu") == [404] * 3
    assert statuses(as_, "noor") == [200] * 3
    trail = as_("ada").get("/api/v1/audit").json()["items"]
    acts = [
        (each["person"], each["detail"]) for each in trail if each["action"] == "assign session"
    ]
    assert sorted(acts) == [("sue", "no longer to olu"), *[("sue", "to olu")] * 2]


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("name", ["nobody", "sue", "ana", "pump"])
def test_only_counsellors_get_sessions_assigned(as_: As, name: str) -> None:
    assert as_("sue").put(f"/api/v1/sessions/taken/readers/{name}").status_code == 404


@pytest.mark.usefixtures("taken")
def test_a_supervisor_assigns_and_withdraws_with_the_forms_of_the_page(as_: As) -> None:
    page = as_("sue").get("/sessions/taken").text
    assert "<option>olu</option>" in page
    assert "Withdraw from" not in page
    assigned = as_("sue").post("/sessions/taken/readers", data={"name": "olu"})
    assert assigned.headers["location"] == "/sessions/taken#readers"
    assert statuses(as_, "olu") == [200] * 3
    page = as_("sue").get("/sessions/taken").text
    assert "<option>olu</option>" not in page
    assert 'aria-label="Withdraw from olu"' in page
    as_("sue").post("/sessions/taken/readers/withdraw", data={"name": "olu"})
    assert statuses(as_, "olu") == [404] * 3


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize(("name", "status"), [("noor", 403), ("ana", 403), ("sam", 404)])
def test_only_supervisors_of_the_team_can_use_the_forms(as_: As, name: str, status: int) -> None:
    for form in ("readers", "readers/withdraw"):
        answer = as_(name).post(f"/sessions/taken/{form}", data={"name": "olu"})
        assert answer.status_code == status
    assert 'id="readers"' not in as_("noor").get("/sessions/taken").text


@pytest.mark.parametrize("consent", [False, None])
def test_a_session_without_consent_cannot_be_assigned(
    filled: Store, as_: As, consent: bool | None
) -> None:
    said = [
        batches.turn(seq, session_id="refused", team="north", consent=consent) for seq in range(3)
    ]
    filled.commit(batches.process(said))
    assert as_("sue").put("/api/v1/sessions/refused/readers/olu").status_code == 409
    assert as_("sue").post("/sessions/refused/readers", data={"name": "olu"}).status_code == 409
    page = as_("sue").get("/sessions/refused").text
    assert "Without consent, this session cannot be assigned." in page
    assert "<option>olu</option>" not in page
    assert rows(filled, tables.session_assignments) == []
    assert "assign session" not in as_("ada").get("/api/v1/audit").text


@pytest.mark.usefixtures("taken")
def test_nor_can_one_whose_consent_was_withdrawn(filled: Store, as_: As) -> None:
    filled.hide_withdrawn = False
    batches.prepare(filled)
    states = filled.load_states(["taken"], batches.BUNDLE)
    filled.commit(batches.process([batches.consent("withdrawn", session_id="taken")], states))
    assert as_("sue").get("/api/v1/sessions/taken").status_code == 200, "kept, not hidden"
    assert as_("sue").put("/api/v1/sessions/taken/readers/olu").status_code == 409
    assert rows(filled, tables.session_assignments) == []
