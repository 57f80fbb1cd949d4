"""What moved an outcome risk: the parts of its log-odds, told by theme.

Single features say little: a level's mean over the session and over the last turns go together,
and their weights may oppose each other. So the parts of one theme are added up. A feature counts by
how far it is from the middle of its ``bounds`` (the range that training saw, without the tails), so
that what is usual moves nothing.
"""

import math
import re
from collections import defaultdict
from functools import cache
from typing import Final

from stream_app.core.aggregates import PERCEIVED
from stream_app.core.outcomes import USUAL_TURNS, OutcomeModel

TOP: Final = 3
_SUFFIX = re.compile(r"_(mean|recent)$")
_SPEECH = re.compile(r"(client|counsellor)_(mean_log_words|log_words|log_longest|log_recent_words)")
_THEMES: Final = {
    "log_words_per_turn": "length of the counsellor's turns",
    "talk_share": "the counsellor's share of the words",
    "questions_per_turn": "questions",
    "open_question_share": "questions",
    "reflections_per_turn": "reflections",
    "complex_reflection_share": "reflections",
    "log_counsellor_turns": "number of turns",
    "counsellor_log_turns": "number of turns",
    "client_log_turns": "number of turns",
    "client_short_share": "the client's short turns",
    "counsellor_short_share": "the counsellor's short turns",
    "client_repeat_share": "client turns in a row",
    "counsellor_repeat_share": "counsellor turns in a row",
    "satisfaction": "wording of the client's turns",
    "conduct.reflections_per_turn": "reflections",
    "conduct.complex_share": "reflections",
    "conduct.log_reflection_to_question": "reflections for each question",
    "conduct.open_share": "questions",
    "conduct.consistent_share": "advice beside reflections and open questions",
    "conduct.unasked_advice_per_turn": "advice that no question precedes",
    "conduct.input_share": "information and advice",
    "conduct.change_share": "the client's talk of change",
    "question.open": "questions",
    "question.closed": "questions",
    "reflection.simple": "reflections",
    "reflection.complex": "reflections",
    "input.advice": "information and advice",
    "input.information": "information and advice",
    "input.advice_unasked": "advice that no question precedes",
}


@cache
def theme(feature: str) -> str:
    """The theme of a feature, in words.

    >>> theme("expected.interpretations_recent"), theme("client_log_longest")
    ('interpretations', "length of the client's turns")
    """
    if speech := _SPEECH.fullmatch(feature):
        return f"length of the {speech[1]}'s turns"
    base = _SUFFIX.sub("", feature)
    if found := _THEMES.get(feature) or _THEMES.get(base):
        return found
    kind, _, label = base.rpartition(".")
    words = label.replace("_", " ")
    match kind:
        case "talk_type":
            return "the client's talk of change"
        case "strategy":
            return f"strategy {words}"
        case _:
            return f"perceived {words}" if words in PERCEIVED else words


def moved(model: OutcomeModel, values: dict[str, float]) -> list[tuple[str, float]]:
    """The themes that raise the log-odds most, at most three, each with its part."""
    progress = values["log_counsellor_turns"] - math.log1p(USUAL_TURNS)
    parts: dict[str, float] = defaultdict(float)
    for name, least, most, weight, turn_weight in model.terms:
        away = values.get(name, 0.0)
        if name in model.bounds:
            away = max(least, min(most, away)) - (least + most) / 2.0
        parts[theme(name)] += away * (weight + progress * turn_weight)
    ranked = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    return [(name, part) for name, part in ranked[:TOP] if part > 0.0]
