"""Kubernetes' schemas for the objects that the chart renders: ``servers/helm/schemas``.

``python -m servers.kubernetes_schemas FOLDER`` prints them. FOLDER is a ``…-local-strict`` folder
of the package kubernetes-validate: JSON Schemas made from Kubernetes' OpenAPI document (Apache-2.0)
in which an unknown field is an error. Only what ``KINDS`` refer to is kept, without descriptions.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

KINDS: Final = {
    "Deployment": "deployment-apps-v1",
    "Job": "job-batch-v1",
    "CronJob": "cronjob-batch-v1",
    "Service": "service-v1",
    "ServiceAccount": "serviceaccount-v1",
    "ConfigMap": "configmap-v1",
    "Ingress": "ingress-networking-v1",
    "NetworkPolicy": "networkpolicy-networking-v1",
    "PodDisruptionBudget": "poddisruptionbudget-policy-v1",
    "HorizontalPodAutoscaler": "horizontalpodautoscaler-autoscaling-v2",
}
"""File of each kind, without its ending."""
_DROPPED: Final = {"description", "$schema", "$id", "x-kubernetes-group-version-kind"}


def trimmed(folder: Path) -> dict[str, Any]:
    """One schema: a kind's is in ``properties``, and what they share in ``$defs``."""
    shared = json.loads((folder / "_definitions.json").read_text("utf-8"))["$defs"]
    kinds = {kind: _plain(json.loads(_text(folder, file))) for kind, file in KINDS.items()}
    kept: dict[str, Any] = {}
    missing = set(_named(kinds))
    while missing:
        name = missing.pop()
        kept[name] = _plain(shared[name])
        missing |= set(_named(kept[name])) - kept.keys()
    return {
        "$comment": f"Kubernetes' API, {folder.name}, Apache-2.0; made by "
        "python -m servers.kubernetes_schemas",
        "properties": kinds,
        "$defs": dict(sorted(kept.items())),
    }


def write(schema: dict[str, Any]) -> str:
    """JSON with one line for each kind and definition."""
    lines = [f'"$comment": {json.dumps(schema["$comment"])}']
    for part in ("properties", "$defs"):
        entries = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}"
            for name, value in schema[part].items()
        )
        lines.append(f'"{part}": {{\n{entries}\n}}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _text(folder: Path, file: str) -> str:
    return (folder / f"{file}.json").read_text("utf-8")


def _named(part: object) -> Iterator[str]:
    """Names of the definitions that a part refers to."""
    match part:
        case dict():
            for key, value in part.items():
                if key == "$ref":
                    yield str(value).rpartition("/")[2]
                else:
                    yield from _named(value)
        case list():
            for value in part:
                yield from _named(value)


def _plain(part: Any, *, names: bool = False) -> Any:
    """Without descriptions; ``names``: the keys are names of fields, not words of JSON Schema."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {}
    for key, value in part.items():
        if names or key not in _DROPPED:
            kept[key] = _plain(value, names=not names and key == "properties")
    if "$ref" in kept and not names:
        kept["$ref"] = f"#/$defs/{kept['$ref'].rpartition('/')[2]}"
    return kept


if __name__ == "__main__":
    sys.stdout.write(write(trimmed(Path(sys.argv[1]))))
