"""The shipped encoders pack tokens; encodings do not depend on the batch."""

import numpy as np
import pytest

from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.devices.provider_choice import Provider
from stream_app.inference.encoder import CPU_PACKED, TurnEncoder
from stream_app.inference.tokenizer import TextTokenizer

SENTENCE = "I keep going over what she said, and I do not know what to do with it."
WORDS = SENTENCE.split() * 6
TEXTS = [" ".join(WORDS[:size]) for size in range(1, len(WORDS), 2)] + ["ok", "?", "Hm."]


@pytest.mark.parametrize("name", bundles.shipped())
def test_an_encoding_does_not_depend_on_the_rest_of_the_batch(name: str) -> None:
    bundle = bundles.load(bundles.find(name))
    spec = bundle.manifest.encoder
    tokenizer = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), spec.max_tokens)
    encoder = TurnEncoder(bundle.file(spec.file), spec, Provider.CPU, threads=1)
    assert encoder.limits == CPU_PACKED
    tokens = tokenizer.tokenize(TEXTS)
    assert len({len(item.ids) for item in tokens}) > 20
    for item, together in zip(tokens, encoder.encode(tokens), strict=True):
        [alone] = encoder.encode([item])
        # At most one rounding step of float16; no 8-bit quantisation step differs.
        np.testing.assert_allclose(together.vectors, alone.vectors, rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(together.rationale, alone.rationale, atol=1e-5)


def test_batches_computed_at_once_give_the_same_encodings() -> None:
    bundle = bundles.load(bundles.find(bundles.shipped()[0]))
    spec = bundle.manifest.encoder
    tokens = TextTokenizer(bundle.file(bundle.manifest.tokenizer.file), spec.max_tokens).tokenize(
        TEXTS
    )
    graph = bundle.file(spec.file)
    one = TurnEncoder(graph, spec, Provider.CPU, threads=1).encode(tokens)
    three = TurnEncoder(graph, spec, Provider.CPU, threads=1, at_once=3).encode(tokens)
    for alone, beside in zip(one, three, strict=True):
        np.testing.assert_array_equal(alone.vectors, beside.vectors)
        np.testing.assert_array_equal(alone.rationale, beside.rationale)
