"""Staff's work on sessions: reviews, ratings, disputes, goals, samples for two raters."""

__all__ = [
    "agreement",
    "assignments",
    "calibration_samples",
    "coaching_goals",
    "development",
    "disputes",
    "judged_turns",
    "proposals",
    "ratings",
    "readings",
    "reviews",
    "waiting_work",
]
