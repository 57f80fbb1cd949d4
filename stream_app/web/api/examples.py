"""Examples in the API's document, by the name of their schema; a test holds them to it."""

from typing import Any, Final

_MECHANISM: Final = {"mean": 0.86, "recent_mean": 0.6, "share": 0.57}
_LEVEL: Final = {"level": 1, "probabilities": [0.12, 0.79, 0.09], "rationale": [[0, 31]]}
_SESSION: Final = {
    "session_id": "chat-4711",
    "bundle": "rapport-minilm-1.2.0-int8",
    "status": "open",
    "domain": "counselling",
    "channel": "web-chat",
    "team": "north",
    "lang": "en",
    "counsellors": ["9c1185a5c5e9fc54612808977ee8f548"],
    "started_at": "2026-03-02T09:15:00Z",
    "last_activity_at": "2026-03-02T09:31:20Z",
    "ended_at": None,
    "end_reason": None,
    "turns": 14,
    "counsellor_turns": 7,
    "late_turns": 0,
    "withheld_turns": 0,
    "low_empathy_risk": 0.61,
    "predicted_rating": 3.2,
    "mechanisms": {
        "emotional_reactions": _MECHANISM,
        "interpretations": _MECHANISM,
        "explorations": _MECHANISM,
    },
    "empathy_total_mean": 2.6,
    "talk_share": 0.44,
    "reflection_to_question": 0.5,
    "complex_reflection_share": 0.25,
    "open_question_share": 0.67,
    "risk_by_turn": [[1, 0.31], [3, 0.42], [5, 0.61]],
    "at_risk_since": "2026-03-02T09:29:05Z",
    "firing": ["low-empathy-risk"],
    "consent": True,
}
_TURN: Final = {
    "session_id": "chat-4711",
    "seq": 3,
    "turn_id": None,
    "speaker": "9c1185a5c5e9fc54612808977ee8f548",
    "role": "counsellor",
    "text": "That sounds exhausting. What keeps you awake?",
    "occurred_at": "2026-03-02T09:17:12Z",
    "late": False,
    "scores": [
        {
            "bundle": "rapport-minilm-1.2.0-int8",
            "stage": "final",
            "late": False,
            "truncated": False,
            "empathy_total": 3,
            "confidence": 0.82,
            "low_empathy_risk": None,
            "expressed": {
                "emotional_reactions": _LEVEL,
                "interpretations": {**_LEVEL, "level": 0, "rationale": []},
                "explorations": {**_LEVEL, "level": 2, "rationale": [[24, 45]]},
                "question": {"none": 0.03, "open": 0.91, "closed": 0.06},
            },
            "perceived": {"understanding": 0.7},
            "client": {},
            "abstained": ["strategy"],
        }
    ],
}
_TRANSITION: Final = {
    "alert_id": "0d2b8a41-3f6f-5a5f-9a43-0c8f5b1d9c11",
    "state": "firing",
    "previous": "pending",
    "seq": 5,
    "occurred_at": "2026-03-02T09:29:05Z",
    "value": 0.61,
    "threshold": 0.55,
    "reason": "risk 0.61 is at or above 0.55, for 2 turns",
    "values": {"risk": 0.61},
    "turns": [3, 5],
}
_ALERT: Final = {
    "episode_id": "7a3c0f0e-52f0-5a53-8f5d-6c2d1f1f2c77",
    "rule": "low-empathy-risk",
    "severity": "warning",
    "labels": {},
    "session_id": "chat-4711",
    "bundle": "rapport-minilm-1.2.0-int8",
    "team": "north",
    "domain": "counselling",
    "state": "acknowledged",
    "muted": False,
    "episode": 1,
    "began_at": "2026-03-02T09:28:10Z",
    "changed_at": "2026-03-02T09:30:00Z",
    "reason": "risk 0.61 is at or above 0.55, for 2 turns",
    "value": 0.61,
    "threshold": 0.55,
    "values": {"risk": 0.61},
    "turns": [3, 5],
    "transitions": [_TRANSITION],
    "actions": [
        {
            "action_id": "b9d1c52e-8c1c-4f7e-9f35-c3f3a6c2f1ab",
            "kind": "acknowledge",
            "reason": "justified",
            "note": "I am listening in",
            "person": "nora",
            "at": "2026-03-02T09:30:00Z",
        }
    ],
}
EXAMPLES: Final[dict[str, Any]] = {
    "SessionCard": _SESSION,
    "TurnRead": _TURN,
    "AlertRead": _ALERT,
    "Judgement": {"reason": "justified", "note": "I am listening in"},
    "NewMute": {"rule": "low-empathy-risk", "session_id": "chat-4711", "minutes": 60},
    "BatchTaken": {
        "accepted": 1,
        "refused": 1,
        "results": [
            {
                "index": 0,
                "accepted": True,
                "topic": "dialogue.turns",
                "partition": 2,
                "offset": 9,
                "code": None,
                "detail": None,
            },
            {
                "index": 1,
                "accepted": False,
                "topic": None,
                "partition": None,
                "offset": None,
                "code": "schema",
                "detail": "Object missing required field `seq`",
            },
        ],
    },
}
