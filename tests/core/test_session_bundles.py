"""A session keeps the bundle that it began with; turns in other languages have no score."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_app.contracts.events import decode
from stream_app.contracts.scores import AlertState, SessionStatus, Unscored
from stream_app.core.measures.baselines import Baseline, Pinned, Usual
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.core.pipeline.shadow import Shadow
from stream_app.core.rules.alert_reasons import BUNDLE_GONE
from stream_app.core.rules.routing import NO_ROUTES
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.session_state import SessionState, Versioned, pack, unpack
from tests.fakes import consent, end, received, turn
from tests.routed_fakes import RoutedScorer, bundle_of, in_force, pipeline_of

ROUTES = """
routes:
  - {bundle: german, languages: [de]}
  - {bundle: north, teams: [north]}
"""
NORTH = {"team": "north"}


def world(**changes: ScoringBundle) -> BundlesInForce:
    routed = {"north": bundle_of("north"), "german": bundle_of("german", "g", ("de",))}
    return in_force(routed | changes, ROUTES)


def run(pipeline: Pipeline, *log: bytes, states: dict[str, Versioned] | None = None) -> BatchResult:
    return pipeline.process(received(list(log)), {} if states is None else states)


def bundles_of(result: BatchResult) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for score in result.turn_scores:
        found.setdefault(score.session_id, set()).add(score.bundle)
    return found


def test_sessions_of_several_bundles_share_a_batch_and_an_encoder() -> None:
    bundles = world()
    log = [
        turn(name, seq, **facts)
        for seq in range(4)
        for name, facts in (("a", {}), ("b", NORTH), ("c", {"lang": "de-AT"}))
    ]
    result = run(pipeline_of(bundles), *log)
    assert bundles_of(result) == {
        "a": {"default-1-fp32"},
        "b": {"north-1-fp32"},
        "c": {"german-1-fp32"},
    }
    assert {score.session_id: score.bundle for score in result.session_scores} == {
        "a": "default-1-fp32",
        "b": "north-1-fp32",
        "c": "german-1-fp32",
    }
    shared, north, german = (each.scorer for each in bundles)
    assert isinstance(shared, RoutedScorer)
    assert isinstance(north, RoutedScorer)
    assert isinstance(german, RoutedScorer)
    assert [len(texts) for texts in shared.encoded] == [8]
    assert north.encoded == []
    assert [len(texts) for texts in german.encoded] == [4]
    assert len(shared.scored) == len(north.scored) == len(german.scored) == 1
    assert {alert.bundle for alert in result.alerts} == {
        "default-1-fp32",
        "north-1-fp32",
        "german-1-fp32",
    }


def test_sessions_of_routed_bundles_have_no_shadow() -> None:
    pipeline, tried = pipeline_of(world()), RoutedScorer("tried")
    pipeline.shadow = Shadow(tried, pytest.fail, shares_encoder=False)
    log = [turn(name, 0, **facts) for name, facts in (("a", {}), ("b", NORTH))]
    result = run(pipeline, *log)
    assert len(result.turn_scores) == 2
    assert [score.session_id for score in result.shadow_scores] == ["a"]
    assert tried.encoded == [["I say this at 0 in a."]]
    pipeline.shadow = Shadow(tried, pytest.fail, shares_encoder=True)
    assert [score.session_id for score in run(pipeline, *log).shadow_scores] == ["a"]


def test_a_session_keeps_its_bundle_when_routes_change() -> None:
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, turn(seq=0, **NORTH), states=states)
    pipeline.adopt(BundlesInForce(bundles.default, bundles.routed, NO_ROUTES))
    second = run(pipeline, turn(seq=1), states=states)
    assert bundles_of(second) == {"s": {"north-1-fp32"}}
    assert states["s"].state.chosen == bundles.routed["north"].choice
    assert bundles_of(run(pipeline, turn("t", **NORTH))) == {"t": {"default-1-fp32"}}


def test_consent_before_the_first_turn_decides_nothing() -> None:
    states: dict[str, Versioned] = {}
    pipeline = pipeline_of(world())
    run(pipeline, consent("given"), states=states)
    assert states["s"].state.undecided
    assert bundles_of(run(pipeline, turn(**NORTH), states=states)) == {"s": {"north-1-fp32"}}


def test_states_of_earlier_releases_stay_with_the_default_bundle() -> None:
    """Their layout has neither field."""
    earlier = SessionState("s", "default-1-fp32", consent=True, analysed=True)
    states = {"s": Versioned(unpack(pack(earlier)))}
    result = run(pipeline_of(world()), turn(seq=0, **NORTH), states=states)
    assert bundles_of(result) == {"s": {"default-1-fp32"}}


def test_a_turn_in_a_language_without_a_bundle_is_stored_and_not_scored() -> None:
    states: dict[str, Versioned] = {}
    log = [turn(seq=seq, lang="fr") for seq in range(4)]
    result = run(pipeline_of(world()), *log, end(), states=states)
    assert [each.unscored for each in result.turns] == [Unscored.LANGUAGE] * 4
    assert result.counts == {"language": 4, "ended": 1}
    assert (result.turn_scores, result.alerts) == ([], [])
    [session] = result.session_scores
    assert (session.unscored_turns, session.turns, session.withheld_turns) == (4, 0, 0)
    assert (session.low_empathy_risk, session.empathy_index) == (None, None)
    assert states["s"].state.undecided


def test_withheld_consent_comes_before_the_language() -> None:
    result = run(pipeline_of(world()), turn(seq=0, lang="fr", consent=None))
    assert (result.turns, result.counts) == ([], {"withheld": 1})


def test_one_turn_in_another_language_is_left_out_of_context_and_risk() -> None:
    """The scores of the others are those of a session in which the turn was withheld."""
    said: list[dict[str, Any]] = [{}, {}, {"lang": "fr"}, {"lang": "en-GB"}, {}, {}]
    other = [turn(seq=seq, **facts) for seq, facts in enumerate(said)]
    result = run(pipeline_of(world()), *other)
    assert result.counts == {"accepted": 5, "language": 1}
    assert {score.seq for score in result.turn_scores} == {0, 1, 3, 4, 5}
    [session] = result.session_scores
    assert (session.turns, session.unscored_turns) == (5, 1)
    firing = [alert for alert in result.alerts if alert.state is AlertState.FIRING]
    assert firing  # the rule of these tests fires at any risk
    assert not [alert for alert in result.alerts if alert.state is AlertState.RESOLVED]


def test_the_first_turn_in_a_language_with_a_bundle_decides() -> None:
    states: dict[str, Versioned] = {}
    log = [turn(seq=0, lang="fr"), turn(seq=1, lang="de"), turn(seq=2, lang="fr"), turn(seq=3)]
    result = run(pipeline_of(world()), *log, states=states)
    assert {score.seq for score in result.turn_scores} == {1, 3}
    assert bundles_of(result) == {"s": {"german-1-fp32"}}
    assert result.counts == {"language": 2, "accepted": 2}


def test_a_session_that_begins_in_such_a_language_need_not_repeat_it() -> None:
    result = run(pipeline_of(world()), turn(seq=0, lang="fr"), turn(seq=1), turn(seq=2, lang="und"))
    assert result.counts == {"language": 2, "accepted": 1}


def test_a_removed_bundle_ends_alerts_and_the_session_goes_on_with_the_next() -> None:
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    before = run(pipeline, *(turn(seq=seq, **NORTH) for seq in range(4)), states=states)
    assert before.alerts[-1].state is AlertState.FIRING
    fresh = unpack(pack(states["s"].state))
    pipeline.adopt(in_force({"german": bundles.routed["german"]}, ROUTES))
    after = run(pipeline, turn(seq=4), turn(seq=5), states=states)
    ended = after.alerts[0]
    assert (ended.state, ended.reason, ended.bundle) == (
        AlertState.RESOLVED,
        BUNDLE_GONE,
        "north-1-fp32",
    )
    assert ended.episode_id == before.alerts[-1].episode_id
    assert {alert.bundle for alert in after.alerts[1:]} == {"default-1-fp32"}
    assert {(s.seq, s.bundle) for s in after.turn_scores} == {
        (4, "default-1-fp32"),
        (5, "default-1-fp32"),
    }
    [session] = after.session_scores
    assert (session.turns, session.bundle) == (2, "default-1-fp32")
    state = states["s"].state
    assert (state.consent, state.team, state.started_at) == (True, "north", fresh.started_at)
    assert state.window.next_seq == 6  # duplicates of earlier turns are still known


def test_a_removed_bundle_with_its_own_encoder_leaves_no_vectors_behind() -> None:
    """RoutedScorer refuses vectors of another encoder."""
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    german = {"lang": "de"}
    run(pipeline, *(turn(seq=seq, **german) for seq in (0, 1, 3)), states=states)
    pipeline.adopt(in_force({"north": bundles.routed["north"]}, ROUTES, ("en", "de")))
    after = run(pipeline, *(turn(seq=seq, **german) for seq in (2, 4)), end(), states=states)
    assert {score.seq for score in after.turn_scores} == {2, 4}  # 3 waited, and is given up
    assert bundles_of(after) == {"s": {"default-1-fp32"}}


def test_a_session_whose_language_has_lost_its_bundle_is_unscored() -> None:
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, turn(seq=0, lang="de"), states=states)
    pipeline.adopt(in_force({}, ROUTES))
    after = run(pipeline, turn(seq=1, lang="de"), end(), states=states)
    assert after.counts == {"language": 1, "ended": 1}
    assert after.turn_scores == []


def test_a_session_without_a_bundle_leaves_the_vectors_of_its_last_one_behind() -> None:
    """RoutedScorer refuses vectors of another encoder."""
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, *(turn(seq=seq, lang="de") for seq in range(2)), states=states)
    pipeline.adopt(in_force({}, ROUTES))
    after = run(pipeline, turn(seq=2, lang="de"), turn(seq=3, lang="en"), states=states)
    assert after.counts == {"language": 1, "accepted": 1}
    assert {(score.seq, score.bundle) for score in after.turn_scores} == {(3, "default-1-fp32")}


def test_what_is_usual_is_read_anew_for_the_next_bundle() -> None:
    """A baseline consists of one bundle's scores."""
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, turn(seq=0, **NORTH), states=states)
    usual = Baseline(risk=Usual(20, 0.5, 0.1))
    states["s"].state.baselines = Pinned(channel=usual, counsellor=usual, counsellor_known=True)
    pipeline.adopt(in_force({}, ROUTES))
    run(pipeline, turn(seq=2), states=states)
    assert states["s"].state.baselines == Pinned()


def test_a_bundle_with_other_content_under_its_id_is_another_bundle() -> None:
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, turn(seq=0, **NORTH), states=states)
    pipeline.adopt(in_force({"north": bundle_of("north", digest="2")}, ROUTES))
    after = run(pipeline, turn(seq=1), states=states)
    assert bundles_of(after) == {"s": {"north-1-fp32"}}
    assert states["s"].state.chosen is not None
    assert states["s"].state.chosen.digest == "2"
    assert after.session_scores[0].turns == 1


def test_an_idle_session_of_a_removed_bundle_keeps_its_scores() -> None:
    bundles, states = world(), {}
    pipeline = pipeline_of(bundles)
    run(pipeline, turn(seq=0, **NORTH), turn(seq=1), states=states)
    [score] = pipeline.flush_idle(states).session_scores
    assert (score.bundle, score.status) == ("north-1-fp32", SessionStatus.IDLE)
    pipeline.adopt(in_force({}, ROUTES))
    flushed = pipeline.flush_idle(states)
    assert (flushed.session_scores, flushed.turn_scores) == ([], [])
    assert list(flushed.sessions) == ["s"]


FACTS = [{}, NORTH, {"lang": "de"}, {"lang": "fr"}, {"lang": "en-GB"}, {"lang": "de-AT", **NORTH}]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["s", "t", "u"]), st.sampled_from(FACTS), st.booleans()),
        min_size=1,
        max_size=14,
    ),
    st.lists(st.integers(1, 13), max_size=4),
)
def test_scores_do_not_depend_on_the_batches_or_on_encoding_ahead(
    said: list[tuple[str, dict[str, Any], bool]], cuts: list[int]
) -> None:
    counts: dict[str, int] = {}
    log = []
    for session, facts, agreed in said:
        seq = counts[session] = counts.get(session, -1) + 1
        log.append(turn(session, seq, consent=agreed or None, **facts))
    whole = run(pipeline_of(world()), *log)
    pipeline, states = pipeline_of(world()), {}
    scores, turns = [], []
    edges = [0, *sorted({cut for cut in cuts if cut < len(log)}), len(log)]
    for start, stop in itertools.pairwise(edges):
        part = log[start:stop]
        known = {key: versioned.state for key, versioned in states.items()}
        ahead = pipeline.encodings.ahead([decode(raw) for raw in part], known.get)
        batch = received(part, start)
        for place, encoding in enumerate(ahead):
            batch[place] = type(batch[place])(
                batch[place].source, batch[place].raw, batch[place].event, encoding=encoding
            )
        result = pipeline.process(batch, states)
        scores += result.turn_scores
        turns += result.turns
        states = {key: Versioned(unpack(pack(v.state))) for key, v in states.items()}
    assert scores == whole.turn_scores
    assert turns == whole.turns
