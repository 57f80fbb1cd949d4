"""What people may do, with its checks and its entry in the audit trail.

API, console and command line call the same functions.
"""

__all__ = [
    "account_changes",
    "acting",
    "passwords",
]
