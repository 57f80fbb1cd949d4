"""A fake scorer, and builders of events."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from stream_app.contracts.events import Role
from stream_app.contracts.scores import MECHANISMS, Expressed, Level, Stage, TurnScore
from stream_app.core.measures.aggregates import MILLION, Contribution
from stream_app.core.measures.empathy import AnswerModel, DomainEmpathy, EmpathyModel
from stream_app.core.measures.exchanges import Weighing
from stream_app.core.measures.heads import Head
from stream_app.core.measures.outcomes import OutcomeModel
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.pipeline.pipeline import Received, Source, receive
from stream_app.core.session.ports import Encoding, HeadScores

START = datetime(2026, 1, 5, 10, tzinfo=UTC)


class ReadByFirstWord:
    """A fake ``LanguageReader``: what begins with Hola is Spanish; one word says too little."""

    def shares(self, text: str) -> dict[str, float]:
        if len(text.split()) < 2:
            return {}
        spanish = 0.999 if text.startswith("Hola") else 0.001
        return {"en": 1.0 - spanish, "es": spanish}


class FakeScorer:
    """Scores by hashing: any change of the turn or its window changes the scores."""

    bundle_id = "fake-1-fp32"
    window = (3, 3)
    heads: ClassVar[list[Head]] = []
    empathy = EmpathyModel(
        domains={
            "peer-support": DomainEmpathy(
                service="peer support",
                messages="emotional messages",
                opportunity={"distress": 1.0},
                answer=AnswerModel(0.0, dict.fromkeys(MECHANISMS, 0.5)),
                weighing=Weighing(floor=0.2, opportunity=0.5, answered=0.6),
                mean=0.5,
                between=0.2,
                within=0.3,
                quantiles=[0.1, 0.4, 0.5, 0.6, 0.9],
                low=0.3,
                answered_share=0.75,
            )
        },
        approaches={},
        default="peer-support",
        change=0.05,
        min_answers=1,
        enter=0.4,
        exit=0.3,
    )
    outcomes: ClassVar[dict[str, OutcomeModel]] = {
        "chat_failed": OutcomeModel(
            intercept=0.5,
            weights={"counsellor_log_words": 0.2},
            domain="peer-support",
            min_counsellor_turns=1,
            closing=OutcomeModel(
                intercept=0.5, weights={"client_log_words": -0.3}, domain="peer-support"
            ),
        )
    }

    def encode(self, texts: list[str], roles: list[Role] | None = None) -> list[Encoding]:
        """The text's hash; every rationale is the first word."""
        return [
            Encoding(
                vectors=hashlib.sha256(text.encode()).digest(),
                rationales={name: [(0, len(text.split()[0]))] for name in MECHANISMS},
                truncated=len(text) > 1000,
            )
            for text in texts
        ]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        """Scores from a hash of all inputs of the heads."""
        return [self._score(request) for request in requests]

    def _score(self, request: ScoringRequest) -> HeadScores:
        seen = hashlib.sha256(request.turn.vectors + request.turn.role.value.encode())
        for neighbour in request.context:
            seen.update(neighbour.turn.vectors)
            seen.update(f"{neighbour.turn.role.value}{neighbour.distance}".encode())
        digest = seen.digest()
        if request.turn.role is Role.CLIENT:
            share = digest[0] / 255
            talk = {"change": share, "neutral": 1 - share, "sustain": 0.0}
            distress = digest[1] / 255
            client = {"talk_type": talk, "distress": {"no": 1 - distress, "yes": distress}}
            return HeadScores(Expressed(), {}, client, max(share, 1 - share), [])
        levels = [byte % 3 for byte in digest[:3]]
        return HeadScores(
            Expressed(
                **{
                    name: Level(
                        level,
                        [0.8 if place == level else 0.1 for place in range(3)],
                        request.turn.rationales[name] if level else [],
                    )
                    for name, level in zip(MECHANISMS, levels, strict=True)
                },
                empathy_total=sum(levels),
                question={"none": 0.2, ("open", "closed")[digest[3] % 2]: 0.8},
                reflection={"none": 0.2, ("simple", "complex")[digest[4] % 2]: 0.8},
                input={"none": 0.2, ("information", "advice", "negotiation")[digest[6] % 3]: 0.8},
            ),
            {},
            {},
            digest[5] / 255,
            [],
        )


def contribution(
    seq: int,
    levels: tuple[int, int, int] = (0, 0, 0),
    question: str | None = None,
    reflection: str | None = None,
    evidence: dict[str, int] | None = None,
) -> Contribution:
    """The contribution of a counsellor turn with certain levels."""
    emotional, interpretations, explorations = levels
    return Contribution(
        seq=seq,
        levels=levels,
        expected=(emotional * MILLION, interpretations * MILLION, explorations * MILLION),
        shown=(
            (emotional > 0) * MILLION,
            (interpretations > 0) * MILLION,
            (explorations > 0) * MILLION,
        ),
        question=question,
        reflection=reflection,
        evidence=evidence or {},
    )


def scored(role: Role, seq: int = 0, **parts: Any) -> TurnScore:
    """A final score with only the given heads."""
    named = {"expressed": Expressed(), "perceived": {}, "client": {}, "abstained": [], **parts}
    return TurnScore(
        session_id="s",
        seq=seq,
        stage=Stage.FINAL,
        bundle="b",
        role=role,
        occurred_at=START,
        late=False,
        truncated=False,
        confidence=0.0,
        **named,
    )


def turn(session: str = "s", seq: Any = 0, **changes: Any) -> bytes:
    """A turn as JSON; the client has the even numbers."""
    place = seq if isinstance(seq, int) else 0
    return json.dumps(
        {
            "type": "turn",
            "session_id": session,
            "seq": seq,
            "speaker_id": "c" if place % 2 == 0 else "h",
            "role": "client" if place % 2 == 0 else "counsellor",
            "text": f"I say this at {seq} in {session}.",
            "occurred_at": (START + timedelta(seconds=5 * min(place, 10_000))).isoformat(),
            "consent": True,
            **changes,
        }
    ).encode()


def edit(session: str = "s", seq: int | None = 0, **changes: Any) -> bytes:
    """An edit of a turn as JSON."""
    return _revision("turn_edit", session, seq, **{"text": f"I mean this at {seq}.", **changes})


def delete(session: str = "s", seq: int | None = 0, **changes: Any) -> bytes:
    """A deletion of a turn as JSON."""
    return _revision("turn_delete", session, seq, **changes)


def _revision(kind: str, session: str, seq: int | None, **changes: Any) -> bytes:
    at = (START + timedelta(minutes=10)).isoformat()
    body: dict[str, Any] = {"type": kind, "session_id": session, "occurred_at": at}
    if seq is not None:
        body["seq"] = seq
    return json.dumps({**body, **changes}).encode()


def end(session: str = "s", **changes: Any) -> bytes:
    """The end of a session as JSON."""
    at = (START + timedelta(hours=1)).isoformat()
    return json.dumps(
        {"type": "session_end", "session_id": session, "occurred_at": at, **changes}
    ).encode()


def consent(status: str, session: str = "s", **changes: Any) -> bytes:
    """A consent record as JSON."""
    at = (START + timedelta(minutes=30)).isoformat()
    body = {"type": "consent", "session_id": session, "status": status}
    return json.dumps({**body, "occurred_at": at, **changes}).encode()


def outcome(session: str = "s", **changes: Any) -> bytes:
    """A rating as JSON."""
    at = (START + timedelta(hours=2)).isoformat()
    body = {"type": "outcome", "session_id": session, "kind": "rating", "value": 2.0}
    return json.dumps({**body, "occurred_at": at, **changes}).encode()


def questionnaire(session: str = "s", **changes: Any) -> bytes:
    """A PHQ-9 as JSON."""
    at = (START + timedelta(hours=2)).isoformat()
    body = {"type": "questionnaire", "session_id": session, "instrument": "phq-9"}
    return json.dumps({**body, "items": [1] * 9, "occurred_at": at, **changes}).encode()


def received(log: list[bytes], first_offset: int = 0) -> list[Received]:
    """Events as received from the log."""
    return [one(raw, first_offset + i) for i, raw in enumerate(log)]


def one(raw: bytes, offset: int) -> Received:
    """One event as received from the log."""
    return receive(Source("turns", 0, offset), raw)
