"""Turns in another language have no score, whatever they are tagged; English ones always have."""

from typing import Any

import pytest
from msgspec import structs

from stream_app.contracts.scores import AlertState, Unscored
from stream_app.core.measures.window import WindowPolicy
from stream_app.core.pipeline.pipeline import Pipeline
from stream_app.core.pipeline.scoring_bundles import BundlesInForce
from stream_app.core.rules.rules import NO_RULES, RuleSet
from stream_app.core.session.batch import BatchResult
from stream_app.core.session.environment import Policy
from stream_app.core.session.session_state import Versioned
from stream_app.core.session.turn_languages import spoken_in
from tests.fakes import FakeScorer, ReadByFirstWord, received, turn
from tests.routed_fakes import bundle_of, in_force
from tests.rule_texts import SHIPPED

SPANISH = "Hola no puedo dormir"
ENGLISH = "I cannot sleep at night"


def pipeline(rules: RuleSet = NO_RULES) -> Pipeline:
    built = Pipeline(FakeScorer(), Policy(WindowPolicy(), rules))
    built.adopt(BundlesInForce(structs.replace(built.bundles.default, languages=("en",))))
    built.languages = ReadByFirstWord()
    return built


def run(*turns: str | dict[str, Any], rules: RuleSet = NO_RULES) -> BatchResult:
    given = [each if isinstance(each, dict) else {"text": each} for each in turns]
    log = [turn(seq=seq, **each) for seq, each in enumerate(given)]
    return pipeline(rules).process(received(log), {})


def scored(*turns: str | dict[str, Any]) -> list[bool]:
    return [each.unscored is None for each in run(*turns).turns]


def test_each_turn_is_judged_by_itself() -> None:
    result = run(ENGLISH, SPANISH, ENGLISH, {"text": SPANISH, "lang": "es-MX"})
    assert [each.unscored for each in result.turns] == [None, Unscored.LANGUAGE] * 2
    assert [each.language for each in result.turns] == [None, "es", None, "es-mx"]
    assert {score.seq for score in result.turn_scores} == {0, 2}
    assert result.session_scores[0].unscored_turns == 2


def test_a_text_counts_for_more_than_a_tag_that_it_contradicts() -> None:
    assert scored({"text": SPANISH, "lang": "en"}, {"text": ENGLISH, "lang": "es"}) == [False, True]
    assert scored({"text": "ok", "lang": "es"}, {"text": "ok", "lang": "en"}) == [False, True]


def test_a_text_that_says_little_is_in_the_language_of_most_turns_before_it() -> None:
    assert scored("ok", SPANISH, SPANISH, "ok") == [True, False, False, False]
    assert scored(ENGLISH, SPANISH, "ok") == [True, False, True]


@pytest.mark.parametrize(
    ("shares", "words", "before", "expected"),
    [
        ({"en": 0.02, "es": 0.3, "pt": 0.3}, 4, {}, None),
        ({"en": 0.02, "es": 0.3, "pt": 0.3}, 9, {}, "mis"),
        ({"en": 0.02, "es": 0.9}, 9, {}, "es"),
        ({"en": 0.3, "es": 0.4}, 9, {}, None),
        ({"en": 0.3, "es": 0.4}, 9, {"mis": 2, "en": 1}, "mis"),
        ({"en": 0.3, "es": 0.4}, 9, {"mis": 2, "en": 2}, None),
        ({"en": 0.8, "es": 0.1}, 9, {"es": 5}, "en"),
    ],
)
def test_what_is_not_clear_is_in_a_language_that_is_scored(
    shares: dict[str, float], words: int, before: dict[str, int], expected: str | None
) -> None:
    assert spoken_in({"pt": 0.0} | shares, words, None, before, ["en"]).tag == expected


def test_only_tags_count_for_languages_that_the_reader_does_not_know() -> None:
    shares = {"en": 0.0, "de": 1.0}
    assert spoken_in(shares, 9, None, {}, ["gsw", "en"]).tag is None
    assert spoken_in(shares, 9, "gsw", {}, ["en"]).tag == "gsw"
    assert spoken_in(shares, 9, "en", {}, ["*"]).tag == "en"


def test_a_phrase_of_the_crisis_list_is_heard_in_any_language() -> None:
    mixed = f"{SPANISH}. I want to kill myself."
    for given in (mixed, {"text": mixed, "lang": "es"}):
        result = run(SPANISH, "ok", given, rules=SHIPPED)
        fired = [each for each in result.alerts if each.state is AlertState.FIRING]
        assert [(each.rule, each.seq) for each in fired] == [("crisis-language", 2)]
        assert [each.unscored is None for each in result.turns] == [False, False, True]


def test_a_phrase_at_the_start_decides_which_bundle_scores_the_session() -> None:
    """Its score is the default bundle's, and scores of two bundles are not mixed."""
    routes = "\nroutes:\n  - {bundle: german, languages: [de]}\n"
    bundles = in_force({"german": bundle_of("german", "g", ("de",))}, routes)
    built = Pipeline(bundles.default.scorer, bundles.default.environment.policy)
    built.adopt(bundles)
    states: dict[str, Versioned] = {}
    log = [turn(lang="fr", text="I want to kill myself."), turn(seq=1, lang="de")]
    result = built.process(received(log), states)
    assert not states["s"].state.undecided
    assert {score.bundle for score in result.turn_scores} == {"default-1-fp32"}
    assert [each.unscored for each in result.turns] == [None, Unscored.LANGUAGE]


def test_a_text_is_read_with_the_consent_of_an_earlier_turn() -> None:
    assert scored(ENGLISH, {"text": SPANISH, "consent": None}) == [True, False]


def test_no_text_is_read_without_consent() -> None:
    class Reader(ReadByFirstWord):
        def shares(self, text: str) -> dict[str, float]:
            raise AssertionError(text)

    built = pipeline()
    built.languages = Reader()
    states: dict[str, Versioned] = {}
    built.process(received([turn(text=SPANISH, consent=None)]), states)
    built.process(received([turn(seq=1, text=SPANISH, consent=False)]), states)
    assert states["s"].state.languages == {}


def test_a_text_chooses_the_bundle_of_its_session() -> None:
    routes = "\nroutes:\n  - {bundle: german, languages: [es]}\n"
    bundles = in_force({"german": bundle_of("german", "g", ("es",))}, routes)
    built = Pipeline(bundles.default.scorer, bundles.default.environment.policy)
    built.adopt(bundles)
    built.languages = ReadByFirstWord()
    result = built.process(received([turn(text=SPANISH), turn(seq=1, text=ENGLISH)]), {})
    assert {score.bundle for score in result.turn_scores} == {"german-1-fp32"}
    assert [each.unscored for each in result.turns] == [None, Unscored.LANGUAGE]
