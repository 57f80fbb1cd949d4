"""The pure core: windows, session aggregates, risk and alerts.

No Kafka, SQL, ONNX, clock or random numbers: time comes from the events, scores from a port. The
same log always gives the same state, so the stream equals an offline run.

Start at ``pipeline.Pipeline``; ``session.Session`` is the aggregate behind it, and ``ports``
defines the core's dependencies.
"""

__all__ = [
    "alerting",
    "approaches",
    "baselines",
    "batch",
    "consent",
    "crisis",
    "empathy",
    "encodings",
    "environment",
    "exchanges",
    "head_variables",
    "heads",
    "intent_file",
    "intent_variables",
    "intents",
    "languages",
    "miti",
    "origin",
    "outcomes",
    "perceived",
    "pipeline",
    "ports",
    "practice",
    "recorded_session",
    "reporting_months",
    "restrictions",
    "routes_file",
    "routing",
    "rule_file",
    "rule_trial",
    "rules",
    "scorecards",
    "scoring_bundles",
    "session_bundles",
    "session_state",
    "shadow",
    "state_layout",
    "suppression",
    "variable_words",
    "variables",
    "watch",
    "window",
    "yaml_file",
]
