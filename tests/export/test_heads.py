"""A head bundle on the frozen encoder of a tiny bundle: trained, written, loaded and scored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")

from transformers import BertConfig  # noqa: E402

from export import __main__ as command  # noqa: E402
from export import heads  # noqa: E402
from models import bundle  # noqa: E402
from models.data import Conversation, load_corpora  # noqa: E402
from models.data.registry import describe  # noqa: E402
from models.data.split import DESCRIPTION  # noqa: E402
from models.fit import train  # noqa: E402
from models.fit.calibrate import Calibration  # noqa: E402
from models.model import multitask  # noqa: E402
from models.model.batches import tokenise  # noqa: E402
from models.model.encoder import random_backbone  # noqa: E402
from models.model.multitask import MultitaskModel  # noqa: E402
from stream_app import bootstrap  # noqa: E402
from stream_app.contracts.events import Role  # noqa: E402
from stream_app.contracts.scores import Stage  # noqa: E402
from stream_app.core.measures.window import ScoringRequest, WindowTurn  # noqa: E402
from stream_app.core.rules.routing import RoutedBundle  # noqa: E402
from stream_app.errors import BundleError  # noqa: E402
from stream_app.inference import head_bundle  # noqa: E402
from stream_app.inference.bundles import bundle as bundles  # noqa: E402
from stream_app.inference.bundles.bundle import Bundle  # noqa: E402
from stream_app.inference.devices.provider_choice import Provider  # noqa: E402
from stream_app.inference.routed_bundles import BundleLoader  # noqa: E402
from stream_app.inference.scorer import OnnxScorer  # noqa: E402
from stream_app.settings import Settings  # noqa: E402
from tests.fakes import START, received, turn  # noqa: E402
from tests.models.tiny import tiny_model, tiny_tokenizer, write_corpora  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")
CORPORA = ("epitome", "esconv")


def made(
    folder: Path,
    model: MultitaskModel,
    conversations: list[Conversation],
    name: str,
    tokenizer: Tokenizer | None = None,
) -> Path:
    """A whole bundle of a tiny model after a few steps: weights that differ from one another."""
    tokenizer = tokenizer or tiny_tokenizer()
    segments = tokenise(conversations, tokenizer)
    train.fit(model, segments, train.Recipe(epochs=1, pairs_a_step=12, bf16=False), max_steps=3)
    about = dict.fromkeys(bundle.TRAINING_KEYS, "made up") | {
        "seed": 17,
        "split": DESCRIPTION,
        "data": describe(conversations),
    }
    multitask.save(model, tokenizer, folder / "model", about)
    Calibration().write(folder / "model" / "calibration.json")
    out = folder / name
    few = conversations[:8]
    command.build(folder / "model", out, command.Profile.fp32, few, few, 1, name)
    return out


@pytest.fixture(scope="module")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> list[Conversation]:
    return load_corpora(write_corpora(tmp_path_factory.mktemp("corpora"), size=60))


@pytest.fixture(scope="module")
def base(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("base")
    return bundles.load(made(folder, tiny_model(), conversations, "tiny"))


@pytest.fixture(scope="module")
def other(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle with another encoder."""
    folder = tmp_path_factory.mktemp("other")
    return bundles.load(made(folder, tiny_model(seed=5), conversations, "other"))


@pytest.fixture(scope="module")
def trained(
    base: Bundle, conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A head bundle that has learnt from two of the corpora."""
    out = tmp_path_factory.mktemp("north")
    chosen = [each for each in conversations if each.corpus in CORPORA]
    recipe = heads.Recipe(epochs=2)
    heads.build(base, out, chosen, "north", "1.0.0", recipe)
    return out


def scores(scorer: OnnxScorer) -> tuple[bytes, dict[str, object], dict[str, object]]:
    """A turn's vectors, its expressed heads and its perceived heads."""
    [encoding] = scorer.encode(["i am sorry that is really hard ."], [Role.COUNSELLOR])
    turn = WindowTurn(0, Role.COUNSELLOR, START, 0, 7, encoding.vectors, encoding.rationales)
    [found] = scorer.score([ScoringRequest(turn, Stage.FINAL, [])])
    return encoding.vectors, dict(found.expressed), dict(found.perceived)


def test_only_the_labelled_heads_change_and_the_encoder_is_the_bundles(
    base: Bundle, trained: Path
) -> None:
    own = OnnxScorer(base)
    north = OnnxScorer(head_bundle.load(trained, base), shared=own)
    assert north.encoder is own.encoder
    assert north.tokenizer is own.tokenizer
    before, after = scores(own), scores(north)
    assert after[0] == before[0]
    learnt = set(north.bundle.manifest.training["heads"])
    assert "strategy" in learnt
    assert "behaviour" not in learnt  # a head of another corpus
    for name, found in before[1].items():
        if name in learnt:
            assert after[1][name] != found
        elif name != "empathy_total":
            assert after[1][name] == pytest.approx(found, abs=1e-6)
    assert north.bundle_id == "north-1.0.0-fp32"


def test_a_head_bundle_has_no_encoder_and_names_the_digests_of_its_own(
    base: Bundle, trained: Path
) -> None:
    names = {path.name for path in trained.iterdir()}
    assert names == {"bundle.json", "head.onnx", "MODEL_CARD.md"}
    shared = head_bundle.read(trained).shared_encoder
    assert shared.sha256 == base.manifest.files["encoder.onnx"]
    assert shared.tokenizer_sha256 == base.manifest.files["tokenizer.json"]
    assert "trained: " in (trained / "MODEL_CARD.md").read_text("utf-8")


def test_a_head_bundle_is_refused_on_another_encoder_and_as_the_default(
    trained: Path, other: Bundle
) -> None:
    with pytest.raises(BundleError, match=r"was made for another encoder .*tiny-"):
        head_bundle.load(trained, other)
    with pytest.raises(BundleError, match="RAPPORT_BUNDLE_ROUTES"):
        bundles.load(trained)


def test_heads_find_their_encoder_among_the_bundles_of_the_file(
    base: Bundle, trained: Path, other: Bundle
) -> None:
    """The default bundle has another encoder; the one that the heads need stands in the file."""
    loader = BundleLoader(OnnxScorer(other), Provider.CPU, 1, 6)
    wanted = [RoutedBundle("north", str(trained)), RoutedBundle("tiny", str(base.path))]
    found = loader.load(wanted)
    assert found.refused == []
    assert list(found.loaded) == ["north", "tiny"]
    north, tiny = found.loaded["north"], found.loaded["tiny"]
    assert north.encoder == tiny.encoder != ""
    assert north.scorer.encoder is tiny.scorer.encoder
    alone = loader.load(wanted[:1])
    assert [each.name for each in alone.refused] == ["north"]
    assert "another encoder" in alone.refused[0].problem


def test_untouched_heads_keep_their_calibration(base: Bundle, trained: Path) -> None:
    given = {head.name: head for head in base.manifest.heads}
    found = head_bundle.read(trained)
    for head in found.heads:
        assert head.rationale is None
        if head.name not in found.training["heads"]:
            assert head.temperature == given[head.name].temperature
    assert any(head.temperature != given[head.name].temperature for head in found.heads)


def test_the_frozen_encoder_gives_the_vectors_of_the_service(
    base: Bundle, conversations: list[Conversation]
) -> None:
    scorer = OnnxScorer(base)
    segments = tokenise(conversations[:2], tiny_tokenizer())
    heads.encode(segments, scorer)
    turn = segments[0].turns[0]
    [served] = scorer.encode([turn.turn.text])
    assert turn.taught is not None
    assert np.array_equal(turn.taught.half().numpy().ravel(), np.frombuffer(served.vectors, "f2"))


def unigram_tokenizer() -> Tokenizer:
    """A SentencePiece-like tokeniser of German words: another kind than the default bundle's."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=60, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(["ich kann nicht mehr schlafen", "das klingt schwer"], trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ends)
    return tokenizer


@pytest.fixture(scope="module")
def german(conversations: list[Conversation], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole bundle with another encoder, narrower vectors and another kind of tokeniser."""
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=64,
        hidden_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=256,
    )
    folder = tmp_path_factory.mktemp("german")
    model = MultitaskModel(config, random_backbone(config))
    return made(folder, model, conversations, "german", unigram_tokenizer())


def test_lang_chooses_between_encoders_with_tokenisers_of_their_own(
    base: Bundle, trained: Path, german: Path, tmp_path: Path
) -> None:
    """Two encoders and three bundles in one batch; French has no bundle."""
    file = tmp_path / "routes.yaml"
    file.write_text(
        "version: 1\n"
        f"bundles:\n  north: {{folder: {trained}}}\n"
        f"  german: {{folder: {german}, languages: [de]}}\n"
        "routes:\n  - {bundle: german, languages: [de]}\n  - {bundle: north, teams: [north]}\n",
        "utf-8",
    )
    own = OnnxScorer(base)
    settings = Settings(bundle=base.path, bundle_routes=file, provider=Provider.CPU)
    pipeline, refused = bootstrap.routed_pipeline(settings, own)
    assert not refused
    facts = {
        "a": {"lang": "en-GB"},
        "b": {"team": "north"},
        "c": {"lang": "de-AT", "team": "north", "text": "Ich kann nachts nicht schlafen."},
        "d": {"lang": "fr", "text": "Je ne peux pas dormir la nuit, et j'ai peur."},
    }
    log = [turn(name, seq, **facts[name]) for seq in range(5) for name in facts]
    result = pipeline.process(received(log), {})
    assert {score.session_id: score.bundle for score in result.turn_scores} == {
        "a": base.manifest.bundle_id,
        "b": "north-1.0.0-fp32",
        "c": bundles.load(german).manifest.bundle_id,
    }
    assert result.counts == {"accepted": 15, "language": 5}
    scorer = pipeline.bundles.routed["german"].scorer
    assert isinstance(scorer, OnnxScorer)
    text = "ich kann nicht mehr"
    [tokens], [english] = scorer.tokenizer.tokenize([text]), own.tokenizer.tokenize([text])
    assert tokens.ids != english.ids
    assert tokens.offsets[1][0] == 0
    assert len(scorer.encode([text])[0].vectors) == 2 * 24 * 2
