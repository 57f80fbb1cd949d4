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


@pytest.mark.parametrize(("given", "valid"), [("1", True), ("2", True), ("0", False), ("3", False)])
def test_scores_have_two_versions_of_their_schema(
    given: str, valid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAPPORT_SCORE_SCHEMA", given)
    if valid:
        assert Settings().score_schema == int(given)
    else:
        with pytest.raises(ValueError, match="score_schema"):
            Settings()
