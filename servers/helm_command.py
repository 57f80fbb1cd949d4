"""Helm, for the chart in ``servers/helm/rapport``: the development environment's, or another."""

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

ROOT: Final = Path(__file__).parents[1]
CHART: Final = ROOT / "servers" / "helm" / "rapport"
INSTALLED: Final = Path(sysconfig.get_path("scripts")) / "helm"
KUBERNETES: Final = "1.29.0"
"""The oldest version that the chart supports; its schemas are in ``servers/helm/schemas``."""


class HelmMissing(Exception):
    """Helm is not installed."""


class HelmFailed(Exception):
    """Helm refused the chart or the values; the message is its output."""


def helm(*arguments: str | Path) -> str:
    """Run Helm and return what it printed.

    Raises:
        HelmMissing: it is not installed.
        HelmFailed: it ended with an error.
    """
    command = [_program(), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HelmFailed(done.stdout + done.stderr)
    return done.stdout


def render(values: Sequence[Path], release: str = "rapport") -> list[dict[str, Any]]:
    """The objects that the chart makes of these files of values."""
    text = helm("template", release, CHART, "--kube-version", KUBERNETES, *_options(values))
    yaml = YAML(typ="safe")
    yaml.version = (1, 1)  # as Kubernetes reads it
    found: list[dict[str, Any] | None] = list(yaml.load_all(text))
    return [each for each in found if each]


def lint(values: Sequence[Path]) -> str:
    """Run ``helm lint --strict`` on the chart with these values, and return what it printed."""
    return helm("lint", "--strict", CHART, "--kube-version", KUBERNETES, *_options(values))


def _options(values: Sequence[Path]) -> list[str]:
    return [option for file in values for option in ("--values", str(file))]


def _program() -> str:
    found = str(INSTALLED) if INSTALLED.is_file() else shutil.which("helm")
    if found is None:
        raise HelmMissing(
            "Helm 3 is not installed: the development environment has it on Linux (x86-64); "
            "elsewhere install it with your system's packages"
        )
    return found
