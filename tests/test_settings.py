"""Settings read from the environment, where every value is text."""

from pathlib import Path

import pytest

from stream_app.core.measures.window import WindowPolicy
from stream_app.settings import RedactorName, Settings

MOST = 72
"""Settings; a new one needs a reason why one value does not suit everybody."""
PLAIN = {
    name: field.default
    for name, field in Settings.model_fields.items()
    if isinstance(field.default, bool | int | float | str)
}


def test_there_are_few_settings() -> None:
    assert len(Settings.model_fields) <= MOST


@pytest.mark.parametrize("name", PLAIN)
def test_a_default_written_out_is_the_default(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"RAPPORT_{name.upper()}", str(PLAIN[name]))
    assert getattr(Settings(), name) == getattr(Settings(**{name: PLAIN[name]}), name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("https://example.org/rapport", "root of a host"),
        ("https://example.org/rapport/", "root of a host"),
        ("https://example.org:8443/a/b", "root of a host"),
        ("https://example.org/?to=rapport", "root of a host"),
        ("https://example.org/#rapport", "root of a host"),
        ("example.org", "https://"),
        ("rapport.example.org:8443", "https://"),
        ("https://", "https://"),
    ],
)
def test_a_console_below_a_path_is_refused(
    given: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_EXTERNAL_URL", given)
    with pytest.raises(ValueError, match=words):
        Settings()


@pytest.mark.parametrize(
    "given", ["", "https://example.org", "https://example.org/", "http://[::1]:8080"]
)
def test_a_console_at_the_root_of_a_host_is_accepted(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_EXTERNAL_URL", given)
    assert Settings().external_url == given


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("http://model.example.org/v1", "another machine: it must begin with https"),
        ("http://127.0.0.1.example.org/v1", "another machine: it must begin with https"),
        ("https://user:key@model.example.org/v1", "must not have a user"),
        ("https://model.example.org/v1?key=1", "must not have a user, a query"),
        ("model.example.org", "must begin with https:// or http:// and a host"),
        ("file:///v1", "must begin with https:// or http:// and a host"),
    ],
)
def test_text_goes_to_another_machine_by_https_alone(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, problem: str
) -> None:
    monkeypatch.setenv("RAPPORT_ASK_ENDPOINT", endpoint)
    monkeypatch.setenv("RAPPORT_ASK_MODEL", "m")
    with pytest.raises(ValueError, match=problem):
        Settings()


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:8000/v1", "http://[::1]:8000/v1", "https://model.example.org/v1"]
)
def test_an_endpoint_needs_a_model(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    assert Settings().ask_endpoint is None, "off by default"
    monkeypatch.setenv("RAPPORT_ASK_ENDPOINT", endpoint)
    with pytest.raises(ValueError, match="need each other"):
        Settings()
    monkeypatch.setenv("RAPPORT_ASK_MODEL", "m")
    assert Settings().ask_endpoint == endpoint


def test_a_redactor_is_named_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "presidio.yaml"
    with pytest.raises(ValueError, match="is neither rules nor presidio, nor a file"):
        Settings(redactor=file)
    file.write_text("{}", "utf-8")
    assert Settings(redactor=file).redactor == file
    assert Settings(redactor="presidio").redactor is RedactorName.PRESIDIO


def test_turns_never_wait_for_a_missing_one_without_a_wait() -> None:
    assert Settings().window_of((2, 3)) == WindowPolicy(2, 3)
    assert Settings(reorder_wait=0.0).window_of((2, 3)).reorder_turns == 0
