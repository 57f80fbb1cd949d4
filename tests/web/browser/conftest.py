"""Headless Chromium with a real web process."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _missing
from tests.web.browser.scored_web import PASSWORD, ScoredWeb

try:
    from playwright.sync_api import Browser, Page, expect, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]

PATIENCE_MS = 20_000
UNTIL_SORTED_MS = 60_000
"""The wall sorts itself every 20 s, and 30 s after a pointer has stopped on it."""
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first one that is installed; without windows a tab costs a third of the time."""
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="package")
def chromium() -> Iterator["Browser"]:
    """Module scope, because other tests cannot run an event loop while it is open."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if sync_playwright is None or path is None:
        _missing("playwright and Debian's chromium are needed to drive the console")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def live_broker(embedded_broker: str) -> str:
    """The broker shared by all web processes, which use different topic prefixes."""
    return embedded_broker


@dataclass
class Tab:
    """A browser tab; ``console_errors`` includes CSP violations."""

    page: "Page"
    web: ScoredWeb
    console_errors: list[str] = field(default_factory=list)

    def open(self, path: str) -> "Page":
        self.page.goto(self.web.url + path)
        return self.page

    def sign_in(self, name: str, to: str = "/") -> "Page":
        self.open(f"/sign-in?to={to}")
        self.page.fill("[name=name]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.click("main button")
        self.page.wait_for_url(lambda address: "/sign-in" not in address)  # "/" leads elsewhere
        return self.page

    def wait_until_live(self) -> None:
        self.page.wait_for_selector("#stream[data-state=live]")


NewWeb = Callable[..., ScoredWeb]
OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def new_web(chromium: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewWeb]:
    """Make web processes that are stopped at the end of the module."""
    with ExitStack() as stack:

        def new(**changes: Any) -> ScoredWeb:
            folder: Path = tmp_path_factory.mktemp("web")
            with ThreadPoolExecutor(1) as thread:  # Playwright holds this thread's event loop
                web = thread.submit(ScoredWeb, folder, **changes).result()
            stack.callback(web.stop)
            return web

        yield new


@pytest.fixture
def open_tab(chromium: "Browser") -> Iterator[OpenTab]:
    """Open tabs, signed in as ``name``; fails if the browser's console has errors at the end."""
    tabs: list[Tab] = []
    with ExitStack() as stack:

        def new(web: ScoredWeb, name: str | None = "sue", to: str = "/", **options: Any) -> Tab:
            known = web.signed_in.get(name)
            if known:
                options["storage_state"] = known
            context = chromium.new_context(**{"viewport": WIDE, **options})
            stack.callback(context.close)
            tab = Tab(context.new_page(), web)
            tab.page.set_default_timeout(PATIENCE_MS)
            tab.page.on(
                "console",
                lambda line: tab.console_errors.append(line.text) if line.type == "error" else None,
            )
            tab.page.on("pageerror", lambda error: tab.console_errors.append(str(error)))
            tabs.append(tab)
            if known:
                tab.open(to)
            elif name is not None:
                tab.sign_in(name, to)
                web.signed_in[name] = context.storage_state()
            return tab

        yield new
    for tab in tabs:
        assert tab.console_errors == []
