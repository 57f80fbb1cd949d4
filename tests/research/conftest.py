"""Tiny encoders in folders, as `save_pretrained` writes them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests import training

collect_ignore_glob = training.ignored_files()

WIDTH = 32


def save_encoder(folder: Path, seed: int = 3, **changes: Any) -> Path:
    """Save a tiny BERT with random weights and its tokenizer."""
    torch = import_module("torch")
    transformers = import_module("transformers")
    tiny = import_module("tests.models.tiny")
    torch.manual_seed(seed)
    shape = {
        "vocab_size": 64,
        "hidden_size": WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 40,
        "max_position_embeddings": 512,
    }
    transformers.BertModel(transformers.BertConfig(**shape | changes)).save_pretrained(folder)
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk")}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny.tiny_tokenizer(), **special
    )
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_encoder(tmp_path_factory.mktemp("encoders") / "tiny-bert"))


@pytest.fixture(scope="session")
def tiny_corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = import_module("tests.models.tiny")
    folder: Path = tiny.write_corpora(tmp_path_factory.mktemp("corpora"), size=36)
    return folder
