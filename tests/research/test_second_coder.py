"""The second coder against a server process that answers by rules, and no language model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from models.data.corpora import REPOSITORY
from research.second_coder.__main__ import app
from research.second_coder.endpoint import Connection, Endpoint, EndpointError
from research.second_coder.prompt import Prompt
from tests.models.tiny import write_rows

runner = CliRunner()
SECRET = "the red bicycle of my aunt"
REPLIES = (
    f"What about {SECRET}?",
    "Do you feel alone?",
    "I am sorry.",
    "Do you feel cold?",
    "Right.",
    "How come?",
)
LEVELS = (1, 2, 0, 2, 0, 1)


class Server:
    """The server process and the requests that it got."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.research.chat_server", str(log)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/v1"

    def requests(self) -> list[dict[str, Any]]:
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    started = Server(tmp_path / "requests.jsonl")
    yield started
    started.stop()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """EPITOME with forty copies of six replies, whose explorations follow the server's rule."""
    rows = []
    for number in range(240):
        reply, level = REPLIES[number % 6], LEVELS[number % 6]
        row: dict[str, Any] = {
            "seeker_post_id": f"post-{number}",
            "response_post_id": f"reply-{number}",
            "seeker_post": f"Nothing works, {number}.",
            "response_post": reply,
        }
        for head in ("emotional_reactions", "interpretations"):
            row[head] = {"level": 0, "rationales": []}
        row["explorations"] = {"level": level, "rationales": [reply] if level else []}
        rows.append(row)
    folder = tmp_path / "data"
    folder.mkdir()
    write_rows(folder / "epitome_reddit.jsonl.gz", rows)
    return folder


@pytest.fixture
def coded(server: Server, data: Path, tmp_path: Path) -> Any:
    """Runs the command on explorations; answers the process's result and the record."""

    def run(model: str, *more: str, exit_code: int = 0) -> tuple[Result, dict[str, Any]]:
        out = tmp_path / "out.jsonl"
        options = {
            "--codebook": "epitome",
            "--variable": "explorations",
            "--endpoint": server.url,
            "--model": model,
            "--out": str(out),
            "--corpus": "epitome",
            "--data-dir": str(data),
            "--declared": "research use, made for the test",
            "--cache": str(tmp_path / "cache" / "answers.sqlite"),
            "--retries": "0",
        }
        line = [part for pair in options.items() for part in pair]
        result = runner.invoke(app, ["code", *line, *more])
        assert result.exit_code == exit_code, result.output
        record = tmp_path / "out.jsonl.run.json"
        return result, json.loads(record.read_text()) if record.exists() else {}

    return run


def lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]


def test_a_coder_that_knows_the_rule_agrees_with_the_experts(
    coded: Any, server: Server, tmp_path: Path
) -> None:
    result, record = coded("rules")
    found = [line for line in lines(tmp_path) if line["kind"] == "llm"]
    assert record["coded"] == len(found) == len(server.requests()) >= 20
    assert "| explorations | expert–LLM | 1 |" in result.output
    assert "| 100 (100 to 100) | 1.00 (1.00 to 1.00) |" in result.output
    assert record["host"] == "127.0.0.1"
    assert record["source"]["declared"] == "research use, made for the test"
    assert record["source"]["part"] == "held-out tenth"
    assert record["cost"]["tokens"] == {"prompt": 100 * len(found), "completion": 10 * len(found)}
    right = {"items": len(found), "accuracy": 1.0, "macro_f1": 1.0}
    assert record["figures"] == {"explorations": right}
    strong = next(line for line in found if line["value"] == "strong")
    assert strong["evidence"] == [[0, 18]]


def test_a_request_has_codebook_schema_and_the_marked_utterance(coded: Any, server: Server) -> None:
    coded("rules", "--most", "1", "--parameter", "seed=7")
    (sent,) = server.requests()
    assert sent["path"] == "/v1/chat/completions"
    body = sent["body"]
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0.0, 7, 400)
    schema = body["response_format"]["json_schema"]
    assert schema["strict"]
    assert schema["schema"]["properties"]["label"]["enum"] == ["none", "weak", "strong"]
    system, item = (message["content"] for message in body["messages"])
    assert "asks in general terms" in system
    turns = json.loads(item)
    assert [turn["speaker"] for turn in turns] == ["client", "counsellor"]
    assert [turn.get("code", False) for turn in turns] == [False, True]


def test_a_second_run_asks_nothing_and_the_cache_holds_no_text(
    coded: Any, server: Server, tmp_path: Path
) -> None:
    _, first = coded("rules")
    asked = len(server.requests())
    _, again = coded("rules")
    assert len(server.requests()) == asked
    assert (again["from_cache"], again["coded"]) == (first["coded"], first["coded"])
    assert again["cost"]["requests"] == 0
    held = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    for word in SECRET.split()[1:]:
        assert word.encode() not in held
    assert (tmp_path / "cache" / "answers.sqlite").stat().st_mode & 0o077 == 0
    for name in ("out.jsonl", "out.jsonl.run.json"):
        assert "bicycle" not in (tmp_path / name).read_text()


@pytest.mark.parametrize("more", [("--model", "other"), ("--temperature", "1"), ("--shots", "1")])
def test_another_model_prompt_or_parameter_is_another_answer(
    coded: Any, server: Server, more: tuple[str, ...]
) -> None:
    coded("rules", "--most", "2")
    coded("rules", "--most", "2", *more)
    assert len(server.requests()) == 4


def test_invalid_answers_are_asked_again_a_bounded_number_of_times(
    coded: Any, server: Server, tmp_path: Path
) -> None:
    _, record = coded("mumbles", "--most", "2", "--attempts", "3")
    assert len(server.requests()) == 6
    assert (record["coded"], record["without_answer"], record["invalid_answers"]) == (0, 2, 6)
    values = [line for line in lines(tmp_path) if line["kind"] == "llm"]
    assert [line["value"] for line in values] == [None, None]
    assert {line["problem"] for line in values} == {"it is not JSON"}
    assert record["figures"]["explorations"] == {"items": 2, "accuracy": 0.0, "macro_f1": 0.0}
    coded("mumbles", "--most", "2", "--attempts", "1")
    assert len(server.requests()) == 8, "no invalid answer is cached"


def test_an_answer_is_corrected_after_the_reason_was_given(
    coded: Any, server: Server, tmp_path: Path
) -> None:
    _, record = coded("learns", "--most", "1")
    assert (record["coded"], record["invalid_answers"]) == (1, 1)
    again = server.requests()[1]["body"]["messages"]
    assert again[-1]["content"].startswith("This answer is not valid: it is not JSON.")
    assert lines(tmp_path)[0]["attempts"] == 2


def test_an_answer_that_was_cut_off_is_not_valid(coded: Any) -> None:
    _, record = coded("cut-off", "--most", "1", "--attempts", "1")
    assert (record["coded"], record["invalid_answers"]) == (0, 1)


def test_an_endpoint_without_schemas_is_asked_for_plain_json(coded: Any, server: Server) -> None:
    _, record = coded("no-schema", "--most", "3")
    assert record["answers"] == {"asked": "schema", "used": "json", "attempts": 3}
    assert ["response_format" in sent["body"] for sent in server.requests()] == [True] + [False] * 3
    assert record["coded"] == 3


def test_labels_are_ranked_by_log_probabilities(coded: Any, server: Server, tmp_path: Path) -> None:
    result, record = coded("rules", "--answers", "ranks")
    assert "| 100 (100 to 100) |" in result.output
    body = server.requests()[0]["body"]
    assert (body["logprobs"], body["top_logprobs"], body["max_tokens"]) == (True, 20, 1)
    assert "response_format" not in body
    strong = next(line for line in lines(tmp_path) if line["value"] == "strong")
    assert strong["probabilities"] == pytest.approx({"strong": 0.7, "weak": 0.2})
    assert record["invalid_answers"] == 0


def test_an_endpoint_without_log_probabilities_cannot_rank(coded: Any) -> None:
    result, _ = coded("no-ranks", "--answers", "ranks", exit_code=1)
    assert "gives no log-probabilities; --answers schema needs none" in result.output


def test_examples_are_one_of_each_class_and_the_same_for_every_item(
    coded: Any, server: Server
) -> None:
    coded("rules", "--most", "2", "--shots", "1")
    one, other = (sent["body"]["messages"] for sent in server.requests())
    assert one[:-1] == other[:-1]
    answers = [json.loads(m["content"]) for m in one if m["role"] == "assistant"]
    assert sorted(answer["label"] for answer in answers) == ["none", "strong", "weak"]
    assert all(bool(answer["evidence"]) == (answer["label"] != "none") for answer in answers)


def test_a_busy_endpoint_is_asked_again_and_its_failures_are_counted(
    coded: Any, server: Server
) -> None:
    _, record = coded("busy", "--most", "1", "--retries", "3")
    assert record["coded"] == 1
    assert len(server.requests()) == 3
    assert record["cost"]["requests"] == 3
    assert record["cost"]["uncounted_requests"] == 2


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("broken", "the endpoint answered 500"),
        ("unknown", "the endpoint answered 404"),
        ("moved", "the endpoint answered 307"),
        ("not-a-completion", "is no chat completion"),
        ("not-json", "the endpoint's answer is"),
        ("refuses", "the endpoint refused the request (400)"),
    ],
)
def test_an_endpoint_that_does_not_answer_ends_the_run_without_quoting_it(
    coded: Any, model: str, words: str
) -> None:
    result, record = coded(model, exit_code=1)
    assert words in result.output
    assert words in record["stopped"]
    assert "bicycle" not in result.output


def test_one_refused_item_does_not_stop_the_others(coded: Any, data: Path) -> None:
    rows = [
        {
            "seeker_post_id": f"post-{n}",
            "seeker_post": f"x {n}",
            "response_post": "Why? " * (50 if n % 2 else 1),
            **{h: {"level": 0, "rationales": []} for h in ("emotional_reactions", "interpretations",
               "explorations")},
        }
        for n in range(100)
    ]  # fmt: skip
    write_rows(data / "epitome_reddit.jsonl.gz", rows)
    _, record = coded("refuses-long", "--answers", "json")
    assert record["stopped"] is None
    assert record["refused"] == record["without_answer"] > 0
    assert record["coded"] > 0


def test_the_budget_ends_the_run_before_it_is_exceeded(coded: Any, server: Server) -> None:
    prices = ("--prompt-price", "1000", "--completion-price", "10000")
    result, record = coded("rules", *prices, "--budget", "8", exit_code=1)
    assert record["cost"]["money_at_most"] <= 8
    assert 0 < record["coded"] == len(server.requests())
    assert record["cost"]["money_at_most"] == pytest.approx(0.2 * record["coded"])
    assert "spent at most" in result.output
    nothing, _ = coded("other", *prices, "--budget", "0", exit_code=1)
    assert "stopped after 0 values" in nothing.output


@pytest.mark.parametrize("model", ["no-usage", "negative-usage", "odd-usage"])
def test_without_usage_the_upper_bound_counts(coded: Any, model: str) -> None:
    prices = ("--prompt-price", "1", "--completion-price", "1")
    _, record = coded(model, "--most", "2", *prices)
    assert record["cost"]["tokens"] == {"prompt": 0, "completion": 0}
    assert record["cost"]["uncounted_requests"] == 2
    assert record["cost"]["money_at_most"] > 2 * 400 / 1e6


def test_a_dry_run_counts_and_sends_nothing(coded: Any, server: Server) -> None:
    result, record = coded("rules", "--dry-run", "--most", "5", "--retries", "0")
    found = json.loads(result.output)
    assert (found["items"], found["requests"], found["cached"]) == (5, 5, 0)
    assert found["characters"] > 5 * 500
    assert found["tokens_at_most"]["prompt"] > found["characters"]
    assert found["money_at_most"] is None
    assert server.requests() == []
    assert record == {}
    coded("rules", "--most", "2")
    again, _ = coded("rules", "--dry-run", "--most", "5")
    assert json.loads(again.output)["cached"] == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--declared", " "), "--declared TEXT must say"),
        (("--events", "x.jsonl"), "give one of"),
        (("--budget", "1"), "money needs"),
        (("--prompt-price", "1"), "money needs"),
        (("--variable", "warmth"), "no variable 'warmth'"),
        (("--parameter", "seed"), "NAME=JSON"),
        (("--parameter", "n=5"), "n cannot be set"),
        (("--name", "expert"), "give --name"),
        (("--budget", "inf", "--prompt-price", "1", "--completion-price", "1"), "finite numbers"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    coded: Any, server: Server, more: tuple[str, ...], words: str
) -> None:
    result, _ = coded("rules", *more, exit_code=2)
    assert words in " ".join(result.output.replace("│", " ").split())
    assert server.requests() == []


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org/v1", "--allow-host example.org permits it"),
        ("https://example.org/v1", "--allow-host example.org permits it"),
        ("http://0.0.0.0:1/v1", "another machine"),
        ("http://127.0.0.1.example.org/v1", "another machine"),
        ("ftp://localhost", "no address like"),
        ("http://localhost:99999/v1", "no address like"),
        ("http://me:secret@localhost/v1", "leave it out"),
    ],
)
def test_text_is_sent_to_no_other_machine_unless_it_is_named(
    coded: Any, url: str, words: str
) -> None:
    result, record = coded("rules", "--endpoint", url, exit_code=1)
    assert words in result.output
    assert record == {}


def test_a_named_machine_must_be_reached_with_encryption(coded: Any) -> None:
    result, _ = coded(
        "rules", "--endpoint", "http://example.org/v1", "--allow-host", "example.org", exit_code=1
    )
    assert "must begin with https://" in result.output


def test_no_proxy_sees_what_is_sent_to_this_machine(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    prompt = Prompt(({"role": "user", "content": '[{"text": "x", "code": true}]'},))
    endpoint = Endpoint(Connection(server.url, "rules", retries=0))
    assert endpoint.ask(prompt, ranks=False).complete
    endpoint.close()


def test_an_unreachable_endpoint_is_named_by_its_fault_alone() -> None:
    endpoint = Endpoint(Connection("http://127.0.0.1:9/v1", "m", retries=0, timeout=2))
    prompt = Prompt(({"role": "user", "content": SECRET},))
    with pytest.raises(EndpointError, match=r"no answer \(APIConnectionError\)") as problem:
        endpoint.ask(prompt, ranks=False)
    assert problem.value.attempts == 1
    endpoint.close()


def test_the_clients_debug_log_has_no_prompts(server: Server, tmp_path: Path) -> None:
    script = (
        "import json, logging; logging.basicConfig(level=logging.INFO);"
        "from research.second_coder.endpoint import Connection, Endpoint;"
        "from research.second_coder.prompt import Prompt;"
        f"said = [{{'text': {SECRET!r}, 'code': True}}];"
        "p = Prompt(({'role': 'user', 'content': json.dumps(said)},));"
        f"Endpoint(Connection({server.url!r}, 'rules')).ask(p, ranks=False)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY), "OPENAI_LOG": "debug"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "bicycle" in server.log.read_text()
    assert "bicycle" not in done.stdout + done.stderr
