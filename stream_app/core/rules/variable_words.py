"""Names and formatted values of rule variables, for people."""

import re
from collections.abc import Mapping
from typing import Final

from stream_app.core.measures.catalogue import Use, used
from stream_app.core.rules.variables import CATALOGUE, OLD_NAMES, Kind

_NAMES: Final = {
    **{each.name: each.title[0].lower() + each.title[1:] for each in used(Use.RULES)},
    "risk_rise": "rise of the risk",
    "bundle.enter": "threshold",
    "bundle.exit": "threshold for the end",
    "index_recent": "empathy index, latest exchanges",
    "empathy.recent": "empathy, last five turns",
    "empathy.earlier": "empathy, turns before",
    "empathy.drop": "drop of empathy",
    "waiting": "the client waits",
    "waiting_seconds": "the client has waited",
    "answer_seconds": "the client had waited",
    "waiting_distress": "distress of the waiting client",
    "crisis_language": "crisis language",
    "client_turns_since_crisis": "client turns since crisis language",
    "client.satisfaction": "satisfaction of the client",
    "seconds": "length of the session",
    "turn.total": "levels of the turn, total",
}
_PARTS: Final = {"mean": "mean", "recent": "last five turns", "share": "share of turns"}


def in_words(name: str) -> str:
    """Display name of a variable.

    >>> in_words("empathy.drop"), in_words("outcome.chat_failed")
    ('drop of empathy', 'predicted chat failed')
    >>> in_words("emotional_reactions_recent_mean"), in_words("turn.explorations")
    ('emotional reactions, last five turns', 'explorations of the turn')
    >>> in_words("empathy_percentile"), in_words("index_percentile")
    ('percentile of the empathy index', 'percentile of the empathy index')
    >>> in_words("expressed.warmth.strong"), in_words("client.mood.low.recent")
    ('strong (warmth)', 'low (mood), last five turns')
    >>> in_words("baseline.channel.risk_mean"), in_words("baseline.counsellor.empathy_sd")
    ('usual risk of the channel', 'spread of the empathy of the counsellor')
    >>> in_words("intent.ask_contact"), in_words("intent.ask_contact.turns")
    ('intent ask contact', 'turns with ask contact')
    """
    variable = CATALOGUE.get(name)
    name = variable.now or name if variable else name
    words = _NAMES.get(name) or name.replace("_", " ")
    match words.split("."):
        case ["outcome", what]:
            words = f"predicted {what}"
        case ["expressed" | "perceived" | "client", head, label]:
            words = f"{label} ({head})"
        case ["expressed" | "perceived" | "client", head, label, part] if part in _PARTS:
            words = f"{label} ({head}), {_PARTS[part]}"
        case ["intent", name, *turns]:
            words = f"turns with {name}" if turns else f"intent {name}"
        case ["turn", head]:
            words = f"{head} of the turn"
        case ["client", talk]:
            words = f"{talk} talk of the client"
        case ["baseline", whose, measure] if measure.endswith(" mean"):
            words = f"usual {measure.removesuffix(' mean')} of the {whose}"
        case ["baseline", whose, measure]:
            words = f"spread of the {measure.removesuffix(' sd')} of the {whose}"
    return words.replace(".", " ")


def present(values: Mapping[str, float]) -> dict[str, float]:
    """Values of an alert without those that are there under the present name, too.

    >>> present({"low_empathy_risk": 0.6, "risk": 0.6, "index": 0.2})
    {'low_empathy_risk': 0.6, 'index': 0.2}
    """
    old = {OLD_NAMES.get(name) for name in values}
    return {name: value for name, value in values.items() if name not in old}


def is_flag(name: str) -> bool:
    """Whether the variable is true or false."""
    variable = CATALOGUE.get(name)
    return variable is not None and variable.kind is Kind.FLAG


def is_elapsed(name: str) -> bool:
    """Whether the variable is a time that keeps passing after it was read.

    >>> is_elapsed("waiting_seconds"), is_elapsed("low_empathy_risk")
    (True, False)
    """
    variable = CATALOGUE.get(name)
    return variable is not None and variable.unit == "s"


def scale(name: str) -> str:
    """The scale of a variable that is neither a share nor a probability; otherwise empty.

    >>> scale("empathy.drop"), scale("waiting_seconds"), scale("empathy_percentile")
    ('−6 to 6', 's', '0–100')
    >>> scale("low_empathy_risk"), scale("waiting"), scale("turns")
    ('', '', '')
    """
    variable = CATALOGUE.get(name)
    if variable is None or variable.unit in ("", "0-1", "turns"):
        return ""
    return re.sub(r"(?<=\d)-(?=\d)", "–", variable.unit).replace("-", "−")


def told(name: str, value: float) -> str:
    """Format the value of a variable.

    >>> told("talk_share", 0.3049), told("turns", 12.0), told("waiting", 0.0)
    ('0.30', '12', 'no')
    >>> told("intent.ask_contact", 0.75), told("intent.ask_contact.turns", 2.0)
    ('0.75', '2')
    """
    variable = CATALOGUE.get(name)
    if variable is None:
        counts = name.startswith("intent.") and name.endswith(".turns")
        return f"{value:.{0 if counts else 2}f}"
    if variable.kind is Kind.FLAG:
        return "yes" if value else "no"
    return f"{value:.{variable.digits}f}"
