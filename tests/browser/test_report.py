"""The report of a run in a browser: one file, which loads nothing and runs nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Browse
from tests.browser.world import World

pytestmark = [pytest.mark.browser, pytest.mark.subprocess]


@pytest.fixture
def report(world: World, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    ended = world.remit("report", "--out", str(path))
    assert ended.code == 0, ended.err
    return path


def test_a_report_is_read_from_its_file_alone(report: Path, browse: Browse):
    with browse(report.as_uri()) as seen:
        text = seen.page.inner_text("body")
        pictures = seen.page.locator("svg").count()
        owned = seen.owned()
        seen.pictures("report")

    assert seen.requests == [report.as_uri()]
    assert seen.said == []
    assert pictures >= 2
    assert "<script>" in text  # a tool that the model made up, as letters
    assert "\u202e" not in text
    assert not owned


@pytest.mark.parametrize("width", [320, 380, 800])
def test_a_narrow_report_is_read_without_moving_sideways(report: Path, browse: Browse, width: int):
    with browse(report.as_uri(), width=width) as seen:
        assert seen.too_wide() == []


def test_no_script_runs_in_a_report(report: Path, browse: Browse):
    with browse(report.as_uri()) as seen:
        seen.page.evaluate(
            """() => {
              const inline = document.createElement("script");
              inline.textContent = "window.owned = 1";
              document.body.append(inline);
            }"""
        )

        assert not seen.owned()
        assert [line for line in seen.said if "Content Security Policy" in line]
