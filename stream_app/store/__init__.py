"""The source of truth: SQLAlchemy tables, idempotent upserts, one transaction a batch."""
