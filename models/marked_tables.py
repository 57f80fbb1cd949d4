"""Generated tables between the markers of a page."""

from __future__ import annotations

import re


def with_tables(document: str, tables: dict[str, str]) -> str:
    r"""The document with the tables between their markers.

    >>> with_tables("<!-- a -->\nold\n<!-- /a -->", {"a": "new"})
    '<!-- a -->\nnew\n<!-- /a -->'
    """
    for name, content in tables.items():
        pattern = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        found = pattern.search(document)
        if found is None:
            raise ValueError(f"the document has no place for {name}")
        document = f"{document[: found.start()]}{content}\n{document[found.end() :]}"
    return document
