"""Measures how far people agree with each other on the judgements that models are compared with.

Run as `python -m models.reader.evaluation.ceilings`.

No score can be expected to agree with one person more than another person does. Where a corpus has
several people's labels of one item, their agreement is computed here. Most corpora publish one
label an item, and then no ceiling is known: `SINGLE` says so for each.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from models.agreement.corpora import annotators, scales
from models.agreement.measures import alpha, confusion, equal_share, kappa
from models.agreement.ratings import MISSING, Ints
from models.data.corpora import REPOSITORY, read_rows, resolve_data_dir
from models.data.rated_sessions import SERVICE, load_sessions
from models.evaluate.resampling import auroc, interval, spearman
from models.reader import corpora, written
from models.reader.evaluation import evaluated

OUT = REPOSITORY / "docs" / "evaluation" / "reader" / "ceilings.json"
RATINGS = 5
"""Levels of users' satisfaction."""
SIDES = ("better", "worse")
VARIABLES = ("behaviour", "question", "reflection", "input", "talk_type")
SINGLE = {
    "epitome": "one label a response in the published file",
    "esconv": "one strategy a turn; the seeker's own survey",
    "esconv_feedback": "one set of areas a turn, a model's draft that experts reviewed",
    "wassa_chats (turns)": "the mean of about three raters, not each one's",
    "rated_answers": "one rater an answer",
    "empathetic_exchanges": "one rating an exchange; how many people gave it is not published",
    "empathetic_intents": "one intent a line",
    "ieval": "the rating of the one person who chatted",
    "miti_sentences": "one code a sentence",
    "eaf_model": "a language model's labels",
    "crisis_rallypoint": "one label a text",
    "crisis_cssrs": "one label a post",
    "crisis_inputs_model": "a language model's labels",
    "maia_turns": "one rater a turn",
    "news_reactions": "each writer's own answers to a scale",
    "snli": "the majority of five; not each one's label",
}
"""Corpora of whose labels no agreement can be computed, and why."""

Figure = dict[str, Any]


def two_people(votes: Sequence[Sequence[bool]]) -> Figure:
    """Agreement of two people on yes and no.

    `auroc` is that of one person's answer for the other's, the mean of both directions: what a
    second person would reach where the first one is the truth.

    >>> found = two_people([(True, True), (False, False), (True, False), (False, False)])
    >>> found["equal"], found["kappa"]["value"]
    (0.75, 0.5)
    """
    values = np.array(votes, np.int64)
    counts = confusion(values[:, 0], values[:, 1], 2)

    def of_rows(rows: Ints) -> float:
        return kappa(confusion(values[rows, 0], values[rows, 1], 2))

    both = [auroc(values[:, a] > 0, values[:, b].astype(float)) for a, b in ((0, 1), (1, 0))]
    return {
        "rows": len(values),
        "equal": equal_share(counts),
        "kappa": interval(np.arange(len(values)), of_rows),
        "auroc": float(np.mean(both)),
    }


def one_against_the_others(ratings: Sequence[Sequence[int]], levels: int) -> Figure:
    """Agreement of several raters on a scale of `levels` from 1: ordinal alpha, rank correlation.

    The rank correlation is that of one rater's value with the mean of the others'.
    """
    width = max(map(len, ratings))
    values = np.full((len(ratings), width), MISSING)
    for place, given in enumerate(ratings):
        values[place, : len(given)] = np.array(given) - 1
    one = np.array([given[0] for given in ratings], float)
    others = np.array([np.mean(given[1:]) for given in ratings])
    ranks = interval(np.arange(len(ratings)), lambda rows: spearman(one[rows], others[rows]))
    return {
        "rows": len(ratings),
        "alpha": alpha(values, levels, ordered=True),
        "one against the others": ranks,
    }


def consistency(items: NDArray[np.float64]) -> float:
    """Cronbach's alpha of `items` [people, items]: how far the items measure one thing.

    >>> consistency(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    1.0
    """
    width = items.shape[1]
    own, total = items.var(0, ddof=1).sum(), items.sum(1).var(ddof=1)
    return float(width / (width - 1) * (1.0 - own / total))


def share_of_raters(values: Sequence[float], raters: Sequence[str]) -> float:
    """Share of the variance that lies between raters (one-way intraclass correlation), 0 to 1."""
    given: dict[str, list[float]] = {}
    for value, rater in zip(values, raters, strict=True):
        given.setdefault(rater, []).append(value)
    sizes = np.array([len(own) for own in given.values()], float)
    total, groups = sizes.sum(), len(sizes)
    means = np.array([np.mean(own) for own in given.values()])
    between = (sizes * (means - np.mean(values)) ** 2).sum() / (groups - 1)
    within = sum(((np.array(own) - np.mean(own)) ** 2).sum() for own in given.values())
    within /= total - groups
    typical = (total - (sizes**2).sum() / total) / (groups - 1)
    return float(max(0.0, (between - within) / (between + (typical - 1.0) * within)))


def opportunity(data_dir: Path) -> dict[str, Figure]:
    """Two people on whether a patient's question calls for empathy."""
    rows = list(read_rows(corpora.OPPORTUNITY, corpora.OPPORTUNITY.files[0], data_dir))
    return {
        f"eaf_people: {words}": two_people([row[f"{name}_applicable"] for row in rows])
        for words, name in (
            ("emotional reaction", "emotional_reaction"),
            ("interpretation", "interpretation"),
        )
    }


def satisfaction(data_dir: Path) -> dict[str, Figure]:
    """Raters on users' satisfaction in service dialogues."""
    found = {}
    sessions = load_sessions(data_dir)
    for source in SERVICE:
        turns = [t for s in sessions if s.source == source for t in s.turns]
        rated = [turn.satisfaction for turn in turns if len(turn.satisfaction) > 1]
        found[f"uss_{source}: satisfaction"] = one_against_the_others(rated, RATINGS)
    return found


def interviewing(data_dir: Path) -> dict[str, Figure]:
    """AnnoMI's annotators on the sessions that several of them coded."""
    given: dict[str, dict[tuple[str, str], dict[str, str]]] = {}
    for rating in annotators(data_dir):
        items = given.setdefault(rating.variable, {})
        items.setdefault((rating.session, rating.item), {})[rating.coder.name] = rating.value
    labels = {name: scale.labels for name, scale in scales().items()}
    return {
        f"annomi: {name}": _coded(given[name].values(), labels.get(name, ())) for name in VARIABLES
    }


def _coded(items: Iterable[dict[str, str]], known: Sequence[str]) -> Figure:
    several = [item for item in items if len(item) > 1]
    coders = sorted({coder for item in several for coder in item})
    used = {value for item in several for value in item.values()}
    labels = [*(label for label in known if label in used), *sorted(used - set(known))]
    values = np.array(
        [[labels.index(item[c]) if c in item else MISSING for c in coders] for item in several]
    )
    return {"rows": len(several), "alpha": alpha(values, len(labels), ordered=False)}


def chats(data_dir: Path) -> dict[str, Figure]:
    """The two ratings of a chat: how empathic each person found the other."""
    both = []
    for row in read_rows(corpora.CHATS, corpora.CHATS.files[0], data_dir):
        given = list(row["perceived_empathy_of_partner_by_person"].values())
        if len(given) == 2 and None not in given:
            both.append(given)
    values = np.array(both, float)
    groups = np.arange(len(values))
    found = interval(groups, lambda rows: spearman(values[rows, 0], values[rows, 1]))
    return {"wassa_chats: each partner of the other": {"rows": len(values), "spearman": found}}


def raters(data_dir: Path) -> dict[str, Figure]:
    """How much of the rated answers' spread is the rater's, not the answer's."""
    rows = list(read_rows(corpora.RATED, corpora.RATED.files[0], data_dir))
    levels = [float(row["rating_1_bad_3_good"]) for row in rows]
    own = [str(row["rater"]) for row in rows]
    most = Counter(own).most_common(1)[0][1]
    share = share_of_raters(levels, own)
    return {
        "rated_answers: between raters": {
            "rows": len(rows),
            "raters": len(set(own)),
            "most of one rater": most,
            "share of variance": share,
        }
    }


def care(data_dir: Path) -> dict[str, Figure]:
    """The CARE measure's consistency among clients who answered all of its items."""
    complete = [each.care for each in evaluated.mibot(data_dir) if None not in each.care]
    items = np.array(complete, float)
    value = consistency(items)
    return {"mibot: CARE, ten items": {"rows": len(items), "cronbach": value}}


def reading(data_dir: Path) -> dict[str, Figure]:
    """The writer's marks of the ordinary answers and the blind reader's: both a language model."""
    rows = [r for r in written.rows_of(data_dir / "plain_answers.jsonl.gz") if r.get("marks")]
    both = [(row["marks"][side], row["reader"][side]) for row in rows for side in SIDES]
    marks = np.array([pair for pair in both if None not in pair], float)
    groups = np.arange(len(marks)) // len(SIDES)
    found = interval(groups, lambda chosen: spearman(marks[chosen, 0], marks[chosen, 1]))
    return {"plain_answers: writer and blind reader": {"rows": len(marks), "spearman": found}}


MEASURED: tuple[Callable[[Path], dict[str, Figure]], ...] = (
    opportunity,
    satisfaction,
    interviewing,
    chats,
    raters,
    care,
    reading,
)


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="JSON file to write.")] = OUT,
) -> None:
    """Write the agreement of people, and which corpora have none to compute."""
    folder = resolve_data_dir(data_dir)
    found = {name: figure for measure in MEASURED for name, figure in measure(folder).items()}
    content = {"agreement": found, "one label": SINGLE}
    out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    typer.run(main)
