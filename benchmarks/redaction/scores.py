"""Recall, precision and over-masking of a redactor."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from benchmarks.redaction.sentences import Sentence
from stream_app.plain_text.mapped import MASK
from stream_app.redaction.mask import redact
from stream_app.redaction.port import Redactor
from stream_app.redaction.spans import Kind, Span

GOAL: Final = 0.95
"""Least recall of details with a form: numbers, addresses, dates."""
NAMES_GOAL: Final = 0.85
"""Least recall of names and places."""
MOST_MASKED: Final = 0.01
"""Largest share of sentences without a detail in which something may be masked."""
_NAMES: Final = frozenset({Kind.INTRODUCED_NAME, Kind.MENTIONED_NAME, Kind.PLACE})
SETS: Final = {"first 500": ("develop", "held_out"), "new 200": ("chat",)}
"""The splits of the set as it was first written, and those written since."""


def goal_of(kind: Kind) -> float:
    """The recall that the default redactor must keep."""
    return NAMES_GOAL if kind in _NAMES else GOAL


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


def of_set(sentences: Iterable[Sentence], name: str) -> list[Sentence]:
    """The sentences of one of ``SETS``."""
    return [each for each in sentences if each.split in SETS[name]]


def group(scores: Iterable[tuple[Kind, Score]], *, names: bool) -> Score:
    """The scores of all kinds of names, or of all others, together."""
    found = [score for kind, score in scores if (kind in _NAMES) == names]
    return Score(
        sum(each.marked for each in found),
        sum(each.hidden for each in found),
        sum(each.found for each in found),
        sum(each.right for each in found),
    )


def over_masked(sentences: Iterable[Sentence], redactor: Redactor) -> tuple[int, int]:
    """How many sentences have no detail, and how many of them have a mask."""
    plain: Sequence[Sentence] = [each for each in sentences if not each.spans]
    return len(plain), sum(bool(wrong(each, redactor)) for each in plain)


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
