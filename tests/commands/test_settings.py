"""``rapport config``, ``doctor``, ``db upgrade`` and error messages."""

import json
import shutil
import socket
import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec
import pytest
import sqlalchemy as sa

from stream_app import cli, setting_names
from stream_app.inference.bundles.bundle import DEFAULT_BUNDLE, MANIFEST
from stream_app.processes.doctor import run_checks
from stream_app.settings import Settings
from stream_app.store.database import tables
from stream_app.store.lifecycle import retention
from stream_app.store.stream import schema
from stream_app.worker.kafka import broker
from tests.commands.conftest import Rapport
from tests.fakes import FakeScorer
from tests.store.batches import prepare, process, turn
from tests.store.databases import open_store

SECRET = "zanzibar"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def invoke(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    log_settings_kept: object,
):
    """Runs a command in this process: exit status, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["rapport", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        code = ended.value.code
        captured = capsys.readouterr()
        return int(code or 0), captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAPPORT_DATABASE_URL", f"postgresql://u:{SECRET}@host/db"),
        ("RAPPORT_DATABASE_URL", f"postgresql://host/db?user=u&password={SECRET}"),
        ("RAPPORT_DATABASE_URL", SECRET),
        ("RAPPORT_DATABASE_PASSWORD", f"a://{SECRET}"),
        ("RAPPORT_DATABASE_READ_URL", f"postgresql://u:{SECRET}@host/db"),
        ("RAPPORT_KAFKA_PASSWORD", SECRET),
        ("RAPPORT_KAFKA_PASSWORD", f"a://{SECRET}"),
    ],
)
def test_config_masks_secrets(invoke, name: str, value: str) -> None:
    status, out, err = invoke("config", **{name: value})
    assert status == 0
    assert SECRET not in out + err
    assert f"{name}=" in out


def test_config_prints_the_settings_in_force(invoke) -> None:
    _, out, _ = invoke("config", RAPPORT_BATCH_MAX="17", RAPPORT_KAFKA_SECURITY="SASL_SSL")
    assert "RAPPORT_BATCH_MAX=17 " in out
    assert "RAPPORT_KAFKA_SECURITY=SASL_SSL " in out
    assert "RAPPORT_DATABASE_URL=sqlite:///rapport.db " in out


@pytest.mark.parametrize(
    ("misspelt", "nearest"),
    [
        ("RAPPORT_KEEP_TEXT_DAY", "RAPPORT_KEEP_TEXT_DAYS"),
        ("RAPPORT_REQUIRE_CONCENT", "RAPPORT_REQUIRE_CONSENT"),
        ("RAPPORT_KAFKA_PASSWORD_FLIE", "RAPPORT_KAFKA_PASSWORD_FILE"),
    ],
)
def test_a_misspelt_variable_is_reported_with_the_nearest_name(
    invoke, misspelt: str, nearest: str
) -> None:
    status, out, err = invoke("config", **{misspelt: SECRET})
    assert status == 0
    assert err == f"rapport: {misspelt} is not a setting; did you mean {nearest}?\n"
    assert SECRET not in out
    _, finding = islice(run_checks(Settings()), 2)
    assert (finding.name, finding.healthy) == ("settings", False)
    assert finding.detail == f"{misspelt} is not a setting; did you mean {nearest}?"


def test_a_variable_without_a_near_name_is_reported_too(invoke) -> None:
    _, _, err = invoke("config", RAPPORT_WEBHOOK_URL=SECRET)
    assert err == "rapport: RAPPORT_WEBHOOK_URL is not a setting; `rapport config` lists them\n"


@pytest.mark.parametrize("name", setting_names.MOVED)
def test_a_removed_setting_whose_value_would_be_missed_stops_the_command(invoke, name: str) -> None:
    assert name.lower() not in Settings.model_fields
    given = f"RAPPORT_{name}"
    status, out, err = invoke("config", **{given: SECRET})
    told = f"{given} is no longer a setting: {setting_names.MOVED[name]}; remove the variable"
    assert (status, out, err) == (2, "", f"rapport: {told}\n")
    _, finding = islice(run_checks(Settings()), 2)
    assert (finding.name, finding.healthy, finding.detail) == ("settings", False, told)
    assert f"`{given}`" in (ROOT / "docs" / "upgrading.md").read_text("utf-8")
    assert invoke("config", **{given: ""})[0] == 0, "as compose files pass what is not set"


@pytest.mark.parametrize("name", setting_names.FIXED)
def test_a_setting_that_became_a_constant_is_reported_with_what_holds_now(
    invoke, name: str
) -> None:
    assert name.lower() not in Settings.model_fields
    status, _, err = invoke("config", **{f"RAPPORT_{name}": SECRET})
    told = f"RAPPORT_{name} is no longer a setting: {setting_names.FIXED[name]}"
    assert (status, err) == (0, f"rapport: {told}; remove the variable\n")
    page = (ROOT / "docs" / "upgrading.md").read_text("utf-8")
    assert f"`RAPPORT_{name}`" in page, "the page says where each setting went"


def test_variables_that_others_read_are_not_reported(invoke, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text("targets: [{url: '${RAPPORT_HOOK}'}]\n", "utf-8")
    status, _, err = invoke(
        "config",
        RAPPORT_DB_PASSWORD=SECRET,
        RAPPORT_PROXY_ADDRESS="172.30.81.1",
        RAPPORT_KAFKA_PASSWORD_FILE="",
        RAPPORT_NOTIFICATIONS="targets.yaml",
        RAPPORT_HOOK_FILE="/run/secrets/hook",
        RAPPORT_WEB_SERVICE_HOST="10.0.0.7",
        RAPPORT_WEB_SERVICE_PORT_HTTP="8080",
        RAPPORT_WEB_PORT_8080_TCP_ADDR="10.0.0.7",
        rapport_batch_max="17",
    )
    assert (status, err) == (0, "")


def test_a_missing_broker_is_one_line(invoke) -> None:
    away = f"127.0.0.1:{broker.free_port()}"
    assert invoke("db", "upgrade")[0] == 0  # reading with "watch" is audited
    for command in (("watch",), ("dead-letters", "list")):
        status, _, err = invoke(*command, RAPPORT_KAFKA_BROKERS=away)
        assert status == 1
        assert err.startswith(f"rapport: no Kafka broker answers at {away}")
        assert len(err.splitlines()) == 1


def test_up_refuses_a_configured_port_that_is_in_use(invoke) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        status, out, err = invoke("up", "--for", "5", RAPPORT_WEB_PORT=str(port))
    assert status == 1
    assert "console http" not in out
    assert err == (
        f"rapport: RAPPORT_WEB_PORT is {port}, but 127.0.0.1:{port} cannot be used: "
        "Address already in use\n"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RAPPORT_BATCH_MAX", SECRET),
        ("RAPPORT_BATCH_MAX", "0"),
        ("RAPPORT_KAFKA_SECURITY", SECRET),
        ("RAPPORT_THREADS", "0"),
        ("RAPPORT_TOPIC_PREFIX", f"{SECRET} !"),
    ],
)
def test_an_invalid_value_is_one_line_that_names_the_variable(
    invoke, name: str, value: str
) -> None:
    status, out, err = invoke("config", **{name: value})
    assert status == 2
    assert err.startswith(f"{name}: ")
    assert SECRET not in out + err
    assert len(err.splitlines()) == 1


def test_an_invalid_file_of_rules_is_refused_with_line_numbers(invoke, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("", "utf-8")
    (tmp_path / "mine.yaml").write_text("version: 1\nrules:\n  - name: a\n", "utf-8")
    status, _, err = invoke("score", "log.jsonl", RAPPORT_RULES="mine.yaml")
    assert status == 1
    assert "mine.yaml:3: the rule lacks `when`" in err
    status, _, err = invoke("score", "log.jsonl", RAPPORT_RULES="none.yaml")
    assert (status, err.strip()) == (
        1,
        "rapport: none.yaml: cannot be read: No such file or directory",
    )


def test_doctor_reports_errors_in_the_rules(invoke, tmp_path: Path) -> None:
    away = f"127.0.0.1:{broker.free_port()}"
    _, out, _ = invoke("doctor", RAPPORT_KAFKA_BROKERS=away)
    assert "low-empathy, sudden-drop, silence-after-distress, crisis-language" in out
    (tmp_path / "mine.yaml").write_text("version: 1\nrules:\n  - {nme: a}\n", "utf-8")
    status, out, _ = invoke("doctor", RAPPORT_KAFKA_BROKERS=away, RAPPORT_RULES="mine.yaml")
    assert status == 1
    assert "mine.yaml:3: unknown key `nme`" in out


def test_an_empty_database_gives_no_baselines(invoke) -> None:
    assert invoke("db", "upgrade")[0] == 0
    status, out, _ = invoke("db", "baselines")
    assert status == 0
    assert out.startswith("0 ended sessions; baselines of 0 channels and 0 counsellors.")


def test_upgrade_creates_the_tables_once(invoke, tmp_path: Path) -> None:
    assert invoke("db", "upgrade")[1].startswith("schema none → ")
    assert (tmp_path / "rapport.db").exists()
    status, out, _ = invoke("db", "upgrade")
    assert status == 0
    before, _, after = out.splitlines()[0].removeprefix("schema ").partition(" → ")
    assert before == after != "none"


def test_a_rapport_error_is_one_line_without_a_traceback(invoke) -> None:
    away = f"postgresql://u:{SECRET}@127.0.0.1:{broker.free_port()}/db"
    status, _, err = invoke("db", "upgrade", RAPPORT_DATABASE_URL=away)
    assert status == 1
    assert err.startswith("rapport: the database does not answer")
    assert SECRET not in err


def test_doctor_suggests_what_to_do(invoke) -> None:
    status, out, _ = invoke("doctor", RAPPORT_KAFKA_BROKERS=f"127.0.0.1:{broker.free_port()}")
    assert status == 1
    assert "run `rapport db upgrade`" in out
    assert "RAPPORT_KAFKA_BROKERS" in out
    assert "consent is required" in out


def test_doctor_lists_the_domains_with_an_index(invoke, tmp_path: Path) -> None:
    folder = shutil.copytree(DEFAULT_BUNDLE, tmp_path / "own")
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    found = {}
    for name, empathy in (("with", msgspec.to_builtins(FakeScorer.empathy)), ("without", None)):
        body = {**manifest, "empathy": empathy}
        (folder / MANIFEST).write_text(json.dumps(body), "utf-8")
        away = f"127.0.0.1:{broker.free_port()}"
        found[name] = invoke("doctor", RAPPORT_KAFKA_BROKERS=away, RAPPORT_BUNDLE=str(folder))[1]
    assert "index for peer-support;" in found["with"]
    assert "WITHOUT an empathy index;" in found["without"]
    assert "WITHOUT" not in found["with"]


def test_doctor_reports_text_older_than_its_retention_time(invoke, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/one.db"
    store = open_store(url)
    schema.upgrade(store)
    prepare(store)
    here = {
        "RAPPORT_DATABASE_URL": url,
        "RAPPORT_KAFKA_BROKERS": f"127.0.0.1:{broker.free_port()}",
    }
    assert "text is kept 30 days, scores 365; no text is stored" in invoke("doctor", **here)[1]
    store.commit(process([turn()]))
    assert "the oldest text is 0 days old" in invoke("doctor", **here)[1]
    longest_ago = datetime.now(UTC) - timedelta(days=99)
    with store.transaction() as connection:
        connection.execute(sa.update(tables.turns).values(stored_at=longest_ago))
    assert "NOTHING IS PURGED: 1 of 1 texts would expire at once" in invoke("doctor", **here)[1]
    retention.claim_daily_run(store, datetime.now(UTC))
    store.close()
    _, out, _ = invoke("doctor", **here)
    assert "check that one is running, and its log for `outdated.failed`" in out
    _, out, _ = invoke("doctor", **here, RAPPORT_KEEP_TEXT_DAYS="99999")
    assert "text is kept 99999 days" in out
    assert "outdated.failed" not in out


def test_doctor_creates_no_database(invoke, tmp_path: Path) -> None:
    file = tmp_path / "deeper" / "there.db"
    away = f"127.0.0.1:{broker.free_port()}"
    _, out, _ = invoke(
        "doctor", RAPPORT_KAFKA_BROKERS=away, RAPPORT_DATABASE_URL=f"sqlite:///{file}"
    )
    assert "there.db does not exist: run `rapport db upgrade`" in out
    assert not file.parent.exists()


@pytest.mark.parametrize("bad", ["host:zanzibar", ""])
def test_doctor_continues_after_an_invalid_address(invoke, bad: str) -> None:
    status, out, _ = invoke("doctor", RAPPORT_KAFKA_BROKERS=bad)
    assert status == 1
    assert "RAPPORT_KAFKA_BROKERS" in out
    assert "privacy" in out


def test_doctor_prints_brackets_in_findings_literally(invoke, tmp_path: Path) -> None:
    _, out, _ = invoke("doctor", RAPPORT_BUNDLE=str(tmp_path / "[red]x"))
    assert "[red]x" in out


def test_doctor_succeeds_with_a_broker_and_an_upgraded_database(
    rapport: Rapport, embedded_broker: str
) -> None:
    new = {"RAPPORT_KAFKA_BROKERS": embedded_broker, "RAPPORT_TOPIC_PREFIX": "unused-prefix"}
    assert rapport("db", "upgrade").returncode == 0
    done = rapport("doctor", **new)
    assert done.returncode == 0, done.stdout
    assert "problem" not in done.stdout
    assert "the first worker will create the topics" in done.stdout


def test_a_bundle_is_selected_by_name(invoke) -> None:
    _, out, _ = invoke("config", RAPPORT_BUNDLE="default")
    assert f"RAPPORT_BUNDLE={DEFAULT_BUNDLE} " in out


def test_an_unknown_bundle_is_refused_with_the_known_names(invoke, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"")
    status, _, err = invoke("score", "in.jsonl", "--bundle", "nanno")
    assert status == 1
    assert "no model bundle at nanno" in err
    assert "default" in err
