"""How long data stays: retention, holds, erasure, archive, subject access."""

__all__ = [
    "archived",
    "archived_rows",
    "encrypting",
    "erasure",
    "erasure_plans",
    "erasure_receipts",
    "holds",
    "reporting_months",
    "restricted",
    "retention",
    "rollup_marks",
    "service_facts",
    "subject_access",
]
