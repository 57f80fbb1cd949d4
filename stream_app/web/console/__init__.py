"""Pages for people: server-rendered, plain JavaScript where a page must move."""

from stream_app.web.console.pages import STATIC, attach, router

__all__ = ["STATIC", "attach", "router"]
