"""``rapport export``: one archive with everything that is stored about a person."""

import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from stream_app import __version__, bootstrap
from stream_app.errors import RapportError
from stream_app.settings import Settings
from stream_app.store import audit, subject_access, tables
from stream_app.store.audit import AuditAction
from stream_app.store.repository import Store
from stream_app.store.subject_access import DECISIONS, Included, LeftOut, Subject

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


def export(settings: Settings, speaker_id: str, file: Path) -> Counter[str]:
    """Write the archive; return the number of entries by table. Audited for each session.

    Raises:
        RapportError: nothing is stored about the person, or the file exists.
    """
    store = bootstrap.store(settings)
    try:
        store.load_privacy(settings.redact)
        subject = subject_access.find_subject(store, speaker_id)
        if subject is None:
            raise RapportError(
                "nothing is stored about this speaker: check the speaker_id in events "
                "(the database only contains pseudonyms)"
            )
        audit.record_all(
            store,
            audit.COMMAND_LINE,
            AuditAction.SUBJECT_ACCESS,
            sorted(subject.sessions) or [None],
        )
        try:
            file.touch(mode=0o600, exist_ok=False)
        except OSError as problem:
            raise RapportError(f"{file} cannot be created: {problem.strerror}") from None
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            return _write(store, subject, archive)
    finally:
        store.close()


def _write(store: Store, subject: Subject, archive: zipfile.ZipFile) -> Counter[str]:
    counts: Counter[str] = Counter()
    encoder = msgspec.json.Encoder()
    for table in sorted(tables.metadata.tables.values(), key=lambda each: each.name):
        if not isinstance(DECISIONS[table.name], Included):
            continue
        with archive.open(f"data/{table.name}.json", "w") as sink:
            sink.write(b"[")
            for row in subject_access.rows_of(store, subject, table):
                sink.write(b",\n" if counts[table.name] else b"\n")
                sink.write(encoder.encode(row))
                counts[table.name] += 1
            sink.write(b"\n]\n")
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
        ),
        left_out="\n".join(f"- `{name}`: {each.reason}" for name, each in left_out.items()),
    )
