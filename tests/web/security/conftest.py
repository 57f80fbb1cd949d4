from tests.web.people.conftest import as_, filled

__all__ = ["as_", "filled"]
