"""`python -m tests.chaos --seeds 1-20`: check the invariant under faults for each seed."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.chaos.run import Size, line, once


def main() -> None:
    """Run the seeds in order; the exit status is 1 if a run is not clean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="1-20", help="one, or first-last")
    parser.add_argument("--turns", type=int, default=Size.turns)
    parser.add_argument("--sessions", type=int, default=Size.sessions)
    parser.add_argument("--workers", type=int, help="default: two and three in turn")
    parser.add_argument("--brokers", type=int, default=Size.brokers)
    parser.add_argument("--faults", type=int, default=Size.faults)
    parser.add_argument("--outage", type=float, default=Size.outage, help="seconds")
    parser.add_argument("--logs", type=Path, help="folder to keep the workers' logs in")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    reports = []
    for seed in range(int(first), int(last or first) + 1):
        size = Size(
            options.turns,
            options.sessions,
            options.workers or 2 + seed % 2,
            options.brokers,
            options.faults,
            options.outage,
        )
        reports.append(once(seed, size, options.logs))
        print(line(reports[-1]), flush=True)
        for example in reports[-1].examples:
            print(f"    {example}", flush=True)
    clean = sum(report.clean for report in reports)
    print(f"{clean} of {len(reports)} seeds clean")
    raise SystemExit(0 if clean == len(reports) else 1)


if __name__ == "__main__":
    main()
