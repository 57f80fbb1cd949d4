"""Both channels against real receiver processes; messages and logs contain no secrets."""

import email
import email.policy
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest

from stream_app import logs
from stream_app.errors import RapportError
from stream_app.notifications.apprise_channel import AppriseChannel
from stream_app.notifications.connection_guard import parse_allowed
from stream_app.notifications.message_text import text, title
from stream_app.notifications.notification import (
    Channel,
    DeliveryFailed,
    DeliveryRejected,
    DeliveryUnconfirmed,
    digest,
    single,
)
from stream_app.notifications.webhook import Webhook
from stream_app.processes import doctor
from stream_app.settings import LogFormat, Settings
from stream_app.worker.kafka.broker import free_port
from tests.commands.conftest import Rapport, rapport_process
from tests.notifications.alerts import FIRING, RESOLVED
from tests.notifications.conftest import Start, listening
from tests.notifications.receiver import attempts
from tests.notifications.test_messages import many

__all__ = ["rapport_process"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated"),  # a plugin of Apprise's
    pytest.mark.timeout(120),
]
SECRET = "zanzibar"
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOOPBACK = parse_allowed(["127.0.0.0/8"])
CONSOLE = "https://console.example.org"


class Receiver:
    """A receiver process and its log."""

    def __init__(self, start: Start, log: Path, *plan: str) -> None:
        self.port, self._log = free_port(), log
        module = "tests.notifications.receiver"
        start(
            *(module, "--port", self.port, "--log", log, "--secret", SIGNING, "--attempts", *plan)
        )
        listening(self.port)

    def received(self) -> list[dict[str, Any]]:
        return attempts(self._log)

    def apprise(self, timeout: float = 5.0) -> Channel:
        url = f"json://user:{SECRET}@127.0.0.1:{self.port}/{SECRET}?rto=30"
        return AppriseChannel("desk", url, CONSOLE, timeout, LOOPBACK)

    def webhook(self, timeout: float = 5.0) -> Channel:
        url = f"http://127.0.0.1:{self.port}/{SECRET}"
        return Webhook("desk", url, SIGNING, CONSOLE, timeout, LOOPBACK)


@pytest.fixture
def said(log_settings_kept: object, capfd: pytest.CaptureFixture[str]):
    """Everything that this process prints and logs, at all levels."""
    logs.configure("DEBUG", LogFormat.JSON)
    logging.getLogger().setLevel(1)
    return lambda: "".join(capfd.readouterr())


def test_apprise_delivers_words_and_no_transcript(start: Start, tmp_path: Path) -> None:
    receiver = Receiver(start, tmp_path / "log", "ok")
    receiver.apprise().send(single(FIRING))
    receiver.apprise().send(digest("d", many(25)))
    one, several = (line["body"] for line in receiver.received())
    assert (one["title"], one["message"]) == (title(single(FIRING)), text(single(FIRING), CONSOLE))
    assert one["type"] == "warning"
    assert several["message"].startswith("25 more alerts since")
    assert several["type"] == "failure", "the worst of them is critical"


def test_a_webhook_digest_is_one_signed_message(start: Start, tmp_path: Path) -> None:
    receiver = Receiver(start, tmp_path / "log", "ok")
    receiver.webhook().send(digest("a-digest", many(120)))
    [line] = receiver.received()
    assert (line["id"], line["signed"]) == ("a-digest", True)
    assert (len(line["body"]["alerts"]), line["body"]["truncatedAlerts"]) == (100, 20)


@pytest.mark.parametrize(
    ("kind", "does", "problem"),
    [
        ("webhook", "fail", DeliveryFailed),
        ("webhook", "refuse", DeliveryRejected),
        ("webhook", "hang", DeliveryUnconfirmed),
        ("webhook", "cut", DeliveryUnconfirmed),
        ("apprise", "fail", DeliveryFailed),
        ("apprise", "refuse", DeliveryFailed),
        ("apprise", "hang", DeliveryUnconfirmed),
        ("apprise", "cut", DeliveryFailed),
    ],
)
def test_errors_contain_no_secrets(
    start: Start, tmp_path: Path, said, kind: str, does: str, problem: type[DeliveryFailed]
) -> None:
    receiver = Receiver(start, tmp_path / "log", does)
    channel = getattr(receiver, kind)(timeout=1.0)
    with pytest.raises(DeliveryFailed) as refused:
        channel.send(single(FIRING))
    assert type(refused.value) is problem
    assert refused.value.__cause__ is None
    assert len(receiver.received()) == 1
    assert SECRET not in said() + str(refused.value)


@pytest.mark.parametrize("kind", ["webhook", "apprise"])
def test_a_failed_connection_is_reported_without_secrets(said, kind: str) -> None:
    receiver = Receiver.__new__(Receiver)
    receiver.port = free_port()
    with pytest.raises(DeliveryFailed) as refused:
        getattr(receiver, kind)().send(single(FIRING))
    assert type(refused.value) is DeliveryFailed
    assert SECRET not in said() + str(refused.value)


@pytest.mark.parametrize("url", [SECRET, f"nonsense://{SECRET}", f"slack://{SECRET}/{SECRET}"])
def test_an_invalid_apprise_address_is_not_quoted(said, url: str) -> None:
    with pytest.raises(RapportError, match="not an address that Apprise understands") as refused:
        AppriseChannel("desk", url, "", 1.0, LOOPBACK)
    assert SECRET not in said() + str(refused.value)


class Plugin:
    """A slow Apprise service."""

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.5
        self.answer: bool | Exception = True

    def notify(self, **_: object) -> bool:
        self.calls += 1
        time.sleep(self.seconds)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def slow() -> tuple[AppriseChannel, Plugin]:
    channel, plugin = AppriseChannel("desk", "json://localhost", "", 0.1, LOOPBACK), Plugin()
    channel._service = plugin  # type: ignore[assignment]
    return channel, plugin


def test_a_call_that_succeeds_after_its_timeout_is_not_repeated(
    slow: tuple[AppriseChannel, Plugin],
) -> None:
    channel, plugin = slow
    with pytest.raises(DeliveryUnconfirmed, match=r"took longer than 0\.1 s"):
        channel.send(single(FIRING))
    with pytest.raises(DeliveryUnconfirmed):
        channel.send(single(FIRING))
    with pytest.raises(DeliveryFailed, match="has not ended yet") as other:
        channel.send(single(RESOLVED))
    assert type(other.value) is DeliveryFailed, "the other one has not arrived"
    time.sleep(plugin.seconds)
    channel.send(single(FIRING))
    assert plugin.calls == 1


def test_a_call_that_fails_after_its_timeout_is_repeated(
    slow: tuple[AppriseChannel, Plugin],
) -> None:
    channel, plugin = slow
    plugin.answer = False
    with pytest.raises(DeliveryUnconfirmed):
        channel.send(single(FIRING))
    time.sleep(plugin.seconds + 0.2)
    plugin.answer, plugin.seconds = True, 0.0
    channel.send(single(FIRING))
    assert plugin.calls == 2


@pytest.mark.parametrize("problem", [ValueError(SECRET), TimeoutError(SECRET)])
def test_errors_of_plugins_are_reported_by_type_only(
    slow: tuple[AppriseChannel, Plugin], said, problem: Exception
) -> None:
    channel, plugin = slow
    plugin.answer, plugin.seconds = problem, 0.0
    with pytest.raises(DeliveryFailed, match=type(problem).__name__) as refused:
        channel.send(single(FIRING))
    assert SECRET not in said() + str(refused.value)


def test_an_email_has_the_title_as_subject_and_the_text(start: Start, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "mail"
    start("tests.notifications.mailbox", "--port", port, "--log", log)
    listening(port)
    url = (
        f"mailto://127.0.0.1:{port}?mode=insecure&format=text"
        "&from=rapport@example.org&to=desk@example.org"
    )
    AppriseChannel("desk", url, CONSOLE, 10.0, LOOPBACK).send(single(FIRING))
    [line] = log.read_text("utf-8").splitlines()
    mail = email.message_from_string(json.loads(line), policy=email.policy.default)
    assert mail["subject"] == title(single(FIRING))
    assert "desk@example.org" in mail["to"]
    content = mail.get_body(("plain",))
    assert content is not None
    assert content.get_content().replace("\r\n", "\n").strip() == text(single(FIRING), CONSOLE)


FILE = """
targets:
  - name: desk
    kind: webhook
    url: ${DESK}
    allow: [127.0.0.0/8]
    secret: ${SIGNING}
  - name: gone
    kind: webhook
    url: ${GONE}
    allow: [127.0.0.0/8]
  - name: chat
    kind: apprise
    url: ${CHAT}
    allow: [127.0.0.0/8]
"""


def environment(file: Path, receiver: Receiver) -> dict[str, str]:
    file.write_text(FILE, "utf-8")
    return {
        "RAPPORT_NOTIFICATIONS": str(file),
        "RAPPORT_EXTERNAL_URL": CONSOLE,
        "RAPPORT_LOG_LEVEL": "DEBUG",
        "DESK": f"http://127.0.0.1:{receiver.port}/{SECRET}",
        "GONE": f"http://127.0.0.1:{free_port()}/{SECRET}",
        "CHAT": f"json://{SECRET}@127.0.0.1:{receiver.port}/{SECRET}",
        "SIGNING": SIGNING,
    }


def test_notify_test_sends_one_marked_message_through_each_target(
    start: Start, tmp_path: Path, rapport_process: Rapport
) -> None:
    receiver = Receiver(start, tmp_path / "log", "ok")
    given = environment(tmp_path / "notifications.yaml", receiver)
    ended = rapport_process("notify", "test", **given)
    assert ended.stdout.splitlines() == [
        "desk: accepted",
        "gone: no connection (ConnectError)",
        "chat: accepted",
    ]
    assert ended.returncode == 1
    posted, chat = (line["body"] for line in receiver.received())
    assert posted["commonLabels"]["test"] == "true"
    assert chat["title"] == "Rapport: test message"
    assert SECRET not in ended.stdout + ended.stderr
    alone = rapport_process("notify", "test", "chat", **given)
    assert (alone.returncode, alone.stdout) == (0, "chat: accepted\n")
    unknown = rapport_process("notify", "test", "nobody", **given)
    assert unknown.returncode == 1
    assert "there is no such target; known are desk, gone, chat" in unknown.stderr


def test_the_doctor_names_the_targets_or_the_invalid_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver.__new__(Receiver)
    receiver.port = free_port()
    for name, value in environment(tmp_path / "notifications.yaml", receiver).items():
        monkeypatch.setenv(name, value)
    good = doctor._finding("notify", doctor._notifications, Settings())
    assert good.healthy
    assert "desk (webhook), gone (webhook), chat (apprise)" in good.detail
    monkeypatch.setenv("RAPPORT_EXTERNAL_URL", "")
    unlinked = doctor._finding("notify", doctor._notifications, Settings())
    assert (unlinked.healthy, "RAPPORT_EXTERNAL_URL" in unlinked.detail) == (False, True)
    monkeypatch.delenv("CHAT")
    wrong = doctor._finding("notify", doctor._notifications, Settings())
    assert not wrong.healthy
    assert "notifications.yaml:14: url: environment variable CHAT is not set" in wrong.detail
    monkeypatch.delenv("RAPPORT_NOTIFICATIONS")
    nobody = doctor._finding("notify", doctor._notifications, Settings())
    assert (nobody.healthy, "no notifications are sent" in nobody.detail) == (True, True)
    assert SECRET not in good.detail + wrong.detail


def test_notify_without_a_targets_file_fails(rapport_process: Rapport) -> None:
    ended = rapport_process("notify")
    assert ended.returncode == 1
    assert "RAPPORT_NOTIFICATIONS is not set" in ended.stderr
