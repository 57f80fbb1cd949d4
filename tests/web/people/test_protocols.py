"""The operator's protocol of a rule, where people see its alerts."""

from stream_app.store.stream.repository import Store
from tests.rule_texts import EAGER_TEXT, rules_of
from tests.store import batches, judging
from tests.web.people.conftest import As

PROTOCOL = "1. Call <the> duty manager.\n2. Take over if asked."
SHOWN = "1. Call &lt;the&gt; duty manager.\n2. Take over if asked."
RULES = rules_of(
    EAGER_TEXT + '    protocol: "1. Call <the> duty manager.\\n2. Take over if asked."\n'
)


def test_a_firing_alert_shows_its_protocol_in_api_inbox_and_session(as_: As, filled: Store) -> None:
    events = [
        batches.turn(
            seq,
            session_id="live",
            team="north",
            speaker_id=judging.NOOR if seq % 2 else "client",
        )
        for seq in range(judging.TURNS)
    ]
    filled.commit(batches.pipeline(RULES).process(batches.received(events), {}))
    sue = as_("sue")
    [alert] = sue.get("/api/v1/alerts?session=live&state=firing").json()["items"]
    assert alert["protocol"] == PROTOCOL
    for page in ("/alerts", f"/alerts/{alert['episode_id']}", "/sessions/live"):
        shown = sue.get(page).extensions["as_sent"]
        assert SHOWN in shown, page
        assert "Rapport does not assess risk" in shown
    assert SHOWN in as_("noor").get("/sessions/live").extensions["as_sent"], (
        "the counsellor's own session"
    )
    resolve = f"/api/v1/alerts/{alert['episode_id']}/resolve"
    assert sue.post(resolve, json={"reason": "justified"}).json()["protocol"] == PROTOCOL
    assert SHOWN not in sue.get("/sessions/live").extensions["as_sent"]
    assert SHOWN not in sue.get("/alerts?state=resolved").extensions["as_sent"]
