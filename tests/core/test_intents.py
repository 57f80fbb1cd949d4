"""Intents in scores and rule variables: found once, when a turn is encoded."""

from collections.abc import Sequence

from stream_app.contracts.events import Role
from stream_app.contracts.scores import AlertState, Stage, TurnScore
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.intents import Hits, Intent, IntentSet
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline, Received
from stream_app.core.rules.intent_variables import catalogue
from stream_app.core.rules.rule_file import parse
from stream_app.core.rules.rules import NO_RULES, RuleSet
from stream_app.core.session.environment import Policy
from stream_app.core.session.restrictions import Restrictions
from stream_app.core.session.session_state import Versioned, pack, unpack
from tests.fakes import FakeScorer, one, turn

INTENTS = IntentSet((Intent("refund", frozenset({Role.CLIENT}), ("a", "b", "c")),), "d")
RULES = b"""version: 1
rules:
  - name: asked-twice
    summary: Asked {intent.refund.turns} times.
    severity: info
    when: intent.refund > 0.5 && intent.refund.turns >= 2
    for: 0s
"""


class Reader:
    """Finds an intent in every client turn; counts the turns that it reads."""

    intents = INTENTS

    def __init__(self) -> None:
        self.turns = 0

    def hits(self, vectors: Sequence[bytes], roles: Sequence[Role]) -> list[Hits]:
        self.turns += len(vectors)
        return [{"refund": 0.75} if role is Role.CLIENT else {} for role in roles]


def pipeline(rules: RuleSet = NO_RULES, restrictions: Restrictions | None = None) -> Pipeline:
    policy = Policy(WindowPolicy(), rules, restrictions=restrictions or Restrictions())
    built = Pipeline(FakeScorer(), policy)
    built.encodings.intent_reader = Reader()
    return built


def log(count: int = 6) -> list[Received]:
    return [one(turn("s", seq, consent=True), seq) for seq in range(count)]


def scores(core: Pipeline, records: list[Received], size: int) -> dict[object, TurnScore]:
    """The stored scores, with states that are packed between batches."""
    states: dict[str, Versioned] = {}
    found: dict[object, TurnScore] = {}
    for start in range(0, len(records), size):
        result = core.process(records[start : start + size], states)
        found |= {(s.seq, s.stage): s for s in result.turn_scores}
        states = {key: Versioned(unpack(pack(each.state))) for key, each in states.items()}
    return found


def test_provisional_and_final_scores_have_the_same_intents_in_batches_of_any_size() -> None:
    whole = scores(pipeline(), log(), 6)
    assert {s.role: s.intents for s in whole.values()} == {
        Role.CLIENT: {"refund": 0.75},
        Role.COUNSELLOR: {},
    }
    assert (0, Stage.PROVISIONAL) in whole
    assert (0, Stage.FINAL) in whole
    for size in (1, 2, 5):
        assert scores(pipeline(), log(), size) == whole


def test_each_turn_is_read_once() -> None:
    core = pipeline()
    scores(core, log(), 2)
    assert core.encodings.intent_reader.turns == 6  # type: ignore[attr-defined]


def test_withheld_turns_are_not_read() -> None:
    core = pipeline()
    withheld = [one(turn("s", seq, consent=False), seq) for seq in range(6)]
    assert scores(core, withheld, 6) == {}
    assert core.encodings.intent_reader.turns == 0  # type: ignore[attr-defined]


def test_restricted_client_outputs_include_the_intents_of_client_turns() -> None:
    restricted = Restrictions(everywhere=frozenset({Dimension.CLIENT}))
    core = pipeline(restrictions=restricted)
    states: dict[str, Versioned] = {}
    found = core.process(log(), states)
    assert all(score.intents == {} for score in found.turn_scores)
    [state] = [each.state for each in states.values()]
    assert not any(kept.intents for kept in state.window.history)


def test_rules_use_intents_of_the_latest_turn_and_of_the_session() -> None:
    rules = parse(RULES, "rules.yaml", catalogue([], INTENTS))
    result = pipeline(rules).process(log(), {})
    fired = [alert for alert in result.alerts if alert.state is AlertState.FIRING]
    client_turns = [s.seq for s in result.turn_scores if s.role is Role.CLIENT]
    assert fired[0].seq == sorted(set(client_turns))[1]
    assert fired[0].values == {"intent.refund": 0.75, "intent.refund.turns": 2.0}
