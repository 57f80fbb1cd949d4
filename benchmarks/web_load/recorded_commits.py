"""Records what the store's commits send to PostgreSQL, and sends the same again at little cost.

The database does the same work as for a worker; the process that sends it does not: it builds,
packs, encrypts and encodes the rows while they are recorded. A pipeline cannot contain a COPY, so
its rows are sent as INSERTs, for which the database does somewhat more.
"""

import re
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import psycopg
from msgspec import Struct
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from sqlalchemy import Connection, Engine, event

from stream_app.errors import RapportError
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store

_PLACEHOLDER: Final = re.compile(r"%(?:\((\w+)\))?s")
_INSERT_OUTBOX: Final = f"INSERT INTO {tables.outbox.name} "
_DELETE_OUTBOX: Final = f"DELETE FROM {tables.outbox.name} WHERE id = $1".encode()
_COPY: Final = re.compile(r"COPY (\S+) \((.+)\) FROM STDIN")
_SUCCESS: Final = {ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.PIPELINE_SYNC}


class ReplayFailed(RapportError):
    """The database does not accept a recorded commit."""


class Statement(Struct, frozen=True):
    """A statement as the driver prepares it, with numbered parameters."""

    sql: str
    types: tuple[int, ...]
    formats: tuple[int, ...]


class Call(Struct, frozen=True, array_like=True):
    """One call of the driver: for each row the number of its statement, and encoded parameters.

    ``affected``: rows of the database. ``outbox``: it returns the id of an outbox row.
    """

    statements: list[int]
    rows: list[list[bytes | None]]
    affected: int
    outbox: bool


_decode: Final = msgspec.msgpack.Decoder(list[Call]).decode


class RecordingStore(Store):
    """A store on PostgreSQL whose commits can be recorded."""

    _recording: Connection | None = None

    @contextmanager
    def transaction(self, **options: Any) -> Iterator[Connection]:
        """While commits are recorded, the transaction that will be rolled back."""
        if self._recording is not None:
            yield self._recording
            return
        with super().transaction(**options) as connection:
            yield connection

    @contextmanager
    def reading(self, **options: Any) -> Iterator[Connection]:
        """While commits are recorded, the transaction that will be rolled back."""
        if self._recording is not None:
            yield self._recording
            return
        with super().reading(**options) as connection:
            yield connection

    @contextmanager
    def recording(self) -> Iterator["Recorder"]:
        """Record commits, each on top of those before; at the end they are rolled back."""
        recorder = Recorder()
        with self.engine.connect() as connection, recorder.listening(self.engine):
            self._recording = connection
            try:
                yield recorder
            finally:
                self._recording = None
                connection.rollback()


class Recorder:
    """Collects the statements that an engine executes, with their parameters."""

    def __init__(self) -> None:
        self._numbers: dict[Statement, int] = {}
        self._encoder = Transformer()
        self._calls: list[Call] = []

    @property
    def statements(self) -> list[Statement]:
        """The statements so far, by their numbers."""
        return list(self._numbers)

    @contextmanager
    def listening(self, engine: Engine) -> Iterator[None]:
        """Collect within the ``with`` block."""
        event.listen(engine, "after_cursor_execute", self._note)
        try:
            yield
        finally:
            event.remove(engine, "after_cursor_execute", self._note)

    def take(self) -> bytes:
        """Remove and return the calls so far, packed: objects take several times as much memory."""
        taken, self._calls = self._calls, []
        return msgspec.msgpack.encode(taken)

    def _note(  # SQLAlchemy's
        self,
        _connection: Connection,
        cursor: Any,
        sql: str,
        parameters: Any,
        _context: object,
        executemany: bool,
    ) -> None:
        if copied := _COPY.fullmatch(sql):
            table, columns = copied.groups()
            places = ", ".join(["%s"] * len(columns.split(", ")))
            sql = f"INSERT INTO {table} ({columns}) VALUES ({places})"
        names = _PLACEHOLDER.findall(sql)
        numbers = iter(range(1, len(names) + 1))
        numbered = _PLACEHOLDER.sub(lambda _: f"${next(numbers)}", sql)
        call = Call([], [], cursor.rowcount, numbered.startswith(_INSERT_OUTBOX))
        for row in parameters if executemany else [parameters]:
            values = [row[name] for name in names] if isinstance(row, dict) else row
            encoded = self._encoder.dump_sequence(values, [PyFormat.AUTO] * len(names))
            call.rows.append([None if each is None else bytes(each) for each in encoded])
            types, formats = self._encoder.types or (), self._encoder.formats or ()
            statement = Statement(numbered, tuple(types), tuple(map(int, formats)))
            call.statements.append(self._numbers.setdefault(statement, len(self._numbers)))
        self._calls.append(call)


class Replay:
    """A connection that sends recorded commits, each as one transaction in one pipeline."""

    def __init__(self, url: str, statements: Sequence[Statement]) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._server: PGconn = self._connection.pgconn
        self._server.nonblocking = 1
        self._server.enter_pipeline_mode()
        self._formats = [one.formats for one in statements]
        self._names = [f"s{number}".encode() for number in range(len(statements))]
        for name, one in zip(self._names, statements, strict=True):
            self._server.send_prepare(name, one.sql.encode(), one.types)
        self._server.send_prepare(b"delete", _DELETE_OUTBOX)
        self._finish()

    def commit(self, packed: bytes) -> bytes | None:
        """Execute the calls of one commit; return the id of its outbox row, encoded.

        Raises:
            ReplayFailed: the database refuses a statement, or it affects other rows than before.
        """
        calls = _decode(packed)
        send, names, formats = self._server.send_query_prepared, self._names, self._formats
        self._server.send_query_params(b"BEGIN", None)
        for call in calls:
            for number, row in zip(call.statements, call.rows, strict=True):
                send(names[number], row, formats[number])
        self._server.send_query_params(b"COMMIT", None)
        _, *results, _ = self._finish()
        outbox: bytes | None = None
        place = 0
        for call in calls:
            own = results[place : place + len(call.rows)]
            place += len(own)
            affected = sum(one.command_tuples or 0 for one in own)
            if affected != call.affected:
                raise ReplayFailed(f"{affected} rows instead of {call.affected} were written")
            if call.outbox:
                outbox = own[0].get_value(0, 0)
        return outbox

    def delete_outbox_entry(self, outbox_id: bytes) -> None:
        """Delete an outbox row after its messages were published."""
        self._server.send_query_prepared(b"delete", [outbox_id])
        self._finish()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _finish(self) -> list[PGresult]:
        """Send what is queued; return the result of each statement."""
        server = self._server
        server.pipeline_sync()
        found: list[PGresult] = []
        while True:
            unsent = server.flush()
            select.select([server.socket], [server.socket] if unsent else [], [])
            server.consume_input()
            while not server.is_busy():
                result = server.get_result()
                if result is None:
                    continue  # the end of one statement's results
                if result.status not in _SUCCESS:
                    raise ReplayFailed(result.error_message.decode("utf-8", "replace")[:500])
                if result.status == ExecStatus.PIPELINE_SYNC:
                    return found
                found.append(result)
