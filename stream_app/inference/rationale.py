"""Rationale spans from token probabilities: the sentences that carry a mechanism.

The extractor gives every token a probability (Sharma et al. 2020, section 5.2). Annotators mostly
marked whole sentences, and so do Lee et al. (2023, section 3.3): a sentence is shown as a whole or
not at all, which agrees better with people than single tokens do.
"""

import re

import numpy as np
import numpy.typing as npt

from stream_app.contracts.scores import Span

Floats = npt.NDArray[np.floating]

_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\s*\n\s*")


def spans(
    probabilities: npt.NDArray[np.float32],
    offsets: list[tuple[int, int]],
    threshold: float,
    text: str,
) -> list[Span]:
    """Character spans of the sentences whose score reaches ``threshold``.

    Args:
        probabilities: [tokens], each in [0, 1].
        offsets: [start, end) of each token; special tokens are empty.
        threshold: in [0, 1].
        text: the original text. A span goes from the first to the last token that was read of a
            sentence, in whole words; neighbours are joined across blanks.
    """
    if len(probabilities) != len(offsets):
        raise ValueError(f"{len(probabilities)} probabilities for {len(offsets)} tokens")
    real = [index for index, (start, end) in enumerate(offsets) if start < end]
    tokens = [offsets[index] for index in real]
    numbers = sentences(tokens, text)
    scores = sentence_scores(probabilities[real], numbers)
    chosen: list[Span] = []
    last = -1
    for token, number, score in zip(tokens, numbers.tolist(), scores.tolist(), strict=True):
        if score < threshold:
            continue
        start, end = _whole_word(token, text)
        joins = bool(chosen) and (
            number == last or start <= chosen[-1][1] or text[chosen[-1][1] : start].isspace()
        )
        if joins:
            chosen[-1] = (chosen[-1][0], max(end, chosen[-1][1]))
        else:
            chosen.append((start, end))
        last = number
    return chosen


def sentences(offsets: list[tuple[int, int]], text: str) -> npt.NDArray[np.int64]:
    """Number of the sentence that each token belongs to, never falling; [tokens].

    A sentence ends with ., !, ? or … before a blank, or with the line.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    return np.searchsorted(ends, [start for start, _ in offsets], side="right").astype(np.int64)


def sentence_scores(probabilities: Floats, numbers: npt.NDArray[np.integer]) -> Floats:
    """Each token's sentence's score, [tokens]: the mean of the more probable half of its tokens.

    ``probabilities`` and ``numbers`` (of the sentence) are [tokens].
    """
    scores = np.zeros(len(probabilities))
    for number in np.unique(numbers):
        own = numbers == number
        ranked = np.sort(probabilities[own])[::-1]
        scores[own] = ranked[: max(1, len(ranked) // 2)].mean(dtype=np.float64)
    return scores


def _whole_word(token: Span, text: str) -> Span:
    start, end = token
    while start > 0 and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
        end += 1
    return start, end
