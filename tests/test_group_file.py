"""The file of groups: what it says, and errors that name file, key and remedy."""

from pathlib import Path

import pytest

from stream_app import group_file
from stream_app.contracts.events import Approach
from stream_app.core.measures.heads import Dimension
from stream_app.settings import Settings
from stream_app.store.accounts.roles import PersonRole

WHOLE = """
approaches:
  domain:counselling: motivational-interviewing
  "team:mi": "motivational-interviewing"
restricted_outputs:
  team:berlin: [client, perceived]
single_sign_on:
  access_claim: realm_access.roles
  access:
    leads-north: {role: supervisor, team: north}
    heads: {role: supervisor, all_teams: true}
  create_accounts: true
"""


def settings(folder: Path, text: str) -> Settings:
    file = folder / "groups.yaml"
    file.write_text(text, "utf-8")
    group_file.load.cache_clear()
    return Settings(groups=file)


def test_a_teams_approach_overrides_its_domains(tmp_path: Path) -> None:
    found = settings(tmp_path, WHOLE).approach_by_group
    interviewing = Approach.MOTIVATIONAL_INTERVIEWING.value
    assert found.of("counselling", "other") == interviewing
    assert found.of("peer-support", "mi") == interviewing
    assert found.of("peer-support", "other") is None


def test_outputs_and_access_are_read(tmp_path: Path) -> None:
    found = settings(tmp_path, WHOLE)
    assert Dimension.PERCEIVED in found.restrictions.of(None, None, "berlin")
    assert found.restrictions.of("counselling", "web", "boston") == set()
    rules = found.single_sign_on
    assert [*rules.access] == ["leads-north", "heads"], "the first matching group counts"
    assert rules.access["leads-north"].role is PersonRole.SUPERVISOR
    assert (rules.access_claim, rules.name_claim) == ("realm_access.roles", "preferred_username")


def test_the_example_of_the_documentation_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "security.md").read_text("utf-8")
    _, _, example = page.partition("## Groups")[2].partition("```yaml\n")
    assert settings(tmp_path, example.partition("```")[0]).single_sign_on.create_accounts


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "{}"])
def test_an_empty_file_says_what_none_says(tmp_path: Path, text: str) -> None:
    assert settings(tmp_path, text).by_group == Settings().by_group


def test_a_json_value_of_an_earlier_setting_can_be_pasted(tmp_path: Path) -> None:
    text = 'approaches: {"team:night": "motivational-interviewing"}'
    assert settings(tmp_path, text).approach_by_group.of(None, "night") is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "`the file`: Input should be"),
        ("approach: {}", "`approach` is unknown: remove it, or look for its name"),
        ("approaches: mi", "`approaches`: Input should be a valid dictionary"),
        ("approaches: {team:a: mi}", "`approaches.team:a`: Input should be 'motivational"),
        ("approaches: {team: motivational-interviewing}", "unknown key `team`; keys are team:NAME"),
        ("approaches: {domain:x: motivational-interviewing}", "or domain: with one of counselling"),
        ("restricted_outputs: {all: [mood]}", "`restricted_outputs.all.0`: Input should be 'clie"),
        (
            "restricted_outputs: {all: client}",
            "`restricted_outputs.all`: Input should be a valid l",
        ),
        ("restricted_outputs: {x:y: []}", "`restricted_outputs`: unknown key `x:y`; keys are all"),
        ("restricted_outputs: {1: []}", "`restricted_outputs.1`: Input should be a valid string"),
        ("single_sign_on: {create_accounts: true}", "create_accounts needs access: say which"),
        ("single_sign_on: {access: {x: {role: ingest}}}", "`single_sign_on.access.x`: programs"),
        ("single_sign_on: {access: {x: {role: king}}}", "access.x.role`: Input should be"),
        ("single_sign_on: {access: {x: {role: analyst, all_teams: true}}}", "is for supervisors"),
        ("single_sign_on: {claim: x}", "`single_sign_on.claim` is unknown"),
        ("approaches: {}\napproaches: {}", "line 2: not YAML: found duplicate key"),
        ("a: [", "line 1: not YAML"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match="groups") as refused:
        settings(tmp_path, text)
    [error] = refused.value.errors()  # type: ignore[attr-defined]
    assert error["loc"] == ("groups",)
    assert words in error["msg"]
    assert f"{tmp_path}/groups.yaml: " in error["msg"]
    assert "\n" not in error["msg"]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.yaml cannot be read: No such file"):
        Settings(groups=tmp_path / "none.yaml")


def test_several_errors_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`a` is unknown.*; `b` is unknown"):
        settings(tmp_path, "{a: 1, b: 2}")
