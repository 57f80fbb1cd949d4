"""What a recording has said of a session so far, for edits and deletions of its turns.

Kept only of sessions with an edit or a deletion, which a first pass over the file finds: a
recording may be larger than memory. Of a pipe, which can be read once, all sessions are kept.
"""

from collections import defaultdict
from collections.abc import Container, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec import structs

from stream_app.contracts.events import peek_session_id, utc
from stream_app.contracts.plausible import EARLIEST
from stream_app.contracts.scores import Stage, TurnScore
from stream_app.core.session.batch import BatchResult, StoredTurn
from stream_app.core.session.past import PastSession, PastTurn
from stream_app.recordings.event_files import raw_events

_REVISIONS: Final = (b'"turn_edit"', b'"turn_delete"')


class EverySession:
    """A container of all ids."""

    def __contains__(self, session_id: object) -> bool:
        return True


EVERY_SESSION: Final = EverySession()


def revised_sessions(sources: Sequence[Path]) -> Container[str]:
    """The sessions of which these files edit or delete a turn; all, if one can be read only once.

    Raises:
        InputError: a file cannot be read.
    """
    if not all(source.is_dir() or source.is_file() for source in sources):
        return EVERY_SESSION
    found = (
        peek_session_id(raw)
        for source in sources
        if source.is_file()  # a ConvoKit folder has neither
        for raw in raw_events(source)
        if any(name in raw for name in _REVISIONS)
    )
    return {session_id for session_id in found if session_id is not None}


class PastOfFile:
    """The turns and scores of some sessions, by session."""

    def __init__(self, sessions: Container[str]) -> None:
        self.sessions = sessions
        self._turns: defaultdict[str, dict[int, PastTurn]] = defaultdict(dict)
        self._scores: defaultdict[str, dict[tuple[int, Stage], TurnScore]] = defaultdict(dict)
        self._arrived = 0

    def of(self, session_id: str) -> PastSession:
        """What is known of a session."""
        turns = self._turns[session_id]
        scores = self._scores[session_id]
        return PastSession([turns[seq] for seq in sorted(turns)], list(scores.values()))

    def scores(self) -> list[TurnScore]:
        """The scores that hold, by session and in the order of their first ones."""
        return [score for of_one in self._scores.values() for score in of_one.values()]

    def note(self, result: BatchResult) -> None:
        """Keep what a batch has added and changed."""
        for stored in result.turns:
            if stored.turn.session_id in self.sessions:
                self._turns[stored.turn.session_id][stored.turn.seq] = self._turn(stored)
        if (revised := result.revised) is not None:
            turns = self._turns[revised.session_id]
            if revised.text is None:
                del turns[revised.seq]
            else:
                turns[revised.seq] = structs.replace(turns[revised.seq], text=revised.text)
            for key in revised.stale:
                self._scores[revised.session_id].pop(key, None)
        for score in result.turn_scores:
            if score.session_id in self.sessions:
                self._scores[score.session_id][score.seq, score.stage] = score

    def _turn(self, stored: StoredTurn) -> PastTurn:
        turn = stored.turn
        self._arrived += 1
        return PastTurn(
            seq=turn.seq,
            role=turn.speaker_role,
            text=turn.text,
            occurred_at=utc(turn.occurred_at),
            words=None,
            late=stored.late,
            arrived_at=EARLIEST + timedelta(microseconds=self._arrived),
            unscored=stored.unscored,
            turn_id=turn.turn_id,
            speaker=turn.speaker_id,
        )
