"""Asks about one session: consent and redaction first, then one request for each question."""

from collections.abc import Callable, Iterator, Sequence

from stream_app.asking.chat_endpoint import ChatEndpoint
from stream_app.core.rules import proposals as asked
from stream_app.core.rules.proposals import Dropped, Proposal, SentTurn
from stream_app.core.rules.scorecards import Criterion
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.sessions import transcripts
from stream_app.store.sessions.scope import ALL_SESSIONS
from stream_app.store.stream.repository import Store
from stream_app.store.work import proposals

Found = Proposal | Dropped


class Asker:
    """Sends the masked text of permitted sessions to one endpoint, and reads its answers."""

    def __init__(self, store: Store, endpoint: ChatEndpoint) -> None:
        self._store = store
        self._endpoint = endpoint

    @property
    def model(self) -> str:
        """The model that is asked."""
        return self._endpoint.model

    def ask(
        self,
        session_id: str,
        questions: Sequence[Criterion],
        busy: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[Criterion, Found]]:
        """The answers about a session, one after the other.

        Nothing is sent without consent, which is checked before each request, or without text. Each
        reading of a session is audited with the endpoint's host. ``busy`` is called before each
        request.

        Raises:
            EndpointFailed: the endpoint gives no answer.
        """
        turns: list[SentTurn] = []
        for question in questions:
            if not proposals.may_be_asked(self._store, session_id):
                return
            turns = turns or self._read(session_id)
            if not turns:
                return
            sent = asked.messages(question, turns)
            said = self._endpoint.ask(sent, asked.schema(question), busy)
            read = said if isinstance(said, Dropped) else asked.read_answer(said, question, turns)
            yield question, read

    def _read(self, session_id: str) -> list[SentTurn]:
        """Return what client and counsellor said, masked even where redaction is switched off."""
        detail = f"asked questions, sent to {self._endpoint.host}"
        audit.record(
            self._store, audit.COMMAND_LINE, AuditAction.READ_TRANSCRIPT, session_id, detail
        )
        masked = self._store.privacy.masked
        found: list[SentTurn] = []
        last = -1
        while page := transcripts.read(self._store, ALL_SESSIONS, session_id, after_seq=last):
            last = page[-1].seq
            found += [
                SentTurn(turn.seq, turn.role, masked(turn.text))
                for turn in page
                if turn.text is not None and turn.role.is_scored
            ]
        return found
