"""Session ids may be any text: pages, links and API routes work for all of them."""

import html
import re
from urllib.parse import quote

import pytest

from stream_app.store.stream.repository import Store
from tests.store import batches, judging
from tests.web.people.conftest import As

IDS = (
    "a/b",
    "/a//b/",
    "a/../b",
    "a/now",
    "a/turns",
    "a/turns/1",
    "a?b=c#d",
    "a%2Fb",
    "a%00b",
    "a\nb",
    "a\n",
    " a;b\\c",
    "\"'><script>alert(1)</script>",
    "é\u202e漢\U0001f600",
    "漢" * 200,
)


@pytest.mark.parametrize("session_id", IDS)
def test_every_page_and_link_of_a_session_works(filled: Store, as_: As, session_id: str) -> None:
    turns = [
        batches.turn(seq, session_id=session_id, speaker_id=judging.NOOR if seq % 2 else "client")
        for seq in range(6)
    ]
    began = batches.process(turns)
    filled.commit(began)
    pat, name = as_("pat"), quote(session_id, safe="")
    for part in ("", "/now", "/turns/1", "/card", "/feedback", "/reviews"):
        page = pat.get(f"/sessions/{name}{part}")
        assert page.status_code == 200, part
        assert "<script>alert" not in page.text
    for part in ("", "/turns", "/history"):
        assert pat.get(f"/api/v1/sessions/{name}{part}").status_code == 200, part
    assert pat.get(f"/api/v1/sessions/{name}").json()["session_id"] == session_id
    assert pat.get(f"/api/v1/sessions/{name}/feedback").status_code == 409
    filled.commit(batches.process([batches.end(session_id=session_id)], began.sessions))
    for address in ("/", f"/sessions/{name}", f"/sessions/{name}/feedback", "/alerts"):
        hrefs = re.findall(r'href="(/sessions/[^"#?]*)', pat.get(address).text)
        for href in {html.unescape(href) for href in hrefs}:
            assert re.sub(r"/(feedback|reviews)$", "", href.removeprefix("/sessions/")) == name
            assert pat.get(href).status_code == 200
    assert f"/sessions/{name}" in as_("noor").get("/me").text


@pytest.mark.parametrize("session_id", IDS)
def test_signing_in_redirects_to_the_requested_session(
    filled: Store, as_: As, session_id: str
) -> None:
    address = f"/sessions/{quote(session_id, safe='')}"
    sent = as_("").get(address)
    assert sent.status_code == 303
    form = as_("").get(sent.headers["location"]).text
    [to] = re.findall(r'name="to" value="([^"]*)"><label', form)
    assert html.unescape(to) == address
