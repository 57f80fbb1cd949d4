"""Routes of what people judge: reviews, ratings, disputes, goals, samples, agreement."""

__all__ = [
    "agreement",
    "assignments",
    "disputes",
    "feedback",
    "goals",
    "ratings",
    "reviews",
    "samples",
]
