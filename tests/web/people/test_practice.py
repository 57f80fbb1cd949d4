"""Practice: rewriting an own turn, scored by the shipped nano bundle; nothing is stored."""

import html
import logging
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr
from structlog.testing import capture_logs

from stream_app import bootstrap, extras
from stream_app.contracts.events import Role
from stream_app.core.pipeline.practice import SaidTurn
from stream_app.errors import BundleError
from stream_app.findings.feedback.judgements import Fit
from stream_app.inference.bundles import bundle
from stream_app.inference.scorer import OnnxScorer
from stream_app.settings import Settings
from stream_app.store.accounts import audit
from stream_app.store.accounts.people import People
from stream_app.store.database import tables
from stream_app.store.stream.repository import Store
from stream_app.store.work import assignments
from stream_app.web import practice_model
from stream_app.web.console.session.practice import AnswerMove
from stream_app.web.practice_model import (
    LoadedModel,
    PracticeModel,
    PracticeUnavailable,
    TooManyTries,
)
from tests.fakes import FakeScorer
from tests.store import batches
from tests.store.judging import NOOR
from tests.store.reading import contents
from tests.web.people.client import Client
from tests.web.people.conftest import As
from tests.web.people.test_pages import proper

SAID = (
    "My dad died in March and I can't stop crying. I feel so alone.",
    "There is a leaflet about that on our website.",
    "I read it. It doesn't help. I lie awake every night thinking about him.",
    "You can try going to bed earlier.",
    "I do. I just lie there.",
    "OK. The opening hours are nine to five.",
)
TURN = "/sessions/grief/turns/3/practice"
EMPATHIC = "That sounds really painful, I'm sorry you're going through this."
QUESTION = "What goes through your mind when you lie awake?"
ER, IP, EX = "Emotional reactions", "Interpretations", "Explorations"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BOOKKEEPING = {"access_tokens", "audit", "audit_subjects", "installation"}
"""When a token was used, and that a turn was read."""


@cache
def nano() -> OnnxScorer:
    return OnnxScorer(bundle.load(bundle.find(Path("nano"))))


@pytest.fixture(autouse=True)
def _nano(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "scorer", lambda _: nano())


@pytest.fixture
def noor(filled: Store, as_: As) -> Client:
    """Noor, who led the session ``grief``."""
    say(filled, "grief")
    return as_("noor")


def say(store: Store, name: str, *, over: bool = True, texts: tuple[str, ...] = SAID) -> None:
    log = [
        batches.turn(
            seq,
            session_id=name,
            team="north",
            speaker_id=NOOR if seq % 2 else "client",
            text=text,
        )
        for seq, text in enumerate(texts)
    ]
    store.commit(batches.process([*log, *([batches.end(session_id=name)] if over else [])]))


def expected(page: str) -> dict[str, tuple[float, float]]:
    """Expected level as said and rewritten, by mechanism."""
    rows = re.findall(r'<tr><th scope="row"><b[^>]*>\w+</b> ([^<]+)</th>(.*?)</tr>', page)
    found = {}
    for title, cells in rows:
        before, after = re.findall(r"<td><b>([\d.]+)</b>", cells)
        found[title] = float(before), float(after)
    return found


def marked(page: str, kind: str) -> str:
    """The words marked in the rewritten turn."""
    [text] = re.findall(r'id="levels-title">.*?<p class="text"[^>]*>(.*?)</p>', page, re.DOTALL)
    return " ".join(re.findall(rf'<mark class="{kind}">(.*?)</mark>', text))


def test_words_of_concern_raise_emotional_reactions(noor: Client) -> None:
    page = proper(noor.post(TURN, data={"text": f"{EMPATHIC} {SAID[1]}"}))
    levels = expected(page)
    before, after = levels[ER]
    assert before < 0.3
    assert after > 1.0
    assert levels[EX][1] - levels[EX][0] < 0.3
    assert "sorry you&#39;re going through this" in marked(page, "er")
    assert "leaflet" not in marked(page, "er")


def test_a_question_raises_explorations(noor: Client) -> None:
    page = proper(noor.post(TURN, data={"text": QUESTION}))
    levels = expected(page)
    assert levels[EX][0] < 0.3
    assert levels[EX][1] > 1.0
    assert levels[ER][1] - levels[ER][0] < 0.3
    assert marked(page, "ex") == "What goes through your mind when you lie awake?"


def test_an_unchanged_turn_stays_where_it_is(noor: Client) -> None:
    page = proper(noor.post(TURN, data={"text": SAID[3]}))
    assert all(before == after for before, after in expected(page).values())
    assert page.count("about the same") == 3


def test_the_levels_depend_on_the_turns_around_it(filled: Store, noor: Client) -> None:
    """The same words after another client turn."""
    service = ("My router shows a red light.", *SAID[1:2], "The cable is in.", *SAID[3:])
    say(filled, "router", texts=service)
    here = expected(noor.post(TURN, data={"text": EMPATHIC}).text)
    there = expected(noor.post(TURN.replace("grief", "router"), data={"text": EMPATHIC}).text)
    assert here[ER][1] > there[ER][1]


def test_interpretations_are_not_called_weak(noor: Client) -> None:
    page = proper(noor.post(TURN, data={"text": "It sounds as if the nights are the hardest."}))
    cells = dict(re.findall(r"</b> ([^<]+)</th>(.*?)</tr>", page))
    assert "weak" in cells[ER]
    assert "weak" not in cells[IP]
    assert re.search(r"none [\d.]+, some [\d.]+", cells[IP])


def test_nothing_is_stored_and_no_text_is_logged(
    noor: Client, filled: Store, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    words = "the heron at Kirkby weir"
    noor.get(TURN)

    def stored() -> dict[str, object]:
        return {name: rows for name, rows in contents(filled).items() if name not in BOOKKEEPING}

    before = stored()
    with caplog.at_level(logging.DEBUG):
        assert words in noor.post(TURN, data={"text": f"Tell me about {words}."}).text
        noor.post(TURN, data={"text": words + "!" * 5000})
    assert stored() == before
    assert words not in repr(contents(filled))
    assert words not in caplog.text + "".join(capfd.readouterr())
    read = [(e.action, e.session_id, e.detail) for e in audit.latest(filled)]
    assert set(read) == {("read transcript", "grief", "turn 3")}
    assert len(read) == 3, "every read of the turn, and not what it was for"


@pytest.mark.parametrize("method", ["get", "post"])
def test_only_the_counsellor_whose_turn_it_is_can_practise(
    filled: Store, as_: As, noor: Client, method: str
) -> None:
    olu = filled.privacy.pseudonym("olu@example.org")
    assignments.assign(filled, "grief", olu, "sue")
    assert as_("olu").get("/sessions/grief").status_code == 200, "may read the session"
    wanted = {"": 303, "noor": 200, "olu": 404, "sue": 403, "pat": 403, "ana": 403, "ada": 403}
    body = {"data": {"text": EMPATHIC}} if method == "post" else {}
    for name, status in wanted.items():
        assert getattr(as_(name), method)(TURN, **body).status_code == status, name
    for turn in ("2", "99", "-1", "x"):
        path = TURN.replace("3", turn)
        assert getattr(noor, method)(path, **body).status_code in (404, 422), turn
    assert getattr(noor, method)("/sessions/none/turns/1/practice", **body).status_code == 404
    foreign = "/sessions/south-0/turns/1/practice"
    assert getattr(noor, method)(foreign, **body).status_code == 404


def test_an_open_session_cannot_be_practised(filled: Store, as_: As) -> None:
    say(filled, "now", over=False)
    path = TURN.replace("grief", "now")
    assert as_("noor").get(path).status_code == 409
    assert as_("noor").post(path, data={"text": EMPATHIC}).status_code == 409


def test_a_hidden_session_cannot_be_practised(filled: Store, noor: Client) -> None:
    states = filled.load_states(["grief"], batches.BUNDLE)
    record = batches.consent("withdrawn", session_id="grief", version="2")
    filled.commit(batches.process([record], states))
    assert noor.get(TURN).status_code == 404
    assert noor.post(TURN, data={"text": EMPATHIC}).status_code == 404


def erase_text(store: Store, seq: int) -> None:
    turns = tables.turns
    with store.transaction() as connection:
        where = (turns.c.session_id == "grief", turns.c.seq == seq)
        connection.execute(sa.update(turns).where(*where).values(text=None))


def test_a_turn_without_text_cannot_be_practised(filled: Store, noor: Client) -> None:
    erase_text(filled, 3)
    for answer, status in ((noor.get(TURN), 200), (noor.post(TURN, data={"text": EMPATHIC}), 409)):
        assert "cannot be practised" in proper(answer, status)
        assert "<textarea" not in answer.text


def test_turns_around_it_without_text_are_reported(filled: Store, noor: Client) -> None:
    erase_text(filled, 2)
    page = proper(noor.post(TURN, data={"text": EMPATHIC}))
    assert "1 of the turns around it has no text any more and is left out." in page


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 422),
        (" \r\n\t ", 422),
        ("\x00\x07\x1b", 422),
        ("x" * 64 * 1024, 422),
        (" " * 4000 + "a", 200),
        ("a" + " \n" * 1999, 200),
        ("How\x00 are\x07 you?\x1b[31m", 200),
        ("<script>alert(1)</script> I'm so sorry.", 200),
        ("\u202ehow are you\u2066 \U0001f600" * 100, 200),
        ("\ufdd0\ufffe", 200),
    ],
)
def test_hostile_text(noor: Client, text: str, status: int) -> None:
    page = proper(noor.post(TURN, data={"text": text}), status)
    assert not set(page) & {"\x00", "\x07", "\x1b"}
    assert "<script>alert" not in page
    assert ("Write between 1 and 4000 characters." in page) == (status == 422)


def test_forms_that_are_none_are_refused(noor: Client) -> None:
    assert noor.post(TURN).status_code == 422
    assert noor.post(TURN, files={"text": ("a.txt", b"words")}).status_code == 422
    assert noor.post(TURN, content=b"\xff\xfe=\xff&text=%ff%fe", headers=FORM).status_code == 200
    assert noor.post(TURN, data={"text": "x" * 300_000}).status_code == 413


def test_a_long_turn_can_be_practised(filled: Store, noor: Client) -> None:
    """The form has its beginning; its own score is that of the whole turn, read in parts."""
    say(filled, "long", texts=(SAID[0], "I'm sorry. " * 500))
    path = "/sessions/long/turns/1/practice"
    assert len(re.findall(r"sorry", form_text(proper(noor.get(path))))) == 4000 // 11
    page = proper(noor.post(path, data={"text": "Short."}))
    assert "Short." in page
    assert "The model read only the beginning" not in page


def form_text(page: str) -> str:
    [found] = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    return found


def test_the_page_before_practising_shows_the_turn_and_loads_no_model(
    filled: Store, noor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "scorer", lambda _: pytest.fail("loaded"))
    manifest = {"name": "fake", "window": {"before": 3, "after": 3}}
    with filled.transaction() as connection:
        connection.execute(sa.update(tables.bundles).values(manifest=manifest))
    page = proper(noor.get(TURN))
    assert form_text(page) == SAID[3]
    for text in SAID[:3]:
        assert html.escape(text).replace("&#x27;", "&#39;") in page
    assert SAID[4] not in page
    assert 'id="levels"' not in page


def test_it_can_be_switched_off(filled: Store, tmp_path: Path) -> None:
    say(filled, "grief")
    url = SecretStr(f"sqlite:///{tmp_path}/rapport.db")
    changes = {"database_url": url, "practice": False}
    app = bootstrap.web(Settings().model_copy(update=changes))
    client = Client(app, People(filled).create_token("noor", "test"))
    for answer, status in ((client.get(TURN), 200), (client.post(TURN, data={"text": "a"}), 409)):
        assert "RAPPORT_PRACTICE=true" in proper(answer, status)
        assert "<textarea" not in answer.text
    assert "Rewrite this turn" not in client.get("/sessions/grief/feedback").text


def test_without_the_runtime_it_says_what_to_install(
    noor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    for answer, status in ((noor.get(TURN), 200), (noor.post(TURN, data={"text": "a"}), 503)):
        assert "pip install &#39;rapport-empathy[cpu]&#39;" in proper(answer, status)
        assert "<textarea" not in answer.text


def test_attempts_are_limited(noor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(practice_model, "PER_PERSON", 1)
    assert noor.post(TURN, data={"text": EMPATHIC}).status_code == 200
    answer = noor.post(TURN, data={"text": QUESTION})
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    page = proper(answer, 429)
    assert "At most 1 attempts a minute" in page
    assert form_text(page) == QUESTION, "what was written is not lost"


def model(load: object = None) -> tuple[PracticeModel, list[float]]:
    now = [0.0]
    loaded = LoadedModel(FakeScorer(), 3, 3)
    made = PracticeModel(load or (lambda: loaded), lambda: None, lambda: now[0])  # type: ignore[arg-type]
    return made, now


def attempt(of: PracticeModel, person: str = "noor") -> None:
    turns = [SaidTurn(0, Role.CLIENT, "Hello."), SaidTurn(1, Role.COUNSELLOR, "Hi.")]
    of.score(person, turns, 1, Role.COUNSELLOR, ["Hi.", "Hello."])


def test_attempts_are_counted_per_person_and_minute() -> None:
    of, now = model()
    for _ in range(practice_model.PER_PERSON):
        attempt(of)
    now[0] = 59.0
    with pytest.raises(TooManyTries) as refused:
        attempt(of)
    assert (refused.value.status, refused.value.retry_after) == (429, 1)
    attempt(of, "olu")
    now[0] = 60.0
    attempt(of)


def test_one_is_scored_at_a_time_and_few_wait() -> None:
    may_load, begun = threading.Event(), threading.Event()

    def load() -> LoadedModel:
        begun.set()
        assert may_load.wait(10)
        return LoadedModel(FakeScorer(), 3, 3)

    of, _ = model(load)
    waiting = 1 + practice_model.MAX_WAITING
    with ThreadPoolExecutor(waiting) as pool:
        first = [pool.submit(attempt, of, str(n)) for n in range(waiting)]
        assert begun.wait(10)
        while of._slots._value:  # type: ignore[attr-defined]
            time.sleep(0.001)
        with pytest.raises(TooManyTries) as refused:
            attempt(of)
        assert refused.value.status == 503
        may_load.set()
        for each in first:
            each.result(10)
    attempt(of)


def test_a_model_that_cannot_be_loaded_is_one_sentence() -> None:
    def load() -> LoadedModel:
        raise BundleError("no such folder")

    of, _ = model(load)
    with (
        capture_logs() as logged,
        pytest.raises(PracticeUnavailable, match="the model cannot be loaded"),
    ):
        attempt(of)
    assert [each["problem"] for each in logged] == ["no such folder"]


@cache
def default() -> OnnxScorer:
    return OnnxScorer(bundle.load(bundle.find(Path("default"))))


@pytest.mark.parametrize(
    ("said", "fits", "misses"),
    [
        (
            "My dad died in March and I can't stop crying. I feel so alone.",
            "Your dad is gone since March, and you are alone with the crying. "
            "What is it like at home without him?",
            "Do you have an appointment with your GP already?",
        ),
        (
            "You charged me twice and I could not pay for the food at the till.",
            "I'm so sorry. So you stood at the till and could not pay, because of us. "
            "How are you managing now?",
            "You should ensure sufficient funds on the collection date.",
        ),
    ],
)
def test_a_wording_is_judged_by_what_was_said_before_it(
    filled: Store,
    as_: As,
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    fits: str,
    misses: str,
) -> None:
    monkeypatch.setattr(bootstrap, "scorer", lambda _: default())
    say(filled, "short", texts=(said, misses, "Hm."))
    page = proper(as_("noor").post("/sessions/short/turns/1/practice", data={"text": fits}))
    [sentence] = re.findall(r'<p class="fit"><b>(.*?)</b>', page)
    assert sentence == (
        "The model takes the rewritten turn for an answer that fits this conversation. "
        "By its reading it fits better than the turn as said."
    )


def test_without_a_client_turn_before_it_nothing_is_judged(
    filled: Store, as_: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "scorer", lambda _: default())
    log = [
        batches.turn(0, session_id="first", team="north", speaker_id=NOOR, role="counsellor"),
        batches.turn(1, session_id="first", team="north", speaker_id="client", role="client"),
    ]
    filled.commit(batches.process([*log, batches.end(session_id="first")]))
    page = proper(as_("noor").post("/sessions/first/turns/0/practice", data={"text": "Hello."}))
    assert "Nothing was said before this turn" in page
    assert 'class="fit"' not in page


def test_a_bundle_without_a_reader_says_so(noor: Client) -> None:
    page = proper(noor.post(TURN, data={"text": EMPATHIC}))
    assert "does not judge whether an answer fits" in page


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (0.2, 0.25, "about as well as"),
        (0.2, 0.8, "fits better than"),
        (0.8, 0.2, "fits less well than"),
    ],
)
def test_small_differences_count_as_none(before: float, after: float, words: str) -> None:
    assert words in AnswerMove(before, after, Fit.UNSURE, Fit.UNSURE).sentence
