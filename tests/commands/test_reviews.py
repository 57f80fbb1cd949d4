"""Sampling of sessions for review: by hand-checked draws, and through the command."""

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stream_app.cli import app
from stream_app.settings import DEFAULT_SCORECARDS
from stream_app.store.accounts.roles import PersonRole
from stream_app.store.database import tables
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import reviews
from stream_app.store.work.reviews import Origin
from stream_app.work.review_sampling import Drawn, draw
from tests.commands.conftest import NewStore
from tests.store import judging
from tests.store.reading import rows

RISKS = {"low": 0.1, "middle": 0.3, "high": 0.6, "unknown": None}


def drawn(seed: int, **changes: object) -> list[Drawn]:
    chosen = {"at_random": 0, "by_risk": 0, "double": 0.0, "seed": seed, **changes}
    return draw(RISKS, ["ada", "ben"], **chosen)  # type: ignore[arg-type]


def test_the_first_session_by_risk_is_drawn_in_proportion_to_it() -> None:
    counts = Counter(drawn(seed, by_risk=1)[0].session_id for seed in range(6000))
    assert counts.keys() == {"low", "middle", "high"}, "none without a risk"
    for name, count in counts.items():
        assert count / 6000 == pytest.approx(RISKS[name], abs=0.03)


def test_the_second_one_is_drawn_in_proportion_to_what_is_left() -> None:
    after = Counter(
        found[1].session_id
        for seed in range(8000)
        if (found := drawn(seed, by_risk=2))[0].session_id == "high"
    )
    assert after["middle"] / after.total() == pytest.approx(0.75, abs=0.03)


def test_random_sessions_are_equally_likely_and_not_drawn_again() -> None:
    counts: Counter[str] = Counter()
    for seed in range(4000):
        found = drawn(seed, at_random=1, by_risk=9)
        assert len({each.session_id for each in found}) == len(found)
        assert [each.origin for each in found] == [Origin.RANDOM, *[Origin.RISK] * (len(found) - 1)]
        counts[found[0].session_id] += 1
    assert all(count / 4000 == pytest.approx(0.25, abs=0.03) for count in counts.values())


def test_a_seed_draws_the_same() -> None:
    assert drawn(7, at_random=2, by_risk=1) == drawn(7, at_random=2, by_risk=1)
    assert len({tuple(drawn(seed, at_random=2)) for seed in range(20)}) > 1


def test_double_reviews_have_two_people_and_the_work_is_shared() -> None:
    risks = {f"s{number}": 0.5 for number in range(20)}
    found = draw(risks, ["a", "b", "c"], at_random=20, by_risk=5, double=0.5, seed=3)
    assert len(found) == 20
    sizes = Counter(len(set(each.reviewers)) for each in found)
    assert sizes == {1: 10, 2: 10}
    burden = Counter(name for each in found for name in each.reviewers)
    assert set(burden.values()) == {10}
    alone = draw(risks, ["a"], at_random=4, by_risk=0, double=1.0, seed=3)
    assert {each.reviewers for each in alone} == {("a",)}


@pytest.fixture
def store(new_store: NewStore) -> Store:
    return new_store(3)


def sample(*options: str) -> Result:
    command = ["reviews", "sample", "--team", "north", "--days", "36500", "--seed", "1", *options]
    return CliRunner().invoke(app, command)


def test_the_command_assigns_what_nobody_has_reviewed(store: Store) -> None:
    for name in ("sue", "ben"):
        judging.supervisor(store, name)
    judging.supervisor(store, "sam", "south")
    judging.supervisor(store, "all", None)
    done = sample("--random", "1", "--risk", "1", "--double", "0.5", "--scorecard", "handling")
    assert done.exit_code == 0, done.exception
    assert "drawn of 3 sessions with seed 1: 1 at random, 1 by risk; 1 for double" in done.output
    found = reviews.find(store, ALL_SESSIONS)
    assert {each.reviewer for each in found} == {"sue", "ben"}, "the team's own supervisors"
    assert {each.session_id.partition("-")[0] for each in found} == {"north"}
    assert Counter(each.double for each in found) == {True: 2, False: 1}
    assert len({each.pair_id for each in found}) == 2
    assert {each.scorecard.name for each in found} == {"handling"}
    again = sample("--random", "9")
    assert "drawn of 1 sessions" in again.output
    assert "drawn of 0 sessions" in sample("--random", "9").output


def test_sessions_without_consent_or_text_are_not_drawn(store: Store) -> None:
    judging.supervisor(store)
    turns, sessions = tables.turns, tables.sessions
    with store.transaction() as connection:
        gone = turns.update().where(turns.c.session_id == "north-0").values(text=None)
        withdrawn = sessions.update().where(sessions.c.session_id == "north-1")
        connection.execute(gone)
        connection.execute(withdrawn.values(withdrawn=True))
    assert sample("--random", "9").exit_code == 0
    assert {row["session_id"] for row in rows(store, tables.reviews)} == {"north-2"}


def test_reviewers_can_be_named_and_must_read_the_team(store: Store) -> None:
    judging.supervisor(store)
    judging.supervisor(store, "all", None)
    judging.supervisor(store, "sam", "south")
    judging.person(store, "ana", PersonRole.ANALYST)
    for name in ("sam", "ana", "nobody"):
        failed = sample("--random", "1", "--to", name)
        assert f"{name} is not a supervisor who reads team north" in str(failed.exception)
    alone = sample("--random", "1", "--double", "1")
    assert "double review needs a second person besides sue" in str(alone.exception)
    assert sample("--random", "1", "--double", "1", "--to", "sue", "--to", "all").exit_code == 0
    assert "no scorecard x" in str(sample("--random", "1", "--scorecard", "x").exception)


def test_a_team_without_supervisors_is_an_error(store: Store) -> None:
    assert "team north has no supervisor" in str(sample("--random", "1").exception)


def test_scorecards_are_checked(tmp_path: Path, log_settings_kept: object) -> None:
    checked = CliRunner().invoke(app, ["reviews", "check", str(DEFAULT_SCORECARDS)])
    assert checked.exit_code == 0, checked.exception
    assert "warmth (weight 2, from emotional_reactions_mean): hardly / in places" in checked.output
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\nscorecards: []\n")
    failed = CliRunner().invoke(app, ["reviews", "check", str(bad)])
    assert f"{bad}: Expected `array` of length >= 1" in str(failed.exception)
    missing = CliRunner().invoke(app, ["reviews", "check", str(tmp_path / "none.yaml")])
    assert "No such file" in str(missing.exception)
