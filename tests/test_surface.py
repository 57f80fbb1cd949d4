"""Other packages import only what a package's `__all__` lists."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import sources

ROOT = Path(__file__).parent.parent
ROOTS = ("stream_app", "models", "export", "research")
READERS = (*ROOTS, "benchmarks", "migrations")


def _module(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGES = sorted(_module(file) for root in ROOTS for file in (ROOT / root).rglob("__init__.py"))


def _file(package: str) -> Path:
    return ROOT.joinpath(*package.split("."), "__init__.py")


@cache
def _surface(package: str) -> frozenset[str]:
    for node in sources.tree(_file(package)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def _imported(file: Path) -> Iterator[str]:
    for node in sources.statements(sources.tree(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _violations(importer: str, imported: str) -> Iterator[str]:
    """Private parts of packages that the import of `imported` in `importer` uses."""
    parts = imported.split(".")
    for length in range(1, len(parts)):
        package, name = ".".join(parts[:length]), parts[length]
        inside = importer == package or importer.startswith(f"{package}.")
        if package in PACKAGES and not inside and name not in _surface(package):
            yield f"{importer} imports {package}.{name}"


def test_no_module_imports_a_private_module_of_another_package() -> None:
    files = [file for root in READERS for file in sorted((ROOT / root).rglob("*.py"))]
    found = {
        violation
        for file in files
        for name in _imported(file)
        for violation in _violations(_module(file), name)
    }
    assert not found


@pytest.mark.parametrize(
    ("importer", "imported", "count"),
    [
        ("stream_app.web.live.live_hub", "stream_app.store.stream.repository.Store", 0),
        ("stream_app.web.live.live_hub", "stream_app.store.database.copying.Copying", 1),
        ("stream_app.store.database.rows", "stream_app.store.database.copying.Copying", 0),
        ("stream_app.web.app", "stream_app.web.console.plots.charts", 1),
        ("stream_app.processes.web", "stream_app.store.database.copying.Copying", 1),
        ("models.fit.train", "torch.nn", 0),
    ],
)
def test_an_import_is_checked_against_every_package_it_enters(
    importer: str, imported: str, count: int
) -> None:
    assert len(list(_violations(importer, imported))) == count


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_exists(package: str) -> None:
    folder, tree = _file(package).parent, sources.tree(_file(package))
    modules = {path.stem for path in folder.iterdir()}
    defined = {
        name.id for node in tree.body for name in ast.walk(node) if isinstance(name, ast.Name)
    } | {getattr(node, "name", "") for node in tree.body}
    bound = {name.rpartition(".")[2] for name in _imported(_file(package))}
    assert _surface(package) <= modules | defined | bound


@pytest.mark.parametrize("package", [name for name in PACKAGES if name.startswith("stream_app.")])
def test_every_starting_point_in_a_docstring_exists(package: str) -> None:
    text = ast.get_docstring(sources.tree(_file(package))) or ""
    start = text.partition("Start at")[2].partition(";")[0]
    for name in re.findall(r"``([\w.]+)``", start):
        module, _, attribute = name.partition(".")
        assert module in _surface(package)
        loaded = importlib.import_module(f"{package}.{module}")
        assert not attribute or hasattr(loaded, attribute)
