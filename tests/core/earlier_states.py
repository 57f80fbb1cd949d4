"""States as releases before the layout by position stored them: with the names of their fields."""

from collections.abc import Mapping
from typing import Any

import msgspec

POSITIONAL = {"Exchange", "Turns", "BundleChoice", "Usual", "Baseline", "Volley"}
"""Structs that those releases stored by position, too."""


def as_map(value: Any) -> Any:
    """A struct and all structs in it that are stored by position now, as dictionaries."""
    match value:
        case msgspec.Struct():
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            if type(value).__name__ in POSITIONAL:
                return [as_map(item) for item in fields.values()]
            return {name: as_map(item) for name, item in fields.items()}
        case Mapping():
            return {key: as_map(item) for key, item in value.items()}
        case list() | tuple():
            return [as_map(item) for item in value]
        case _:
            return value
