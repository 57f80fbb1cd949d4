"""Whom an analyst or a colleague may not recognise."""

from stream_app.store.repository import Store
from tests.store import batches, judging
from tests.web.people.conftest import As


def test_the_wall_shows_an_analyst_no_pseudonym(filled: Store, as_: As) -> None:
    noor = filled.privacy.pseudonym(judging.NOOR)
    turns = [
        batches.turn(seq, session_id="live", speaker_id=judging.NOOR if seq % 2 else "client")
        for seq in range(4)
    ]
    filled.commit(batches.process(turns))
    for path in ("/", "/sessions/live/card"):
        assert noor in as_("pat").get(path).text
        shown = as_("ana").get(path).text
        assert "live" in shown
        assert noor[:8] not in shown
