"""Pages of docs/methods: a method's values in the Markdown template of its page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from models.labels import RATIONALE_ORDER
from research.method import Content, Method

NOT_MEASURED = "not measured here"
SHORT = dict(zip(RATIONALE_ORDER, ("ER", "IP", "EX"), strict=True))
"""Names of the mechanisms in headers."""
TEMPLATES = Environment(  # noqa: S701 (Markdown from our own figures)
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)


def render(name: str, values: dict[str, Any], folder: Path) -> Path:
    """Write the page `name` from its template."""
    text = TEMPLATES.get_template(f"{name}.md").render(values, not_measured=NOT_MEASURED)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    return path


def write(method: Method, results: Path, folder: Path) -> Path | None:
    """Write a method's page; None if it has no page, or too little was measured for it."""
    values = method.values(results)
    if method.page is None or values is None:
        return None
    return render(method.page, values, folder)


def setting_of(rows: Content) -> dict[str, Any]:
    """The hyperparameters of measured rows; of those that differ between rows, all values."""
    settings = [row["setting"] for row in rows.values()]
    first = settings[0] if settings else {}
    return {
        "epochs": sorted({one["epochs"] for one in settings}),
        "precisions": sorted({"bfloat16" if one["bf16"] else "float32" for one in settings}),
        **{key: first.get(key) for key in ("batch", "encoder_rate", "frozen_layers")},
    }
