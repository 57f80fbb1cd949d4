"""What timers do beside the batches: reloading, erasing, ending old states, health."""

__all__ = [
    "bundle_loading",
    "erasing",
    "health",
    "intent_loading",
    "left_bundles",
    "requested_erasure",
    "rule_loading",
    "tasks",
    "timers",
]
