"""Settings read from the environment, where every value is text."""

import pytest

from stream_app.settings import Settings

PLAIN = {
    name: field.default
    for name, field in Settings.model_fields.items()
    if isinstance(field.default, bool | int | float | str)
}


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
