"""People's judgements of answers and of clients' words, as examples for the reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sklearn.feature_extraction.text import TfidfVectorizer

from models.data import esconv
from models.data.corpora import Corpus, read_rows
from models.labels import CLIENT, COUNSELLOR
from models.reader.examples import ENTAILMENT, MITI_CODES, SCALES, Example

FEEDBACK = Corpus(
    "esconv_feedback",
    "Counselling feedback (Chaszczewicz et al. 2024)",
    ("esconv_feedback.jsonl.gz",),
    "https://github.com/SALT-NLP/counseling-feedback",
    "from ESConv, CC BY-NC 4.0",
)
RATED = Corpus(
    "rated_answers",
    "Rated answers (Welivita & Pu 2024)",
    ("rated_answers.jsonl.gz",),
    "https://github.com/anuradha1992/llm-empathy-evaluation",
    "from EmpatheticDialogues, CC BY-NC 4.0",
)
CHATS = Corpus(
    "wassa_chats",
    "WASSA 2023/24 conversations about news",
    ("wassa_chats.jsonl.gz",),
    "https://codalab.lisn.upsaclay.fr/competitions/11167",
    "shared task, research use",
)
IEVAL = Corpus(
    "ieval",
    "iEval (Svikhnushina et al. 2022)",
    ("ieval.jsonl.gz",),
    "https://github.com/Sea94/ieval",
    "CC BY 4.0",
)
EXCHANGES = Corpus(
    "empathetic_exchanges",
    "EmpatheticExchanges (Dregdael)",
    ("empathetic_exchanges.jsonl.gz",),
    "https://github.com/Dregdael/EmpatheticeExchanges-dataset",
    "CC BY-NC 4.0",
)
MITI = Corpus(
    "miti_sentences",
    "MITI-coded sentences (Welivita & Pu 2022)",
    ("miti_sentences.jsonl.gz",),
    "https://github.com/anuradha1992/Boosting-with-MI-Strategy",
    "CC BY-NC-SA 3.0",
)
OPPORTUNITY = Corpus(
    "eaf",
    "Empathy Applicability Framework (Randhawa et al.)",
    ("eaf_people.jsonl.gz", "eaf_model.jsonl.gz"),
    "https://github.com/shmrandhawa/Empathy-Applicability-Framework",
    "Apache-2.0",
)
RALLYPOINT = Corpus(
    "crisis_rallypoint",
    "RallyPoint posts and negated examples (construct-tracker)",
    ("crisis_rallypoint.jsonl.gz",),
    "https://github.com/danielmlow/construct-tracker",
    "Apache-2.0",
)
CSSRS = Corpus(
    "crisis_cssrs",
    "Suicide risk on Reddit by C-SSRS (Gaur et al. 2019)",
    ("crisis_cssrs.jsonl.gz",),
    "https://github.com/AmanuelF/Suicide-Risk-Assessment-using-Reddit",
    "research use",
)
INPUTS = Corpus(
    "crisis_inputs",
    "Crisis inputs labelled by a language model",
    ("crisis_inputs_model.jsonl.gz",),
    "https://github.com/ellisalicante/LLMs-Mental-Health-Crisis",
    "none stated",
)
SNLI = Corpus(
    "snli",
    "SNLI, development and test parts (Bowman et al. 2015)",
    ("snli_dev.jsonl.gz", "snli_test.jsonl.gz"),
    "https://nlp.stanford.edu/projects/snli/",
    "CC BY-SA 4.0",
)
DIALOGUES = Corpus(
    "next_answers",
    "EmpatheticDialogues (Rashkin et al. 2019)",
    ("empathetic_dialogues.jsonl.gz",),
    "https://github.com/facebookresearch/EmpatheticDialogues",
    "CC BY-NC 4.0",
)
CORPORA = (
    FEEDBACK,
    RATED,
    CHATS,
    IEVAL,
    EXCHANGES,
    MITI,
    OPPORTUNITY,
    RALLYPOINT,
    CSSRS,
    INPUTS,
    SNLI,
    DIALOGUES,
)

WARM_AREAS = frozenset({"Empathy", "Validation", "Reflections"})
NON_ADHERENT = frozenset({"Advise without Permission", "Confront", "Direct", "Warn"})
ADHERENT = frozenset(
    {
        "Advise with Permission",
        "Affirm",
        "Complex Reflection",
        "Emphasize Autonomy",
        "Simple Reflection",
        "Support",
    }
)
POSTED_LONG = 1200
"""Characters of a post that are read; longer ones are cut."""


def feedback(data_dir: Path) -> Iterator[Example]:
    """Supporters' turns with the areas that experts found good or in need of work."""
    for number, row in enumerate(read_rows(FEEDBACK, FEEDBACK.files[0], data_dir)):
        turns = _dialogue(row["context"])
        if not turns or turns[-1][0] != COUNSELLOR:
            continue
        bad, good = set(row.get("badareas", ())), set(row.get("goodareas", ()))
        text, before = turns[-1][1], tuple(turns[:-1])
        key = str(row["conversation"])
        lapse, fine = "Empathy" in bad, "Empathy" in good
        binary = {"lapse": float(lapse)} if lapse != fine else {}
        yield Example(
            "esconv_feedback",
            key,
            COUNSELLOR,
            text,
            before,
            binary,
            ("work", int(row["perfect"])),
            pair=f"feedback-{number}" if row.get("alternative") else "",
            better=False,
        )
        if bad & WARM_AREAS and not good & WARM_AREAS:
            grade = ("areas", 0)
        elif good & WARM_AREAS and not bad & WARM_AREAS:
            grade = ("areas", 1)
        else:
            grade = None
        if grade is not None:
            yield Example("esconv_areas", key, COUNSELLOR, text, before, {}, grade)
        if row.get("alternative"):
            yield Example(
                "esconv_alternative",
                key,
                COUNSELLOR,
                row["alternative"],
                before,
                pair=f"feedback-{number}",
                better=True,
            )


def _dialogue(text: str) -> list[tuple[int, str]]:
    turns: list[tuple[int, str]] = []
    for line in text.split("\n"):
        found = re.match(r"(Helper|Seeker):\s*(.*)", line)
        if found:
            turns.append((COUNSELLOR if found[1] == "Helper" else CLIENT, found[2]))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]} {line}".strip())
    return turns


def rated(data_dir: Path) -> Iterator[Example]:
    """Answers of people and of language models, rated bad, okay or good."""
    for row in read_rows(RATED, RATED.files[0], data_dir):
        yield Example(
            "rated_human" if row["by"] == "human" else "rated_model",
            row["dialog_id"],
            COUNSELLOR,
            row["response"],
            ((CLIENT, row["speaker"]),),
            {},
            ("rated", int(row["rating_1_bad_3_good"]) - 1),
        )


def chats(data_dir: Path) -> Iterator[Example]:
    """Turns of chats about a news article, with their mean empathy 0-5."""
    for row in read_rows(CHATS, CHATS.files[0], data_dir):
        turns = row["turns"]
        for place, turn in enumerate(turns):
            if turn.get("empathy") is None:
                continue
            before = tuple(
                (CLIENT if other["person"] != turn["person"] else COUNSELLOR, other["text"])
                for other in turns[max(0, place - 4) : place]
            )
            level = min(5, max(0, round(float(turn["empathy"]))))
            yield Example(
                "wassa_chats",
                str(row["conversation_id"]),
                COUNSELLOR,
                turn["text"],
                before,
                {},
                ("turn_empathy", level),
            )


def ieval(data_dir: Path) -> Iterator[Example]:
    """Every answer of a bot, with "understood my emotions" 1-5 of the person who chatted."""
    for number, row in enumerate(read_rows(IEVAL, IEVAL.files[0], data_dir)):
        roles = {"client": CLIENT, "counsellor": COUNSELLOR}
        turns = [(roles[turn["role"]], turn["text"]) for turn in row["turns"]]
        for place, (role, text) in enumerate(turns):
            if role == COUNSELLOR:
                yield Example(
                    "ieval",
                    f"{row['prompt']}",
                    role,
                    text,
                    tuple(turns[:place]),
                    {},
                    ("understood", int(row["ratings"]["understood_emotions"]) - 1),
                    pair="",
                    kind=f"chat-{number}",
                )


def exchanges(data_dir: Path) -> Iterator[Example]:
    """Listeners' utterances with people's rating of their empathy, 1-5."""
    for row in read_rows(EXCHANGES, EXCHANGES.files[0], data_dir):
        before: tuple[tuple[int, str], ...] = ()
        for exchange in row["exchanges"]:
            before = (*before, (CLIENT, exchange["speaker"]))
            yield Example(
                "empathetic_exchanges",
                row["conversation_id"],
                COUNSELLOR,
                exchange["listener"],
                before,
                {},
                ("exchange", int(exchange["empathy"]) - 1),
            )
            before = (*before, (COUNSELLOR, exchange["listener"]))


def miti(data_dir: Path) -> Iterator[Example]:
    """Sentences with one of fifteen MITI codes; the adherent ones are better than the others."""
    for row in read_rows(MITI, MITI.files[0], data_dir):
        code = row["code"]
        grade = None
        if code in NON_ADHERENT or code in ADHERENT:
            grade = ("adherent", int(code in ADHERENT))
        yield Example(
            "miti_sentences",
            row["text"],
            COUNSELLOR,
            row["text"],
            (),
            {},
            grade,
            MITI_CODES.index(code),
        )


def opportunity(data_dir: Path) -> Iterator[Example]:
    """Patients' questions: does the text call for an emotional reaction, for an interpretation?"""
    for file, corpus in zip(OPPORTUNITY.files, ("eaf_people", "eaf_model"), strict=True):
        for row in read_rows(OPPORTUNITY, file, data_dir):
            emotional, interpretation = (
                _share(row[f"{name}_applicable"])
                for name in ("emotional_reaction", "interpretation")
            )
            yield Example(
                corpus,
                row["text"],
                CLIENT,
                row["text"][:POSTED_LONG],
                (),
                {
                    "emotional_opportunity": emotional,
                    "interpretation_opportunity": interpretation,
                },
            )


def _share(given: bool | list[bool]) -> float:  # as in the file
    votes = given if isinstance(given, list) else [given]
    return sum(map(bool, votes)) / len(votes)


IDEATION = frozenset({"ideation", "behavior", "attempt"})
NO_IDEATION = frozenset({"supportive", "uninformative"})


def crisis(data_dir: Path) -> Iterator[Example]:
    """Posts and inputs that speak of suicide or self-injury, and those that only seem to."""
    for row in read_rows(RALLYPOINT, RALLYPOINT.files[0], data_dir):
        yield _crisis("crisis_rallypoint", row["text"], float(row["positive"]), row["source"])
    for row in read_rows(CSSRS, CSSRS.files[0], data_dir):
        if row["label"] in IDEATION or row["label"] in NO_IDEATION:
            yield _crisis("crisis_cssrs", row["text"], float(row["label"] in IDEATION))
    for row in read_rows(INPUTS, INPUTS.files[0], data_dir):
        if row["label"] is not None:
            said = row["label"] in ("suicidal_ideation", "self-harm")
            yield _crisis("crisis_inputs", row["text"], float(said))


def _crisis(corpus: str, text: str, yes: float, source: str = "") -> Example:
    near = "_negated" if "negated" in source else ""
    return Example(corpus + near, text, CLIENT, text[:POSTED_LONG], (), {"crisis": yes})


def entailment(data_dir: Path) -> Iterator[Example]:
    """Pairs of sentences: negation and quantifiers decide, as they do in answers."""
    for file in SNLI.files:
        for row in read_rows(SNLI, file, data_dir):
            if row["label"] in ENTAILMENT:
                yield Example(
                    "snli",
                    row["premise"],
                    COUNSELLOR,
                    row["hypothesis"],
                    ((CLIENT, row["premise"]),),
                    entailed=ENTAILMENT.index(row["label"]),
                )


NEXT_ANSWERS = 12_000
"""Clients of EmpatheticDialogues with the answer that was given and another."""


def load_answers(data_dir: Path) -> list[Example]:
    """Rated answers that come from EmpatheticDialogues."""
    return [*rated(data_dir), *exchanges(data_dir)]


def next_answers(data_dir: Path) -> Iterator[Example]:
    """A listener's first answer against the answer to the client with the most similar words.

    Dialogues whose answers are rated in `rated` or `exchanges` are left out.
    """
    known = {example.key for example in load_answers(data_dir)}
    rows = []
    for row in read_rows(DIALOGUES, DIALOGUES.files[0], data_dir):
        said = row["utterances"]
        if row["conversation_id"] not in known and len(said) > 1:
            rows.append((row["emotion"], said[0]["text"], said[1]["text"]))
    rows = rows[:NEXT_ANSWERS]
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(row[1] for row in rows)
    for start in range(0, len(rows), 2000):
        near = (words[start : start + 2000] @ words.T).toarray()
        for place in range(near.shape[0]):
            near[place, start + place] = -1.0
        for offset, other in enumerate(near.argmax(1)):
            client = ((CLIENT, rows[start + offset][1]),)
            name = f"next-{start + offset}"
            for answer, better in ((rows[start + offset][2], True), (rows[int(other)][2], False)):
                yield Example(
                    "next_answers",
                    name,
                    COUNSELLOR,
                    answer,
                    client,
                    pair=name,
                    kind="fit",
                    better=better,
                )


LOADERS = (
    feedback,
    rated,
    chats,
    ieval,
    exchanges,
    miti,
    opportunity,
    crisis,
    entailment,
    next_answers,
)


def load(data_dir: Path) -> list[Example]:
    """All examples of the corpora, in file order."""
    found = [example for loader in LOADERS for example in loader(data_dir)]
    wrong = [each for each in found if each.grade and each.grade[1] >= SCALES[each.grade[0]]]
    if wrong:
        message = f"{wrong[0].corpus} has a level beyond its scale {wrong[0].grade}"
        raise ValueError(message)
    return found


ORDINARY = 4000
"""About so many ordinary client turns are read."""


def ordinary_turns(data_dir: Path) -> list[Example]:
    """Client turns of emotional dialogues and of support chats that went well, evenly drawn."""
    texts = [
        said["text"]
        for row in read_rows(DIALOGUES, DIALOGUES.files[0], data_dir)
        for said in row["utterances"]
        if said["speaker"] == "speaker"
    ]
    texts = texts[:: len(texts) // (ORDINARY // 2)]
    chats = [t.text for item in esconv.load(data_dir) for t in item.turns if t.role == CLIENT]
    texts += chats[:: len(chats) // (ORDINARY // 2)]
    return [Example("ordinary", text, CLIENT, text) for text in texts]
