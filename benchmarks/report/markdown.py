"""Replace the content between markers of a document, and format tables."""

import re
from collections.abc import Iterable, Sequence

NOT_MEASURED = "Not measured."


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table; the first column is text, the others are figures.

    >>> print(table(["line", "turns/s"], [["bare", "450"]]))
    | line | turns/s |
    | --- | ---: |
    | bare | 450 |
    """
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def replace(document: str, name: str, content: str) -> str:
    """Replace the content between ``<!-- name -->`` and ``<!-- /name -->``.

    Raises:
        ValueError: the markers are missing.
    """
    pattern = re.compile(
        rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL
    )
    if not pattern.search(document):
        raise ValueError(f"the document has no markers <!-- {name} --> and <!-- /{name} -->")
    return pattern.sub(lambda found: f"{found[1]}{content.strip()}\n{found[2]}", document)


def names(document: str) -> list[str]:
    """The names of the markers in a document, in order."""
    return re.findall(r"<!-- /([\w-]+) -->", document)
