"""A database of every release, with data, is upgraded as docs/upgrading.md says, and goes on."""

from contextlib import closing
from pathlib import Path

import pytest

from stream_app import bootstrap
from stream_app.contracts.scores import Level, TurnScore
from stream_app.core.pipeline.pipeline import Pipeline, Source, receive
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import Versioned
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE
from stream_app.inference.scorer import OnnxScorer
from stream_app.processes.doctor import run_checks
from stream_app.sealing.envelope import new_key
from stream_app.sealing.sources import as_text
from stream_app.settings import Settings
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.stream.repository import open_store
from tests.commands.conftest import Rapport
from tests.store.reading import rows, stored_rows
from tests.upgrades.released import RELEASES, Released

RUNNING = "running"
RELEASED_BUNDLE = "rapport-minilm-2.1.0-int8"
"""The default bundle of the release, whose encoder and heads of EPITOME are today's, too."""
SAME = 1e-3
"""Largest difference between probabilities for different batch sizes, doubled."""


def process(pipeline: Pipeline, events: list[bytes], states: dict[str, Versioned]) -> BatchResult:
    return pipeline.process(
        [receive(Source("turns", 0, place), event) for place, event in enumerate(events)], states
    )


def levels(results: list[BatchResult], seqs: set[int]) -> dict[tuple[int, str, str], float]:
    """The highest probability of every expressed head, by turn, stage and head."""
    found: list[TurnScore] = [
        score
        for result in results
        for score in result.turn_scores
        if score.session_id == RUNNING and score.seq in seqs
    ]
    return {
        (score.seq, score.stage.value, head): max(values.probabilities)
        for score in found
        for head, values in (score.expressed or {}).items()
        if isinstance(values, Level)
    }


def last_index(result: BatchResult) -> float | None:
    """The empathy index of the session in progress, at the end of a batch."""
    own = [score for score in result.session_scores if score.session_id == RUNNING]
    return own[-1].empathy_index


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_a_database_of_an_earlier_release_goes_on(
    release: Released,
    empty_url: str,
    tmp_path: Path,
    rapport: Rapport,
    request: pytest.FixtureRequest,
) -> None:
    keys = {}
    if empty_url.startswith("postgresql"):
        master, pseudonym = tmp_path / "master-key", tmp_path / "pseudonym-key"
        master.write_text(as_text(new_key()))
        master.chmod(0o600)
        keys = {
            "RAPPORT_MASTER_KEY_FILE": str(master),
            "RAPPORT_PSEUDONYM_KEY_FILE": str(pseudonym),
        }
    environment = {"RAPPORT_DATABASE_URL": empty_url, **keys}
    with closing(open_store(empty_url)) as plain:
        release.restore(plain, tmp_path / "old.db")

    upgraded = rapport("db", "upgrade", **environment)
    assert f"schema {release.revision} → " in upgraded.stdout, upgraded.stderr
    if keys:
        moved = rapport("keys", "move", **environment)
        assert moved.returncode == 0, moved.stderr

    settings = Settings(
        **{name.removeprefix("RAPPORT_").lower(): value for name, value in environment.items()}
    )
    scorer = OnnxScorer(bootstrap.bundle(settings))
    pipeline = bootstrap.pipeline(settings, scorer)
    store = bootstrap.prepared_store(settings, scorer)
    request.addfinalizer(store.close)
    nano = settings.model_copy(update={"bundle": DEFAULT_BUNDLE.with_name("nano")})
    other = next(finding for finding in run_checks(nano) if finding.name == "sessions")
    assert "1 sessions still have open states" in other.detail, "it has been idle for long"
    states = store.load_states([RUNNING], RELEASED_BUNDLE)
    assert list(states) == [RUNNING]
    after = process(pipeline, release.events("after"), states)
    store.commit(after)

    whole = bootstrap.pipeline(settings, scorer)
    known: dict[str, Versioned] = {}
    offline = [process(whole, release.events(name), known) for name in ("before", "after")]
    seqs = {score.seq for score in after.turn_scores}
    assert len(seqs) > 5
    expected = levels(offline[1:], seqs)
    assert levels([after], seqs) == pytest.approx(expected, abs=SAME)
    assert last_index(after) is not None  # of answers that two bundles have judged

    encrypted = rapport("keys", "encrypt", **environment)
    assert encrypted.returncode == 0, encrypted.stderr
    findings = {finding.name: finding for finding in run_checks(settings)}
    for name in ("bundle", "rules", "database", "views", "sessions", "keys"):
        assert findings[name].healthy, findings[name]
    assert rapport("audit", "verify", **environment).returncode == 0
    assert len(rows(store, tables.sessions)) == 2
    assert len(rows(store, tables.ratings)) == len(rows(store, tables.mutes)) == 1
    assert any("smoking" in row["text"] for row in rows(store, tables.turns))
    assert not any("smoking" in str(row["text"]) for row in stored_rows(store, tables.turns))
    assert People(store).find("ada") is not None


def test_every_release_has_a_database_to_upgrade() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text("utf-8")
    released = [line.split()[1] for line in changelog.splitlines() if line.startswith("## 0")]
    assert released == [release.version for release in RELEASES]
