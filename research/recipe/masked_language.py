"""`python -m research.recipe.masked_language`: domain-adaptive pre-training on the corpora's text.

Continues the masked-language task of Devlin et al. 2019 (section 3.1) on the turns of all corpora
(Gururangan et al. 2020, section 3), each turn by itself as in the service. Conversations held out
from the model are excluded. The ablation (`research.recipe.ablation`) has a row that starts from
the result.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import torch
import typer
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    BertForMaskedLM,
    DataCollatorForLanguageModeling,
    PreTrainedTokenizerFast,
)

from models.data.corpora import resolve_data_dir
from models.distil.turns import Amount, conversations, material
from models.fit.optimisation import Optimisation
from models.fit.perceived import Share
from models.model.batches import seeded_random
from models.model.encoder import ADAPTED, base_model_dir, load_tokenizer

MASKED = 0.15
EVERY = 50
WARM_UP = 0.06


def model() -> BertForMaskedLM:
    """The base model with a new output layer, tied to the frozen word embeddings."""
    found: BertForMaskedLM = AutoModelForMaskedLM.from_pretrained(
        base_model_dir(), local_files_only=True, dtype=torch.float32
    )
    for parameter in found.bert.embeddings.parameters():
        parameter.requires_grad = False
    return found


def steps(texts: list[list[int]], tokens: int, *parts: object) -> list[list[list[int]]]:
    """Shuffle texts into steps of similar lengths, each of about `tokens` tokens with padding."""
    chance = seeded_random(*parts)
    drawn = chance.sample(texts, len(texts))
    drawn.sort(key=len)
    found: list[list[list[int]]] = [[]]
    for ids in drawn:
        if (len(found[-1]) + 1) * len(ids) > tokens and found[-1]:
            found.append([])
        found[-1].append(ids)
    chance.shuffle(found)
    return found


def masking(tokenizer: Tokenizer, seed: int) -> DataCollatorForLanguageModeling:
    """Masks 15 % of the tokens: 80 % by [MASK], 10 % by a random word, 10 % unchanged."""
    special = {
        f"{name}_token": f"[{name.upper()}]" for name in ("cls", "sep", "pad", "unk", "mask")
    }
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    return DataCollatorForLanguageModeling(wrapped, mlm_probability=MASKED, seed=seed)


def loss_of(
    adapted: BertForMaskedLM, input_ids: Tensor, attention_mask: Tensor, labels: Tensor
) -> Tensor:
    """Mean cross-entropy of the masked tokens, in nats; `labels` [n, tokens] is -100 elsewhere.

    Only masked tokens go through the output layer, which costs as much as the encoder for all
    tokens.
    """
    states = adapted.bert(input_ids, attention_mask).last_hidden_state
    hidden = labels >= 0
    return nn.functional.cross_entropy(adapted.cls(states[hidden]).float(), labels[hidden])


def fit(
    adapted: BertForMaskedLM,
    texts: list[list[int]],
    tokenizer: Tokenizer,
    *,
    epochs: int,
    rate: float,
    tokens_a_step: int,
    seed: int,
    most_steps: int | None = None,
    bf16: bool = True,
) -> None:
    """Train in place, with matrix products in bfloat16 or float32."""
    plan = [
        members
        for epoch in range(epochs)
        for members in steps(texts, tokens_a_step, seed, "masked", epoch)
    ][:most_steps]
    trained = [parameter for parameter in adapted.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=rate, weight_decay=0.01)
    optimisation = Optimisation(adapted, optimiser, len(plan), WARM_UP)
    hide = masking(tokenizer, seed)
    torch.manual_seed(seed)
    adapted.train()
    losses: list[float] = []
    started = time.monotonic()
    for number, members in enumerate(plan, start=1):
        batch = hide([{"input_ids": ids} for ids in members])
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = loss_of(adapted, **batch)
        optimisation.step(loss)
        losses.append(loss.item())
        if number % EVERY == 0 or number == len(plan):
            recent = losses[-EVERY:]
            minutes = (time.monotonic() - started) / 60
            print(
                f"step {number}/{len(plan)} loss {sum(recent) / len(recent):.3f} "
                f"minutes {minutes:.1f}",
                flush=True,
            )
    adapted.eval()


def main(
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the corpora.")] = None,
    out: Annotated[Path, typer.Option(help="File for the weights.")] = ADAPTED,
    fold: Annotated[int, typer.Option(help="Fold to exclude.")] = 0,
    folds: Annotated[int, typer.Option(help="Number of folds.")] = 5,
    chats: Annotated[int, typer.Option(help="Chats of EmpatheticDialogues.")] = Amount.chats,
    service: Annotated[int, typer.Option(help="Service dialogues.")] = Amount.service,
    epochs: int = 1,
    rate: float = 1e-4,
    tokens_a_step: int = 4096,
    seed: int = 17,
    threads: int = 2,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps, for trial runs.")
    ] = None,
    bf16: Annotated[
        bool, typer.Option(help="bfloat16 in the model; slower where the processor lacks it.")
    ] = True,
) -> None:
    """Continue the pre-training of the base model on the training part."""
    torch.set_num_threads(threads)
    tokenizer = load_tokenizer()
    share = Share(seed, fold, folds)
    training, _ = conversations(resolve_data_dir(data_dir), share, Amount(chats, service))
    texts = material(training, [], tokenizer).texts
    print(f"{len(texts)} texts, {sum(map(len, texts))} tokens", flush=True)
    adapted = model()
    fit(
        adapted,
        texts,
        tokenizer,
        epochs=epochs,
        rate=rate,
        tokens_a_step=tokens_a_step,
        seed=seed,
        most_steps=max_steps,
        bf16=bf16,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    torch.save(adapted.bert.state_dict(), out)
    print(f"weights written to {out}")


if __name__ == "__main__":
    typer.run(main)
