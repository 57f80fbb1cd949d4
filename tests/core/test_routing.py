"""Languages, routes and the file of bundles and routes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_app.core.rules.languages import covers, normalised
from stream_app.core.rules.routes_file import MAX_BUNDLES, RoutesFileError, parse
from stream_app.core.rules.routing import Addressed
from tests.routed_fakes import bundle_of, in_force

ROUTES = """
routes:
  - {bundle: german, languages: [de]}
  - {bundle: north, teams: [north, north-evening]}
  - {bundle: chat, channels: [web-chat], domains: [customer-service]}
"""


@pytest.mark.parametrize(
    ("ranges", "tag", "expected"),
    [
        (["en"], "en-GB", True),
        (["en"], "EN_us", True),
        (["en"], " en ", True),
        (["en"], "eng", True),
        (["en"], "english", True),
        (["de"], "de-Latn-AT-1996", True),
        (["de-AT"], "de", False),
        (["DE-at"], "de-AT-x-private", True),
        (["*"], "tlh", True),
        ([], "en", False),
        ([], None, True),
        (["en"], "", True),
        (["en"], "und", True),
        (["en"], "und-Latn", True),
        (["en"], "zxx", False),
        (["en"], "еn", False),  # a Cyrillic letter
        (["k"], "\u212a", False),
        (["en"], "-", False),
        (["en"], "x" * 35, False),
    ],
)
def test_a_range_covers_its_subtags_in_any_case(
    ranges: list[str], tag: str | None, expected: bool
) -> None:
    assert covers(ranges, tag) is expected


@given(st.text(max_size=35))
def test_any_tag_that_the_wire_accepts_has_one_form(tag: str) -> None:
    found = normalised(tag)
    assert found is None or (normalised(found) == found and covers([found], tag))


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (Addressed(lang="de-CH", team="north"), "german"),
        (Addressed(team="north", lang="en"), "north"),
        (Addressed(team="north"), "north"),
        (Addressed(team="north-evening", lang="und"), "north"),
        (Addressed(team="North"), "default"),
        (Addressed(channel="web-chat", domain="customer-service"), "chat"),
        (Addressed(channel="web-chat"), "default"),
        (Addressed(), "default"),
        (Addressed(lang="fr", team="north"), None),
        (Addressed(lang="fr"), None),
    ],
)
def test_the_first_route_whose_bundle_covers_the_language_decides(
    session: Addressed, expected: str | None
) -> None:
    bundles = in_force(
        {
            "north": bundle_of("north"),
            "german": bundle_of("german", "g", ("de",)),
            "chat": bundle_of("chat"),
        },
        ROUTES,
    )
    found = bundles.choose(session)
    assert (found and found.environment.bundle_id) == (expected and f"{expected}-1-fp32")


def test_a_route_to_a_refused_bundle_is_passed_over() -> None:
    bundles = in_force({"north": bundle_of("north")}, ROUTES)
    assert bundles.choose(Addressed(lang="de")) is None
    found = bundles.choose(Addressed(channel="web-chat", domain="customer-service"))
    assert found is bundles.default


def test_a_file_names_bundles_and_routes() -> None:
    found = parse(
        b"version: 1\ndefault: {languages: [en, CY]}\n"
        b"bundles: {no: {folder: /srv/no, languages: [no], digest: " + b"a" * 64 + b"}}\n"
        b"routes: [{bundle: no, languages: no}]\n",
        "routes.yaml",
    )
    assert found.languages == ("en", "cy")
    [bundle] = found.bundles
    assert (bundle.name, bundle.folder, bundle.languages) == ("no", "/srv/no", ("no",))
    assert list(found.candidates(Addressed(lang="no-NO"))) == ["no"]
    assert parse(b"version: 1\n", "r").bundles == ()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "1: a file of routes begins with `version: 1`"),
        ("[]", "1: a file of routes begins"),
        ("version: 2", "1: `version: 1` is required"),
        ("version: 1\nbundle: {}", "2: unknown key `bundle`"),
        ("version: 1\nbundles: [north]", "2: `bundles` is a mapping"),
        ("version: 1\nbundles:\n  North: {folder: n}", "3: a name has lower-case letters"),
        ("version: 1\nbundles:\n  north: n", "3: `north` is a mapping with `folder:`"),
        ("version: 1\nbundles:\n  north: {}", "3: `north` needs a `folder:`"),
        ('version: 1\nbundles:\n  n: {folder: "a\\0b"}', "3: `n` needs a `folder:`"),
        ("version: 1\nbundles:\n  n: {folder: n, digest: 12}", "3: `digest` has 64"),
        ("version: 1\nbundles:\n  n: {folder: n, languages: [d e]}", "3: a language is a BCP 47"),
        ("version: 1\nroutes:\n  - {bundle: n, teams: [a]}", "3: `bundle` is one of those above"),
        ("version: 1\nroutes:\n  - {teams: [a]}", "3: `bundle` is one of those above"),
        ("version: 1\nroutes: {}", "2: `routes` is a list"),
        (
            "version: 1\nbundles: {n: {folder: n}}\nroutes:\n  - {bundle: n}",
            "4: a route needs a condition",
        ),
        (
            "version: 1\nbundles: {n: {folder: n}}\nroutes:\n  - {bundle: n, teams: []}",
            "4: `teams` is a list of 1 to",
        ),
        (
            "version: 1\nbundles: {n: {folder: n}}\nroutes:\n  - {bundle: n, domains: [shop]}",
            "4: unknown in `domains`: shop; known are",
        ),
        ("version: 1\nversion: 1", "not YAML"),
        ("version: [", "not YAML"),
        ("default: en\nversion: 1", "1: `default` is a mapping"),
    ],
)
def test_errors_name_the_line(text: str, fault: str) -> None:
    with pytest.raises(RoutesFileError) as refused:
        parse(text.encode(), "routes.yaml")
    assert any(fault in each and each.startswith("routes.yaml:") for each in refused.value.faults)


def test_a_file_has_a_limit_and_must_be_text() -> None:
    names = "".join(f"  n{i}: {{folder: n}}\n" for i in range(MAX_BUNDLES + 1))
    with pytest.raises(RoutesFileError, match=f"more than {MAX_BUNDLES} bundles"):
        parse(f"version: 1\nbundles:\n{names}".encode(), "r")
    with pytest.raises(RoutesFileError, match="not valid UTF-8"):
        parse(b"\xff", "r")
