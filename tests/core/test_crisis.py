"""The list of phrases of crisis language, and the shipped rule in a session."""

import random
import time

import pytest

from stream_app.contracts.events import Consent, Turn, decode
from stream_app.contracts.scores import Alert, AlertState, Severity
from stream_app.core.measures.baselines import NoBaselines
from stream_app.core.measures.crisis import CRISIS, find_phrases
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.encodings import Encodings, ToEncode
from stream_app.core.session.alerting import Alerting
from stream_app.core.session.environment import Environment, Policy
from stream_app.core.session.restrictions import parse_restrictions
from stream_app.core.session.session import Session, ToScore
from stream_app.core.session.session_state import SessionState, pack, unpack
from tests.fakes import FakeScorer, consent, end, turn
from tests.rule_texts import SHIPPED

SCORER = FakeScorer()
RULE = "crisis-language"
CRY = "Please, I want to kill myself."


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("I keep thinking about killing myself.", ["killing myself"]),
        ("i wanna kil my self", ["kil my self"]),
        ("I don’t want to be here any more.", ["don’t want to be here any more"]),
        ("Hi\nI took all my tablets. Tell my mum I love her.",
         ["took all my tablets", "Tell my mum I love"]),
        ("I used to be fine but now i am suicidal again", ["i am suicidal"]),
        ("I'm not joking, I want to die", ["want to die"]),
        ("I can't stop thinking about suicide, I don't know if I want to die", ["want to die"]),
    ],
)  # fmt: skip
def test_phrases_are_found_where_they_stand(text: str, phrases: list[str]) -> None:
    assert [text[start:end] for start, end in find_phrases(text)] == phrases


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("I don&#39;t want to <b>live</b>, no", "don&#39;t want to <b>live"),
        ("I want to kill\r\nmyself", "kill\r\nmyself"),
        ("I want to kill my\u00adself", "kill my\u00adself"),
        ("Ｉ ｄｏｎ＇ｔ ｗａｎｔ ｔｏ ｌｉｖｅ", "ｄｏｎ＇ｔ ｗａｎｔ ｔｏ ｌｉｖｅ"),
        ("I want\nto kill\nMyself", "kill\nMyself"),
        ("i want to...\ndie", "want to...\ndie"),
        ("i just.. dont want to. live. any more", "dont want to. live"),
        ("I want to… die", "want to… die"),
        ("I am\n\nsuicidal", "I am\n\nsuicidal"),
        ("I am süicidál", "I am süicidál"),
        ("> How are you?\n\nI want to die", "want to die"),
    ],
)
def test_phrases_are_found_in_odd_characters_and_over_pauses(text: str, phrase: str) -> None:
    assert [text[start:end] for start, end in find_phrases(text)] == [phrase]


@pytest.mark.parametrize(
    "text",
    [
        "> I want to kill myself\n\nI wrote that in May. I'm better now.",
        "Today was good.\n\nOn Mon, 2 Mar 2026 at 10:00, Ben wrote:\n> I want to die",
        "<blockquote>I want to die</blockquote><p>That was in May.</p>",
        "I don't want to. Live music is on tonight!",
        "Do you want to? die hard is on tonight",
        "I would never\nhurt myself",
        "This homework is killing me.",
        "I would never hurt myself",
        "I'm not suicidal, only tired",
        "I used to cut myself, years ago.",
        "He killed himself.",
        "I don't want to die",
        "My phone died and I want to end my subscription.",
        "",
        "!?…\n",
    ],
)
def test_idioms_negations_and_the_past_are_not_found(text: str) -> None:
    assert find_phrases(text) == []


def test_the_time_to_search_is_linear_in_the_length() -> None:
    chance = random.Random(3)
    words = ("i want to", "kill my", "the a", "going about", "taken", "never not", "all hope")
    texts = [
        "a" * 11_500,
        "kill " * 3_000,
        "taken " * 2_500,
        "never not " * 1_500,
        " ".join(chance.choice(words) for _ in range(3_000)),
    ]
    for text in texts:
        short, long = (min(_seconds(text[:n]) for _ in range(3)) for n in (len(text) // 8, None))
        assert long < 24 * short + 0.05  # 8 if linear, 64 if quadratic


def _seconds(text: str) -> float:
    start = time.perf_counter()
    find_phrases(text)
    return time.perf_counter() - start


class Talk:
    """A session under the shipped rules; ``say`` scores what becomes due."""

    def __init__(self, **restricted: list[str]) -> None:
        self.policy = Policy(
            WindowPolicy(before=2, after=1, reorder_turns=1),
            SHIPPED,
            restrictions=parse_restrictions(restricted),
        )
        alerting = Alerting(SHIPPED, SCORER.empathy, SCORER.bundle_id)
        self.environment = Environment(
            self.policy, SCORER.bundle_id, SCORER.empathy, SCORER.outcomes, alerting, NoBaselines()
        )
        self.session = Session(SessionState("s", SCORER.bundle_id), self.environment)
        self.outputs: dict[int, dict[str, dict[str, float]]] = {}

    def say(self, *events: bytes) -> list[tuple[int | None, AlertState]]:
        """Transitions of the rule."""
        found: list[Alert] = []
        encodings = Encodings(SCORER, self.policy)
        for event in map(decode, events):
            item = self.session.accept(event)
            if isinstance(event, Turn) and item.turn is not None:
                encodings.attach([ToEncode(event, item.turn)])
            for step in item.steps:
                if isinstance(step, ToScore):
                    score, alerts = self.session.add(step, SCORER.score([step.request])[0])
                    self.outputs[score.seq] = score.client
                    found += alerts
                else:
                    found += self.session.end_alerts(step)
            self.session = Session(unpack(pack(self.session.state)), self.environment)
            assert not isinstance(event, Consent) or not item.turn
        own = [alert for alert in found if alert.rule == RULE]
        assert {alert.severity for alert in own} <= {Severity.CRITICAL}
        return [(alert.seq, alert.state) for alert in own]


FIRES = [AlertState.PENDING, AlertState.FIRING]


def test_the_alert_fires_at_the_clients_turn_without_an_answer() -> None:
    talk = Talk()
    assert talk.say(turn(seq=0), turn(seq=1)) == []
    assert talk.say(turn(seq=2, text=CRY)) == [(2, state) for state in FIRES]
    assert talk.outputs[2][CRISIS] == {"no": 0.0, "yes": 1.0}
    assert CRISIS not in talk.outputs[0]  # this bundle has no probe


def test_the_alert_lasts_until_ten_client_turns_without_crisis_language() -> None:
    talk = Talk()
    log = [turn(seq=0, text=CRY), *(turn(seq=seq) for seq in range(1, 8))]
    assert len(talk.say(*log)) == 2
    assert talk.say(turn(seq=8, text=CRY), *(turn(seq=seq) for seq in range(9, 28))) == []
    status = talk.session.state.alerts[RULE]
    assert status.held == [0, 8]
    assert talk.say(turn(seq=28)) == [(28, AlertState.RESOLVED)]
    assert talk.say(turn(seq=29), turn(seq=30, text=CRY)) == [(30, state) for state in FIRES]


def test_words_of_the_counsellor_do_not_count() -> None:
    assert Talk().say(turn(seq=0), turn(seq=1, text="Do you want to kill yourself? " + CRY)) == []


def test_a_late_turn_counts() -> None:
    talk = Talk()
    assert talk.say(turn(seq=0), turn(seq=1), turn(seq=3), turn(seq=4), turn(seq=5)) == []
    assert talk.say(turn(seq=2, text=CRY)) == [(2, state) for state in FIRES]


def test_a_withheld_turn_does_not_count_and_the_alert_ends_with_the_consent() -> None:
    talk = Talk()
    assert talk.say(turn(seq=0, text=CRY, consent=False)) == []
    assert not talk.session.state.window.waiting
    talk = Talk()
    assert len(talk.say(turn(seq=0, text=CRY))) == 2
    assert talk.say(consent("withdrawn")) == [(None, AlertState.RESOLVED)]
    assert talk.session.state.watch.since_crisis is None


def test_restricted_client_outputs_switch_the_rule_off() -> None:
    talk = Talk(all=["client"])
    assert talk.say(turn(seq=0, text=CRY), turn(seq=1), end()) == []
    assert all(CRISIS not in client for client in talk.outputs.values())
