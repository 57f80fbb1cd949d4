"""The directive `settings`: a table of all settings, from `stream_app.settings`."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from stream_app.secret_files import variables
from stream_app.settings import Settings


class SettingsTable(SphinxDirective):
    """One row a setting: variable, default, meaning, and whether a file may hold it."""

    def run(self) -> list[nodes.Node]:
        """Parse a Markdown table and return its nodes."""
        from_file = variables(Settings)
        rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
        for name, field in Settings.model_fields.items():
            meaning = (field.description or "").replace("|", "\\|")
            if name in from_file:
                meaning += f". Also from the file that `{from_file[name]}` names"
            rows.append(f"| `RAPPORT_{name.upper()}` | {default_of(field)} | {meaning} |")
        found = nodes.section()
        self.state.nested_parse(StringList(rows, source="settings"), self.content_offset, found)
        return found.children


def default_of(field: FieldInfo) -> str:
    """The default as Markdown; empty if the setting is not set."""
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    value = getattr(value, "get_secret_value", lambda: value)()
    if value in (None, "", PydanticUndefined):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("settings", SettingsTable)
    return {"parallel_read_safe": True}
