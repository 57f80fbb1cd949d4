"""`python -m research.compare.serve SOURCE KEY`: a method in a process that imports what it needs.

Prints the number of test pairs when the method is loaded; then, for every line "START STOP" of the
input, scores that slice and prints its speed and the memory so far as JSON. `research.compare.cost`
starts it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import TextIO

from research.compare.entries import scorer_of
from research.folds import part_of
from research.method import Inputs

KIB_A_MIB = 1024


def peak_memory() -> float:
    """Peak resident memory of this process in MiB.

    Linux's own count, because `ru_maxrss` includes the parent's memory at the time of the fork.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf-8").splitlines()
        found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
        if found:
            return int(found[0]) / KIB_A_MIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_A_MIB


def serve(source: str, key: str, data_dir: Path | None, requests: TextIO, answers: TextIO) -> None:
    """Load a method on fold 0 and score slices until the input ends."""
    part = part_of(Inputs(data_dir).pairs, 0)
    scorer = scorer_of(source, key, part.train)
    dialogues = [pair.turns for pair in part.test]
    scorer.levels(dialogues[:2])
    print(len(dialogues), file=answers, flush=True)
    for line in requests:
        start, stop = map(int, line.split())
        some = dialogues[start:stop]
        began = time.process_time()
        scorer.levels(some)
        spent = max(time.process_time() - began, 1e-6)
        print(json.dumps([len(some) / spent, peak_memory()]), file=answers, flush=True)


if __name__ == "__main__":
    answers = sys.stdout
    sys.stdout = sys.stderr  # libraries print while they load
    _, source, key, *folder = sys.argv
    serve(source, key, Path(folder[0]) if folder else None, sys.stdin, answers)
