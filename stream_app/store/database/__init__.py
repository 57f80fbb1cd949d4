"""Connection, tables, rows and statements: what all rooms of the store rest on."""

__all__ = [
    "any_of",
    "audit_chain",
    "audit_subjects",
    "clocks",
    "connection",
    "described",
    "head_columns",
    "judgements",
    "mechanism_means",
    "operator",
    "pages",
    "periods",
    "privacy",
    "rows",
    "secrets",
    "session_locks",
    "statements",
    "tables",
]
