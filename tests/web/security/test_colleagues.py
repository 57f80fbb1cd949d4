"""Two counsellors of one session do not see each other's ratings; the ingest role sees nothing."""

from stream_app.store.accounts.people import People, Person
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.stream.repository import Store
from tests.store import batches, judging
from tests.web.people.conftest import As


def test_counsellors_do_not_see_ratings_of_or_by_colleagues(filled: Store, as_: As) -> None:
    speakers = {1: judging.NOOR, 3: "olu@example.org"}
    log = [
        batches.turn(seq, session_id="shared", team="north", speaker_id=speakers.get(seq, "cl"))
        for seq in range(4)
    ]
    filled.commit(batches.process([*log, batches.end(session_id="shared")]))
    assert as_("sue").put("/api/v1/sessions/shared/readers/olu").status_code == 204
    for name in ("noor", "olu", "sue"):
        for seq in (1, 3, None):
            head = "rating" if seq is None else "explorations"
            body = {"session_id": "shared", "seq": seq, "head": head, "value": 1}
            assert as_(name).post("/api/v1/ratings", json=body).status_code == 200

    def seen(name: str) -> set[tuple[str, int | None]]:
        found = as_(name).get("/api/v1/ratings?session=shared").json()
        return {(each["person"], each["seq"]) for each in found}

    assert seen("noor") == {("noor", 1), ("noor", 3), ("noor", None), ("sue", 1), ("sue", None)}
    assert seen("olu") == {("olu", 1), ("olu", 3), ("olu", None), ("sue", 3), ("sue", None)}
    assert len(seen("sue")) == 9
    page = as_("noor").get("/sessions/shared").text
    assert "olu:" not in page
    assert page.count("sue: ") == 1


def test_an_ingest_token_opens_no_page(filled: Store, as_: As) -> None:
    People(filled).add(Person("pump", PersonRole.INGEST), None)
    for path in (
        "/",
        "/me",
        "/sessions/north-0",
        "/sessions/north-0/card",
        "/alerts",
        "/teams",
        "/sessions",
        "/analytics",
    ):
        assert as_("pump").get(path).status_code == 403
