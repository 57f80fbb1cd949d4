"""Sessions with preallocated buffers, on the CPU provider; the same class is used on CUDA."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from stream_app.errors import ProviderError
from stream_app.inference.bundles.bundle import load
from stream_app.inference.devices.batching import Shapes
from stream_app.inference.devices.io_binding import BoundSession, bound
from stream_app.inference.devices.provider_choice import FIRST_DEVICE, Provider
from stream_app.inference.devices.providers import Graph, open_session
from stream_app.inference.encoder import TurnEncoder, batch_limits
from stream_app.inference.tokenizer import TextTokenizer, Tokens
from stream_app.recordings.event_files import sample_sessions

OUTPUTS = ["vectors", "rationale_logits"]
BUNDLE = load()
SPEC = BUNDLE.manifest.encoder
GRAPH = BUNDLE.file(SPEC.file)
MOST = 24


@pytest.fixture(scope="module")
def session() -> Any:
    return open_session(Graph(GRAPH), Provider.CPU, 1)


@pytest.fixture(scope="module")
def texts() -> list[Tokens]:
    lines = [line for path in sample_sessions()[:2] for line in path.read_text("utf-8").split("\n")]
    spoken = [text for line in lines if line and (text := json.loads(line).get("text"))]
    tokenizer = TextTokenizer(BUNDLE.file(BUNDLE.manifest.tokenizer.file), SPEC.max_tokens)
    return tokenizer.tokenize([*spoken, "word " * 300, "ok"])


def feeds(rows: int, tokens: int, seed: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)
    mask = np.arange(tokens) < chance.integers(1, tokens + 1, (rows, 1))
    ids = chance.integers(1000, 20_000, (rows, tokens)) * mask
    return {"input_ids": ids.astype(np.int64), "attention_mask": mask.astype(np.int64)}


def test_bound_sessions_give_the_same_results_as_plain_ones(session: Any) -> None:
    bound = BoundSession(session, "cpu", MOST)
    for seed, shape in enumerate([(1, 16), (8, 16), (1, 16), (3, 5), (8, 16), (1, 192)]):
        given = feeds(*shape, seed)
        for plain, own in zip(session.run(OUTPUTS, given), bound.run(OUTPUTS, given), strict=True):
            np.testing.assert_array_equal(plain, own)


def test_results_outlive_the_next_run_of_their_shape(session: Any) -> None:
    bound = BoundSession(session, "cpu", MOST)
    first = bound.run(OUTPUTS, feeds(2, 8, seed=1))
    kept = [array.copy() for array in first]
    bound.run(OUTPUTS, feeds(2, 8, seed=2))
    for before, after in zip(kept, first, strict=True):
        np.testing.assert_array_equal(before, after)


def test_threads_that_share_a_session_get_their_own_results(session: Any) -> None:
    bound = BoundSession(session, "cpu", MOST)
    given = [feeds(2, 12, seed) for seed in range(24)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda item: bound.run(OUTPUTS, item)[0], given))
    for item, vectors in zip(given, found, strict=True):
        np.testing.assert_array_equal(vectors, session.run(OUTPUTS, item)[0])


def test_the_buffers_of_a_session_are_bounded(session: Any) -> None:
    bound = BoundSession(session, "cpu", 2)
    for rows in (1, 2, 1, 2):
        bound.run(OUTPUTS, feeds(rows, 4, seed=rows))
    with pytest.raises(ValueError, match="more than 2 shapes"):
        bound.run(OUTPUTS, feeds(3, 4, seed=3))


def test_a_shape_that_finds_no_memory_is_refused_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, session: Any
) -> None:
    def run(self: BoundSession, _: list[str], given: dict[str, np.ndarray]) -> list[Any]:
        if len(given["input_ids"]) > 1:
            raise RuntimeError("Failed to allocate memory for requested buffer\nat bfc_arena.cc")
        return []

    monkeypatch.setattr(BoundSession, "run", run)
    words = r"8 texts of 16 tokens.*\(Failed to allocate.*buffer\).*RAPPORT_CUDA_MEMORY_MB"
    with pytest.raises(ProviderError, match=words):
        bound(session, Shapes((1, 8), (16,), 1024), FIRST_DEVICE)


def test_outputs_have_the_requested_order(session: Any) -> None:
    bound, given = BoundSession(session, "cpu", MOST), feeds(1, 4, seed=3)
    logits, vectors = bound.run(OUTPUTS[::-1], given)
    assert (logits.shape, vectors.shape) == ((1, 4, 3), (1, 2, SPEC.hidden_size))


def test_fixed_shapes_and_batches_by_length_give_the_same_encodings(
    session: Any, texts: list[Tokens]
) -> None:
    """The whole accelerator path, except the device."""
    similar = TurnEncoder(GRAPH, SPEC, Provider.CPU, 1)
    fixed = TurnEncoder(GRAPH, SPEC, Provider.CPU, 1)
    fixed.limits = batch_limits(SPEC, Provider.CUDA, 1)
    fixed.session = BoundSession(session, "cpu", MOST)
    assert isinstance(fixed.limits, Shapes)
    assert fixed.limits.tokens[-1] == SPEC.max_tokens
    assert max(len(item.ids) for item in texts) == SPEC.max_tokens
    for one, other in zip(similar.encode(texts), fixed.encode(texts), strict=True):
        np.testing.assert_allclose(one.vectors, other.vectors, atol=2e-3, rtol=2e-3)
        np.testing.assert_allclose(one.rationale, other.rationale, atol=1e-4)


def test_an_encoder_that_depends_on_its_batch_gets_single_texts() -> None:
    spec = structs.replace(SPEC, batch_independent=False)
    for provider in (Provider.CPU, Provider.CUDA):
        limits = batch_limits(spec, provider, 1)
        assert not isinstance(limits, Shapes)
        assert limits.tokens == 0
