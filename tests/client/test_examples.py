"""The connectors of docs/examples, on payloads as their services send them."""

import asyncio
import base64
import hashlib
import hmac
import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from stream_app.client import AsyncRapportClient, RapportClient
from stream_app.importers.imported import ImportRefused, People, Skipped
from tests.client.driving import QUICK, Network, answered
from tests.web.api.topic import Topic
from tests.web.in_process import InProcessWeb

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
URL = "http://rapport.test"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessWeb]:
    running = InProcessWeb(tmp_path_factory.mktemp("examples"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def network(web: InProcessWeb) -> Network:
    return Network(web.app)


@pytest.fixture
def rapport(web: InProcessWeb, network: Network) -> Iterator[RapportClient]:
    with RapportClient(URL, web.tokens["pump"], retries=QUICK, transport=network) as client:
        yield client


def said(topic: Topic, session: str) -> list[tuple[Any, ...]]:
    """Numbers, roles and texts of turns; the types of other events."""
    sent = map(json.loads, topic.of(session))
    return [
        (each["seq"], each["role"], each["text"]) if each["type"] == "turn" else (each["type"],)
        for each in sent
    ]


class HelpDesk:
    """Delivers webhooks with signatures."""

    secret = "s3cret"

    def __init__(self, web: InProcessWeb, network: Network) -> None:
        rapport = AsyncRapportClient(URL, web.tokens["pump"], retries=QUICK, transport=network)
        secrets = {"zendesk": self.secret, "intercom": self.secret}
        self._app = example("helpdesk_webhook").create(rapport, secrets)

    def deliver(self, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://desk") as client:
                return await client.post(path, content=body, headers=headers)

        return asyncio.run(ask())

    def zendesk(
        self, payload: Any, delivery: str, secret: str = secret, at: datetime | None = None
    ) -> httpx.Response:
        body = json.dumps(payload).encode()
        stamp = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        digest = hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256).digest()
        headers = {
            "X-Zendesk-Webhook-Signature": base64.b64encode(digest).decode(),
            "X-Zendesk-Webhook-Signature-Timestamp": stamp,
            "X-Zendesk-Webhook-Invocation-Id": delivery,
        }
        return self.deliver("/zendesk", body, headers)

    def intercom(self, payload: Any, secret: str = secret) -> httpx.Response:
        body = json.dumps(payload).encode()
        digest = hmac.new(secret.encode(), body, hashlib.sha1).hexdigest()
        return self.deliver("/intercom", body, {"X-Hub-Signature": f"sha1={digest}"})


def comment(text: str, agent: str, status: str = "Open") -> dict[str, str]:
    at = "2026-03-02T09:15:00+01:00"
    who = {"ticket": "35436", "author": "20978392", "agent": agent}
    return {**who, "status": status, "text": text, "at": at}


def test_zendesk_comments_are_turns(web: InProcessWeb, network: Network, topic: Topic) -> None:
    desk = HelpDesk(web, network)
    first = comment("My parcel is lost.", "false")
    for _ in range(2):  # Zendesk repeats a delivery without an answer
        assert desk.zendesk(first, "inv-1").status_code == 204
    assert desk.zendesk(comment("I am sorry!", "true", "Solved"), "inv-2").status_code == 204
    assert said(topic, "zendesk-35436") == [
        (0, "client", "My parcel is lost."),
        (1, "counsellor", "I am sorry!"),
        ("session_end",),
    ]
    assert desk.zendesk(first, "inv-3", secret="guessed").status_code == 401
    assert desk.zendesk(first, "inv-4", at=datetime(2026, 1, 1, tzinfo=UTC)).status_code == 401
    assert desk.deliver("/zendesk", b"{}", {}).status_code == 401
    assert desk.deliver("/other", b"{}", {}).status_code == 404
    for odd in ([], {"ticket": 1}, {**first, "at": "soon"}, {**first, "text": None}):
        answer = desk.zendesk(odd, "inv-5")  # repeating it would not help
        assert (answer.status_code, bool(answer.text)) == (200, True)
    network.faults = [answered(503)] * QUICK.attempts
    assert desk.zendesk(comment("Thanks", "false"), "inv-6").status_code == 503
    assert len(topic.of("zendesk-35436")) == 3


def notification(topic: str, number: int, **item: Any) -> dict[str, Any]:
    head = {"type": "notification_event", "app_id": "a86dr8yl", "id": f"notif_{number}"}
    found = {"type": "conversation", "id": "4711", "created_at": 1772439300, **item}
    return {**head, "topic": topic, "created_at": 1772439400, "data": {"item": found}}


def part(kind: str, body: str | None, number: str) -> dict[str, Any]:
    author = {"type": kind, "id": number, "name": "x"}
    about = {"type": "conversation_part", "id": number, "part_type": "comment"}
    return {**about, "body": body, "author": author, "created_at": 1772439360}


def test_intercom_messages_are_turns(web: InProcessWeb, network: Network, topic: Topic) -> None:
    desk = HelpDesk(web, network)
    source = {"type": "conversation", "body": "<p>Hello &amp; help<br>please</p>"}
    source["author"] = {"type": "user", "id": "u1"}
    parts = {
        "conversation_parts": {
            "conversation_parts": [
                part("bot", "<p>Hi</p>", "b"),
                part("admin", "<p>What happened?</p>", "a"),
                part("admin", None, "a"),
            ]
        }
    }
    created = notification("conversation.user.created", 1, source=source)
    replied = notification("conversation.admin.replied", 2, source=source, **parts)
    closed = notification("conversation.admin.closed", 3, source=source)
    for payload in (created, created, replied, closed):
        assert desk.intercom(payload).status_code in {200, 204}  # 200: something was left out
    assert said(topic, "intercom-4711") == [
        (0, "client", "Hello & help\nplease"),
        (1, "system", "Hi"),
        (2, "counsellor", "What happened?"),
        ("session_end",),
    ]
    assert desk.intercom(created, secret="guessed").status_code == 401


ROOM = "!kvnZ:example.org"
ANNA, BEN, BOT = "@anna:example.org", "@ben:example.org", "@rapport:example.org"


def message(number: int, sender: str, body: str, **content: Any) -> dict[str, Any]:
    inner = {"msgtype": "m.text", "body": body, **content}
    head = {"type": "m.room.message", "event_id": f"${number}", "sender": sender}
    return {**head, "origin_server_ts": 1772439300000 + number, "content": inner}


def test_matrix_rooms_are_sessions(
    rapport: RapportClient, network: Network, topic: Topic, tmp_path: Path
) -> None:
    left = message(9, BEN, "") | {"type": "m.room.member", "state_key": BEN}
    left["content"] = {"membership": "leave"}
    timelines = [
        [
            message(1, BEN, "I cannot sleep."),
            message(2, BOT, "I am a bridge"),
            message(3, ANNA, "Since when?"),
        ],
        [
            message(4, ANNA, "* Since when?", **{"m.relates_to": {"rel_type": "m.replace"}}),
            message(5, BEN, "photo.jpg", msgtype="m.image"),
            message(6, BEN, "Tuesday."),
            left,
        ],
        [],
    ]
    asked: list[str | None] = []

    def matrix(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer syt_x"
        if request.url.path.endswith("whoami"):
            return httpx.Response(200, json={"user_id": BOT})
        asked.append(request.url.params.get("since"))
        step = int((asked[-1] or "s0")[1:])
        joined = {ROOM: {"timeline": {"events": timelines[step]}}}
        return httpx.Response(200, json={"next_batch": f"s{step + 1}", "rooms": {"join": joined}})

    position = tmp_path / "position.txt"
    homeserver = httpx.Client(
        base_url="https://matrix.example.org",
        headers={"Authorization": "Bearer syt_x"},
        transport=httpx.MockTransport(matrix),
    )
    module = example("matrix_bridge")
    with homeserver:
        people, left_out = People({ANNA}), list[Skipped]()
        bridge = module.Bridge(homeserver, rapport, position, people, left_out.append)
        assert bridge.step() == 2
        position.write_text("s0")  # as if the process had died before it wrote the position
        again = module.Bridge(homeserver, rapport, position, people, left_out.append)
        assert again.step() == 2
        assert bridge.step() == 2
    assert [each.place for each in left_out] == ["$4", "$5"]
    assert asked == [None, "s0", "s1"]
    assert said(topic, ROOM) == [
        (0, "client", "I cannot sleep."),
        (1, "counsellor", "Since when?"),
        (2, "client", "Tuesday."),
        ("session_end",),
    ]


VTT = """WEBVTT

NOTE from the recogniser

1
00:00:01.000 --> 00:00:03.500
<v Anna>Good morning, <i>how</i> are you?

00:00:04.000 --> 00:00:06.000 align:start
<v.loud Ben Müller>Not well &amp; tired.</v>

00:00:06.100 --> 00:00:07.000
I cannot sleep.

00:00:50.000 --> 00:00:52.000
<v Ben Müller>Since Tuesday. <v Anna>That is long.
"""
SRT = """1
00:00:01,000 --> 00:00:03,500
Anna: Good morning, how are you?

2
00:00:04,000 --> 00:00:06,000
Ben Müller: Not well & tired.

3
00:00:06,100 --> 00:00:07,000
I cannot sleep.

4
00:00:50,000 --> 00:00:52,000
Ben Müller: Since Tuesday.
Anna: That is long.
"""


@pytest.mark.parametrize(("name", "content"), [("call.vtt", VTT), ("call.srt", SRT)])
def test_transcripts_are_sessions(
    rapport: RapportClient, topic: Topic, tmp_path: Path, name: str, content: str
) -> None:
    transcripts = example("transcripts")
    file = tmp_path / name
    file.write_text(content, "utf-8")
    options = [str(file), "--session", name, "--start", "2026-03-02T09:00:00+01:00", "--consent"]
    roles = ["--role", "Anna=counsellor", "--role", "Ben Müller=client"]
    for _ in range(2):
        assert transcripts.main([*options, *roles], rapport) == 4
    assert said(topic, name) == [
        (0, "counsellor", "Good morning, how are you?"),
        (1, "client", "Not well & tired. I cannot sleep."),
        (2, "client", "Since Tuesday."),
        (3, "counsellor", "That is long."),
        ("session_end",),
    ]
    second = json.loads(topic.of(name)[1])
    assert second["occurred_at"] == "2026-03-02T09:00:04+01:00"
    assert (second["consent"], second["channel"]) == (True, "voice")
    with pytest.raises(ImportRefused, match="who is Ben Müller"):
        transcripts.main([*options, *roles[:2]], rapport)
    with pytest.raises(ValueError, match="offset"):
        transcripts.main([*options[:4], "2026-03-02", *roles], rapport)
    file.write_text("zanzibar", "utf-8")
    with pytest.raises(ImportRefused, match="not a transcript"):
        transcripts.main([*options, *roles], rapport)


@pytest.mark.slow
def test_the_typescript_example_has_40_lines_and_no_type_errors(tmp_path: Path) -> None:
    file = EXAMPLES / "send.ts"
    assert len(file.read_text("utf-8").splitlines()) <= 40
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    shutil.copy(file, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    install = ["npm", "install", "--silent", "typescript", "@types/node"]
    if subprocess.run(install, cwd=tmp_path, check=False, timeout=120).returncode:
        pytest.skip("npm cannot install TypeScript here")
    check = ["npx", "tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext"]
    checked = subprocess.run(
        [*check, "--types", "node", "send.ts"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
