from tests.web.api.conftest import topic

__all__ = ["topic"]
