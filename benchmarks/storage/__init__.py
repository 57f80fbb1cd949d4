"""Sizes and times of the database, the archive and the dashboards' queries."""

__all__ = ["archive_copies", "archive_views", "dashboards", "open_sessions", "size_parts"]
