"""The session page with bots, several clients and several counsellors."""

import re

from stream_app.store.stream.repository import Store
from tests.store.batches import end, process, turn
from tests.store.judging import NOOR
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

PEOPLE = {
    "client": ("dora", "eve"),
    "counsellor": (NOOR, "ben"),
    "system": ("bot", "bot"),
    "supervisor": ("sam", "sam"),
}
ROLES = ("client", "system", "counsellor", "supervisor")


def fill(store: Store, name: str, *, several: bool) -> None:
    log = [
        turn(
            seq,
            session_id=name,
            team="north",
            role=ROLES[seq % 4],
            speaker_id=PEOPLE[ROLES[seq % 4]][several and seq > 7],
        )
        for seq in range(16)
    ]
    store.commit(process([*log, end(session_id=name)]))


def heads_of_turns(page: str) -> list[str]:
    found = re.findall(r'<h3 id="turn-\d+-title">(.*?) <a class="seq"', page)
    return [re.sub(r"<[^>]*>", "", each) for each in found]


def test_asides_are_shown_and_marked(filled: Store, as_: As) -> None:
    fill(filled, "plain", several=False)
    page = proper(as_("sue").get("/sessions/plain"))
    assert heads_of_turns(page)[:4] == ["Client", "System", "Counsellor", "Supervisor"]
    assert page.count(">not scored<") == 8
    assert page.count('class="rating-card"') == 4
    card = as_("sue").get("/api/v1/sessions/plain").json()
    assert (card["turns"], card["unscored_turns"], card["withheld_turns"]) == (8, 0, 0)
    roles = [
        each["role"] for each in as_("sue").get("/api/v1/sessions/plain/turns").json()["items"]
    ]
    assert roles == list(ROLES) * 4


def test_several_people_of_a_role_are_told_apart(filled: Store, as_: As) -> None:
    fill(filled, "group", several=True)
    page = proper(as_("sue").get("/sessions/group"))
    heads = heads_of_turns(page)
    assert len(set(heads[0::4])) == 2
    assert len(set(heads[2::4])) == 2
    assert set(heads[1::4]) == {"System"}
    assert heads_of_turns(as_("sue").get("/sessions/group/turns/8").text) == [heads[8]]


def test_an_alert_names_the_counsellor_who_spoke(filled: Store, as_: As) -> None:
    fill(filled, "group", several=True)
    page = proper(as_("sue").get("/sessions/group"))
    alerts = page.split('id="alerts"')[1].split("</section>")[0]
    assert f'data-speaker="{filled.privacy.pseudonym(NOOR)}"' in alerts
