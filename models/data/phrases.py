"""Empathic phrases: those that training may put into contexts, and those kept for the probe."""

from __future__ import annotations

import re

from models.data.corpora import Conversation
from models.labels import RATIONALE_ORDER

PROBE_PHRASES = {
    "emotional_reactions": (
        *("I know how you feel.", "I'm sorry.", "I feel you."),
        *("I am so sorry you have to go through this.", "My heart goes out to you."),
        *("Sending you a big hug.", "I really hope you feel better soon."),
    ),
    "interpretations": (
        *("I feel the same way.", "I know how you feel.", "I understand how you feel."),
        *("That must be really hard for you.", "I have been through the same thing."),
        *("It sounds like you are overwhelmed.", "I can relate to this so much."),
    ),
    "explorations": (
        *("Why?", "What happened?", "Why do you feel like that?"),
        *("How long have you been feeling this way?", "What is making you feel so low?"),
        *("Do you want to talk about it?", "Have you told anyone how you feel?"),
    ),
}
"""The first three of each are Lee et al.'s Table 2; no training phrase equals any of them."""

CONGRATULATIONS = {
    "train": (
        *("Congratulations!", "That is wonderful news!", "Well done, you deserve it!"),
        *("I am so happy for you!", "Wow, that is amazing!", "How exciting!"),
        *("That is great, good for you!", "So glad to hear that!", "You must be thrilled!"),
        *("Congrats, what an achievement!", "That's awesome!", "Yay, lucky you!"),
        *("I'm proud of you.", "Good job!", "You did so well!", "That sounds like so much fun."),
        *("What a lovely surprise!", "I am thrilled to hear this.", "You earned it.", "Nice one!"),
        *("That made my day.", "Keep up the good work!", "How wonderful.", "Very happy for you."),
        *("That must feel great.", "This is the best news.", "Way to go!", "Hats off to you."),
    ),
    "probe": (
        *("Many congratulations to you!", "This is fantastic news!", "What a great success!"),
        *("I'm really delighted for you!", "Hooray, that is brilliant!", "How lovely for you!"),
    ),
}
FEWEST_WORDS, MOST_WORDS = 2, 25


def normal(phrase: str) -> str:
    """Lower-case words without punctuation.

    >>> normal("I'm  SORRY!")
    'im sorry'
    """
    return " ".join(re.sub(r"[^a-z0-9 ]", "", phrase.lower().replace("’", "'")).split())


CHEER = re.compile(
    r"\b(congrat\w*|happy for|glad|proud|awesome|amazing|wonderful|great|good job|well done|nice"
    r"|yay|exciting|excited|fantastic|love this|beautiful|cheers)\b",
    re.IGNORECASE,
)
"""Marks an emotional reaction to something good."""


def is_cheer(phrase: str) -> bool:
    """Whether a phrase may well answer good news.

    >>> is_cheer("I'm so glad to hear it"), is_cheer("I'm so sorry")
    (True, False)
    """
    return CHEER.search(phrase) is not None


RESERVED = frozenset(
    normal(phrase)
    for phrases in (*PROBE_PHRASES.values(), CONGRATULATIONS["probe"])
    for phrase in phrases
)


def rationale_phrases(conversations: list[Conversation]) -> dict[str, list[tuple[str, int]]]:
    """Phrases that annotators marked in EPITOME's responses, with the response's level (1, 2).

    By mechanism; those kept for the probe are left out, and so are single words and long stretches.
    """
    found: dict[str, list[tuple[str, int]]] = {head: [] for head in RATIONALE_ORDER}
    for conversation in conversations:
        if conversation.corpus != "epitome":
            continue
        response = conversation.turns[-1]
        for head, spans in response.rationales.items():
            level = response.labels[head].index(1.0)
            for start, stop in spans:
                phrase = " ".join(response.text[start:stop].split())
                words = len(phrase.split())
                if FEWEST_WORDS <= words <= MOST_WORDS and normal(phrase) not in RESERVED:
                    found[head].append((phrase, level))
    return found
