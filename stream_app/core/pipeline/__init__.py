"""From a batch of events to scores and alerts. Start at ``pipeline.Pipeline``."""

__all__ = [
    "encodings",
    "pipeline",
    "practice",
    "recorded_session",
    "rule_trial",
    "scoring_bundles",
    "shadow",
]
