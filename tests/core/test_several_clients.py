"""Sessions with several clients: an answer is judged against the client whom it answers."""

import pytest

from stream_app.contracts.events import Turn, decode
from stream_app.core.measures import addressing
from stream_app.core.measures.exchanges import MILLION, Exchanges
from stream_app.core.measures.window import ScoringRequest, WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.session.environment import Policy
from stream_app.core.session.ports import HeadScores
from stream_app.core.session.session_state import SessionState, Versioned
from tests.core.test_exchanges import AFTER, CLIENT, COUNSELLOR, WEIGHING
from tests.fakes import FakeScorer, received, turn
from tests.rule_texts import ALL

DORA, EVE = 1, 2


def observed(*heard: str, values: dict[int, float] | None = None) -> Exchanges:
    """`d`, `e`: words of Dora and Eve; `kd`, `ke`: answers by order, `Kd`, `Ke`: by name."""
    exchanges = Exchanges()
    for seq, what in enumerate(heard):
        role = CLIENT if len(what) == 1 else COUNSELLOR
        who = DORA if what[-1] == "d" else EVE
        value = round((values or {}).get(seq, 0.9) * MILLION)
        exchanges.observe(role, seq, value, AFTER, WEIGHING, who, what.startswith("K"))
    return exchanges


def pairs(exchanges: Exchanges) -> list[tuple[int, bool]]:
    """Client turn, and whether nobody answered, of the exchanges."""
    return [(each.seq, each.passed) for each in exchanges.answered()]


def test_each_client_has_exchanges_of_their_own() -> None:
    assert pairs(observed("d", "e", "Kd", "Ke")) == [(0, False), (1, False)]


def test_who_is_passed_over_by_name_waits_for_an_answer() -> None:
    assert pairs(observed("d", "e", "Kd")) == [(0, False), (1, True)]
    assert pairs(observed("d", "e", "Kd", "d", "Kd")) == [(0, False), (1, True), (3, False)]


def test_who_is_passed_over_again_is_missed_again() -> None:
    again = observed("d", "e", "Kd", "d", "e", "Kd", "e", "d")
    assert pairs(again) == [(0, False), (1, True), (3, False), (4, True)]


def test_a_later_answer_is_an_answer() -> None:
    assert pairs(observed("d", "e", "Kd", "e", "Ke")) == [(0, False), (1, False)]
    late = observed(*["d", "e", "Kd"] * 3, "Ke", values={4: 0.95})
    assert pairs(late) == [(0, False), (3, False), (6, False), (4, False)]
    assert [(each.who, each.passed) for each in late.unanswered().latest] == []


def test_a_successor_begins_with_all_that_waits() -> None:
    [waiting] = observed("d", "e", "Kd", "e", "e", values={3: 0.95}).unanswered().latest
    assert (waiting.who, waiting.client.strongest) == (EVE, (3, 950_000))


def test_nobody_is_passed_over_without_a_name() -> None:
    """ "I hear you both" may be meant for everybody."""
    assert pairs(observed("d", "e", "ke")) == [(1, False)]


def test_an_answer_after_hidden_turns_passes_nobody_over() -> None:
    exchanges = observed("d", "e")
    exchanges.forget()
    exchanges.observe(CLIENT, 5, MILLION, AFTER, WEIGHING, DORA)
    exchanges.observe(COUNSELLOR, 6, MILLION, AFTER, WEIGHING, DORA, True)
    assert pairs(exchanges) == [(5, False)]


@pytest.mark.parametrize(("called", "missed"), [(0.9, [1]), (0.1, [])])
def test_only_what_called_for_an_answer_is_missed(called: float, missed: list[int]) -> None:
    said = ["d", "e", "Kd", *["d", "Kd"] * 30]
    exchanges = observed(*said, values={1: called})
    assert exchanges.missed == missed
    assert exchanges.count + len(exchanges.answered()) == 31 + len(missed)


def of(text: str, **more: str) -> Turn:
    event = decode(turn(role="counsellor", text=text, **more))
    assert isinstance(event, Turn)
    return event


@pytest.mark.parametrize(
    ("text", "client"),
    [
        ("Dora, I am so sorry.", "dora"),
        ("Hi Dora, I am so sorry.", "dora"),
        ("dora: I am so sorry.", "dora"),
        ("I am so sorry, @Eve.", "eve"),
        ("@dora and @eve, I hear you.", None),
        ("I am so sorry.", None),
        ("Eve told me about it.", None),
        ("Well, Dora told me.", None),
        ("Sam, I am so sorry.", None),
    ],
)
def test_a_turn_that_begins_with_a_name_answers_that_client(text: str, client: str | None) -> None:
    clients = [addressing.digest(name) for name in ("dora", "eve")]
    assert addressing.answered(of(text), clients) == (addressing.digest(client) if client else 0)
    assert addressing.answered(of(text), clients[:1]) == 0


def test_the_addressee_counts_more_than_a_name() -> None:
    clients = [addressing.digest(name) for name in ("dora", "eve")]
    event = of("Dora, look at Eve.", addressee="eve")
    assert addressing.answered(event, clients) == addressing.digest("eve")
    assert addressing.answered(of("Hello.", addressee="nobody"), clients) == 0


def state_of(log: list[bytes]) -> SessionState:
    states: dict[str, Versioned] = {}
    Pipeline(FakeScorer(), Policy(WindowPolicy(), ALL)).process(received(log), states)
    return states["s"].state


def test_an_answer_is_read_with_the_words_of_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, list[int]] = {}
    score = FakeScorer._score

    def noted(self: FakeScorer, request: ScoringRequest) -> HeadScores:
        seen[request.turn.seq] = [each.turn.seq for each in request.context if each.distance < 0]
        return score(self, request)

    monkeypatch.setattr(FakeScorer, "_score", noted)
    people = ["dora", "eve", "ben", "ben", "eve"]
    more: dict[int, dict[str, str]] = {2: {"addressee": "dora"}}
    state = state_of(
        [
            turn(
                seq=seq,
                speaker_id=who,
                role="counsellor" if who == "ben" else "client",
                **more.get(seq, {}),
            )
            for seq, who in enumerate(people)
        ]
    )
    assert seen == {0: [], 1: [0], 2: [0], 3: [0, 2], 4: [1, 2, 3]}
    assert [each.client for each in state.window.history] == [
        addressing.digest(who) for who in ("dora", "eve", "dora", "dora", "eve")
    ]


def test_one_client_needs_no_addressee() -> None:
    """A session with one client is what it was."""
    plain = state_of([turn(seq=seq) for seq in range(8)])
    stated = state_of([turn(seq=seq, addressee="c") for seq in range(8)])
    assert plain.exchanges == stated.exchanges
    assert plain.aggregates == stated.aggregates
