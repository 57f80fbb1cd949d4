"""Which dead letters an erasure withdraws."""

import pytest

from stream_app.worker.kafka.dead_letters import encoded, is_about


@pytest.mark.parametrize(
    ("raw", "about"),
    [
        (b'{"session_id":"s-1","seq":-1}', True),
        (b'{"session_id":"s-10","seq":-1}', False),
        (b'{"session_id":"s-2","text":"as in s-1"}', False),
        (b'{"session_id":"s-1","text":', True),
        (b'{"session_id":7,"text":"s-1"}', True),
        (b'{"session":"s-1"}', True),
        (b"\xff\xfe s-1", True),
        (b'{"text":"hello"}', False),
        (b'{"session_id":"s-1","x":' + b"[" * 30_000 + b"]" * 30_000 + b"}", True),
        (b'{"session_id":"s-2","x":' + b"[" * 30_000 + b"]" * 30_000 + b"}", False),
    ],
)
def test_a_letter_is_about_the_session_that_it_names(raw: bytes, about: bool) -> None:
    assert is_about(raw, "s-1", encoded("s-1")) is about


def test_an_id_is_found_in_both_spellings_of_json() -> None:
    forms = encoded("s-ü")
    assert is_about('{"session":"s-ü"'.encode(), "s-ü", forms)
    assert is_about(b'{"session":"s-\\u00fc"', "s-ü", forms)
