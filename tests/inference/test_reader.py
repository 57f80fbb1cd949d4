"""The reader of the shipped bundle: what it reads, and that batches and stages change nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs

from stream_app import bootstrap
from stream_app.contracts.events import Role
from stream_app.contracts.scores import Stage
from stream_app.core.measures.crisis import CRISIS
from stream_app.core.measures.heads import Dimension
from stream_app.core.measures.window import Neighbour, ScoringRequest, WindowTurn
from stream_app.inference.bundles import bundle as bundles
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings

START = datetime(2026, 3, 2, 10, tzinfo=UTC)
Said = tuple[Role, str]


@pytest.fixture(scope="module")
def scorer() -> OnnxScorer:
    return OnnxScorer(bundles.load())


def requests(scorer: OnnxScorer, said: Sequence[Said]) -> list[ScoringRequest]:
    encoded = scorer.encode([text for _, text in said], [role for role, _ in said])
    turns = [
        WindowTurn(
            seq=seq,
            role=role,
            occurred_at=START + timedelta(seconds=seq),
            digest=seq,
            words=1,
            vectors=encoding.vectors,
            tokens=encoding.tokens,
        )
        for seq, ((role, _), encoding) in enumerate(zip(said, encoded, strict=True))
    ]
    return [
        ScoringRequest(
            turn,
            Stage.PROVISIONAL,
            [Neighbour(turns[i], i - place) for i in range(max(0, place - 3), place)],
        )
        for place, turn in enumerate(turns)
    ]


CHAT: tuple[Said, ...] = (
    (Role.CLIENT, "My dad died on Sunday and I can't stop crying."),
    (Role.COUNSELLOR, "I'm so sorry. Sunday is no time ago at all. What was he like?"),
    (Role.CLIENT, "Funny. He sang in the car, always the same song."),
    (Role.COUNSELLOR, "Okay. Next question on the form: do you smoke?"),
)


def yes(scorer: OnnxScorer, client: str, answer: str) -> float:
    said = ((Role.CLIENT, client), (Role.COUNSELLOR, answer))
    found = scorer.score(requests(scorer, said))[1].expressed.distribution("answer")
    assert found is not None
    return found["yes"]


def test_the_same_answer_is_better_for_the_client_whom_it_fits(scorer: OnnxScorer) -> None:
    """Neither client and neither answer is in the training material."""
    passed = "I passed my driving test this morning, first try, I'm still shaking with joy!"
    failed = "I failed my driving test this morning, third try, I'm still shaking."
    cheer = "Congratulations! First try, you must be over the moon."
    comfort = "Oh no. Third try, and you had hoped so much. That's rough."
    assert yes(scorer, passed, cheer) > yes(scorer, passed, comfort)
    assert yes(scorer, failed, comfort) > yes(scorer, failed, cheer)


def test_a_reading_does_not_depend_on_its_batch(scorer: OnnxScorer) -> None:
    assert scorer.reader is not None
    together = scorer.reader.readings(requests(scorer, CHAT))
    alone = [scorer.reader.readings([each])[0] for each in requests(scorer, CHAT)]
    assert together == alone
    assert len(set(together)) == len(CHAT)


def test_a_final_score_takes_the_reading_of_the_provisional_one(
    scorer: OnnxScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scorer.reader is not None
    made = requests(scorer, CHAT)
    first = scorer.score(made)
    for request, scores in zip(made, first, strict=True):
        request.turn.readings = scores.readings

    class Unused:
        def run(self, *_: object) -> None:
            pytest.fail("a known reading was computed again")

    monkeypatch.setattr(scorer.reader, "session", Unused())
    again = scorer.score([structs.replace(each, stage=Stage.FINAL) for each in made])
    assert [each.readings for each in again] == [each.readings for each in first]
    assert again[1].expressed["answer"] == first[1].expressed["answer"]


def test_the_reading_of_another_reader_is_not_taken(scorer: OnnxScorer) -> None:
    assert scorer.reader is not None
    made = requests(scorer, CHAT)
    own = scorer.reader.readings(made)
    for request, reading in zip(made, own, strict=True):
        request.turn.readings = b"\0\0\0\0" + reading[4:]
    assert scorer.reader.readings(made) == own


def test_a_turn_without_tokens_has_no_answer(scorer: OnnxScorer) -> None:
    """A window that an earlier release stored."""
    made = requests(scorer, CHAT)
    for request in made:
        request.turn.tokens = b""
    client, counsellor = scorer.score(made)[:2]
    assert not {"opportunity", CRISIS} & client.client.keys()
    assert not {"answer", "lapse"} & counsellor.expressed.keys()
    assert counsellor.expressed.level("explorations") is not None


def test_a_client_turn_is_not_read_where_client_outputs_are_restricted(scorer: OnnxScorer) -> None:
    assert scorer.reader is not None
    restricted = frozenset({Dimension.CLIENT})
    made = [structs.replace(each, restricted=restricted) for each in requests(scorer, CHAT)]
    readings = scorer.reader.readings(made)
    assert [bool(reading) for reading in readings] == [False, True, False, True]


def test_a_long_conversation_stays_within_the_reader_s_input(scorer: OnnxScorer) -> None:
    assert scorer.reader is not None
    spec = bundles.load().manifest.reader
    assert spec is not None
    long = "and then he said " * 400
    said = [(role, long) for role in (Role.CLIENT, Role.COUNSELLOR) * 3]
    made = requests(scorer, said)
    sizes = [len(part) for each in made for part in scorer.reader.inputs_of(each)]
    assert max(sizes) <= spec.context_tokens + max(spec.target_tokens, spec.client_tokens) + 16
    assert all(each.expressed for each in scorer.score(made)[1::2])


def test_windows_keep_the_masked_words(scorer: OnnxScorer) -> None:
    masking = OnnxScorer(bundles.load(), mask=lambda text: text.replace("Joan", "\u2022" * 4))
    said = ["I am Joan and I am tired.", "Tell me more."]
    plain, masked = scorer.encode(said), masking.encode(said)
    assert (
        masked[0].tokens
        == scorer.encode(["I am \u2022\u2022\u2022\u2022 and I am tired."])[0].tokens
    )
    assert masked[0].tokens != plain[0].tokens
    assert masked[1].tokens == plain[1].tokens
    assert masked[0].vectors == plain[0].vectors


def test_redaction_masks_what_windows_keep() -> None:
    text = "Hi, I'm Joan, write to joan@example.org"
    on, off = (bootstrap.scorer(Settings(redact=redact)) for redact in (True, False))
    assert on.encode([text])[0].tokens != off.encode([text])[0].tokens


def test_bundles_with_other_readers_share_no_encodings() -> None:
    own = bundles.load().manifest
    bare = structs.replace(own, reader=None)
    assert bundles.share_encoder(own, own)
    assert not bundles.share_encoder(own, bare)
