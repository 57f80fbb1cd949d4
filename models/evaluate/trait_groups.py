"""Group the perceived heads that are shown as one value, from docs/evaluation/multitrait.json.

Two heads form one value if their values over whole chats correlate at .9 or more (rank correlation,
corpus file held constant) and neither predicts a rating that it learns from significantly better
than the other does (the interval of the difference contains 0 or lies below). A head joins the
first group in which it forms one value with every member, so that a chain of similar heads does not
join its dissimilar ends. A group shows the member that correlates best with the ratings that its
members learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.labels import RATED
from stream_app.core.measures.perceived import PerceivedGroup, PerceivedValues, Validity

Content = dict[str, Any]
LEAST_CORRELATION = 0.9
PROTOCOL = (
    "heads are one value when they correlate at {least} or more over whole chats and neither "
    "predicts a rating that it learns from better than the other (95 % interval of the difference "
    "above 0); r is Spearman's with the corpus file held constant, on conversations that the fold "
    "models ({folds}) have not seen, and its interval resamples conversations"
)
WORDS = {
    "empathy": "seekers' empathy ratings",
    "relevance": "seekers' relevance ratings",
    "fall": "how far distress fell",
    "feedback": "seekers' feedback",
    "satisfaction": "users' satisfaction ratings",
    "reply": "the length of the client's reply",
}
"""Phrases for ratings, by the last word of their name."""
THIRD_PARTIES = "third parties' empathy ratings"


def perceived_values(
    multitrait: Content, ratings: Content, heads: Sequence[str]
) -> PerceivedValues:
    """The groups of a bundle with these perceived heads.

    `multitrait` and `ratings` are the contents of the evaluation's files; `ratings` is empty if the
    head of rated answers was not measured.
    """
    known = list(dict.fromkeys(cell["head"] for cell in multitrait["cells"]))
    groups = [
        _group(members, multitrait)
        for members in grouped([head for head in known if head in heads], multitrait)
    ]
    if RATED in heads and "final" in ratings.get("views", {}):
        groups.insert(0, _rated(ratings["views"]["final"]))
    folds = f"number {', '.join(map(str, multitrait['folds']))}"
    return PerceivedValues(PROTOCOL.format(least=LEAST_CORRELATION, folds=folds), groups)


def grouped(heads: Sequence[str], multitrait: Content) -> list[list[str]]:
    """Heads by group, in their order."""
    groups: list[list[str]] = []
    for head in heads:
        for group in groups:
            if all(is_one_value(head, member, multitrait) for member in group):
                group.append(head)
                break
        else:
            groups.append([head])
    return groups


def is_one_value(first: str, second: str, multitrait: Content) -> bool:
    """Whether two heads are indistinguishable; false if either was not compared."""
    between = [
        pair["partial"]
        for pair in multitrait["between_heads"]["pairs"]
        if set(pair["heads"]) == {first, second}
    ]
    both = ((first, second), (second, first))
    rows = [row for row in multitrait["distinguishable"] if (row["head"], row["other"]) in both]
    compared = {row["head"] for row in rows} == {first, second}
    alike = bool(between) and between[0] is not None and between[0] >= LEAST_CORRELATION
    return compared and alike and not any(row["distinguishable"] for row in rows)


def _group(members: list[str], multitrait: Content) -> PerceivedGroup:
    own = {
        cell["rating"] for cell in multitrait["cells"] if cell["own"] and cell["head"] in members
    }
    cells = {
        head: [
            cell
            for cell in multitrait["cells"]
            if cell["head"] == head
            and cell["rating"] in own
            and None not in (cell["partial"]["value"], cell["partial"]["low"])
        ]
        for head in members
    }

    def agreement(head: str) -> float:
        values = [cell["partial"]["value"] for cell in cells[head]]
        return sum(values) / len(values) if values else -1.0

    shown = max(members, key=agreement)
    # The first coefficient is shown: from the most conversations, then the weaker one.
    ordered = sorted(cells[shown], key=lambda c: (-c["sessions"], c["partial"]["value"]))
    return PerceivedGroup(
        " and ".join(members).capitalize(), members, shown, [_validity(cell) for cell in ordered]
    )


def _validity(cell: Content) -> Validity:
    name, found = str(cell["rating"]), cell["partial"]
    return Validity(
        rating=name,
        words=WORDS.get(name.rpartition(" ")[2], name),
        r=round(found["value"], 3),
        low=round(found["low"], 3),
        high=round(found["high"], 3),
        n=cell["n"],
        sessions=cell["sessions"],
    )


def _rated(view: Content) -> PerceivedGroup:
    """The head trained on third parties' ratings of single answers."""
    found = view["spearman"]
    validity = Validity(
        rating="EmpatheticExchanges empathy",
        words=THIRD_PARTIES,
        r=round(found["value"], 3),
        low=round(found["low"], 3),
        high=round(found["high"], 3),
        n=view["n"],
        sessions=view["conversations"],
    )
    return PerceivedGroup(RATED.capitalize(), [RATED], RATED, [validity])
