"""Build, check and describe a release; publish nothing: ``make release VERSION=0.2.0``.

Writes source distribution and wheel to ``dist``, checks them with twine and check-wheel-contents,
and adds an SBOM of each image (CycloneDX) and a provenance statement (in-toto, SLSA 1.0) with the
digests of all files and of the lock files that they are made with. Then prints the steps that
publish it: signing, the tag, the upload.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stream_app import __version__

REPOSITORY: Final = Path(__file__).resolve().parents[1]
DIST: Final = REPOSITORY / "dist"
REQUIREMENTS: Final = REPOSITORY / "requirements"
IMAGES: Final = ("worker", "web", "gpu")
"""Lock files with an image of their own."""
TWINE: Final = "twine==7.0.0"
CHECK_WHEEL: Final = "check-wheel-contents==0.6.3"
CYCLONEDX: Final = "cyclonedx-bom==7.5.0"
REPRODUCIBLE: Final = "--output-reproducible"
WHEEL_EXCEPTIONS: Final = "W002,W004"
"""Both bundles have the same tokeniser, and names of migrations begin with their number."""
STATEMENT: Final = "https://in-toto.io/Statement/v1"
PREDICATE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "make release"

STEPS: Final = """
Nothing is published yet. To publish:

  git tag -s v{version} -m "Rapport {version}"
  cosign sign-blob --bundle dist/provenance.sigstore.json dist/provenance.json
  twine upload dist/*.whl dist/*.tar.gz
  git push origin v{version}
"""


class NotReady(Exception):
    """The checkout is not the release that was named."""


def check_version(version: str, changelog: str) -> None:
    """Compare a version with the package's and with the changelog's newest section.

    Raises:
        NotReady: they differ.
    """
    if version != __version__:
        raise NotReady(
            f"The package has version {__version__}, not {version}: set it in pyproject.toml,"
            " stream_app/__init__.py, docker-compose.yml and the chart's Chart.yaml."
        )
    newest = next(line for line in changelog.splitlines() if line.startswith("## "))
    if newest.split()[1] != version:
        raise NotReady(
            f'The newest section of CHANGELOG.md is "{newest.removeprefix("## ")}", not {version}.'
        )


def provenance(files: Iterable[Path], materials: Iterable[Path], commit: str) -> dict[str, Any]:
    """An unsigned in-toto statement: which files were made, of what, how and when.

    Args:
        files: what is published.
        materials: files besides the commit that decide what is in them, such as lock files.
        commit: the checkout's, 40 hexadecimal digits.
    """
    sources = [{"uri": "git", "digest": {"gitCommit": commit}}]
    return {
        "_type": STATEMENT,
        "subject": [{"name": file.name, "digest": _digest(file)} for file in files],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": __version__},
                "resolvedDependencies": sources
                + [{"uri": file.name, "digest": _digest(file)} for file in materials],
            },
            "runDetails": {
                "builder": {"id": f"python {sys.version.split()[0]}"},
                "metadata": {"finishedOn": datetime.now(UTC).isoformat(timespec="seconds")},
            },
        },
    }


def _digest(file: Path) -> dict[str, str]:
    return {"sha256": sha256(file.read_bytes()).hexdigest()}


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotReady(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def main(version: Annotated[str, typer.Argument(help="Such as 0.2.0.")]) -> None:
    """Make ``dist`` and print the steps that publish it."""
    check_version(version, (REPOSITORY / "CHANGELOG.md").read_text("utf-8"))
    if changed := _run(["git", "status", "--porcelain"]):
        raise NotReady(f"Commit or remove these changes first:\n{changed}")
    for old in DIST.glob("*"):
        old.unlink()
    _run([_tool("uv"), "build", "--out-dir", DIST, REPOSITORY])
    built = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    uvx = [_tool("uvx"), "-q", "--from"]
    _run([*uvx, TWINE, "twine", "check", "--strict", *built])
    wheels = sorted(DIST.glob("*.whl"))
    _run([*uvx, CHECK_WHEEL, "check-wheel-contents", "--ignore", WHEEL_EXCEPTIONS, *wheels])
    for image in IMAGES:
        bill = DIST / f"sbom-{image}.cdx.json"
        lock = REQUIREMENTS / f"{image}.txt"
        _run([*uvx, CYCLONEDX, "cyclonedx-py", "requirements", lock, "-o", bill, REPRODUCIBLE])
    files = [*built, *sorted(DIST.glob("sbom-*.json"))]
    statement = provenance(
        files, sorted(REQUIREMENTS.glob("*.txt")), _run(["git", "rev-parse", "HEAD"])
    )
    DIST.joinpath("provenance.json").write_text(json.dumps(statement, indent=1) + "\n", "utf-8")
    for file in sorted(DIST.glob("*")):
        print(f"{file.stat().st_size / 1e6:8.1f} MB  dist/{file.name}")
    print(STEPS.format(version=version))


if __name__ == "__main__":
    try:
        typer.run(main)
    except NotReady as problem:
        sys.exit(str(problem))
