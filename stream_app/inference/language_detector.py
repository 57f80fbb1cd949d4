"""Reads which language a text is in, with py3langid's model, which comes with the package.

Why this detector, and what it costs: docs/architecture.md. Shares are of the words that the speaker
says, without markup and quotes.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from stream_app.plain_text.copies import spoken

CHARS: Final = 1000
"""Read of a text: more changes nothing, and takes longer."""
WORDS: Final = 3
"""Fewer say too little: one word in six would be taken for another language."""
LETTERS: Final = 4
"""As many say enough in another script."""
LATIN_ENDS: Final = "\u0250"
DIALECTS: Final = {"pcm": "en"}
"""Languages of the model that are the English of some speakers: Nigerian Pidgin."""
NO_LANGUAGE: Final = "zxx"


class TextLanguages:
    """The detector as a ``LanguageReader``; loaded with the first text that says enough."""

    def shares(self, text: str) -> Mapping[str, float]:
        """The shares of all languages; empty if the text says too little, or is no language.

        >>> shares = TextLanguages().shares("No puedo dormir y todo me da miedo")
        >>> max(shares, key=shares.get), shares["en"] < 0.01
        ('es', True)
        >>> [TextLanguages().shares(text) for text in ("ok", "Maria Lopez", "😀 😀 😀", "я")]
        [{}, {}, {}, {}]
        """
        words = spoken(text[: 4 * CHARS]).text[:CHARS]
        if not _says_enough(words):
            return {}
        ranked = _model().rank(words.lower() if _shouts(words) else words)
        if ranked[0][0] == NO_LANGUAGE:
            return {}
        found: dict[str, float] = {}
        for language, share in ranked:
            name = DIALECTS.get(language, language)
            found[name] = found.get(name, 0.0) + float(share)
        return found


def _shouts(text: str) -> bool:
    """Whether most letters are capitals, of which the model has seen few."""
    return 2 * sum(map(str.isupper, text)) > sum(map(str.isalpha, text))


def _says_enough(text: str) -> bool:
    letters = [letter for letter in text if letter.isalpha()]
    other = sum(letter >= LATIN_ENDS for letter in letters)
    if other >= LETTERS and 2 * other > len(letters):
        return True
    return sum(any(map(str.isalpha, word)) for word in text.split()) >= WORDS


@lru_cache(1)
def _model() -> Any:  # the package is not typed
    from py3langid import langid  # noqa: PLC0415  # it takes time and memory

    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
