"""A consumer around a Hugging Face ``pipeline`` with a base-size encoder.

The likely solution of a user without Rapport: keep the last turns of each session, join them and
call ``pipeline(texts, batch_size=…)``. A benchmark has no access to a model hub, so the model has
the shape of ``bert-base-uncased`` (110 M parameters) and random weights, at the same cost. Runs in
the training environment, with torch's default threads.
"""

import sys
import time
from collections import defaultdict, deque

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from benchmarks.consumers import polling
from benchmarks.consumers.job import Job, Row, as_json, job
from stream_app.contracts.events import Turn

WINDOW = 7
LONGEST = 512
LABELS = 3


class Classify:
    """Joins windows and classifies them."""

    def __init__(self, work: Job, batch: int) -> None:
        torch.manual_seed(1)
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(work.bundle / "tokenizer.json"),
            model_max_length=LONGEST,
            pad_token="[PAD]",  # noqa: S106  # no password
            cls_token="[CLS]",  # noqa: S106
            sep_token="[SEP]",  # noqa: S106
            unk_token="[UNK]",  # noqa: S106
            mask_token="[MASK]",  # noqa: S106
        )
        shape = BertConfig()
        shape.num_labels = LABELS
        model = BertForSequenceClassification(shape).eval()
        self._classify = transformers.pipeline(
            "text-classification", model=model, tokenizer=tokenizer, device="cpu", top_k=None
        )
        self._batch = batch
        self._windows: dict[str, deque[str]] = defaultdict(lambda: deque(maxlen=WINDOW))
        self.cpu = 0.0

    def __call__(self, turns: list[Turn]) -> list[Row]:
        """One score a turn."""
        texts = []
        for turn in turns:
            window = self._windows[turn.session_id]
            window.append(turn.text)
            texts.append(" ".join(window))
        start = time.process_time()
        found = self._classify(texts, batch_size=self._batch, truncation=True)
        self.cpu += time.process_time() - start
        return [
            (turn.session_id, turn.seq, "final", as_json(scores))
            for turn, scores in zip(turns, found, strict=True)
        ]


def main() -> None:
    """Run until a signal arrives; the first argument is the batch size."""
    work = job()
    batch = int(sys.argv[1])
    classify = Classify(work, batch)
    polling.run(work, classify, lambda: classify.cpu, poll=batch)


if __name__ == "__main__":
    main()
