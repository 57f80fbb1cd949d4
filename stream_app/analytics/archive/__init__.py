"""Score rows as Parquet files that outlive the database."""

__all__ = [
    "archive",
    "archive_pseudonyms",
    "arrow_rows",
    "fact_reader",
]
