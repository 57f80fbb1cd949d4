"""Routes that take events: POST and WebSocket."""

__all__ = ["event_socket", "events"]
