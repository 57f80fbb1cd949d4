"""Pseudonyms, and redaction as a setting of the store."""

from collections.abc import Iterator

from stream_app.plain_text.mapped import MASK
from stream_app.redaction.spans import Kind, Span
from stream_app.store.database.privacy import Privacy


def test_redaction_can_be_switched_off() -> None:
    said = "write to joan@example.org"
    assert Privacy(key=b"k", redact=False).redacted(said) == said
    assert Privacy(key=b"k").redacted(said) != said


class _First:
    """Finds the first character."""

    def find(self, text: str) -> Iterator[Span]:
        if text[0] != MASK:
            yield Span(0, 1, Kind.OTHER_ID)


def test_any_redactor_can_be_used() -> None:
    assert Privacy(key=b"k", redactor=_First()).redacted("I'm Joan") == f"{MASK}'m Joan"


def test_pseudonyms_depend_on_the_key_and_the_speaker() -> None:
    one, two = Privacy(key=b"one"), Privacy(key=b"two")
    assert one.pseudonym("joan") == one.pseudonym("joan")
    assert len({one.pseudonym("joan"), one.pseudonym("john"), two.pseudonym("joan")}) == 3
    assert len(one.pseudonym("joan")) == 32
