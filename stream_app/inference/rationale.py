"""Rationale spans from token probabilities (Sharma et al. 2020, section 5.2)."""

import re

import numpy as np
import numpy.typing as npt

from stream_app.contracts.scores import Span

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\s*\n\s*")


def spans(
    probabilities: npt.NDArray[np.float32],
    offsets: list[tuple[int, int]],
    threshold: float,
    text: str,
) -> list[Span]:
    """Character spans of the words whose tokens reach ``threshold``.

    Args:
        probabilities: [tokens], each in [0, 1].
        offsets: [start, end) of each token; special tokens are empty.
        threshold: in [0, 1].
        text: the original text; spans are widened to whole words and joined across blanks.
    """
    chosen: list[Span] = []
    for probability, token in zip(probabilities.tolist(), offsets, strict=True):
        if token[0] == token[1] or probability < threshold:
            continue
        start, end = _whole_word(token, text)
        if chosen and (start <= chosen[-1][1] or text[chosen[-1][1] : start].isspace()):
            chosen[-1] = (chosen[-1][0], max(end, chosen[-1][1]))
        else:
            chosen.append((start, end))
    return chosen


def _whole_word(token: Span, text: str) -> Span:
    start, end = token
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    return start, end


def words(offsets: list[tuple[int, int]], text: str) -> npt.NDArray[np.int64]:
    """Number of the word that each token belongs to, rising from 0; [tokens]."""
    numbers: list[int] = []
    number, reached = -1, -1
    for token in offsets:
        start, end = _whole_word(token, text)
        if start >= reached:
            number += 1
        reached = max(reached, end)
        numbers.append(number)
    return np.array(numbers, np.int64)


def sentences(offsets: list[tuple[int, int]], text: str) -> npt.NDArray[np.int64]:
    """Number of the sentence that each token belongs to, rising from 0; [tokens]."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return np.searchsorted(ends, [start for start, _ in offsets], side="right").astype(np.int64)
