"""What concerns any request: limits, security headers, proxies, metrics, identity provider."""

__all__ = [
    "body_limit",
    "connection_timeouts",
    "cookie_sessions",
    "fields",
    "http_errors",
    "identity_provider",
    "metrics",
    "path_segments",
    "proxies",
    "rate_limits",
    "security",
    "sign_in_queue",
    "telemetry",
    "unknown_senders",
]
