"""``rapport bundle adapt``: from judgements in the database to a bundle that workers read."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from stream_app.inference.bundles.bundle import ADAPTED_FORMAT, MANIFEST, load
from stream_app.store.database import tables
from stream_app.store.lifecycle import erasure
from stream_app.store.stream.repository import Store
from stream_app.store.work import disputes
from stream_app.store.work.disputes import Decision
from tests.adaptation.platform import FILES, HEAD, agree, fill, strict
from tests.commands.conftest import Rapport
from tests.store import judging

NOTHING = "nothing passes the gate: no bundle was written"


def adapted(path: Path) -> dict[str, Any]:
    [found] = json.loads((path / MANIFEST).read_text("utf-8"))["adaptations"]
    return dict(found)


def test_stricter_raters_give_a_bundle_with_provenance_and_card(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store)
    out = tmp_path / "new"
    done = rapport("bundle", "adapt", "--out", out, "--consent", "v1", "--bundle", parent)
    assert done.returncode == 0, done.stderr
    bundle, before = load(out), load(parent)
    manifest = bundle.manifest
    assert manifest.format == ADAPTED_FORMAT
    assert manifest.version.startswith("1.")
    assert manifest.bundle_id != before.manifest.bundle_id
    assert f"RAPPORT_BUNDLE_DIGEST={bundle.digest}" in done.stdout
    found = adapted(out)
    assert (found["parent"], found["parent_digest"]) == ("fake-1-fp32", before.digest)
    assert list(found["heads"]) == [HEAD]
    data = found["record"]["data"]
    assert (data["ratings"], data["counsellors"], data["raters"]) == (240, 8, 2)
    assert found["record"]["heads"][HEAD]["log_loss_difference"][2] < 0
    assert found["record"]["command"][:3] == ["rapport", "bundle", "adapt"]
    for name, raw in FILES.items():
        assert (out / name).read_bytes() == raw
        assert not (out / name).is_symlink()
    assert json.loads((out / MANIFEST).read_text("utf-8"))["an_unknown_field"] == 7
    card = (out / "MODEL_CARD.md").read_text("utf-8")
    assert "240 rated turns" in card
    assert card.endswith("# the parent's card\n")
    for secret in ("spoken for nobody", "sue", "ann ", "example.org"):
        assert secret not in card + (out / MANIFEST).read_text("utf-8")


def test_raters_who_agree_with_the_bundle_give_none(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store, rule=agree)
    out = tmp_path / "new"
    done = rapport(
        "bundle", "adapt", "-o", out, "--consent", "any", "--bundle", parent, "--sessions", 0
    )
    assert (done.returncode, out.exists()) == (1, False)
    assert NOTHING in done.stderr
    assert "as shipped: no certain gain" in done.stdout


def test_ratings_without_a_consent_that_covers_adaptation_are_not_used(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store)
    done = rapport("bundle", "adapt", "-o", tmp_path / "new", "--consent", "v2", "--bundle", parent)
    assert done.returncode == 1
    assert "240 judgements were left out: of sessions without a consent" in done.stderr
    assert "There are no judgements to adapt to." in done.stdout


def test_the_consent_must_be_named(parent: Path, tmp_path: Path, rapport: Rapport) -> None:
    done = rapport("bundle", "adapt", "-o", tmp_path / "new", "--bundle", parent)
    assert done.returncode == 2
    assert "--consent" in done.stderr


def test_ratings_of_erased_sessions_are_gone(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store)
    gone = [f"s-{number:03}" for number in range(8)]
    erasure.erase(store, gone, datetime.now(UTC))
    out = tmp_path / "new"
    rapport("bundle", "adapt", "-o", out, "--consent", "v1", "--bundle", parent)
    assert adapted(out)["record"]["data"]["ratings"] == 240 - 8 * 6


def test_withdrawn_and_hidden_sessions_are_not_used(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store)
    table = tables.sessions
    with store.transaction() as connection:
        for name, column in (("s-000", "withdrawn"), ("s-001", "hidden")):
            row = sa.update(table).where(table.c.session_id == name)
            connection.execute(row.values({column: True}))
    out = tmp_path / "new"
    rapport("bundle", "adapt", "-o", out, "--consent", "any", "--bundle", parent)
    assert adapted(out)["record"]["data"]["ratings"] == 240 - 2 * 6


def test_an_existing_folder_is_not_overwritten(
    store: Store, parent: Path, rapport: Rapport
) -> None:
    fill(store, 2)
    before = (parent / MANIFEST).read_bytes()
    done = rapport("bundle", "adapt", "-o", parent, "--consent", "any", "--bundle", parent)
    assert (done.returncode, (parent / MANIFEST).read_bytes()) == (1, before)
    assert "exists" in done.stderr


def test_few_counsellors_and_few_ratings_say_so(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store, 3)
    done = rapport(
        "bundle", "adapt", "-o", tmp_path / "new", "--consent", "any", "--bundle", parent
    )
    assert done.returncode == 1
    assert "fewer than 5 counsellors" in done.stdout


def test_an_unknown_outcome_is_refused_with_the_known_ones(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store, 1)
    asked = (
        "bundle",
        "adapt",
        "-o",
        tmp_path / "new",
        "--consent",
        "any",
        "--bundle",
        parent,
        "--outcome",
    )
    done = rapport(*asked, "joy=rating<3")
    assert (done.returncode, "it has: chat_failed" in done.stderr) == (1, True)
    done = rapport(*asked, "chat_failed=mood<3")
    assert (done.returncode, "kinds are like, reply, follow, rating" in done.stderr) == (1, True)


def test_outcome_risks_and_references_are_compared(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store, 60)
    out = tmp_path / "new"
    done = rapport(
        *("bundle", "adapt", "-o", out, "--consent", "v1", "--bundle", parent),
        *("--outcome", "chat_failed=rating<=4"),
    )
    assert done.returncode == 0, done.stderr
    record = adapted(out)["record"]
    assert record["references"]["peer-support"]["sessions"] == 60
    assert record["outcomes"]["chat_failed=rating<=4"]["ratings"] == 60


def test_disputes_are_counted_and_never_evaluated_on(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    """A contested turn that nobody has rated is fitted on; a rated one counts as its rating."""
    fill(store)
    with store.transaction() as connection:
        connection.execute(sa.delete(tables.ratings).where(tables.ratings.c.session_id == "s-000"))
    person = judging.person(store, "cc", judging.PersonRole.COUNSELLOR)
    speaker = store.privacy.pseudonym("c0@example.org")
    cc = type(person)(person.name, person.role, None, speaker)
    sue = judging.supervisor(store, "boss", None)
    for session in ("s-000", "s-008"):
        score = tables.turn_scores
        query = sa.select(score.c[HEAD]).where(
            score.c.session_id == session, score.c.seq == 1, score.c.stage == "final"
        )
        with store.reading() as connection:
            level = connection.scalar(query)
        made = disputes.contest(store, cc, session, 1, HEAD, (level + 1) % 3, "no")
        disputes.decide(store, sue, made.dispute_id, Decision.UPHELD, "yes")
    out = tmp_path / "new"
    rapport("bundle", "adapt", "-o", out, "--consent", "any", "--bundle", parent)
    data = adapted(out)["record"]["data"]
    assert (data["disputes"], data["ratings"]) == (1, 240 - 6)


def test_an_adapted_bundle_can_be_adapted_again(
    store: Store, parent: Path, tmp_path: Path, rapport: Rapport
) -> None:
    fill(store, rule=strict)
    first = tmp_path / "first"
    rapport("bundle", "adapt", "-o", first, "--consent", "any", "--bundle", parent)
    again = load(first).manifest
    with store.transaction() as connection:
        for table in (tables.turn_scores, tables.session_scores):
            connection.execute(sa.update(table).values(bundle=again.bundle_id))
    asked = ("bundle", "adapt", "-o", tmp_path / "second", "--consent", "any", "--bundle", first)
    refused = rapport(*asked)
    assert "is the parent's id" in refused.stderr
    done = rapport(*asked, "--name", "second")
    assert done.returncode == 0, done.stderr
    assert len(load(tmp_path / "second").manifest.adaptations) == 2
