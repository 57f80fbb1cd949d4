"""Descriptions and ranges of stored values, taken from the message contract that defines them."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast

from msgspec import Struct, inspect
from pydantic import Field

T = TypeVar("T")


def described_by(contract: type[Struct]) -> Callable[[type[T]], type[T]]:
    """Describe a class's fields like the fields of the same name in ``contract``.

    Apply it below ``@dataclass``, which copies the annotations. A field that is ``Annotated`` keeps
    its own description.

    Raises:
        TypeError: the two have no field in common.
    """
    struct = cast("inspect.StructType", inspect.type_info(contract))
    known = {field.name: _facts(field.type) for field in struct.fields}

    def describe(cls: type[T]) -> type[T]:
        annotations = cls.__annotations__
        shared = annotations.keys() & known.keys()
        if not shared:
            raise TypeError(f"{cls.__name__} has no field in common with {contract.__name__}")
        for name in shared:
            if known[name] and not hasattr(annotations[name], "__metadata__"):
                annotations[name] = Annotated[annotations[name], Field(**known[name])]
        return cls

    return describe


def _facts(kind: inspect.Type) -> dict[str, Any]:
    """Arguments of pydantic's ``Field``: description and, of a number, its range."""
    match kind:
        case inspect.Metadata():
            described = (kind.extra_json_schema or {}).get("description")
            return _facts(kind.type) | ({"description": described} if described else {})
        case inspect.UnionType():
            parts = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
            return _facts(parts[0]) if len(parts) == 1 else {}
        case inspect.IntType() | inspect.FloatType():
            bounds = {"ge": kind.ge, "gt": kind.gt, "le": kind.le, "lt": kind.lt}
            return {name: bound for name, bound in bounds.items() if bound is not None}
        case _:
            return {}
