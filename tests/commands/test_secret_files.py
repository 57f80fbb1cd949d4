"""Secret settings from files."""

from pathlib import Path

import pytest
from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from stream_app import secret_files
from stream_app.errors import StoreError
from stream_app.processes.child_processes import environment
from stream_app.settings import Settings
from tests.commands.conftest import Rapport

SECRET = "zanzibar"
VARIABLES = secret_files.variables(Settings)


def test_every_secret_setting_has_a_file() -> None:
    fields = Settings.model_fields
    secret = {name for name, value in fields.items() if "Secret" in str(value)}
    assert {"database_url", "database_password", "kafka_password"} <= set(VARIABLES)
    assert set(VARIABLES) == {name for name in secret if f"{name}_file" not in fields}


@pytest.mark.parametrize("name", VARIABLES)
@pytest.mark.parametrize("content", [SECRET, f"{SECRET}\n", f"{SECRET}\r\n\n"])
def test_a_secret_is_read_without_its_line_break(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: str
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content.encode())
    monkeypatch.setenv(VARIABLES[name], str(file))
    assert getattr(Settings(), name).get_secret_value() == SECRET


def test_spaces_belong_to_the_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f" {SECRET} \n", "utf-8")
    monkeypatch.setenv("RAPPORT_KAFKA_PASSWORD_FILE", str(tmp_path / "secret"))
    password = Settings().kafka_password
    assert password is not None
    assert password.get_secret_value() == f" {SECRET} "


def test_empty_variables_count_as_not_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compose files pass ``${X:-}``."""
    (tmp_path / "secret").write_text(SECRET, "utf-8")
    monkeypatch.setenv("RAPPORT_KAFKA_PASSWORD", "")
    monkeypatch.setenv("RAPPORT_KAFKA_PASSWORD_FILE", str(tmp_path / "secret"))
    monkeypatch.setenv("RAPPORT_DATABASE_URL_FILE", "")
    found = Settings()
    assert found.kafka_password == SecretStr(SECRET)
    assert found.database == "sqlite:///rapport.db"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xff\xfe" + SECRET.encode(), "is not UTF-8"),
        (SECRET.encode() * 10_000, "is larger than 65536 bytes"),
    ],
)
def test_an_unusable_file_is_one_line(
    rapport: Rapport, tmp_path: Path, content: bytes | None, told: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    done = rapport("config", RAPPORT_KAFKA_PASSWORD_FILE=str(file))
    assert done.returncode == 2
    assert done.stderr == f"RAPPORT_KAFKA_PASSWORD_FILE: {file} {told}\n"
    assert SECRET not in done.stdout


def test_a_folder_and_both_variants_are_two_lines(rapport_process: Rapport, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET, "utf-8")
    done = rapport_process(
        "config",
        RAPPORT_KAFKA_PASSWORD=SECRET,
        RAPPORT_KAFKA_PASSWORD_FILE=str(tmp_path / "secret"),
        RAPPORT_DATABASE_URL_FILE=str(tmp_path),
    )
    assert done.returncode == 2
    assert sorted(done.stderr.splitlines()) == [
        f"RAPPORT_DATABASE_URL_FILE: {tmp_path} cannot be read: Is a directory",
        "RAPPORT_KAFKA_PASSWORD_FILE: RAPPORT_KAFKA_PASSWORD is set as well: remove one of them",
    ]
    assert SECRET not in done.stdout + done.stderr


def test_config_lists_the_files_and_masks_what_they_hold(rapport: Rapport, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET, "utf-8")
    done = rapport("config", RAPPORT_KAFKA_PASSWORD_FILE=str(tmp_path / "secret"))
    assert done.returncode == 0
    assert f"RAPPORT_KAFKA_PASSWORD_FILE={tmp_path}/secret " in done.stdout
    assert "RAPPORT_KAFKA_PASSWORD=********" in done.stdout
    assert "RAPPORT_DATABASE_URL_FILE= " in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_a_password_is_put_into_the_url_of_the_database() -> None:
    settings = Settings(
        database_url=SecretStr("postgresql://u@host:5433/db?sslmode=verify-full"),
        database_password=SecretStr("p@ss/w:rd"),
    )
    assert settings.database == "postgresql://u:p%40ss%2Fw%3Ard@host:5433/db?sslmode=verify-full"


@pytest.mark.parametrize("url", ["postgresql://u:one@host/db", "postgresql://u@host/db?password=a"])
def test_two_passwords_of_the_database_are_refused(url: str) -> None:
    settings = Settings(database_url=SecretStr(url), database_password=SecretStr(SECRET))
    with pytest.raises(StoreError, match="RAPPORT_DATABASE_PASSWORD is set: remove one") as refused:
        _ = settings.database
    assert SECRET not in str(refused.value)


def test_child_processes_get_the_secret_and_not_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(SECRET, "utf-8")
    monkeypatch.setenv("RAPPORT_KAFKA_PASSWORD_FILE", str(tmp_path / "secret"))
    given = environment(Settings())
    assert given["RAPPORT_KAFKA_PASSWORD"] == SECRET
    assert "RAPPORT_KAFKA_PASSWORD_FILE" not in given


def test_a_class_that_declares_the_file_handles_it_itself() -> None:
    class Own(BaseSettings):
        model_config = SettingsConfigDict(env_prefix="OWN_")
        key: SecretStr | None = None
        key_file: Path | None = None
        word: SecretStr = SecretStr("")

    assert secret_files.variables(Own) == {"word": "OWN_WORD_FILE"}
