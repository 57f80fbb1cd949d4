"""A bundle with new heads: scores, store, rules, API, console and exports support them."""

import csv
import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stream_app import bootstrap
from stream_app.contracts import scores
from stream_app.contracts.scores import MECHANISMS, Role, Stage
from stream_app.core.pipeline.pipeline import BatchResult
from stream_app.inference.bundles import bundle as bundles
from stream_app.settings import Settings
from stream_app.store.database.tables import turn_scores
from tests.store.batches import end, received, turn
from tests.web.in_process import InProcessWeb

COPIED = {
    "warmth": "emotional_reactions",
    "tone": "reflection",
    "trust": "sympathy",
    "mood": "talk_type",
}
"""New heads, by the output whose logits they copy."""
NEW = [
    {
        "name": "warmth",
        "dimension": "expressed",
        "kind": "level",
        "roles": ["counsellor"],
        "labels": ["cold", "mild", "warm"],
        "words": {"title": "Warmth", "badge": "WM", "labels": {"mild": "lukewarm"}},
        "evidence": ["warm"],
    },
    {
        "name": "tone",
        "dimension": "expressed",
        "kind": "categorical",
        "roles": ["counsellor"],
        "labels": ["dry", "light_hearted", "grave"],
        "evidence": ["grave"],
    },
    {
        "name": "trust",
        "dimension": "perceived",
        "kind": "binary",
        "roles": ["counsellor"],
        "labels": ["no", "yes"],
        "words": {"title": "Trust in the counsellor"},
        "evidence": ["yes"],
    },
    {
        "name": "mood",
        "dimension": "client",
        "kind": "categorical",
        "roles": ["client"],
        "labels": ["up", "even", "down"],
        "evidence": ["down"],
    },
]
RULES = """
version: 1
rules:
  - name: warm
    summary: "warm {expressed.warmth.warm}, so far {expressed.warmth.warm.mean}"
    severity: info
    when: >-
      expressed.warmth.warm >= 0.0 && expressed.tone.grave.mean >= 0.0
      && perceived.trust.yes >= 0.0 && client.mood.down.recent >= 0.0
"""


def field(number: int, content: bytes | str) -> bytes:
    """A short length-delimited protobuf field."""
    raw = content.encode() if isinstance(content, str) else content
    assert number < 16
    assert len(raw) < 128
    return bytes([number << 3 | 2, len(raw)]) + raw


def repeating(output: str, head: str) -> bytes:
    """Bytes that, appended to an ONNX graph, copy an output: protobuf merges appended messages."""
    node = field(1, head) + field(2, output) + field(4, "Identity")
    tensor = field(1, bytes([1 << 3, 1]))  # element type: float
    value = field(1, output) + field(2, tensor)
    return field(7, field(1, node) + field(12, value))


def bundle_with_new_heads(folder: Path) -> Path:
    """The small bundle with four more heads, which have neither weights nor code."""
    shutil.copytree(bundles.find("nano"), folder)
    graph = folder / "head.onnx"
    graph.write_bytes(graph.read_bytes() + b"".join(repeating(*pair) for pair in COPIED.items()))
    content = json.loads((folder / bundles.MANIFEST).read_text("utf-8"))
    content["name"] = "with-new-heads"
    content["heads"] += NEW
    content["files"]["head.onnx"] = hashlib.sha256(graph.read_bytes()).hexdigest()
    (folder / bundles.MANIFEST).write_text(json.dumps(content), "utf-8")
    return folder


@dataclass
class ScoredSession:
    """A session scored with the bundle, and access to its data."""

    web: InProcessWeb
    result: BatchResult
    bundle: str

    def row(self, seq: int) -> dict[str, Any]:
        query = sa.select(turn_scores).where(
            turn_scores.c.seq == seq, turn_scores.c.stage == Stage.FINAL.value
        )
        with self.web.store.reading() as connection:
            return dict(connection.execute(query).mappings().one())

    def page(self, path: str) -> str:
        headers = {"Authorization": f"Bearer {self.web.tokens['sue']}"}
        with self.web.anonymous_client(headers=headers) as sue:
            return sue.get(path).raise_for_status().text

    def export(self, path: str) -> bytes:
        with self.web.client("sue") as sue:
            return sue.get(f"/exports/{path}").raise_for_status().content


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScoredSession]:
    folder = tmp_path_factory.mktemp("heads")
    (folder / "rules.yaml").write_text(RULES, "utf-8")
    web = InProcessWeb(folder)
    settings = Settings().model_copy(
        update={
            "bundle": bundle_with_new_heads(folder / "bundle"),
            "rules": folder / "rules.yaml",
            "database_url": web.settings.database_url,
        }
    )
    scorer = bootstrap.scorer(settings)
    store = bootstrap.prepared_store(settings, scorer)
    log = [turn(seq, text=f"I am so sorry, what happened at {seq}?") for seq in range(6)]
    result = bootstrap.pipeline(settings, scorer).process(received([*log, end()]), {})
    store.commit(result)
    store.close()
    web.start()
    try:
        yield ScoredSession(web, result, scorer.bundle_id)
    finally:
        web.stop()


def test_a_score_with_new_heads_round_trips(session: ScoredSession) -> None:
    scored = [score for score in session.result.turn_scores if score.role is Role.COUNSELLOR]
    for score in scored:
        warmth, reactions = (score.expressed.levels[name] for name in ("warmth", MECHANISMS[0]))
        assert len(warmth.probabilities) == len(reactions.probabilities)
        assert score.expressed.distribution("tone").keys() == {"dry", "light_hearted", "grave"}
        assert 0.0 < score.perceived["trust"] < 1.0
        assert "mood" not in score.client
        assert scores.decode(scores.encode(score)) == score
    assert all(
        score.client["mood"].keys() == {"up", "even", "down"}
        for score in session.result.turn_scores
        if score.role is Role.CLIENT
    )


def test_the_total_includes_only_the_three_mechanisms(session: ScoredSession) -> None:
    for score in session.result.turn_scores:
        levels = [score.expressed.levels[name].level for name in MECHANISMS if score.expressed]
        assert score.expressed.total == (sum(levels) if levels else None)


def test_the_new_heads_are_stored(session: ScoredSession) -> None:
    row = session.row(1)
    assert row["expressed"]["warmth"]["level"] in (0, 1, 2)
    assert sum(row["expressed"]["tone"].values()) == pytest.approx(1.0, abs=5e-4)
    assert 0.0 < row["perceived"]["trust"] < 1.0
    assert sum(session.row(0)["client"]["mood"].values()) == pytest.approx(1.0, abs=5e-4)


def test_the_api_returns_the_new_heads(session: ScoredSession) -> None:
    with session.web.client("sue") as sue:
        items = sue.get("/sessions/s/turns").raise_for_status().json()["items"]
        manifest = sue.get(f"/bundles/{session.bundle}").raise_for_status().json()["manifest"]
    [scored, *_] = items[1]["scores"]
    warmth = session.row(1)["expressed"]["warmth"]
    assert scored["expressed"]["warmth"] == {**warmth, "rationale_utf16": warmth["rationale"]}
    assert scored["perceived"]["trust"] == session.row(1)["perceived"]["trust"]
    heads = {head["name"]: head for head in manifest["heads"]}
    assert heads["warmth"]["words"]["title"] == "Warmth"


def test_the_console_shows_the_new_heads_with_their_display_words(session: ScoredSession) -> None:
    page = session.page("/sessions/s")
    for words in ("Warmth", ">WM</b>", "Emotional reactions", "mood"):
        assert words in page
    assert "Trust in the counsellor" not in page, "nobody has shown that it agrees with ratings"
    assert {"lukewarm", "cold", "warm"} & set(page.replace("<", " ").replace(">", " ").split())


def test_exports_have_columns_for_the_new_heads(session: ScoredSession) -> None:
    rows = list(csv.DictReader(io.StringIO(session.export("turns?format=csv").decode("utf-8-sig"))))
    row = session.row(1)
    assert rows[1]["expressed_warmth"] == str(row["expressed"]["warmth"]["level"])
    assert float(rows[1]["perceived_trust"]) == row["perceived"]["trust"]
    assert json.loads(rows[1]["expressed"])["tone"] == row["expressed"]["tone"]
    assert json.loads(rows[0]["client"]).keys() >= {"mood"}
    with zipfile.ZipFile(io.BytesIO(session.export("convokit"))) as archive:
        index = json.loads(archive.read("rapport-corpus/index.json"))
        lines = archive.read("rapport-corpus/utterances.jsonl").splitlines()
    assert index["utterances-index"]["expressed_warmth"] == ["<class 'int'>"]
    assert json.loads(lines[1])["meta"]["perceived_trust"] == row["perceived"]["trust"]


def test_a_rule_may_use_the_manifests_evidence(session: ScoredSession) -> None:
    firing = [alert for alert in session.result.alerts if alert.rule == "warm"]
    assert firing, "the rule did not fire"
    first = firing[0]
    warm = next(s for s in session.result.turn_scores if s.seq == 1).expressed.levels["warmth"]
    assert first.values["expressed.warmth.warm"] == pytest.approx(warm.probabilities[2], abs=1e-6)
    assert first.values.keys() >= {"perceived.trust.yes", "client.mood.down.recent"}
    assert first.reason.startswith("warm 0.")
