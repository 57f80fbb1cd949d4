"""Writes one archive with everything that is stored about a person, for their access."""

import zipfile
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from stream_app import __version__
from stream_app.errors import RapportError
from stream_app.store.accounts import audit
from stream_app.store.accounts.audit import AuditAction
from stream_app.store.database import tables
from stream_app.store.lifecycle import archived, subject_access
from stream_app.store.lifecycle.archived import FACTS, ArchiveError
from stream_app.store.lifecycle.subject_access import DECISIONS, Included, LeftOut, Row, Subject
from stream_app.store.stream.repository import Store

_encoder = msgspec.json.Encoder()

README = """\
# What is stored about you

Made on {day} by Rapport {version}. Each file in `data/` is a JSON list; times are UTC.

| file | entries | what it is |
| --- | --- | --- |
{files}

`{pseudonym}` is the pseudonym under which you are stored. Other people are left out: their
pseudonyms read "another person", names of staff "staff", and a counsellor's archive has no words of
clients. Personal details in texts were masked before they were stored, and texts are deleted
earlier than scores, so that `text` may be null.

The scores are not a diagnosis, a risk assessment or a performance rating.

## Not included

{left_out}
- copies outside the database: the original events, until the brokers delete them; notifications
  that were sent; exported files; backups
"""


def export(store: Store, archive: Path | None, speaker_id: str, file: Path) -> Counter[str]:
    """Write the archive; return the number of entries by table. Audited for each session.

    Args:
        store: with its key of pseudonyms.
        archive: the folder of archived months, if one is configured.
        speaker_id: the person, as in events.
        file: a new file.

    Raises:
        RapportError: nothing is stored about the person, or the file exists.
        ArchiveError: sessions are archived, and the archive is not configured.
    """
    subject = subject_access.find_subject(store, speaker_id)
    if subject is None:
        raise RapportError(
            "nothing is stored about this speaker: check the speaker_id in events "
            "(the database only contains pseudonyms)"
        )
    folder = _archive_of(archive, store, subject)
    audit.record_all(
        store, audit.COMMAND_LINE, AuditAction.SUBJECT_ACCESS, sorted(subject.sessions) or [None]
    )
    try:
        file.touch(mode=0o600, exist_ok=False)
    except OSError as problem:
        raise RapportError(f"{file} cannot be created: {problem.strerror}") from None
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as sink:
        return _write(store, subject, sink, folder)


def _archive_of(archive: Path | None, store: Store, subject: Subject) -> Path | None:
    """The folder with the person's archived sessions; None without any.

    Raises:
        ArchiveError: it is not configured, or is another database's.
    """
    if not archived.count(store, list(subject.sessions)):
        return None
    if archive is None:
        raise ArchiveError(
            "some of this person's sessions are archived: set RAPPORT_ARCHIVE to the archive's "
            "folder; nothing was written"
        )
    archived.check_owner(store, archive)
    return archive


def _write(
    store: Store, subject: Subject, archive: zipfile.ZipFile, folder: Path | None
) -> Counter[str]:
    counts: Counter[str] = Counter()

    def add(name: str, rows: Iterable[Row]) -> None:
        with archive.open(f"data/{name}.json", "w") as sink:
            sink.write(b"[")
            for row in rows:
                sink.write(b",\n" if counts[name] else b"\n")
                sink.write(_encoder.encode(row))
                counts[name] += 1
            sink.write(b"\n]\n")

    for table in sorted(tables.metadata.tables.values(), key=lambda each: each.name):
        if isinstance(DECISIONS[table.name], Included):
            add(table.name, subject_access.rows_of(store, subject, table))
    if folder is not None:
        from stream_app.store.lifecycle import archived_rows  # noqa: PLC0415  # needs pyarrow

        for fact in FACTS:
            add(f"archive_{fact}", archived_rows.of_person(store, folder, fact, subject))
    archive.writestr("README.md", _readme(subject, counts))
    return +counts


def _readme(subject: Subject, counts: Counter[str]) -> str:
    included = {name: each for name, each in DECISIONS.items() if isinstance(each, Included)}
    left_out = {name: each for name, each in DECISIONS.items() if isinstance(each, LeftOut)}
    return README.format(
        day=f"{datetime.now(UTC):%d %B %Y}",
        version=__version__,
        pseudonym=subject.pseudonym,
        files="\n".join(
            f"| `data/{name}.json` | {counts[name]} | {each.meaning} |"
            for name, each in included.items()
        )
        + "".join(
            f"\n| `data/{name}.json` | {counts[name]} | Numbers of archived conversations |"
            for name in sorted(counts)
            if name.startswith("archive_")
        ),
        left_out="\n".join(f"- `{name}`: {each.reason}" for name, each in left_out.items()),
    )
