"""Turns without a score for their language, in a sentence."""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from babel import Locale

from stream_app.core.rules.languages import normalised
from stream_app.core.session.turn_languages import primary

ANOTHER: Final = "another language"


def unscored_sentence(counts: Mapping[str | None, int]) -> str | None:
    """How many turns in which languages were not scored; None without any.

    >>> unscored_sentence({"es": 2, None: 1, "es-mx": 1})
    '3 turns in Spanish and 1 turn in another language were not scored.'
    >>> unscored_sentence({"fr": 1}), unscored_sentence({})
    ('1 turn in French was not scored.', None)
    """
    found: Counter[str] = Counter()
    for tag, turns in counts.items():
        found[language_name(tag)] += turns
    if not found:
        return None
    parts = [
        f"{turns} turn{'s' if turns > 1 else ''} in {name}" for name, turns in found.most_common()
    ]
    listed = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    return f"{listed} {'were' if found.total() > 1 else 'was'} not scored."


def language_name(tag: str | None) -> str:
    """The name of a tag's language, without its region.

    >>> [language_name(tag) for tag in ("pt-BR", "tlh", "qzz", None)]
    ['Portuguese', 'Klingon', 'another language', 'another language']
    """
    known = normalised(tag)
    return _names().get(primary(known), ANOTHER) if known is not None else ANOTHER


@lru_cache(1)
def _names() -> Mapping[str, str]:
    return dict(Locale("en").languages)
