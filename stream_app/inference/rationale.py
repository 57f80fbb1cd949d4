"""Rationale spans from token probabilities: the sentences that express a mechanism.

The extractor gives every token a probability (Sharma et al. 2020, section 5.2). Annotators mostly
marked whole sentences. So, as in Lee et al. (2023, section 3.3), spans are whole sentences, which
agree better with people than single tokens.
"""

import itertools
import math
import re
from bisect import bisect_right

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from stream_app.contracts.scores import Span

Floats = npt.NDArray[np.floating]

_SENTENCE_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+\s++|(?<!\s)[^\S\n]*+\n\s*+"
)  # each run of marks or blanks is read once: the time is linear, whatever the text


class Sentence(Struct, frozen=True):
    """A sentence: its tokens [first, end) and its character span, extended to whole words."""

    first: int
    end: int
    span: Span


class SentenceReader:
    """The sentences of a text, split once for all mechanisms."""

    def __init__(self, offsets: list[tuple[int, int]], text: str) -> None:
        """``offsets``: [start, end) of each token; special tokens are empty and in no sentence."""
        self._size = len(offsets)
        self._text = text
        self._real = [index for index, (start, end) in enumerate(offsets) if start < end]
        tokens = [offsets[index] for index in self._real]
        numbers = sentences(tokens, text).tolist()
        edges = [i for i in range(len(tokens)) if i == 0 or numbers[i] != numbers[i - 1]]
        self._sentences = [
            Sentence(first, end, _whole_words(tokens[first:end], text))
            for first, end in itertools.pairwise([*edges, len(tokens)])
        ]

    def spans(self, probabilities: list[float], threshold: float) -> list[Span]:
        """Character spans of the sentences whose score reaches ``threshold``, both in [0, 1].

        ``probabilities``: of each token. Spans are extended to whole words; adjacent ones are
        joined.
        """
        if len(probabilities) != self._size:
            raise ValueError(f"{len(probabilities)} probabilities for {self._size} tokens")
        chosen: list[Span] = []
        if max(probabilities, default=0.0) < threshold:  # no mean can reach it
            return chosen
        real = [probabilities[index] for index in self._real]
        for sentence in self._sentences:
            if _mean_of_upper_half(real[sentence.first : sentence.end]) < threshold:
                continue
            start, end = sentence.span
            last = chosen[-1][1] if chosen else -1
            if chosen and (start <= last or self._text[last:start].isspace()):
                chosen[-1] = (chosen[-1][0], max(end, last))
            else:
                chosen.append((start, end))
        return chosen


def spans(
    probabilities: npt.NDArray[np.float32],
    offsets: list[tuple[int, int]],
    threshold: float,
    text: str,
) -> list[Span]:
    """Rationale spans of one mechanism; see ``SentenceReader.spans``."""
    return SentenceReader(offsets, text).spans(probabilities.tolist(), threshold)


def sentences(offsets: list[tuple[int, int]], text: str) -> npt.NDArray[np.int64]:
    """Sentence number of each token, ascending; [tokens].

    A sentence ends with ., !, ? or … before a space, or at a line end.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return np.array([bisect_right(ends, start) for start, _ in offsets], np.int64)


def sentence_scores(probabilities: Floats, numbers: npt.NDArray[np.integer]) -> Floats:
    """The sentence score of each token, [tokens]: mean of the sentence's more probable half.

    ``probabilities`` and ``numbers`` (see ``sentences``) are [tokens].
    """
    scores = np.zeros(len(probabilities))
    for number in np.unique(numbers):
        mask = numbers == number
        scores[mask] = _mean_of_upper_half(probabilities[mask].tolist())
    return scores


def _mean_of_upper_half(probabilities: list[float]) -> float:
    kept = max(1, len(probabilities) // 2)
    return math.fsum(sorted(probabilities, reverse=True)[:kept]) / kept


def _whole_words(tokens: list[Span], text: str) -> Span:
    """The span of these tokens, extended to whole words."""
    start, end = tokens[0][0], max(end for _, end in tokens)
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    return start, end
