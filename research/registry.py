"""All methods by name; each is imported when it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any

import msgspec

from research.method import Method, MethodError

METHODS = {
    "micromodels": "research.micromodels.method:Levels",
    "micromodel_seeds": "research.micromodels.method:FewSeeds",
    "frozen_levels": "research.baselines.frozen_levels:Frozen",
    "bi_encoder": "research.bi_encoder.method:BiEncoderMethod",
    "window_classifier": "research.window_classifier.method:WindowMethod",
    "instruction_seq2seq": "research.instruction_seq2seq.method:InstructionMethod",
    "transfer": "research.transfer.method:Transfers",
    "low_resource": "research.low_resource.method:LowResource",
}


def load(name: str, settings: Sequence[str] = ()) -> Method:
    """Make a method with some of its settings changed, each given as NAME=VALUE.

    A setting that has several values is given once for each.

    Raises:
        MethodError: there is no such method or setting, or the value is of another type.
    """
    if name not in METHODS:
        raise MethodError(f"no method {name}; there are {', '.join(METHODS)}")
    module, _, title = METHODS[name].partition(":")
    kind = getattr(import_module(module), title)
    known = {each.name: str(each.type) for each in fields(kind)}
    given: dict[str, Any] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in known:
            raise MethodError(f"no setting {key}; there are {', '.join(known)}")
        several = known[key].startswith("tuple")
        given[key] = [*given.get(key, ()), value] if several else value
    try:
        method: Method = msgspec.convert(given, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as problem:
        raise MethodError(str(problem)) from None
    return method


def _path(kind: type[Any], value: object) -> Any:
    return kind(value)
