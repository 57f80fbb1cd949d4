"""Ratings from files, AnnoMI, a bundle and the console's database."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from models.agreement import console, corpora
from models.agreement.__main__ import PAGE, app
from models.agreement.comparison import compare
from models.agreement.labelled_file import read
from models.agreement.labelled_file import write as write_ratings
from models.agreement.ratings import Coder, Rating, RatingsError, by_variable
from models.data.corpora import Conversation, Turn, one_hot
from models.labels import CLIENT, COUNSELLOR
from stream_app import bootstrap
from stream_app.contracts.scores import MECHANISMS, Expressed, Level
from stream_app.core.measures.window import ScoringRequest
from stream_app.core.session.ports import Encoding, HeadScores
from stream_app.store.stream.repository import Store, open_store
from stream_app.store.work import calibration_samples, ratings
from stream_app.store.work.ratings import Judgement
from tests.fakes import FakeScorer
from tests.models.tiny import write_rows
from tests.store import databases
from tests.store.batches import BUNDLE, prepare
from tests.store.judging import fill, supervisor

runner = CliRunner()


def write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def line(coder: str, item: object, value: object, **more: object) -> dict[str, object]:
    return {"session": "s", "item": item, "coder": coder, "variable": "v", "value": value} | more


def test_a_file_may_have_numbers_kinds_and_missing_values(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.jsonl",
        [line("a", 1, 2, note="ignored"), line("m", "1", "2", kind="llm"), line("m", 2, None)],
    )
    one, other = read([file])
    assert (one.item, one.value, one.coder) == ("1", "2", Coder("a", "expert"))
    assert other.coder == Coder("m", "llm")


@pytest.mark.parametrize(
    "raw", [b'{"session": "s"}', b"[]", b"nonsense", b"\xff\xfe", b'{"item": 1.5}'], ids=range(5)
)
def test_a_bad_line_is_named_without_its_content(raw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(json.dumps(line("a", 1, 2)).encode() + b"\n\n" + raw + b"\n")
    with pytest.raises(RatingsError, match="line 3: ") as problem:
        list(read([file]))
    assert "nonsense" not in str(problem.value)


def test_the_command_prints_a_table_and_writes_the_figures(tmp_path: Path) -> None:
    lines = [
        line(coder, item, str((item * step) % 3), session=str(item // 5))
        for coder, step in (("a", 1), ("b", 1), ("c", 2))
        for item in range(60)
    ]
    file, out = write(tmp_path / "a.jsonl", lines), tmp_path / "out.json"
    result = runner.invoke(app, ["file", str(file), "--resamples", "20", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "| v | expert–expert | 3 | 12 | 60 |" in result.output
    assert json.loads(out.read_text())[0]["quadratic"]["value"] is not None


@pytest.mark.parametrize("option", ["v", "v=a", "v=a,a", "v=a,,b"])
def test_an_order_needs_two_different_values(option: str, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [line("a", 1, "a")])
    result = runner.invoke(app, ["file", str(file), "--ordered", option])
    assert result.exit_code == 2


def test_ratings_are_read_as_they_were_written(tmp_path: Path) -> None:
    given = [
        Rating("s", "0/1", Coder("rapport", "rapport"), "v", "weak"),
        Rating("ſ\u2028", "1", Coder("anna", "expert"), "v", "1"),
    ]
    write_ratings(tmp_path / "r.jsonl", given)
    assert list(read([tmp_path / "r.jsonl"])) == given


def test_one_coder_alone_is_an_error(tmp_path: Path) -> None:
    result = runner.invoke(app, ["file", str(write(tmp_path / "a.jsonl", [line("a", 1, "a")]))])
    assert (result.exit_code, result.output) == (1, "error: no item was coded by two coders\n")


def test_every_annotator_of_annomi_is_a_coder(tmp_path: Path) -> None:
    notes = [
        {"annotator": n, "behaviour": "reflection", "question": None, "reflection": value,
         "input": None}
        for n, value in enumerate(("simple", "complex"))
    ]  # fmt: skip
    said = {"speaker": "therapist", "index": 0, "text": "so", "annotations": notes}
    heard = {"speaker": "client", "index": 1, "text": "yes",
             "annotations": [{"annotator": 0, "talk_type": "change"}]}  # fmt: skip
    row = {"conversation_id": "annomi-1", "utterances": [said, heard]}
    write_rows(tmp_path / "annomi.jsonl.gz", [row])
    found = list(corpora.annotators(tmp_path))
    values = {(r.coder.name, r.item, r.variable): r.value for r in found}
    assert values["annotator 0", "0", "reflection"] == "simple"
    assert values["annotator 1", "0", "reflection"] == "complex"
    assert values["annotator 1", "0", "question"] == "none"
    assert values["annotator 0", "1", "talk_type"] == "change"
    assert len(found) == 9


class Fixed(FakeScorer):
    """Answers level 2 of the first mechanism and talk of change; abstains on the second."""

    def encode(self, texts: list[str], roles: object = None) -> list[Encoding]:
        return [Encoding(text.encode(), {}, truncated=False) for text in texts]

    def score(self, requests: list[ScoringRequest]) -> list[HeadScores]:
        levels = {name: Level(2, [0.0, 0.1, 0.9]) for name in MECHANISMS}
        talk = {"talk_type": {"change": 0.8, "neutral": 0.1, "sustain": 0.1}}
        return [HeadScores(Expressed(**levels), {}, talk, 1.0, [MECHANISMS[1]]) for _ in requests]


def test_a_bundle_is_a_coder_that_may_abstain() -> None:
    levels = {name: one_hot(name, "strong") for name in MECHANISMS}
    item = Conversation(
        "epitome",
        "post",
        [Turn(CLIENT, "sad", {"talk_type": one_hot("talk_type", "change")}),
         Turn(COUNSELLOR, "sorry", levels)],
    )  # fmt: skip
    expert = [(r.session, r.item, r.variable, r.value) for r in corpora.experts([item])]
    assert expert[0] == ("epitome:post", "0/0", "talk_type", "change")
    second = list(corpora.experts([item, item]))[len(expert)]
    assert (second.session, second.item) == ("epitome:post", "1/0")
    found = list(corpora.rapport(Fixed(), [item]))
    assert [(r.session, r.item, r.variable, r.value) for r, _ in found] == expert
    assert [answers for _, answers in found] == [True, True, False, True]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = prepare(open_store(databases.sqlite(tmp_path / "test.db")))
    yield opened
    opened.close()


def test_ratings_of_the_console_are_compared_with_each_other_the_bundle_and_a_model(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two supervisors rate 30 turns blind; Ben is one level above Sue on half of them."""
    fill(store, sessions=5)
    sue, ben = supervisor(store), supervisor(store, "ben")
    new = calibration_samples.NewCalibrationSample("autumn", BUNDLE, "north", 30, 7)
    sample = calibration_samples.draw(store, sue, new)
    turns = calibration_samples.collect_ratings(store, sample).turns
    for number, turn in enumerate(turns):
        for who, value in ((sue, number % 2), (ben, number % 2 + (number % 4 > 1))):
            given = [Judgement(turn.session_id, turn.seq, MECHANISMS[0], value)]
            calibration_samples.rate(store, who, sample.sample_id, given)
    late = supervisor(store, "late")  # saw the score
    ratings.rate(store, late.scope, "late", [Judgement("north-0", 1, MECHANISMS[0], 2)])

    found, scales = console.read(store, BUNDLE, MECHANISMS[:1], blind_only=True)
    assert scales[MECHANISMS[0]].ordered
    assert {rating.coder.name for rating in found} == {"account sue", "account ben", "rapport"}
    everyone, _ = console.read(store, BUNDLE, MECHANISMS[:1], blind_only=False)
    assert "account late" in {rating.coder.name for rating in everyone}
    (coded,) = by_variable(found, scales)
    among = next(row for row in compare(coded, 20) if row.kinds == ("expert", "expert"))
    assert (among.items, among.sessions, among.pairs) == (30, 5, 1)
    assert among.equal is not None
    assert among.equal.value == pytest.approx(16 / 30)

    monkeypatch.setattr(bootstrap, "store", lambda settings: store)
    model = [
        line("m", turn.seq, "none", session=turn.session_id, variable=name, kind="llm")
        for turn in turns
        for name in (MECHANISMS[0], "of no head")
    ]
    file = write(tmp_path / "llm.jsonl", model)
    result = runner.invoke(app, ["console", "--resamples", "20", "--with", str(file)])
    assert result.exit_code == 0, result.output
    assert "expert–Rapport" in result.output
    assert f"| {MECHANISMS[0]} | expert–LLM | 2 | 5 | 30 |" in result.output
    assert "sue" not in result.output
    unknown = runner.invoke(app, ["console", "--bundle", "x"])
    assert unknown.output == f"error: no such bundle has scored; there are: {BUNDLE}\n"


def test_the_page_has_the_measured_figures(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    assert runner.invoke(app, ["tables", "--page", str(page)]).exit_code == 0
    assert page.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
