"""All methods by name; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import msgspec

from research.method import Method, MethodError

METHODS = {
    "frozen_levels": "research.baselines.frozen_levels:Frozen",
    "bi_encoder": "research.bi_encoder.method:BiEncoderMethod",
}


def load(name: str, settings: Sequence[str] = ()) -> Method:
    """Make a method with some of its settings changed, each given as NAME=VALUE.

    Raises:
        MethodError: there is no such method or setting, or the value is of another type.
    """
    if name not in METHODS:
        raise MethodError(f"no method {name}; there are {', '.join(METHODS)}")
    module, _, title = METHODS[name].partition(":")
    kind = getattr(import_module(module), title)
    known = [each.name for each in fields(kind)]
    given = dict(each.partition("=")[::2] for each in settings)
    if unknown := [key for key in given if key not in known]:
        raise MethodError(f"no setting {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        method: Method = msgspec.convert(given, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as problem:
        raise MethodError(str(problem)) from None
    return method


def _path(kind: type[Any], value: object) -> Any:
    return kind(value)
