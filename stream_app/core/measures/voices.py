"""The counsellors of a session: each is judged by their own answers.

While one counsellor speaks, the session's exchanges are theirs, and nothing is kept here. When
another one begins to speak, the exchanges so far are the first one's, and the successor begins with
the client's turns that nobody has answered. From then on, an exchange counts for each counsellor
who answers it. The session's own exchanges have the turns of all.
"""

from typing import Final

from msgspec import Struct, field

from stream_app.contracts.events import Role
from stream_app.core.measures.exchanges import Exchanges, Weighing
from stream_app.core.measures.window import WindowTurn

KEPT: Final = 8
"""Counsellors of a session that are kept: those who spoke last."""


class Voice(Struct, array_like=True):
    """A counsellor's turns that were counted, and the exchanges that they answered."""

    turns: int = 0
    exchanges: Exchanges = field(default_factory=Exchanges)


class Voices(Struct, array_like=True):
    """The counsellors of a session by a digest of their id; empty while there is only one.

    ``speaker``: who spoke last; 0 is nobody.
    """

    speaker: int = 0
    known: dict[int, Voice] = field(default_factory=dict)

    @property
    def speaking(self) -> Voice | None:
        """The counsellor who speaks; None while the session has only one."""
        return self.known.get(self.speaker)

    def hear(self, speaker: int, turns: int, exchanges: Exchanges) -> bool:
        """Let a counsellor speak, before their turn is observed; whether another one did before.

        ``turns``, ``exchanges``: of the session so far.
        """
        before, self.speaker = self.speaker, speaker
        if before in (0, speaker):
            return False
        if not self.known:
            self.known[before] = Voice(turns, exchanges.copy())
        voice = self.known.pop(speaker, None) or Voice(0, exchanges.unanswered())
        self.known[speaker] = voice  # the last one is who spoke last
        while len(self.known) > KEPT:
            del self.known[next(iter(self.known))]
        return True

    def observe(self, turn: WindowTurn, value: int, after: int, weighing: Weighing) -> None:
        """Add a scored turn to whom it concerns, or replace its provisional value."""
        for name, voice in self.known.items():
            if turn.role is Role.CLIENT or name == turn.speaker:
                voice.exchanges.observe(
                    turn.role, turn.seq, value, after, weighing, turn.client, turn.named
                )

    def count(self, speaker: int, client: int) -> None:
        """Count a counsellor's turn: the client whom it answers need not wait for another one."""
        for name, voice in self.known.items():
            if name == speaker:
                voice.turns += 1
            else:
                voice.exchanges.share(client)

    def forget(self) -> None:
        """Note that turns are withheld."""
        for voice in self.known.values():
            voice.exchanges.forget()
