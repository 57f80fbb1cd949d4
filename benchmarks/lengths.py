"""Lengths of turns and sessions in AnnoMI and ESConv: ``python -m benchmarks.lengths``.

The corpora are not part of the repository, so their lengths are stored in ``lengths.json``, which
every benchmark run samples from.
"""

import argparse
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from models.data import annomi, esconv
from models.data.corpora import Conversation, MissingCorpusError, resolve_data_dir
from models.labels import CLIENT, COUNSELLOR
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.tokenizer import TextTokenizer

FILE: Final = Path(__file__).with_name("lengths.json")
LONGEST: Final = 512
"""Maximum number of tokens of a turn in these corpora."""


class Histogram(Struct, frozen=True):
    """Counts of values; values ascend."""

    values: list[int]
    counts: list[int]

    def at(self, share: float) -> int:
        """The quantile at ``share`` (0 to 1).

        >>> [Histogram([3, 8], [1, 3]).at(share) for share in (0.1, 0.3, 0.9)]
        [3, 8, 8]
        """
        heap = list(accumulate(self.counts))
        return self.values[min(bisect_left(heap, share * heap[-1]), len(heap) - 1)]

    @property
    def mean(self) -> float:
        """The mean."""
        products = (v * n for v, n in zip(self.values, self.counts, strict=True))
        return sum(products) / sum(self.counts)


class CorpusLengths(Struct, frozen=True):
    """``session_turns``: turns per session; ``tokens``: per turn by role, with special tokens."""

    title: str
    session_turns: Histogram
    tokens: dict[str, Histogram]


def load() -> dict[str, CorpusLengths]:
    """Load the stored lengths, by corpus."""
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, CorpusLengths])


def count(title: str, sessions: list[Conversation], tokenizer: TextTokenizer) -> CorpusLengths:
    """Count one corpus."""
    tokens: dict[str, list[int]] = {"client": [], "counsellor": []}
    names = {CLIENT: "client", COUNSELLOR: "counsellor"}
    for session in sessions:
        read = tokenizer.tokenize([turn.text for turn in session.turns])
        for turn, found in zip(session.turns, read, strict=True):
            tokens[names[turn.role]].append(len(found.ids))
    return CorpusLengths(
        title,
        histogram(len(session.turns) for session in sessions),
        {role: histogram(found) for role, found in tokens.items()},
    )


def histogram(values: Iterable[int]) -> Histogram:
    """Count values.

    >>> histogram([4, 2, 4])
    Histogram(values=[2, 4], counts=[1, 2])
    """
    counted = sorted(Counter(values).items())
    return Histogram([value for value, _ in counted], [n for _, n in counted])


def main() -> None:
    """Regenerate the file from the corpora."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder with the corpora")
    options = parser.parse_args()
    bundle = bundles.load()
    tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), LONGEST)
    try:
        folder = resolve_data_dir(options.data_dir)
        found = {
            "annomi": count("AnnoMI", list(annomi.load(folder)), tokenizer),
            "esconv": count("ESConv", list(esconv.load(folder)), tokenizer),
        }
    except MissingCorpusError as problem:
        raise SystemExit(f"error: {problem}") from problem
    FILE.write_bytes(msgspec.json.encode(found) + b"\n")
    for name, lengths in found.items():
        means = ", ".join(f"{role} {h.mean:.1f}" for role, h in lengths.tokens.items())
        print(f"{name}: {lengths.session_turns.mean:.1f} turns a session; tokens a turn: {means}")


if __name__ == "__main__":
    main()
