"""Recall, precision and over-masking of a redactor."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from benchmarks.redaction.sentences import Sentence
from stream_app.plain_text.mapped import MASK
from stream_app.redaction.mask import redact
from stream_app.redaction.port import Redactor
from stream_app.redaction.spans import Kind, Span


class Score(Struct):
    """Of one kind. ``marked``: details in the sentences; ``found``: spans that were masked."""

    marked: int = 0
    hidden: int = 0
    found: int = 0
    right: int = 0

    @property
    def recall(self) -> float:
        """Share of the details of which no letter or digit is left."""
        return self.hidden / self.marked if self.marked else 1.0

    @property
    def precision(self) -> float:
        """Share of the spans of this kind that overlap a detail of any kind."""
        return self.right / self.found if self.found else 1.0


def score(sentences: Iterable[Sentence], redactor: Redactor) -> dict[Kind, Score]:
    """By kind."""
    scores = {kind: Score() for kind in Kind}
    for sentence in sentences:
        left = missed(sentence, redactor)
        for span in sentence.spans:
            scores[span.kind].marked += 1
            scores[span.kind].hidden += span not in left
        for found in set(redactor.find(sentence.text)):
            scores[found.kind].found += 1
            scores[found.kind].right += any(_overlap(found, span) for span in sentence.spans)
    return scores


def missed(sentence: Sentence, redactor: Redactor) -> list[Span]:
    """Details of which a letter or digit is left."""
    masked = redact(sentence.text, redactor)
    return [
        span
        for span in sentence.spans
        if any(char.isalnum() for char in masked[span.start : span.end])
    ]


def wrong(sentence: Sentence, redactor: Redactor) -> list[str]:
    """Masked words that belong to no detail."""
    masked = redact(sentence.text, redactor)
    kept = "".join(
        " " if any(span.start <= at < span.end for span in sentence.spans) else char
        for at, char in enumerate(sentence.text)
    )
    hidden = "".join(
        old if new == MASK and old.isalnum() else " " for old, new in zip(kept, masked, strict=True)
    )
    return hidden.split()


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end


def masked_words(texts: Iterable[str], redactor: Redactor) -> tuple[int, int, Counter[str]]:
    """Words of these texts, capitalised ones, and the masked capitalised ones."""
    words = capitals = 0
    hidden: Counter[str] = Counter()
    for text in texts:
        masked = redact(text, redactor)
        at = 0
        for word in text.split():
            at = text.index(word, at)
            words += 1
            if word[0].isupper():
                capitals += 1
                if MASK in masked[at : at + len(word)]:
                    hidden[word] += 1
            at += len(word)
    return words, capitals, hidden
