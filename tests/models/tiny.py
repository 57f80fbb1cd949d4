"""Synthetic corpora in the publishers' formats, and a tiny model with random weights."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig

from models.data.registry import CORPORA
from models.model.encoder import random_backbone
from models.model.multitask import MultitaskModel

WORDS = (
    *("i", "you", "we", "me", "feel", "am", "is", "be", "sorry", "sad", "hard", "better", "why"),
    *("how", "what", "could", "maybe", "must", "try", "talk", "tell", "about", "work", "sleep"),
    *("that", "really", "so", "more", ".", "?", "!"),
)
ROWS = 40
"""Rows in each file of contexts."""


def sentence(chance: random.Random, least: int = 2, most: int = 12) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randint(least, most)))


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


def epitome_row(number: int, chance: random.Random) -> dict[str, Any]:
    response = sentence(chance, 6)
    phrase = " ".join(response.split()[:3])
    row: dict[str, Any] = {
        "seeker_post_id": f"post-{number}",
        "response_post_id": f"response-{number}",
        "seeker_post": sentence(chance),
        "response_post": response,
    }
    for offset, head in enumerate(("emotional_reactions", "interpretations", "explorations")):
        level = (number + offset) % 3
        row[head] = {"level": level, "rationales": [phrase] if level else []}
    return row


def esconv_row(number: int, chance: random.Random) -> dict[str, Any]:
    strategies = ["Question", "Self-disclosure", "Providing Suggestions", "Others", "Information"]
    dialog: list[dict[str, str]] = []
    for _ in range(4):
        dialog.append({"speaker": "seeker", "text": sentence(chance)})
        strategy = chance.choice(strategies)
        dialog.append({"speaker": "supporter", "text": sentence(chance), "strategy": strategy})
    return {"conversation_id": f"esconv-{number}", "dialog": dialog}


def annomi_row(number: int, chance: random.Random) -> dict[str, Any]:
    utterances: list[dict[str, Any]] = []
    for _ in range(3):
        note = {
            "annotator": 1,
            "behaviour": chance.choice(["question", "reflection", "therapist_input", "other"]),
            "question": chance.choice([None, "open", "closed"]),
            "reflection": chance.choice([None, "simple", "complex"]),
            "input": chance.choice([None, "information", "advice"]),
        }
        talk = {"annotator": 1, "talk_type": chance.choice(["change", "neutral", "sustain"])}
        for speaker, annotation in (("therapist", note), ("client", talk)):
            utterances.append(
                {"speaker": speaker, "text": sentence(chance), "annotations": [annotation]}
            )
    return {"conversation_id": f"annomi-{number}", "utterances": utterances}


def intent_row(number: int, chance: random.Random) -> dict[str, Any]:
    """An intent row; every third one has a human label."""
    by_people = number % 3 == 0
    return {
        "line": f"{number} <SEP> {sentence(chance)}",
        "intent": chance.choice(["agreeing", "questioning", "wishing", "neutral"]),
        "source": "manual_annotations" if by_people else "key_phrases",
        "split": "test" if by_people else "train",
    }


def exchange_row(number: int, chance: random.Random) -> dict[str, Any]:
    exchanges = [
        {"speaker": sentence(chance), "listener": sentence(chance), "empathy": 1 + (number + i) % 5}
        for i in range(2)
    ]
    return {"conversation_id": f"exchange-{number}", "exchanges": exchanges}


def write_corpora(folder: Path, size: int = 60) -> Path:
    """Write all files that the loaders need, with `size` rows per corpus."""
    chance = random.Random(0)
    numbers = range(size)
    write_rows(folder / "epitome_reddit.jsonl.gz", [epitome_row(n, chance) for n in numbers])
    third = size // 3
    for part, file in enumerate(("esconv_train", "esconv_valid", "esconv_failed")):
        rows = [esconv_row(n, chance) for n in range(part * third, (part + 1) * third)]
        write_rows(folder / f"{file}.jsonl.gz", rows)
    write_rows(folder / "annomi.jsonl.gz", [annomi_row(n, chance) for n in numbers])
    intents = [intent_row(n, chance) for n in numbers]
    write_rows(folder / "empathetic_intents.jsonl.gz", intents)
    exchanges = [exchange_row(n, chance) for n in numbers]
    write_rows(folder / "empathetic_exchanges.jsonl.gz", exchanges)
    return folder


def service_turn(speaker: str, text: str, *satisfaction: int) -> dict[str, Any]:
    return {"speaker": speaker, "text": text, "satisfaction": list(satisfaction)}


def service_row(number: int, file: str) -> dict[str, Any]:
    """A request after one preceding turn; every row has a different context."""
    turns = [
        service_turn("user", f"I need thing {number} of {file}.", 3, 4),
        service_turn("system", f"Here is thing {number}."),
        service_turn("user", "OVERALL", 4, 4),
    ]
    return {"conversation_id": f"{file}-{number:04}", "turns": turns}


def news_row(number: int, emotion: str) -> dict[str, Any]:
    texts = [f"My news {number} is {emotion}.", "Go on.", f"That is all of {number}.", "I see."]
    utterances = [{"text": text} for text in texts]
    return {"conversation_id": f"{emotion}-{number}", "emotion": emotion, "utterances": utterances}


def write_contexts(folder: Path) -> Path:
    for file in CORPORA["service"].files:
        write_rows(folder / file, [service_row(n, file.split(".")[0]) for n in range(ROWS)])
    emotions = ("joyful", "sad", "nostalgic")
    news = [news_row(n, emotion) for emotion in emotions for n in range(ROWS)]
    write_rows(folder / "empathetic_dialogues.jsonl.gz", news)
    return folder


def tiny_tokenizer() -> Tokenizer:
    vocabulary = {word: index for index, word in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]"])}
    for word in WORDS:
        vocabulary[word] = len(vocabulary)
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return tokenizer


def tiny_model(seed: int = 0) -> MultitaskModel:
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=64,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=192,
    )
    return MultitaskModel(config, random_backbone(config))
