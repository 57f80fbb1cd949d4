"""A session's page and what is done there: ratings, disputes, practice, feedback."""

__all__ = [
    "disputes",
    "feedback",
    "interventions",
    "looking",
    "practice",
    "rating",
    "readers",
    "session",
]
