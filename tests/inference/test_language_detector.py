"""The detector on short turns of chats: English is never lost, other languages are found."""

import pytest

from benchmarks.languages.refusals import language_of, refused, sentences
from stream_app.inference.language_detector import TextLanguages

ENGLISH = [text for language, text in sentences() if language == "en"]
OTHERS = [(language, text) for language, text in sentences() if language != "en"]


@pytest.mark.parametrize("text", ENGLISH)
def test_english_of_dialects_learners_and_typists_is_scored(text: str) -> None:
    assert not refused(text)


def test_nearly_all_turns_in_other_languages_are_found_and_none_is_misnamed() -> None:
    written = [(language, text) for language, text in OTHERS if not language.endswith("-Latn")]
    assert sum(refused(text) for _, text in written) / len(written) > 0.98
    named = [(language, language_of(text).name) for language, text in OTHERS]
    wrong = [(own, name) for own, name in named if name is not None and name != own]
    assert len(wrong) <= len(OTHERS) / 50


@pytest.mark.parametrize(
    "text", ["", "ok", "ja", "Maria José", "😀 👍 ❤️", "12 34 56", "si", "\x00 \ud7ff"]
)
def test_what_says_too_little_decides_nothing(text: str) -> None:
    assert TextLanguages().shares(text) == {}


def test_markup_quotes_and_capitals_do_not_count() -> None:
    quoted = (
        "> No puedo dormir y todo me da miedo\n> estoy harto de mi trabajo\n\nI felt like that too"
    )
    assert not refused(quoted)
    assert refused("<b>NO PUEDO</b> dormir y&nbsp;todo me da miedo")
    assert refused("ESTOY HARTO DE MI TRABAJO Y DE MI JEFE")


def test_the_longest_text_takes_no_longer() -> None:
    many = "I cannot sleep at night. " * 4000
    assert not refused(many)
    assert refused("No puedo dormir y todo me da miedo. " * 2000)
