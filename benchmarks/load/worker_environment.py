"""Size of a worker's environment and of its image's.

Run as ``python -m benchmarks.load.worker_environment``.

Installs what ``requirements/worker.txt`` locks into two environments in a temporary folder:

- *worker*: ``rapport-empathy[cpu]``, as its wheel is;
- *image*: all of the list, hence also for the notifier and with tracing, as the Dockerfile installs
  it: extension modules stripped, bytecode compiled.

Sizes are those of ``du -sm``: mebibytes on disk, rounded up. The size that the environment adds to
an image is the sum of its files' bytes, as Docker counts; the base of the image is not included.
Needs uv and the package index, and takes a minute.
"""

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from benchmarks.errors import Unavailable
from benchmarks.load.processes import REPOSITORY
from benchmarks.report import markdown

LIMIT_MB: Final = 390
LOCK: Final = REPOSITORY / "requirements" / "worker.txt"
EXCLUDED: Final = REPOSITORY / "requirements" / "excluded.txt"
STRIP: Final = REPOSITORY / "servers" / "docker" / "strip-extension-modules"
LARGEST: Final = 12
"""Distributions with a row of their own."""


class Sizes(Struct, frozen=True):
    """Mebibytes on disk, if nothing else is said."""

    worker: int
    image_unstripped: int
    image: int
    image_bytes: int
    """Bytes of the files, with bytecode."""
    distributions: Sequence[tuple[str, float]]
    """Distributions of the worker's environment and their sizes, largest first."""


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel in a folder."""
    _uv("build", "--wheel", "--out-dir", folder, REPOSITORY)
    [wheel] = folder.glob("rapport_empathy-*.whl")
    return wheel


def locked_versions(lock: Path) -> str:
    """The lines of a lock file without the hashes, to be used as constraints."""
    return "\n".join(
        re.findall(r"^[\w.-]+==\S+(?: ;.*?)?(?= \\)", lock.read_text("utf-8"), re.MULTILINE)
    )


def install_worker(folder: Path, wheel: Path) -> Path:
    """An environment with ``rapport-empathy[cpu]`` in the locked versions; returns its folder."""
    versions = folder / "worker-versions.txt"
    versions.write_text(locked_versions(LOCK), "utf-8")
    place = _environment(folder / "worker")
    wanted = f"rapport-empathy[cpu] @ {wheel.as_uri()}"
    _uv("pip", "install", "--python", place, "-c", versions, "--excludes", EXCLUDED, wanted)
    return place


def install_image(folder: Path, wheel: Path) -> Path:
    """Create the environment of the image ``rapport-worker``, not stripped; returns its folder.

    Files are copied, because stripping a link would change uv's cache.
    """
    place = _environment(folder / "image")
    into = ("pip", "install", "--link-mode", "copy", "--python", place, "--no-deps")
    _uv(*into, "--require-hashes", "-r", LOCK)
    _uv(*into, wheel)
    return place


def strip(environment: Path) -> None:
    """Strip the extension modules, as the Dockerfile does.

    Raises:
        Unavailable: binutils is not installed.
    """
    done = _run(STRIP, environment)
    if done.returncode:
        raise Unavailable(f"{STRIP.name} failed: {done.stderr.strip()[-300:]}")


def compile_bytecode(environment: Path) -> None:
    """Compile all but tests, as the Dockerfile does.

    Raises:
        Unavailable: a file cannot be compiled.
    """
    python = environment / "bin" / "python"
    done = _run(python, "-m", "compileall", "-q", "-x", "/tests/", environment / "lib")
    if done.returncode:
        raise Unavailable(f"bytecode cannot be compiled: {done.stdout.strip()[-300:]}")


def size(folder: Path) -> int:
    """Mebibytes on disk, as ``du -sm`` counts them."""
    return int(_run("du", "-sm", folder).stdout.split()[0])


def measure(folder: Path, wheel: Path) -> Sizes:
    """Install both environments below a folder and measure them.

    Raises:
        Unavailable: a package cannot be installed, or binutils is missing.
    """
    worker, image = install_worker(folder, wheel), install_image(folder, wheel)
    unstripped = size(image)
    strip(image)
    stripped = size(image)
    compile_bytecode(image)
    return Sizes(
        worker=size(worker),
        image_unstripped=unstripped,
        image=stripped,
        image_bytes=int(_run("du", "-sb", image).stdout.split()[0]),
        distributions=_distributions(worker),
    )


def report(sizes: Sizes) -> str:
    """Both tables, in Markdown."""
    total = markdown.table(
        ["environment", "MB"],
        [
            ["worker: `rapport-empathy[cpu]`", str(sizes.worker)],
            ["image: with tracing and Apprise", str(sizes.image_unstripped)],
            ["image, stripped", str(sizes.image)],
            [
                "added to the image: bytes of these files, with bytecode (`du -sb`)",
                f"{sizes.image_bytes / 1e6:.0f}",
            ],
        ],
    )
    shown, rest = sizes.distributions[:LARGEST], sizes.distributions[LARGEST:]
    others = (f"{len(rest)} others", sum(mebibytes for _, mebibytes in rest))
    largest = markdown.table(
        ["in the worker's environment", "MB"],
        [[name, f"{mebibytes:.0f}"] for name, mebibytes in (*shown, others)],
    )
    return f"{total}\n\n{largest}"


def _distributions(environment: Path) -> list[tuple[str, float]]:
    site = next((environment / "lib").glob("python*/site-packages"))
    found = []
    for distribution in importlib.metadata.distributions(path=[str(site)]):
        paths = [Path(str(file.locate())) for file in distribution.files or ()]
        blocks = sum(path.stat().st_blocks for path in paths if path.is_file())
        found.append((distribution.name, blocks * 512 / 2**20))
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _environment(place: Path) -> Path:
    _uv("venv", "--python", sys.executable, place)
    return place


def _uv(*arguments: object) -> None:
    beside = Path(sys.executable).with_name("uv")
    done = _run(beside if beside.exists() else "uv", arguments[0], "-q", *arguments[1:])
    if done.returncode:
        raise Unavailable(f"uv {arguments[0]} failed: {done.stderr.strip()[-600:]}")


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603  # no shell


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        print(report(measure(Path(temporary), build_wheel(Path(temporary)))))
