"""Policy profiles: their files, what they refuse, and what ``doctor`` says of them."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stream_app import policies
from stream_app.cli import root
from stream_app.core.measures.heads import Dimension
from stream_app.policies import Actions, PolicyError
from stream_app.processes import doctor
from stream_app.settings import Settings
from tests import group_files

TOLD = "2026-03-01"
OWN = """
version: 1
title: Ours
applies_to: Us.
restricted_outputs: [perceived]
settings:
  keep_text_days: {at_most: 14}
actions: free
notices:
  client: The text is deleted after {keep_text_days} days.
  counsellor: Scores are shown.
consent_version: ours-1
sources:
  - {title: Agreement, url: "https://example.org/agreement", of: 2026-01-05}
"""


def settings(policy: str, **given: Any) -> Settings:
    return Settings(policy=policy, **{"workers_told": TOLD, **given})


@pytest.mark.parametrize("name", policies.shipped())
def test_a_shipped_profile_works_with_the_defaults(name: str) -> None:
    given = settings(name)
    profile = policies.load(name)
    assert profile.name == name
    assert given.require_consent
    assert given.redact
    told = profile.told(dict(given))
    assert "{" not in told.client + told.counsellor
    assert str(given.keep_text_days) in told.client
    assert str(given.keep_scores_days) in told.counsellor


def test_there_are_four() -> None:
    assert policies.shipped() == ["eu-workplace", "illinois-therapy", "peer-support", "research"]


@pytest.mark.parametrize(
    ("policy", "setting", "value"),
    [
        (policy, setting, value)
        for policy in policies.shipped()
        for setting, value in (
            ("require_consent", False),
            ("redact", False),
            ("on_withdrawal", "keep"),
            ("keep_text_days", 4000),
            ("keep_scores_days", 4000),
        )
    ],
)
def test_a_setting_that_contradicts_the_profile_is_refused(
    policy: str, setting: str, value: Any
) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(policy, **{setting: value})
    [error] = refused.value.errors()
    shown = str(value).lower()
    sentence = (
        f"RAPPORT_{setting.upper()}={shown} contradicts RAPPORT_POLICY={policy}, which allows"
    )
    assert sentence in error["msg"]
    assert "\n" not in error["msg"]


def test_more_may_be_restricted_and_never_less(tmp_path: Path) -> None:
    nothing = group_files.written(tmp_path, restricted_outputs={"all": []})
    given = settings("illinois-therapy", groups=nothing)
    everything = {Dimension.CLIENT, Dimension.PERCEIVED, Dimension.OUTCOME}
    assert given.restrictions.of("counselling", "web", "north") == everything
    berlin = group_files.written(tmp_path, restricted_outputs={"team:berlin": ["perceived"]})
    more = settings("eu-workplace", groups=berlin)
    assert more.restrictions.of(None, None, "berlin") == {Dimension.PERCEIVED}
    assert settings("eu-workplace").restrictions.of(None, None, "berlin") == set()


def test_workers_are_told_before_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAPPORT_POLICY", "eu-workplace")
    monkeypatch.setattr("sys.argv", ["rapport", "config"])
    with pytest.raises(SystemExit, match="2"):
        root.main()
    assert capsys.readouterr().err == (
        "rapport: no RAPPORT_WORKERS_TOLD contradicts RAPPORT_POLICY=eu-workplace, "
        "which needs it to be set\n"
    )
    with pytest.raises(ValidationError, match="is in the future"):
        settings("eu-workplace", workers_told="2999-01-01")


def test_a_setting_with_one_value_left_has_it() -> None:
    given = settings("research")
    assert not given.practice
    assert given.on_withdrawal.value == "erase"
    with pytest.raises(ValidationError, match="RAPPORT_PRACTICE=true contradicts"):
        settings("research", practice=True)
    with pytest.raises(ValidationError, match=r"RAPPORT_NOTIFICATIONS=.* does not allow it"):
        settings("research", notifications="targets.yaml")


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(OWN, "utf-8")
    given = settings(str(tmp_path / "ours.yaml"), keep_text_days=7)
    profile = given.profile
    assert profile is not None
    assert (profile.name, profile.actions) == ("ours", Actions.FREE)
    assert profile.headline == "perceived outputs are off"
    assert profile.told(dict(given)).client == "The text is deleted after 7 days."


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("version: 1", "version: 2", "`version`"),
        ("[perceived]", "[mood]", "`restricted_outputs.0`"),
        ("keep_text_days: {", "master_key: {", "`settings.master_key"),
        ("{at_most: 14}", "{}", "needs only, at_least, at_most or set"),
        ("after {keep_text_days}", "after {days}", "the notices may name {keep_text_days}"),
        ("after {keep_text_days}", "after {", "have no other braces"),
        ("of: 2026-01-05", "of: soon", "`sources.0.of`"),
        ("actions: free", "acts: free", "`actions`"),
        ("version: 1", "[", "line"),
    ],
)
def test_a_file_that_is_not_valid_says_where(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    file = tmp_path / "ours.yaml"
    file.write_text(OWN.replace(old, new, 1), "utf-8")
    with pytest.raises(PolicyError) as refused:
        policies.load(str(file))
    assert str(refused.value).startswith(str(file))
    assert reason in str(refused.value)


def test_an_unknown_name_lists_the_shipped_ones() -> None:
    with pytest.raises(ValidationError, match="none of eu-workplace, illinois-therapy"):
        settings("illinois")


def test_doctor_says_what_is_in_force_and_which_rules_are_silent() -> None:
    none = doctor._finding("policy", doctor._policy, Settings())
    assert none.detail == "no profile is in force: RAPPORT_POLICY is not set"
    found = doctor._finding("policy", doctor._policy, settings("illinois-therapy"))
    assert found.healthy
    assert found.detail.startswith("illinois-therapy (Therapy by licensed professionals in")
    assert "client and perceived outputs are off" in found.detail
    assert found.detail.endswith("cannot fire: silence-after-distress, crisis-language")
    assert "cannot fire" not in doctor._policy(settings("eu-workplace"))
