"""Short phrasings of each mechanism, for feedback where the counsellor has no own example.

Written for Rapport from EPITOME's definitions of the strong levels (Sharma et al. 2020, section
3): an emotional reaction names the feeling of the person who answers, an interpretation names the
feeling or experience inferred from the client's words, an exploration asks about a named feeling or
experience. They are short and general, because they stand beside any client turn: examples of how
a mechanism sounds, not texts to paste. ``tests/web/feedback/test_phrasings.py`` checks that a
shipped model finds the mechanism in each of them more probable than not.
"""

from typing import Final

from stream_app.contracts.events import Domain

_SUPPORT: Final = {
    "emotional_reactions": (
        "I am really sorry that you are going through this.",
        "It makes me sad to read how hard this is for you.",
        "I really feel for you.",
        "I am worried about you, and I am glad that you wrote.",
    ),
    "interpretations": (
        "I understand how lonely that must feel.",
        "It sounds as if you are overwhelmed and exhausted.",
        "It must be so hard to feel like this every day.",
        "I know how hard it can be to feel that nobody understands.",
    ),
    "explorations": (
        "What was that like for you?",
        "When do you feel this most strongly?",
        "What goes through your mind when that happens?",
        "Are you feeling alone with this right now?",
    ),
}
_SERVICE: Final = {
    "emotional_reactions": (
        "I am really sorry that this happened to you.",
        "I am sorry that you had to wait so long for an answer.",
    ),
    "interpretations": (
        "I understand how frustrating it is to wait and hear nothing.",
        "You were counting on this, so I understand how upset you must be.",
    ),
    "explorations": (
        "What worries you most about this right now?",
        "How has this affected your day?",
    ),
}


def phrasings(mechanism: str, domain: Domain | None) -> tuple[str, ...]:
    """Phrasings of a mechanism, at least two."""
    return (_SERVICE if domain is Domain.CUSTOMER_SERVICE else _SUPPORT)[mechanism]
