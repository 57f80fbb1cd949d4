"""What people may do, with its checks and its entry in the audit trail.

API, console and command line call the same functions.
"""

__all__ = [
    "access_log",
    "account_changes",
    "acting",
    "bundle_folders",
    "desk",
    "goal_progress",
    "keys",
    "known_intents",
    "mutes",
    "passwords",
    "reader_assignment",
    "review_samples",
    "review_sampling",
    "reviewing",
    "rule_changes",
    "rule_trials",
    "visible",
]
