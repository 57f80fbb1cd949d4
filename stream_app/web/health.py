"""How a web process is, for the probes."""

from stream_app.errors import RapportError
from stream_app.store.repository import Store
from stream_app.web.live import Hub


class WebHealth:
    """Ready while the database answers; without the broker, pages still work."""

    def __init__(self, store: Store, hub: Hub) -> None:
        self._store = store
        self._hub = hub

    def not_alive(self) -> list[str]:
        """Whoever answers is alive."""
        return []

    def not_ready(self) -> list[str]:
        """What keeps pages from being served."""
        try:
            self._store.ping()
        except RapportError as problem:
            return [f"store: {problem}"]
        return []

    def live(self) -> dict[str, bool | int]:
        """Where live events stand; for information, not a reason to be unready."""
        return {"reading": self._hub.live, "clients": self._hub.clients}
