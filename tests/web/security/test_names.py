"""Analysts and colleagues cannot identify people."""

from stream_app.findings import blind_rating, calibration_report
from stream_app.store.accounts.people import People
from stream_app.store.stream.repository import Store
from stream_app.store.work import calibration_samples
from stream_app.store.work.calibration_samples import NewCalibrationSample
from stream_app.web.console.pseudonym_words import short_form
from tests.store import batches, judging
from tests.web.people.conftest import As


def test_the_wall_shows_an_analyst_no_pseudonym(filled: Store, as_: As) -> None:
    noor = filled.privacy.pseudonym(judging.NOOR)
    turns = [
        batches.turn(seq, session_id="live", speaker_id=judging.NOOR if seq % 2 else "client")
        for seq in range(4)
    ]
    filled.commit(batches.process(turns))
    for path in ("/", "/sessions/live/card"):
        assert noor in as_("pat").get(path).text
        shown = as_("ana").get(path).text
        assert "live" in shown
        assert noor[:8] not in shown
        assert short_form(noor) not in shown


def test_an_analyst_does_not_see_who_drew_a_sample(filled: Store, as_: As) -> None:
    sue = People(filled).find("sue")
    assert sue is not None
    sample = calibration_samples.draw(
        filled, sue, NewCalibrationSample("t", batches.BUNDLE, "north", 5, 1)
    )
    ana = as_("ana")
    assert [each["person"] for each in ana.get("/api/v1/samples").json()] == ["withheld"]
    one = ana.get(f"/api/v1/samples/{sample.sample_id}").json()
    assert one["sample"]["person"] == "withheld"
    for path in ("/calibration", f"/calibration/{sample.sample_id}"):
        assert "sue" not in ana.get(path).text
    assert "sue" in as_("ben").get(f"/calibration/{sample.sample_id}").text


def test_raters_letters_do_not_follow_their_names(filled: Store) -> None:
    raters = [judging.supervisor(filled, name) for name in ("abe", "bea", "cid", "dot")]
    orders = set()
    for seed in range(6):
        sample = calibration_samples.draw(
            filled, raters[0], NewCalibrationSample("t", batches.BUNDLE, "north", 5, seed)
        )
        for rater in raters:
            for place in range(1, sample.size + 1):
                levels = dict.fromkeys(calibration_report.MECHANISMS, 1)
                blind_rating.rate_turn(filled, rater, sample.sample_id, place, levels)
        letters = [calibration_report.build_report(filled, rater, sample).you for rater in raters]
        assert sorted(map(str, letters)) == ["A", "B", "C", "D"]
        orders.add(tuple(letters))
    assert len(orders) > 1
