"""The registry of empathy tasks: the paper's eighteen, and three of this project's corpora.

Ratings are those of the paper's two annotators (Table 2, 1-5): granularity of the definition, link
of the labels to it, conduciveness of the setting. Themes are the paper's (Table 5). Our own three
tasks have neither, so they take part in transfer but not in the analysis of ratings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Theme = Literal["direct", "abstract", "adjacent"]
Kind = Literal["classification", "regression"]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Task:
    """One task.

    `loader` names a function of `research.transfer.items`, or is None for a corpus that is
    not among the project's; `publisher` says where to find it. `source` and `setting` are the
    origin of the data and its form, two of the paper's features (section 5.1).
    """

    name: str
    kind: Kind
    source: str
    setting: Literal["conversation", "social media", "essay"]
    publisher: str
    theme: Theme | None = None
    definition: Pair | None = None
    link: Pair | None = None
    conduciveness: Pair | None = None
    loader: str | None = None

    @property
    def ratings(self) -> tuple[float, float, float] | None:
        """Means over both annotators: definition, link, conduciveness."""
        if self.definition is None or self.link is None or self.conduciveness is None:
            return None
        means = (sum(pair) / 2 for pair in (self.definition, self.link, self.conduciveness))
        first, second, third = means
        return first, second, third


_CONDOLENCE = "Zhou & Jurgens 2020, Condolence and Empathy in Online Communities"
_CONV = "Omitaomu et al. 2022, Empathic Conversations (WASSA shared tasks)"
_QUESTIONS = "Svikhnushina et al. 2022, A Taxonomy of Empathetic Questions"
_MI = "Welivita & Pu 2022, Curating a Large-Scale Motivational Interviewing Dataset"
_HOPE = "Yoo et al. 2021, Empathy and Hope"
_NEWS = "Buechel et al. 2018, Empathic Reactions"
_CHATS = "Rashkin et al. 2019, EmpatheticDialogues"
_INTENTS = "Welivita & Pu 2020, empathetic response intents"
_EPITOME = "Sharma et al. 2020, EPITOME"


def _epitome(name: str) -> Task:
    return Task(
        name,
        "classification",
        "reddit",
        "social media",
        _EPITOME,
        "abstract",
        (3, 3),
        (3, 3),
        (3, 4),
        name.lower().replace(" ", "_"),
    )


TASKS = (
    Task("Condolence", "regression", "reddit", "social media", _CONDOLENCE, "abstract", (5, 5), (2, 2), (3, 4)),
    Task("Conv EmoInt", "regression", "crowd", "conversation", _CONV, "adjacent", (3, 3), (2, 1), (4, 3)),
    Task("Conv EmoPol", "regression", "crowd", "conversation", _CONV, "adjacent", (3, 3), (2, 2), (4, 5)),
    Task("Conv Empathy", "regression", "crowd", "conversation", _CONV, "direct", (5, 5), (4, 3), (5, 5)),
    Task("EmpDial EI", "classification", "crowd", "conversation", _INTENTS, "direct", (4, 5), (5, 5), (2, 4), "intents"),
    Task("EmpDial Emo", "classification", "crowd", "conversation", _CHATS, "adjacent", (2, 2), (1, 1), (1, 3), "emotions"),
    Task("EmpDial Role", "classification", "crowd", "conversation", _CHATS, "adjacent", (1, 2), (1, 1), (1, 2), "roles"),
    Task("Empathy Hope", "classification", "twitter", "social media", _HOPE, "abstract", (2, 3), (3, 2), (1, 1)),
    _epitome("Epitome ER"),
    _epitome("Epitome EX"),
    _epitome("Epitome IP"),
    Task("EmpDial QAct", "classification", "crowd", "conversation", _QUESTIONS, "adjacent", (3, 3), (5, 3), (2, 4)),
    Task("EmpDial QInt", "classification", "crowd", "conversation", _QUESTIONS, "direct", (4, 4), (5, 5), (2, 4)),
    Task("MI Adherent", "classification", "reddit", "social media", _MI, "abstract", (2, 3), (3, 2), (3, 3)),
    Task("MI Behavior", "classification", "reddit", "social media", _MI, "direct", (3, 4), (4, 4), (3, 4)),
    Task("News Distress", "regression", "crowd", "essay", _NEWS, "direct", (4, 5), (4, 4), (4, 4), "news_distress"),
    Task("News Emotion", "classification", "crowd", "essay", _NEWS, "adjacent", (3, 3), (3, 2), (4, 3)),
    Task("News Empathy", "regression", "crowd", "essay", _NEWS, "direct", (5, 5), (5, 4), (4, 4), "news_empathy"),
    Task("AnnoMI behaviour", "classification", "recordings", "conversation", "Wu et al. 2022, AnnoMI", loader="behaviour"),
    Task("Rated exchanges", "regression", "crowd", "conversation", "Dregdael, EmpatheticExchanges", loader="exchanges"),
    Task("ESConv strategy", "classification", "crowd", "conversation", "Liu et al. 2021, ESConv", loader="strategy"),
)  # fmt: skip
BY_NAME = {task.name: task for task in TASKS}


def at_hand() -> list[Task]:
    """Tasks whose corpora the project has loaders for."""
    return [task for task in TASKS if task.loader is not None]
