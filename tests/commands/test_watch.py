"""The wall: highest risk first, and no text of any turn."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.console import Console
from rich.text import Text
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.contracts.scores import (
    Alert,
    AlertState,
    Output,
    SessionScore,
    SessionStatus,
)
from stream_app.errors import StoreError
from stream_app.processes import watch
from stream_app.processes.watch import BARS, ROWS, Wall, _print_line, sparkline
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from tests.store import batches, databases
from tests.store.batches import end, process, turn
from tests.store.databases import open_store

HOSTILE = "[/b] [red]x[/red] [link=file:///]y"


def messages(session_id: str, *, ended: bool = False, text: str = "zanzibar") -> list[Output]:
    log = [turn(seq, session_id=session_id, text=f"{text} {seq}") for seq in range(4)]
    result = process([*log, end(session_id=session_id)] if ended else log)
    return [*result.turn_scores, *result.session_scores, *result.alerts]


def wall(risks: dict[str, float | None]) -> Wall:
    filled = Wall()
    for session_id, risk in risks.items():
        for message in messages(session_id):
            is_summary = isinstance(message, SessionScore)
            filled.take(structs.replace(message, low_empathy_risk=risk) if is_summary else message)
    return filled


def seen(show: Callable[[Console], None]) -> str:
    console = Console(record=True, width=200, file=StringIO())
    show(console)
    return console.export_text()


def test_the_highest_risk_is_first_and_unknown_risk_last() -> None:
    text = seen(lambda c: c.print(wall({"mild": 0.2, "none": None, "bad": 0.9})._sessions()))
    assert text.index("bad") < text.index("mild") < text.index("none")
    assert "0.90" in text
    assert "3 live sessions · 0 ended · 15 turn scores" in text


def test_no_text_of_a_turn_is_shown() -> None:
    filled = wall({"s": 0.5})
    text = seen(lambda console: console.print(filled.render()))
    assert "zanzibar" not in text
    assert "newest counsellor turns" in text
    assert "ALERT" in text


@pytest.mark.parametrize("height", [8, 24, 60])
def test_what_stays_in_sight_is_below_a_wall_of_any_height(height: int) -> None:
    filled = wall({f"session-{n:02}": n / 20 for n in range(ROWS + 3)})
    console = Console(width=100, height=height, file=StringIO(), force_terminal=True)
    below = Text("console http://127.0.0.1:8080\n  supervisor")
    lines = console.render_lines(watch.Fitted(filled.render(), below))
    text = ["".join(segment.text for segment in line).rstrip() for line in lines]
    assert len(text) < height or height == 60
    assert [line for line in text if line][-2:] == below.plain.splitlines()
    assert "live sessions" in text[0]


def test_sessions_that_ended_leave_the_wall_and_are_counted() -> None:
    filled = wall({"live": 0.1})
    for message in messages("over", ended=True):
        filled.take(message)
    text = seen(lambda console: console.print(filled._sessions()))
    assert "1 live sessions · 1 ended" in text
    assert "over" not in text


def test_only_the_rows_of_highest_risk_are_shown() -> None:
    filled = wall({f"session-{n:02}": n / 20 for n in range(ROWS + 3)})
    text = seen(lambda console: console.print(filled._sessions()))
    assert "and 3 more" in text
    assert f"session-{ROWS + 2:02}" in text
    assert "session-00" not in text


def test_an_empty_wall_is_quiet() -> None:
    assert "all quiet" in seen(lambda console: console.print(Wall().render()))


def test_a_session_id_that_looks_like_markup_is_shown_literally() -> None:
    filled = wall({HOSTILE: 0.5})
    assert HOSTILE in seen(lambda console: console.print(filled.render()))


@pytest.mark.parametrize("session_id", ["s", HOSTILE])
def test_plain_lines_report_scores_alerts_and_ends(session_id: str) -> None:
    def show(console: Console) -> None:
        for message in messages(session_id, ended=True):
            _print_line(console, message)

    lines = seen(show).splitlines()
    assert [line.split()[0] for line in lines].count("score") == 4
    assert f"ended {session_id} risk" in "\n".join(lines)
    assert any(line.startswith("ALERT") for line in lines)
    assert "zanzibar" not in "\n".join(lines)
    assert all(session_id in line for line in lines)


def test_pending_conditions_are_not_shown_as_alerts() -> None:
    found = [message for message in messages("s", ended=True) if isinstance(message, Alert)]
    states = {message.state for message in found}
    assert AlertState.PENDING in states
    [pending] = [message for message in found if message.state is AlertState.PENDING]
    lapsed = structs.replace(pending, state=AlertState.INACTIVE)
    filled = Wall()
    for message in (*found, lapsed):
        filled.take(message)
    assert [alert.state for alert in filled.alerts] == [AlertState.FIRING, AlertState.RESOLVED]

    def lines(console: Console) -> None:
        for message in (*found, lapsed):
            _print_line(console, message)

    for text in (seen(lambda console: console.print(filled.render())), seen(lines)):
        assert "ALERT firing" in text
        assert "ALERT resolved" in text
        assert "pending" not in text
        assert "inactive" not in text


def test_idle_sessions_are_not_live() -> None:
    filled = wall({"s": 0.5})
    filled.take(structs.replace(filled.cards["s"].score, status=SessionStatus.IDLE))
    assert "0 live sessions · 1 ended" in seen(lambda console: console.print(filled.render()))


@given(st.lists(st.floats(0.0, 1.0), max_size=60))
def test_a_sparkline_has_one_bar_per_recent_value(values: list[float]) -> None:
    line = sparkline(values)
    assert len(line) == min(24, len(values))
    order = [BARS.index(bar) for bar in line]
    assert all(
        (one <= two) or (a > b)
        for one, two, a, b in zip(order, order[1:], values[-24:], values[-24:][1:], strict=False)
    )
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"


def test_an_erased_session_leaves_the_wall() -> None:
    filled = wall({"gone": 0.9, "kept": 0.1})
    filled.forget("gone")
    shown = seen(lambda console: console.print(filled.render()))
    assert "kept" in shown
    assert "gone" not in shown


class Nothing:
    """Topics that stay silent."""

    async def __aenter__(self) -> "Nothing":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open."""

    def __aiter__(self) -> "Nothing":
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration


def test_watching_is_recorded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_settings_kept: object
) -> None:
    monkeypatch.setenv("RAPPORT_DATABASE_URL", f"sqlite:///{tmp_path}/one.db")
    opened: list[bool] = []

    def topics(settings: Settings, from_start: bool) -> Nothing:
        opened.append(from_start)
        return Nothing()

    monkeypatch.setattr(watch, "messages", topics)
    refused = CliRunner().invoke(app, ["watch"])
    assert isinstance(refused.exception, StoreError)
    assert not opened, "without the audit trail nothing is shown"
    store = batches.prepare(open_store(databases.sqlite(tmp_path / "one.db")))
    assert CliRunner().invoke(app, ["watch"]).exit_code == 0
    assert opened
    [entry] = audit.latest(store)
    assert (entry.person, entry.action, entry.detail) == (
        audit.COMMAND_LINE,
        "read scores",
        "rapport watch",
    )
    store.close()
