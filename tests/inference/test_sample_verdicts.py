"""The risk of every sample session agrees with the reading in docs/low-empathy.md."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stream_app
from stream_app.recordings.event_files import raw_events, sample_sessions

ROOT = Path(stream_app.__file__).parent.parent
THRESHOLD = 0.5
READ = re.compile(r"^\| `(\S+)` \| .+ \| (never|recovers|low at the end) \|$", re.MULTILINE)


def readings() -> dict[str, str]:
    page = (ROOT / "docs" / "low-empathy.md").read_text(encoding="utf-8")
    return dict(READ.findall(page))


def sessions() -> list[Path]:
    return [path for path in sample_sessions() if not path.stem.startswith("broken")]


@pytest.fixture(scope="module")
def risks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """Risks after each counsellor turn, by session id."""
    folder = tmp_path_factory.mktemp("samples")
    events = folder / "events.jsonl"
    events.write_bytes(b"".join(line + b"\n" for path in sessions() for line in raw_events(path)))
    out = folder / "scores.jsonl"
    command = [sys.executable, "-m", "stream_app.cli", "score", str(events), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    messages = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {
        message["session_id"]: [risk for _, risk in message["risk_by_turn"]]
        for message in messages
        if message["type"] == "session_score"
    }


def test_every_sample_session_has_been_read() -> None:
    assert sorted(readings()) == [
        re.sub(r"^(.+?-\d\d)-.*", r"\1", name) for name in sorted(p.stem for p in sessions())
    ]


@pytest.mark.parametrize(("name", "verdict"), readings().items())
def test_the_risk_agrees_with_the_reading(
    risks: dict[str, list[float]], name: str, verdict: str
) -> None:
    found = risks[f"sample-{name}"]
    reached = max(found) >= THRESHOLD
    at_end = found[-1] >= THRESHOLD

    assert (reached, at_end) == {
        "never": (False, False),
        "recovers": (True, False),
        "low at the end": (True, True),
    }[verdict]
