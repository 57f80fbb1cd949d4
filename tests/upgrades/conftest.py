from tests.commands.conftest import rapport
from tests.store.conftest import empty_url

__all__ = ["empty_url", "rapport"]
