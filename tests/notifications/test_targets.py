"""The file of notification targets: its settings and error messages."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import CliRunner

from stream_app.cli import app
from stream_app.errors import RapportError
from stream_app.notifications.targets import Plan, Target, read_plan
from stream_app.processes import notifier as notify
from stream_app.settings import Settings
from tests.notifications.alerts import FIRING

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # a plugin of Apprise's
SECRET = "zanzibar"
EXAMPLE = Path(__file__).parents[2] / "docs" / "notifications.example.yaml"
WHOLE = """\
targets:
  - name: desk
    kind: webhook
    url: https://hooks.example.org/${TOKEN}
    secret: ${SIGNING}
    timeout: 5
  - name: nights
    kind: apprise
    url: json://127.0.0.1/x
    supervisor: Night supervisor
    severities: [warning, critical]
    rules: [low-empathy-risk]
    teams: [nights]
    domains: [counselling]
    labels: {site: north}
    hourly_cap: 6
    digest_every: 30m
    critical_passes: true
    quiet_hours: {from: 22:00, to: "07:00", zone: Europe/London}
"""
DAYS = "mon, tue, wed, thu, fri, sat, sun"
ENVIRONMENT = {"TOKEN": SECRET, "SIGNING": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}


@pytest.fixture
def read(tmp_path: Path):
    def reading(text: str, **environment: str) -> list[Target]:
        file = tmp_path / "targets.yaml"
        file.write_text(text, "utf-8")
        return read_plan(file, ENVIRONMENT | environment).targets

    return reading


def test_all_settings_of_a_target_are_read(read) -> None:
    desk, nights = read(WHOLE)
    assert desk.url.get_secret_value() == f"https://hooks.example.org/{SECRET}"
    assert (desk.timeout, desk.rate_limit.hourly_cap, desk.rate_limit.quiet) == (5.0, None, None)
    assert nights.supervisor == "Night supervisor"
    pace = nights.rate_limit
    assert (pace.hourly_cap, pace.digest_every) == (6, timedelta(minutes=30))
    assert pace.reserved_for_digests == 2
    assert pace.bypassed_by("critical")
    assert not pace.bypassed_by("warning")
    assert pace.quiet is not None
    assert SECRET not in repr(desk) + str(desk)


@pytest.mark.parametrize(
    "change",
    [
        {"severity": "info"},
        {"rule": "another"},
        {"team": None},
        {"domain": "peer-support"},
        {"labels": {"site": "south"}},
        {"labels": {}},
    ],
)
def test_an_alert_must_pass_every_filter(read, change: dict[str, object]) -> None:
    desk, nights = read(WHOLE)
    assert nights.wants(FIRING)
    assert not nights.wants(structs.replace(FIRING, **change))
    assert desk.wants(structs.replace(FIRING, **change))


def wrong(old: str, new: str) -> str:
    assert old in WHOLE
    return WHOLE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "expected `targets:` and a list below it"),
        ("- a\n", 1, "expected `targets:` and a list below it"),
        ("targets: []\n", 1, "List should have at least 1 item"),
        ("targets:\n  - name: [\n", 3, "not YAML"),
        (wrong("    timeout: 5", "    timeut: 5"), 6, "timeut: unknown key"),
        (wrong("    timeout: 5", "    timeout: 61"), 6, "timeout: "),
        (wrong("    timeout: 5", "    kind: webhook"), 6, "duplicate key"),
        (wrong("    kind: webhook\n", ""), 2, "kind: is missing"),
        (wrong("kind: webhook", "kind: carrier-pigeon"), 3, "kind: Input should be 'webhook'"),
        (wrong("https://hooks", f"ftp://{SECRET}"), 4, "url: not an http or https address"),
        (wrong("${TOKEN}", "${TOKEN}${NOPE}"), 4, "url: environment variable NOPE is not set"),
        (wrong("${SIGNING}", "whsec_x"), 5, "secret: not base64"),
        (wrong("name: nights", "name: desk"), 7, "duplicate name desk"),
        (wrong("name: nights", "name: a/b"), 7, "name: "),
        (wrong("json://127.0.0.1/x", f"slack://{SECRET}"), 9, "url: not an address that Apprise"),
        (wrong("json://127.0.0.1/x", SECRET), 9, "url: not an address that Apprise"),
        (wrong("url: json", f"secret: {SECRET}\n    url: json"), 9, "secret: only webhooks have"),
        (wrong("[warning, critical]", "[warning, bad]"), 11, "severities: Input should be 'info'"),
        (wrong("[low-empathy-risk]", "[]"), 12, "rules: List should have at least 1 item"),
        (wrong("hourly_cap: 6", "hourly_cap: 0"), 16, "hourly_cap: Input should be greater"),
        (wrong("hourly_cap: 6", "hourly_cap: 1"), 7, "digest_every needs 2 digests an hour"),
        (wrong("30m", "30"), 17, "digest_every: not a duration like 90s, 30m or 1h"),
        (wrong("22:00", "25:00"), 19, "quiet_hours.from: "),
        (wrong("Europe/London", "Europe/Nowhere"), 19, "quiet_hours.zone: not a time zone"),
    ],
)  # fmt: skip
def test_errors_have_a_line_and_no_secret(read, text: str, line: int, what: str) -> None:
    with pytest.raises(RapportError) as refused:
        read(text)
    [told] = str(refused.value).splitlines()
    assert f"targets.yaml:{line}: " in told
    assert what in told
    assert SECRET not in told


def test_all_errors_are_reported_at_once(read) -> None:
    text = wrong("timeout: 5", "timeout: x").replace("30m", "soon")
    with pytest.raises(RapportError) as refused:
        read(text)
    assert len(str(refused.value).splitlines()) == 2


def test_a_person_has_one_target(read) -> None:
    text = wrong("    timeout: 5", "    supervisor: Night supervisor")
    with pytest.raises(RapportError, match=r":10: .*Night supervisor already has the target desk"):
        read(text)


def test_an_empty_environment_variable_counts_as_unset(read) -> None:
    with pytest.raises(RapportError, match=r":4: url: environment variable TOKEN is not set"):
        read(WHOLE, TOKEN="")


def test_a_missing_targets_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RapportError, match=r"nothing\.yaml cannot be read: No such file"):
        read_plan(tmp_path / "nothing.yaml", {})


def test_a_secret_is_read_from_a_file(read, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n", "utf-8")
    desk, _ = read(WHOLE, TOKEN="", TOKEN_FILE=str(tmp_path / "token"))
    assert desk.url.get_secret_value() == "https://hooks.example.org/from-a-file"
    with pytest.raises(RapportError, match=r":4: url: .*/none cannot be read: No such file"):
        read(WHOLE, TOKEN="", TOKEN_FILE=str(tmp_path / "none"))
    with pytest.raises(RapportError, match=r":4: url: TOKEN is set as well: remove one"):
        read(WHOLE, TOKEN_FILE=str(tmp_path / "token"))


def test_the_documented_example_is_valid() -> None:
    environment = {
        "DESK_URL": "https://hooks.example.org/x",
        "DESK_SECRET": ENVIRONMENT["SIGNING"],
        "NIGHTS_SLACK": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/",
        "MAIL_PASSWORD": "p",
        "ANNA_PAGER": "json://pager.example.org/anna",
        "BEN_PAGER": "json://pager.example.org/ben",
    }
    plan = read_plan(EXAMPLE, environment)
    assert len(plan.targets) == 5
    assert plan.escalation.reached == ["anna", "ben", "night-supervisor"]
    now = datetime(2026, 11, 23, tzinfo=UTC)
    assert plan.escalation.rotas["duty"].gaps(now, now + timedelta(weeks=4)) == []


ROTAS = """\
targets:
  - {name: desk, kind: webhook, url: https://hooks.example.org/x}
  - {name: anna, kind: webhook, url: https://hooks.example.org/a, escalation_only: true}
rotas:
  - name: duty
    zone: Europe/London
    shifts:
      - {target: anna, days: [mon, sun], from: "20:00", to: "08:00"}
      - {target: desk, from: 2026-12-24T08:00, to: 2026-12-27T08:00:00}
escalation:
  - severities: [critical]
    steps:
      - {after: 5m, to: [duty]}
      - {after: 1h, to: [duty, desk]}
"""


@pytest.fixture
def read_whole(tmp_path: Path):
    def reading(text: str) -> Plan:
        file = tmp_path / "targets.yaml"
        file.write_text(text, "utf-8")
        return read_plan(file, {})

    return reading


def test_rotas_and_escalation_are_read(read_whole) -> None:
    plan = read_whole(ROTAS)
    assert [target.escalation_only for target in plan.targets] == [False, True]
    escalation = plan.escalation
    monday = datetime(2026, 11, 23, 21, tzinfo=UTC)
    assert escalation.target_of("duty", monday) == "anna"
    assert escalation.target_of("duty", monday + timedelta(days=1)) is None
    assert escalation.target_of("duty", datetime(2026, 12, 25, tzinfo=UTC)) == "desk"
    assert escalation.target_of("desk", monday) == "desk"
    assert escalation.reached == ["anna", "desk"]
    path = escalation.path_of(structs.replace(FIRING, severity="critical"))
    assert path is not None
    assert [step.after for step in path.steps] == [timedelta(minutes=5), timedelta(hours=1)]
    assert escalation.path_of(FIRING) is None


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("{target: anna, days", "{target: nobody, days", r":8: there is no target nobody"),
        ("[duty, desk]", "[duty, nobody]", r":14: there is no target or rota nobody"),
        ("[duty, desk]", "[duty, duty]", r":14: a name is listed twice"),
        ("name: duty", "name: desk", r":5: duplicate name desk"),
        ("after: 1h", "after: 5m", r":12: .*each step must come later than the one before it"),
        ("after: 1h", "after: 0m", r":14: after: not a duration"),
        ("[mon, sun]", "[]", r":8: days: List should have at least 1 item"),
        ("[mon, sun]", "[monday]", r":8: days: Input should be 'mon'"),
        ("Europe/London", "London", r":6: zone: not a time zone"),
        ("2026-12-24T08:00", "2026-12-28T08:00", r":9: shifts: the shift ends before it begins"),
        ("2026-12-24T08:00", "2026-12-24T08:00Z", r":9: from: .*should not have timezone"),
        ("to: 2026", "until: 2026", r":9: to: is missing"),
    ],
)
def test_an_error_in_a_rota_or_step_has_its_line(
    read_whole, old: str, new: str, error: str
) -> None:
    with pytest.raises(RapportError, match=error):
        read_whole(ROTAS.replace(old, new))


def test_a_rota_without_shifts_is_refused(read_whole) -> None:
    head, _, rest = ROTAS.partition("    shifts:\n")
    with pytest.raises(RapportError, match=r":7: shifts: List should have at least 1 item"):
        read_whole(f"{head}    shifts: []\n{rest[rest.index('escalation:') :]}")


def test_the_check_says_who_is_on_call_and_when_nobody_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(ROTAS, "utf-8")
    monkeypatch.setenv("RAPPORT_NOTIFICATIONS", str(file))
    result = CliRunner().invoke(app, ["notify", "check"])
    assert result.exit_code == 1
    assert "is on call now" in result.stdout
    assert result.stderr.count("duty: nobody is on call, ") >= 4
    file.write_text(ROTAS.replace('"08:00"', '"20:00"').replace("mon, sun", DAYS), "utf-8")
    result = CliRunner().invoke(app, ["notify", "check"])
    assert (result.exit_code, result.stderr) == (0, "")


def test_the_check_names_the_borders_of_a_gap_in_the_rotas_zone(tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(ROTAS, "utf-8")
    settings = Settings().model_copy(update={"notifications": file})
    [duty] = notify.check(settings, datetime(2026, 12, 20, 21, tzinfo=UTC))
    assert duty.on_call == "anna"
    assert duty.gaps[:2] == [
        "Mon 2026-12-21 08:00 GMT to Mon 2026-12-21 20:00 GMT",
        "Tue 2026-12-22 08:00 GMT to Thu 2026-12-24 08:00 GMT",
    ]
    assert duty.overlaps == []
