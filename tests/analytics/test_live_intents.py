"""Live intents of the operator's file are intents of the analysis expressed x perceived."""

from dataclasses import replace

import pandas as pd

from stream_app.analytics.questions import expressed_perceived
from stream_app.analytics.questions.head_labels import PERCEIVED, of_intents
from stream_app.analytics.questions.result import Context
from stream_app.demo.simulator import Platform

ROLES = ["client", "counsellor", "counsellor", "counsellor", "client", "counsellor"]
TEXTS = ["{}", "{}", '{"offers_help": 0.8}', None, '{"wants_refund": 0.9}', "{}"]


def test_an_intent_is_known_in_counsellors_turns_from_its_first_on() -> None:
    times = pd.to_datetime("2026-01-01", utc=True) + pd.to_timedelta(range(6), unit="min")
    turns = pd.DataFrame({"role": ROLES, "intents": TEXTS, "occurred_at": times})
    found = of_intents(turns)
    assert list(found.columns) == ["intent.offers_help"]
    [column] = [found[name] for name in found]
    assert column.isna().tolist() == [True, True, False, False, True, False]
    assert column.dropna().tolist() == [1.0, 0.0, 0.0]


def test_perceived_scores_stand_with_and_without_a_live_intent(eventful: Platform) -> None:
    turns = eventful.frames.turns
    said = turns["role"] == "counsellor"
    occurs = (turns.index % 3 == 0).astype(float)
    score = turns[f"{PERCEIVED}engagement"]
    raised = score.where(occurs == 0, 0.7 + 0.3 * score)
    with_intent = turns.assign(
        **{
            "intent.offers_help": pd.Series(occurs, index=turns.index).where(said),
            f"{PERCEIVED}engagement": raised.where(said),
        }
    )
    frames = replace(eventful.frames, turns=with_intent)
    found = expressed_perceived.analyse(frames, Context()).estimates
    means = {
        each.name: each
        for each in found
        if (each.measure, each.group) == ("predicted engagement", "live intent: offers help")
    }
    assert set(means) == {"mean with it", "mean without it", "difference"}
    assert abs((means["mean with it"].value or 0) - 0.85) < 0.03
    assert (means["difference"].low or 0) > 0.2
