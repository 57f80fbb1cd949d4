"""Examples in the OpenAPI document, by schema name; a test validates them."""

from typing import Any, Final

from stream_app.core.measures.catalogue import Use, used

_MECHANISM: Final = {"mean": 0.86, "recent_mean": 0.6, "share": 0.57}
_LEVEL: Final = {
    "level": 1,
    "probabilities": [0.12, 0.79, 0.09],
    "rationale": [[0, 31]],
    "rationale_utf16": [[0, 31]],
}
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
    "unscored_turns": 0,
    **{measure.name: measure.example for measure in used(Use.EXPORTS) if not measure.part},
    "empathy_interval": [0.03, 0.25],
    "missed_opportunities": [2, 4],
    "outcome_risks": {"chat_failed": 0.42},
    "mechanisms": {
        "emotional_reactions": _MECHANISM,
        "interpretations": _MECHANISM,
        "explorations": _MECHANISM,
    },
    "miti": {
        "turns": 16,
        "volleys": 14,
        "counts": {
            "question": 6.1,
            "open_question": 4.0,
            "closed_question": 2.1,
            "simple_reflection": 4.2,
            "complex_reflection": 3.4,
            "giving_information": 0.9,
            "seeking_collaboration": 0.7,
            "persuade_with_permission": 0.1,
            "persuade": 0.4,
        },
        "measures": {
            "reflection_to_question": {
                "value": 1.25,
                "fair": 1.0,
                "good": 2.0,
                "manual": "MITI 4.2.1",
                "standing": "fair",
            }
        },
        "mi_adherent": 0.7,
        "mi_non_adherent": 0.4,
        "not_counted": ["affirm", "emphasizing_autonomy", "confront"],
    },
    "risk_by_turn": [[1, 0.31], [3, 0.42], [5, 0.61]],
    "at_risk_since": "2026-03-02T09:29:05Z",
    "firing": ["low-empathy"],
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
                "interpretations": {**_LEVEL, "level": 0, "rationale": [], "rationale_utf16": []},
                "explorations": {
                    **_LEVEL,
                    "level": 2,
                    "rationale": [[24, 45]],
                    "rationale_utf16": [[24, 45]],
                },
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
    "values": {"low_empathy_risk": 0.61},
    "turns": [3, 5],
}
_ALERT: Final = {
    "episode_id": "7a3c0f0e-52f0-5a53-8f5d-6c2d1f1f2c77",
    "rule": "low-empathy",
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
    "values": {"low_empathy_risk": 0.61},
    "turns": [3, 5],
    "protocol": None,
    "judgement": "justified",
    "transitions": [_TRANSITION],
    "actions": [
        {
            "action_id": "b9d1c52e-8c1c-4f7e-9f35-c3f3a6c2f1ab",
            "kind": "acknowledge",
            "reason": "justified",
            "note": "I am following this session",
            "person": "nora",
            "at": "2026-03-02T09:30:00Z",
        }
    ],
}
EXAMPLES: Final[dict[str, Any]] = {
    "SessionCard": _SESSION,
    "TurnRead": _TURN,
    "AlertRead": _ALERT,
    "Acknowledgement": {"reason": "justified", "note": "I am following this session"},
    "NewMute": {"rule": "low-empathy", "session_id": "chat-4711", "minutes": 60},
    "BatchResult": {
        "accepted": 1,
        "refused": 1,
        "results": [
            {
                "index": 0,
                "accepted": True,
                "seq": 0,
                "topic": "dialogue.turns",
                "partition": 2,
                "offset": 9,
                "code": None,
                "detail": None,
            },
            {
                "index": 1,
                "accepted": False,
                "seq": None,
                "topic": None,
                "partition": None,
                "offset": None,
                "code": "schema",
                "detail": "Object missing required field `session_id`",
            },
        ],
    },
}
