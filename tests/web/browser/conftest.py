"""Headless Chromium before a real web process."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import _missing
from tests.web.browser.stage import PASSWORD, Stage

try:
    from playwright.sync_api import Browser, Page, expect, sync_playwright
except ImportError:
    sync_playwright = None  # type: ignore[assignment]

PATIENCE_MS = 20_000
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="package")
def chromium() -> Iterator["Browser"]:
    """Not for the whole session: as long as it runs, no other test has an event loop."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if sync_playwright is None or path is None:
        _missing("playwright and Debian's chromium are needed to drive the console")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def live_broker(embedded_broker: str) -> str:
    """Stages keep apart by their topics' prefix."""
    return embedded_broker


@dataclass
class Sitting:
    """Somebody at a browser; ``complaints``: errors on its console, CSP violations among them."""

    page: "Page"
    stage: Stage
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> "Page":
        self.page.goto(self.stage.url + path)
        return self.page

    def sign_in(self, name: str, to: str = "/") -> "Page":
        self.open(f"/sign-in?to={to}")
        self.page.fill("[name=name]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.click("main button")
        self.page.wait_for_url(self.stage.url + to)
        return self.page

    def is_live(self) -> None:
        self.page.wait_for_selector("#stream[data-state=live]")


NewStage = Callable[..., Stage]
Sit = Callable[..., Sitting]


@pytest.fixture(scope="module")
def new_stage(chromium: "Browser", tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewStage]:
    """Makes stages that are stopped after the module."""
    with ExitStack() as stack:

        def new(**changes: Any) -> Stage:
            folder: Path = tmp_path_factory.mktemp("stage")
            with ThreadPoolExecutor(1) as aside:  # Playwright holds this thread's event loop
                stage = aside.submit(Stage, folder, **changes).result()
            stack.callback(stage.stop)
            return stage

        yield new


@pytest.fixture
def sit(chromium: "Browser") -> Iterator[Sit]:
    """Seats somebody before a stage; fails if the browser's console complained meanwhile."""
    sittings: list[Sitting] = []
    with ExitStack() as stack:

        def new(stage: Stage, name: str | None = "sue", to: str = "/", **options: Any) -> Sitting:
            known = stage.signed_in.get(name)
            if known:
                options["storage_state"] = known
            context = chromium.new_context(**{"viewport": WIDE, **options})
            stack.callback(context.close)
            sitting = Sitting(context.new_page(), stage)
            sitting.page.set_default_timeout(PATIENCE_MS)
            sitting.page.on(
                "console",
                lambda said: sitting.complaints.append(said.text) if said.type == "error" else None,
            )
            sitting.page.on("pageerror", lambda error: sitting.complaints.append(str(error)))
            sittings.append(sitting)
            if known:
                sitting.open(to)
            elif name is not None:
                sitting.sign_in(name, to)
                stage.signed_in[name] = context.storage_state()
            return sitting

        yield new
    for sitting in sittings:
        assert sitting.complaints == []
