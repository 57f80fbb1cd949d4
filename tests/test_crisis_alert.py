"""A client's crisis language, from the log to the pages and the API, under the shipped rules."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_app import bootstrap
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import DEFAULT_RULES
from tests.store.batches import received, turn
from tests.web.in_process import InProcessWeb

CRY = "Everything is grey. I keep thinking about killing myself."
PROTOCOL = "Call the duty manager."
TEXTS = ("Hello, is anyone there?", "Yes. What brings you here?", CRY)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[InProcessWeb]:
    """Three turns, of which the last is the client's, under the shipped rules with a protocol."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(f"{DEFAULT_RULES.read_text('utf-8')}    protocol: {PROTOCOL}\n", "utf-8")
    running = InProcessWeb(tmp_path)
    changes = {"bundle": bundles.find("nano"), "rules": rules}
    settings = running.settings.model_copy(update=changes)
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    log = [turn(seq, text=text, domain="peer-support") for seq, text in enumerate(TEXTS)]
    store.commit(bootstrap.pipeline(settings, scorer).process(received(log), {}))
    store.close()
    running.start()
    yield running
    running.stop()


def test_the_alert_and_the_words_are_shown_without_an_answer(web: InProcessWeb) -> None:
    with web.client("sue") as sue:
        exported = sue.get("/exports/turns?format=csv").raise_for_status().text
    headers = {"Authorization": f"Bearer {web.tokens['sue']}"}
    with web.anonymous_client(headers=headers) as sue:
        page = sue.get("/sessions/s").raise_for_status().text
        inbox = sue.get("/alerts").raise_for_status().text
        [alert] = sue.get("/api/v1/alerts").raise_for_status().json()["items"]
        turns = sue.get("/api/v1/sessions/s/turns").raise_for_status().text
    state = alert["rule"], alert["severity"], alert["state"]
    assert state == ("crisis-language", "critical", "firing")
    assert '<span class="chip-head">crisis language</span> <b>“killing myself”</b>' in page
    assert "not a risk assessment" in page
    assert PROTOCOL in page
    assert alert["protocol"] == PROTOCOL
    assert "crisis-language" in inbox
    assert '"crisis_language":{"no":0.0,"yes":1.0}' in turns
    assert "crisis_language" in exported
