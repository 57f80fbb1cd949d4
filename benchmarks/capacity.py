"""Capacity arithmetic for many sessions: from sizes, speeds and assumptions to figures.

Every figure shows its formula. A figure is unknown if any of its inputs was not measured.
"""

from collections.abc import Callable
from math import ceil
from typing import Any, Final

from msgspec import Struct

from benchmarks.cost import Cost
from benchmarks.sizes import Sizes

DAY: Final = 86_400
MEGA, GIGA, TERA = 1e6, 1e9, 1e12


class Assumptions(Struct, frozen=True):
    """Assumptions of the plan, none of them measured here.

    ``busy``: planned share of a worker's maximum rate. ``broker`` and ``log``: sustained MB/s of
    one Kafka broker, replication included, and of one PostgreSQL primary's write-ahead log.
    ``months``: of turns and scores that are kept; the latest ``unarchived`` of them in the
    database, the others in the archive. ``accelerator``: assumed turns per second of a worker on
    one, until it is measured.
    """

    sessions: int = 1_000_000
    seconds: float = 10.0
    busy: float = 0.7
    replicas: int = 3
    log_hours: int = 24
    broker: float = 200.0
    log: float = 100.0
    months: int = 12
    unarchived: int = 2
    sessions_a_viewer: int = 200
    streams: int = 500
    accelerator: float = 8000.0


class Speeds(Struct, frozen=True):
    """Measured speeds of this release; None where not measured.

    ``worker``: CPU cost of a turn with all of a worker on one core. ``nano``: name and cost of the
    smallest other bundle; its ONNX sessions were measured, the rest is the default's.
    ``accelerator``: turns per second of a worker. ``memory``: MiB of an idle worker, and bytes per
    cached session.
    """

    tokens: float
    worker: Cost | None = None
    nano: tuple[str, Cost] | None = None
    accelerator: float | None = None
    memory: tuple[float, float] | None = None


class Row(Struct, frozen=True):
    """One figure: ``how`` is its formula, ``what`` the result."""

    name: str
    how: str
    what: float | None
    unit: str = ""


class Section(Struct, frozen=True):
    """Rows that belong together."""

    title: str
    rows: list[Row]


def plan(a: Assumptions, size: Sizes, speed: Speeds) -> list[Section]:
    """All sections; ``tables`` and ``topics`` in the order of ``size``."""
    rate = a.sessions / a.seconds
    return [
        Section(
            "Load",
            [
                Row(
                    "turns",
                    f"{n(a.sessions)} sessions / {n(a.seconds)} s",
                    rate,
                    "turns/s",
                ),
                Row(
                    "tokens",
                    f"{n(rate)} × {n(speed.tokens)}",
                    rate * speed.tokens,
                    "tokens/s",
                ),
            ],
        ),
        Section("Workers", _workers(a, speed, rate)),
        Section("Kafka", _kafka(a, size, speed, rate)),
        Section("PostgreSQL, writing", _writing(a, size, rate)),
        Section("PostgreSQL, storage", _storage(a, size, rate)),
        Section("Memory", _in_memory(a, size, speed, rate)),
        Section("Console", _console(a, size, rate)),
        Section("Bottlenecks", _limits(a, size, rate)),
    ]


def _workers(a: Assumptions, speed: Speeds, rate: float) -> list[Row]:
    rows = []
    for title, found in (
        ("default bundle", speed.worker),
        speed.nano or ("a smaller bundle", None),
    ):
        one = _of(lambda c: c.rate(speed.tokens), found)
        how = (
            "not measured"
            if found is None
            else f"1 / ({n(1e6 * found.a)} µs + {n(speed.tokens)} × {n(1e6 * found.b)} µs)"
        )
        rows.append(Row(f"one worker, one core, {title}", how, one, "turns/s"))
        rows.append(
            Row(
                f"workers and cores, {title}",
                f"{n(rate)} / ({n(one)} × {a.busy})",
                _of(lambda r: ceil(rate / (r * a.busy)), one),
            )
        )
    measured = speed.accelerator is not None
    one = speed.accelerator if speed.accelerator is not None else a.accelerator
    origin = "measured" if measured else "**assumed, not measured**"
    rows += [
        Row("one worker, one accelerator", origin, one, "turns/s"),
        Row(
            f"accelerators{'' if measured else ', under this assumption'}",
            f"{n(rate)} / ({n(one)} × {a.busy})",
            ceil(rate / (one * a.busy)),
        ),
    ]
    return rows


def _kafka(a: Assumptions, size: Sizes, speed: Speeds, rate: float) -> list[Row]:
    out = sum(topic.messages * topic.bytes for topic in size.topics.values())
    incoming = rate * size.turn_in / MEGA
    outgoing = rate * out / MEGA
    written = (incoming + outgoing) * a.replicas
    workers = _of(lambda c: ceil(rate / (c.rate(speed.tokens) * a.busy)), speed.worker)
    each = " + ".join(
        f"{n(topic.messages)} × {n(topic.bytes)} B {name}" for name, topic in size.topics.items()
    )
    return [
        Row("in", f"{n(rate)} × {n(size.turn_in)} B", incoming, "MB/s"),
        Row("out, a turn", each, out, "B"),
        Row("out", f"{n(rate)} × {n(out)} B", outgoing, "MB/s"),
        Row(
            "written, with copies",
            f"({n(incoming)} + {n(outgoing)}) × {a.replicas}",
            written,
            "MB/s",
        ),
        Row(
            f"kept for {a.log_hours} h",
            f"{n(written)} MB/s × {a.log_hours * 3600:,} s",
            written * a.log_hours * 3600 * MEGA / TERA,
            "TB",
        ),
        Row(
            "brokers",
            f"{n(written)} / {n(a.broker)} MB/s (assumed)",
            ceil(written / a.broker),
        ),
        Row("partitions of the turns topic, minimum", "one per CPU worker", workers),
        Row(
            "turns in one partition",
            f"{n(rate)} / {n(workers)}",
            _of(lambda w: rate / w, workers),
            "turns/s",
        ),
    ]


def _writing(a: Assumptions, size: Sizes, rate: float) -> list[Row]:
    rows = []
    for name, table in size.tables.items():
        each = table.inserted + table.updated + table.deleted
        rows.append(Row(f"`{name}`", f"{n(rate)} × {n(each)} rows", rate * each, "rows/s"))
    total = sum(t.inserted + t.updated + t.deleted for t in size.tables.values())
    log = rate * size.log / MEGA
    rows += [
        Row("all tables", f"{n(rate)} × {n(total)} rows", rate * total, "rows/s"),
        Row("write-ahead log", f"{n(rate)} × {n(size.log)} B", log, "MB/s"),
        Row(
            "of which session states, minimum",
            f"{n(rate)} × ({n(size.state)} B + a turn of {n(size.turn)} B)",
            rate * (size.state + size.turn) / MEGA,
            "MB/s",
        ),
        Row("primaries", f"{n(log)} / {n(a.log)} MB/s (assumed)", ceil(log / a.log)),
    ]
    return rows


def _with_archive(a: Assumptions, size: Sizes, rate: float, month: float) -> list[Row]:
    """What ``rapport archive`` at the beginning of each month leaves; ``month``: TB of rows."""
    there, others = a.unarchived, a.months - a.unarchived
    each = size.archived
    archived = None if each is None else rate * DAY * 30 * each / TERA
    of_each = "bytes of an archived turn" if each is None else f"{n(each)} B"
    return [
        Row(f"{there} months in the database", f"{n(month)} TB × {there}", month * there, "TB"),
        Row(
            "a month in the archive",
            f"{n(rate)} × {DAY:,} s × 30 × {of_each}",
            archived,
            "TB",
        ),
        Row(
            f"{a.months} months with the archive",
            f"{n(month * there)} TB + {others} × "
            + ("…" if archived is None else f"{n(archived)} TB"),
            None if archived is None else month * there + archived * others,
            "TB",
        ),
    ]


def _storage(a: Assumptions, size: Sizes, rate: float) -> list[Row]:
    rows, a_day = [], 0.0
    state, turn = _row_bytes(size, "session_states"), _row_bytes(size, "window_turns")
    for name, table in size.tables.items():
        if not table.kept:
            continue
        daily = rate * DAY * table.kept * table.bytes / TERA
        a_day += daily
        how = f"{n(rate)} × {DAY:,} s × {n(table.kept)} rows × {n(table.bytes)} B"
        rows.append(Row(f"`{name}`, a day", how, daily, "TB"))
    month = a_day * 30
    return [
        *rows,
        Row("all growing tables, a day", "sum", a_day, "TB"),
        Row("a partition of one month", f"{n(a_day)} TB × 30", month, "TB"),
        Row(
            f"{a.months} months, all in the database",
            f"{n(month)} TB × {a.months}",
            month * a.months,
            "TB",
        ),
        *_with_archive(a, size, rate, month),
        Row(
            "states of open sessions",
            f"{n(a.sessions)} × ({n(state)} B + (a base + {n(size.held)} turns) × {n(turn)} B)",
            a.sessions * (state + (1 + size.held) * turn) / GIGA,
            "GB",
        ),
    ]


def _row_bytes(size: Sizes, table: str) -> float:
    return size.tables[table].bytes if table in size.tables else 0.0


def _in_memory(a: Assumptions, size: Sizes, speed: Speeds, rate: float) -> list[Row]:
    workers = _of(lambda c: ceil(rate / (c.rate(speed.tokens) * a.busy)), speed.worker)
    each = _of(lambda w: a.sessions / w, workers)
    memory = _of(lambda m: m, speed.memory)
    return [
        Row(
            "state of a session, packed",
            f"{n(size.state)} B + base {n(size.base)} B + {n(size.held)} turns × {n(size.turn)} B",
            (size.state + size.base + size.held * size.turn) / 1000,
            "kB",
        ),
        Row("sessions of one worker", f"{n(a.sessions)} / {n(workers)}", each),
        Row(
            "memory of one worker",
            "not measured"
            if memory is None
            else f"{n(memory[0])} MiB + {n(each)} × {n(memory[1] / 1000)} kB",
            _of(lambda m, s: m[0] + s * m[1] / 2**20, memory, each),
            "MiB",
        ),
    ]


def _console(a: Assumptions, size: Sizes, rate: float) -> list[Row]:
    messages = sum(topic.messages for topic in size.topics.values())
    viewers = ceil(a.sessions / a.sessions_a_viewer)
    a_viewer = a.sessions_a_viewer / a.seconds
    return [
        Row("viewers", f"one per {a.sessions_a_viewer} sessions (assumed)", viewers),
        Row(
            "web processes for their streams",
            f"{n(viewers)} / {a.streams}",
            ceil(viewers / a.streams),
        ),
        Row(
            "events for one viewer",
            f"{n(a_viewer)} turns/s × {n(messages)}",
            a_viewer * messages,
            "/s",
        ),
        Row(
            "to one browser",
            f"{n(a_viewer)} × {n(size.live)} B",
            a_viewer * size.live / 1000,
            "kB/s",
        ),
        Row("to all browsers", f"× {n(viewers)}", viewers * a_viewer * size.live / MEGA, "MB/s"),
        Row(
            "messages that each web process reads",
            f"{n(rate)} × {n(messages)}, all of them",
            rate * messages,
            "/s",
        ),
        Row(
            "cores for them, in each web process",
            f"{n(rate * messages)} × {n(size.read)} µs, before fan-out",
            rate * messages * size.read / 1e6,
            "cores",
        ),
    ]


def _limits(a: Assumptions, size: Sizes, rate: float) -> list[Row]:
    """The scarcest resources of one deployment first, then the number of deployments needed."""
    messages = sum(topic.messages for topic in size.topics.values())
    singles = [
        (
            "one PostgreSQL primary",
            a.log * MEGA / size.log,
            f"{n(a.log)} MB/s / {n(size.log)} B",
        ),
        (
            "one web process, which reads all topics",
            1e6 / (messages * size.read),
            f"1 core / ({n(messages)} × {n(size.read)} µs), at best",
        ),
    ]
    singles.sort(key=lambda item: item[1])
    least = singles[0][1]
    cells = ceil(rate / least)
    return [
        *(Row(name, how, most, "turns/s") for name, most, how in singles),
        Row(
            "deployments, each with its own sessions",
            f"{n(rate)} / {n(least)}",
            cells,
        ),
        Row("sessions in each", f"{n(a.sessions)} / {n(cells)}", a.sessions / cells),
    ]


def _of(sum_of: Callable[..., Any], *values: Any) -> Any:
    """The result, or None if an input was not measured."""
    return None if any(value is None for value in values) else sum_of(*values)


def n(value: float | None) -> str:
    """Format with three significant digits and thousands separators.

    >>> [n(value) for value in (100_000.0, 1234.4, 12.345, 0.0123456, 0.0, None)]
    ['100,000', '1,234', '12.3', '0.0123', '0', '?']
    """
    if value is None:
        return "?"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
