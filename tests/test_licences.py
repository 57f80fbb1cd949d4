"""The licences of all locked packages are known, and permissive but for named ones.

A package's own metadata is compared with the list where the package is installed, so that a new
version under another licence is noticed.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

REQUIREMENTS = Path(__file__).parent.parent / "requirements"
LISTED = tomllib.loads((REQUIREMENTS / "licences.toml").read_text("utf-8"))
LICENCES: dict[str, str] = LISTED["licences"]
ACCEPTED: dict[str, str] = LISTED["accepted"]
PERMISSIVE = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "CNRI-Python"),
    *("ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0", "Zlib"),
    *("LicenseRef-Public-Domain", "LicenseRef-Repoze"),
}
_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_COPYLEFT = re.compile(r"GPL|MPL|GNU|Mozilla|EUPL|CeCILL|Sleepycat|copyleft", re.IGNORECASE)


def locked() -> list[str]:
    """Normalised names of the packages in all lock files."""
    text = "".join(file.read_text("utf-8") for file in REQUIREMENTS.glob("*.txt"))
    return sorted({re.sub(r"[-_.]+", "-", name).lower() for name in _LOCKED.findall(text)})


def is_permissive(licence: str) -> bool:
    """Whether one alternative of an SPDX expression has permissive parts alone."""
    return any(
        all(part.removesuffix(" WITH LLVM-exception") in PERMISSIVE for part in each.split(" AND "))
        for each in licence.split(" OR ")
    )


def stated(name: str) -> tuple[str | None, str]:
    """The SPDX expression of an installed package, and the names that it gives its licence.

    Some packages have the whole text of a licence where its name belongs: its first line counts.
    """
    found = metadata(name)
    classifiers = [text for text in found.get_all("Classifier", []) if text.startswith("License ")]
    name_of = (found.get("License") or "").partition("\n")[0]
    return found.get("License-Expression"), "\n".join([*classifiers, name_of])


def test_every_locked_package_is_listed() -> None:
    assert locked() == sorted(LICENCES)


@pytest.mark.parametrize("name", locked())
def test_a_locked_package_has_a_permissive_licence_or_is_accepted_by_name(name: str) -> None:
    licence = LICENCES.get(name, "unknown")
    assert is_permissive(licence) is not (name in ACCEPTED), licence


@pytest.mark.parametrize("name", locked())
def test_the_list_says_what_the_installed_package_says(name: str) -> None:
    try:
        expression, words = stated(name)
    except PackageNotFoundError:
        pytest.skip("not installed")
    if expression is not None:
        assert LICENCES[name] == expression
    elif name not in ACCEPTED:
        assert not _COPYLEFT.search(words)


@pytest.mark.parametrize(
    "licence",
    ["unknown", "GPL-3.0-or-later", "AGPL-3.0-only", "MIT AND MPL-2.0", "LGPL-3.0-only", ""],
)
def test_unknown_and_copyleft_licences_are_not_permissive(licence: str) -> None:
    assert not is_permissive(licence)


def test_an_alternative_is_enough() -> None:
    assert is_permissive("GPL-2.0-only OR MIT")
