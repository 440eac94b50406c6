"""Chromium for the tests, and what each page did there: requests, words on the console, errors. Judges nothing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tests.browser.world import World, new_world
from tests.interop.installing import InstallError, PackageSet, install

DRIVER: Final = PackageSet("browser", ("playwright==1.65.2",))
_SECONDS: Final = 15
_NARROW: Final = 380
_FOUND: Final = pytest.StashKey[InstallError]()


@dataclass
class Seen:
    """A page, and what it did."""

    page: Any
    requests: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])

    def asked(self, request: Any) -> None:
        """Take note of a request."""
        self.requests.append(str(request.url))

    def told(self, message: Any) -> None:
        """Take note of a line on the console."""
        self.said.append(f"{message.type}: {message.text}")

    def failed(self, error: Any) -> None:
        """Take note of an error that nothing caught."""
        self.said.append(f"error: {error}")

    def hosts(self) -> set[str]:
        """Return whom it asked: the scheme and the host."""
        return {"/".join(url.split("/")[:3]) for url in self.requests}

    def too_wide(self) -> list[str]:
        """Return what of the page would have to be moved sideways to be read."""
        return list(
            self.page.evaluate(
                """() => {
                  const whole = document.scrollingElement;
                  if (whole.scrollWidth <= whole.clientWidth) return [];
                  return [...document.querySelectorAll("body *")]
                    .filter((each) => each.getBoundingClientRect().right > whole.clientWidth)
                    .filter((each) => !each.closest(".wide"))
                    .map((each) => each.outerHTML.slice(0, 120));
                }"""
            )
        )

    def owned(self) -> bool:
        """Return whether any text was taken for code."""
        return bool(self.page.evaluate("window.owned === 1 || document.title.includes('owned')"))

    def pictures(self, name: str) -> None:
        """Leave pictures, where somebody has asked for them."""
        folder = os.environ.get("REMIT_BROWSER_PICTURES", "")
        if not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        before = self.page.viewport_size
        for scheme in ("light", "dark"):
            for width in (1200, _NARROW):
                self.page.emulate_media(color_scheme=scheme)
                self.page.set_viewport_size({"width": width, "height": 900})
                path = str(Path(folder, f"{name}-{scheme}-{width}.png"))
                self.page.screenshot(path=path, full_page=True)
        self.page.set_viewport_size(before)


Browse = Callable[..., AbstractContextManager[Seen]]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install what drives the browser before the first test: its time is not a test's."""
    here = Path(__file__).parent
    if not any(here in item.path.parents for item in session.items):
        return
    try:
        programs = install(DRIVER)
    except InstallError as error:
        session.config.stash[_FOUND] = error
        return
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sys.path.append(str(programs.parent / "lib" / version / "site-packages"))


@pytest.fixture(scope="session")
def chromium(pytestconfig: pytest.Config) -> Generator[Any]:
    """A browser in which every name but this machine's leads to this machine. What is missing fails."""
    if _FOUND in pytestconfig.stash:
        pytest.fail(str(pytestconfig.stash[_FOUND]), pytrace=False)
    named = os.environ.get("REMIT_CHROMIUM", "")
    program = named or shutil.which("chromium") or shutil.which("google-chrome") or ""
    if not program:
        pytest.fail("there is no chromium: apt-get install chromium", pytrace=False)
    driving: Any = import_module("playwright.sync_api")  # not where pyright looks
    with driving.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program,
            args=["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1"],
        )
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium: Any) -> Browse:
    """Open a page of a fresh profile at an address."""

    @contextmanager
    def opened(url: str, *, width: int = 1200) -> Generator[Seen]:
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(_SECONDS * 1000)
        page = context.new_page()
        seen = Seen(page)
        page.on("request", seen.asked)
        page.on("console", seen.told)
        page.on("pageerror", seen.failed)
        try:
            page.goto(url)
            yield seen
        finally:
            context.close()

    return opened


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project with hostile words, and one run of it that has ended: nobody could be asked."""
    made = new_world(tmp_path_factory.mktemp("browser"))
    ended = made.remit("run", "brief.toml", "--quiet", *made.approved())
    assert "E-" in ended.err or ended.code == 0, ended
    return made
