"""Offsets count characters of the original text; long texts are truncated at the end."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from stream_app.inference.tokenizer import MAX_CHARS_PER_TOKEN, TextTokenizer

WORDS = ["[UNK]", "[CLS]", "[SEP]", "i", "hear", "you", "sorry", "so", "cafe", "##s", "!"]
MAX_TOKENS = 8


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    """A tokeniser like BERT's: lower case, stripped accents, [CLS] … [SEP]."""
    ids = {word: number for number, word in enumerate(WORDS)}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(strip_accents=True, lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    made.enable_padding(length=32)
    path: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    made.save(str(path))
    return TextTokenizer(path, MAX_TOKENS)


def pieces(tokenizer: TextTokenizer, text: str) -> list[str]:
    [tokens] = tokenizer.tokenize([text])
    return [text[start:end] for start, end in tokens.offsets]


def test_offsets_match_the_words_and_are_empty_for_special_tokens(tokenizer: TextTokenizer) -> None:
    assert pieces(tokenizer, "So sorry!") == ["", "So", "sorry", "!", ""]
    [tokens] = tokenizer.tokenize(["So sorry!"])
    assert tokens.ids == [WORDS.index(w) for w in ("[CLS]", "so", "sorry", "!", "[SEP]")]
    assert tokens.offsets[0] == tokens.offsets[-1] == (0, 0)
    assert not tokens.truncated


@pytest.mark.parametrize("before", ["🙂 ", "🧑‍🤝‍🧑 ", "é ", "e\u0301 ", "ﬁ ", "İ ", "\u200b"])
def test_offsets_count_characters_not_bytes(tokenizer: TextTokenizer, before: str) -> None:
    assert "sorry" in pieces(tokenizer, f"{before}sorry")


def test_accents_that_are_stripped_still_count_in_the_original(tokenizer: TextTokenizer) -> None:
    assert pieces(tokenizer, "Cafés so")[1:-1] == ["Café", "s", "so"]
    assert pieces(tokenizer, "Cafe\u0301s so")[-2] == "so"


def test_a_text_one_token_too_long_is_truncated(tokenizer: TextTokenizer) -> None:
    fits, longer = tokenizer.tokenize(["so " * (MAX_TOKENS - 2), "so " * (MAX_TOKENS - 1)])
    assert (len(fits.ids), fits.truncated) == (MAX_TOKENS, False)
    assert (len(longer.ids), longer.truncated) == (MAX_TOKENS, True)
    assert longer.ids == fits.ids


def test_a_huge_text_is_cut_before_tokenising(tokenizer: TextTokenizer) -> None:
    limit = MAX_TOKENS * MAX_CHARS_PER_TOKEN
    within, beyond = tokenizer.tokenize(["so" + " " * (limit - 2), "so" + " " * limit])
    assert (within.truncated, beyond.truncated) == (False, True)
    assert within.ids == beyond.ids


def test_padding_of_the_tokenizer_file_is_disabled(tokenizer: TextTokenizer) -> None:
    short, longer = tokenizer.tokenize(["so", "i hear you"])
    assert (len(short.ids), len(longer.ids)) == (3, 5)


def test_no_texts_give_no_batches(tokenizer: TextTokenizer) -> None:
    assert tokenizer.tokenize([]) == []


@given(st.lists(st.text(max_size=60), max_size=4))
def test_offsets_are_ordered_and_inside_the_text(
    tokenizer: TextTokenizer, texts: list[str]
) -> None:
    together = tokenizer.tokenize(texts)
    alone = [tokenizer.tokenize([text])[0] for text in texts]
    assert [(t.ids, t.offsets, t.truncated) for t in together] == [
        (t.ids, t.offsets, t.truncated) for t in alone
    ]
    for text, tokens in zip(texts, together, strict=True):
        assert len(tokens.ids) == len(tokens.offsets) <= MAX_TOKENS
        inner = tokens.offsets[1:-1]
        assert inner == sorted(inner)
        assert all(0 <= start <= end <= len(text) for start, end in inner)
