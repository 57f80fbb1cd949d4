"""People who sign in, what they may see, and the audit trail of what they did."""

__all__ = [
    "audit",
    "people",
    "pins",
    "presence",
    "roles",
    "saved_views",
    "sign_in_throttle",
    "studies",
]
