"""The columns of all views as Markdown: ``python -m stream_app.analytics.views.reference``.

Rewrites the tables between markers in docs/analytics.md, with the heads of the default bundle.
"""

import re
from pathlib import Path
from typing import Final

import msgspec

from stream_app.analytics.views.columns import View
from stream_app.analytics.views.dialects import DIALECTS
from stream_app.analytics.views.views import all_views
from stream_app.inference.bundles import bundle as bundles

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "analytics.md"
_MARKED: Final = re.compile(r"(<!-- views -->\n).*?(<!-- /views -->)", re.DOTALL)


def shown(views: list[View]) -> str:
    """A heading and a table of columns for each view."""
    return "\n\n".join(_shown(view) for view in views)


def document(text: str) -> str:
    """The document with its tables as they are now."""
    manifest = bundles.load(bundles.DEFAULT_BUNDLE).manifest
    known = {manifest.bundle_id: msgspec.to_builtins(manifest)}
    found = shown(all_views(DIALECTS["postgresql"], known))
    return _MARKED.sub(lambda marks: f"{marks[1]}{found}\n{marks[2]}", text)


def _shown(view: View) -> str:
    rows = [f"| `{c.name}` | {c.kind.value} | {c.meaning} |" for c in view.columns]
    head = [f"### `{view.name}`", "", f"One row: {view.grain}.", ""]
    return "\n".join([*head, "| column | type | meaning |", "| --- | --- | --- |", *rows])


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text("utf-8")), "utf-8")
