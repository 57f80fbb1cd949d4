"""Rotates the pseudonym key of a database with an archive.

Files are written with the new pseudonyms next to the old ones, under names that readers ignore;
then one transaction replaces the pseudonyms in the database; then the files are renamed. An
interruption before the commit changes nothing that is read, and after it `archived.finish_rotation`
renames the rest. Nobody else changes the archive meanwhile (``archived.changing``).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from stream_app.analytics.archive import arrow_rows
from stream_app.analytics.archive.archive import replace_file
from stream_app.sealing.sources import KeySource
from stream_app.store.keys import pseudonym_key
from stream_app.store.lifecycle import archived
from stream_app.store.stream.repository import Store

COLUMNS: Final = ("speaker", "counsellor", "client")
"""Columns with pseudonyms, in any fact."""


def rotate(store: Store, source: KeySource, folder: Path) -> int:
    """Rotate as ``pseudonym_key.rotate`` does, and in the archive; return how many pseudonyms.

    Zero if an interrupted rotation only had to be finished.

    Raises:
        ArchiveError: the folder is another database's, or a file lacks rows.
        SealingError: the keys are not those of this database, or not in a file.
    """
    archived.check_owner(store, folder, unfinished=True)
    with archived.changing(store) as connection:
        interrupted = archived.finish_rotation(connection, folder)
    if interrupted:
        return 0
    keys = pseudonym_key.extend(store, source)
    fingerprint = pseudonym_key.fingerprint_of(keys)
    with archived.changing(store) as connection:
        for file in archived.files(folder):
            _rewrite(file, fingerprint, pseudonym_key.renaming(keys))
        count = pseudonym_key.apply(store, connection, keys)
    with archived.changing(store) as connection:
        archived.finish_rotation(connection, folder)
    return count


def _rewrite(file: Path, fingerprint: str, new: Callable[[str], str]) -> None:
    with pq.ParquetFile(file) as source:
        schema = source.schema_arrow
        names = [name for name in COLUMNS if name in schema.names]
        if names:
            target = archived.prepared(file, fingerprint)
            rows = int(source.metadata.num_rows)
            replace_file(target, schema, _batches(source, names, new), rows)


def _batches(
    source: pq.ParquetFile, names: list[str], new: Callable[[str], str]
) -> Iterator[pa.RecordBatch]:
    for batch in source.iter_batches(arrow_rows.ROWS_AT_A_TIME):
        replaced = batch
        for name in names:
            place = batch.schema.get_field_index(name)
            field = batch.schema.field(place)
            replaced = replaced.set_column(place, field, _column(batch[name], new))
        yield replaced


def _column(values: pa.Array, new: Callable[[str], str]) -> pa.Array:
    """Each pseudonym is computed once for a batch."""
    encoded = values.dictionary_encode()
    fresh = pa.array([new(old) for old in encoded.dictionary.to_pylist()], pa.string())
    return fresh.take(encoded.indices)
