"""Half an emoji, or bytes that are not UTF-8, refuse their event and not the rest of its batch."""

import pytest

from stream_app.contracts import batch_body
from stream_app.contracts.events import decode
from stream_app.errors import ContractError
from stream_app.web.api.receiving import event_socket

GOOD = (
    rb'{"type":"turn","session_id":"s","seq":0,"speaker_id":"a","role":"client",'
    rb'"text":"well \ud83d\ude00 \\ud83d","occurred_at":"2026-01-05T12:00:00Z"}'
)
CUT = [
    GOOD.replace(rb"\ud83d\ude00", rb"\ud83d"),
    GOOD.replace(rb"\ud83d\ude00", rb"\uDE00\uD83D"),
    GOOD.replace(rb"\ud83d\ude00", b"\xed\xa0\xbd"),
    GOOD.replace(rb"\ud83d\ude00", b"\xff"),
    GOOD.replace(rb'"text"', rb'"te\ud83dxt"'),
]


@pytest.mark.parametrize("cut", CUT)
def test_every_event_of_a_batch_is_what_was_sent(cut: bytes) -> None:
    sent = [GOOD, cut, b"1", GOOD, b'"a, b"', cut, GOOD]
    body = b" [" + b" ,\n".join(sent) + b"]\n"
    assert batch_body.split_array(body, 500) == sent
    message = b'{"key":"k-1", "events": ' + body + b"}"
    assert event_socket._decode(message) == ("k-1", sent)
    decode(sent[0])
    with pytest.raises(ContractError):
        decode(cut)


@pytest.mark.parametrize("body", [rb'["\ud83d"', rb'{"a":"\ud83d"}', b"\xff", b'["\\ud83d",]'])
def test_what_is_no_array_is_still_refused(body: bytes) -> None:
    with pytest.raises(batch_body.NotAnArray):
        batch_body.split_array(body, 500)
