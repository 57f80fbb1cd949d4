"""Turns without a score for their language, in the API, the console and exports."""

import json

import pytest

from stream_app.core.pipeline.scoring_bundles import BundlesInForce, ScoringBundle
from stream_app.errors import BundleError
from stream_app.store.stream.repository import Store
from stream_app.web.practice_model import LoadedModel, PracticeModel, PracticeUnavailable
from tests.store.batches import pipeline, received, turn
from tests.web.people.conftest import As

SESSION = "french"


def fill(store: Store) -> None:
    """A session of the team north: an English turn, then a French one."""
    core = pipeline()
    default = core.bundles.default
    english = ScoringBundle(default.scorer, default.environment, languages=("en",))
    core.adopt(BundlesInForce(english))
    facts = {"session_id": SESSION, "team": "north"}
    log = [turn(0, lang="en", **facts), turn(1, lang="fr", **facts)]
    store.commit(core.process(received(log), {}))


def test_they_are_counted_and_named_wherever_the_session_is_read(filled: Store, as_: As) -> None:
    fill(filled)
    sue = as_("sue")
    card = sue.get(f"/api/v1/sessions/{SESSION}").json()
    assert (card["unscored_turns"], card["turns"], card["withheld_turns"]) == (1, 1, 0)
    turns = sue.get(f"/api/v1/sessions/{SESSION}/turns").json()["items"]
    assert [each["unscored"] for each in turns] == [None, "language"]
    assert [len(each["scores"]) for each in turns] == [1, 0]
    page = sue.get(f"/sessions/{SESSION}").text
    assert "1 turn in French was not scored." in page
    assert page.count("not scored: language") == 1


def test_an_export_names_the_reason(filled: Store, as_: As) -> None:
    fill(filled)
    lines = as_("sue").get("/api/v1/exports/turns?format=jsonl").text.splitlines()
    found = [row for row in map(json.loads, lines) if row["session_id"] == SESSION]
    assert [row["unscored"] for row in found] == [None, "language"]


def test_practice_is_closed_for_languages_that_its_model_does_not_cover() -> None:
    def unread() -> list[str]:
        raise BundleError("no model bundle")

    def loaded() -> LoadedModel:
        raise AssertionError("not needed")

    english = PracticeModel(loaded, lambda: None, languages=lambda: ["en"])
    assert [english.covers(lang) for lang in ("en-GB", None, "de")] == [True, True, False]
    with pytest.raises(PracticeUnavailable, match="cannot be loaded"):
        PracticeModel(loaded, lambda: None, languages=unread).covers("en")
