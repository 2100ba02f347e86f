"""Opens the page in Chromium: what it shows, and that its controls do what they say."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from taco_cli.config.compare import CompareConfig
from taco_cli.report import compare

pytestmark = pytest.mark.browser
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, realistic: Callable[..., Path]) -> str:
    root = realistic(tmp_path_factory.mktemp("runs") / "ablations", steps=1500)
    return compare(CompareConfig(runs=str(root))).page.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The page, wide and light; fails on any message in the console and on any request."""
    with opened(browser, address) as page:
        yield page


@contextmanager
def opened(browser: Any, address: str, width: int = 1280, dark: bool = False) -> Iterator[Any]:
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: None if request.url == address else trouble.append(request.url[:80]))
    page.goto(address)
    page.wait_for_selector("#chart svg .curve")
    yield page
    context.close()
    assert trouble == []


def curves(page: Any) -> list[str]:
    found: list[str] = page.eval_on_selector_all("#chart .curve", "nodes => nodes.map(node => node.getAttribute('d'))")
    return found


def test_curves_are_named_and_numbered(page: Any) -> None:
    assert len(curves(page)) == 5
    assert page.locator("#chart .end").count() == 5
    assert page.locator("#reading").inner_text() == "At the end"
    assert page.locator("#readout tbody tr").first.inner_text().split()[0] == "mlm"


def test_last_values_are_those_of_the_table(page: Any) -> None:
    in_chart = page.locator("#readout tbody td:nth-child(2)").all_inner_texts()
    in_table = page.locator("#statistics [data-metric]:visible td[data-head='Final value'] .value")
    assert in_chart == in_table.all_inner_texts()
    intervals = page.locator("#readout tbody td:nth-child(3)").all_inner_texts()
    ends = page.locator("#statistics [data-metric]:visible td[data-head='Final value'] .fine").all_inner_texts()
    for half, pair in zip(intervals, ends, strict=True):
        low, high = map(float, pair.split(" to "))
        assert float(half.removeprefix("± ")) == pytest.approx((high - low) / 2, abs=0.006)


def test_all_columns_of_the_statistics_fit_a_desktop(page: Any) -> None:
    shown = page.locator("#statistics [data-metric]:visible")
    assert shown.locator("thead th").last.inner_text() == "Flops to match"
    assert shown.evaluate("node => node.scrollWidth <= node.clientWidth")


def test_axis_switch_redraws(page: Any) -> None:
    before = curves(page)
    page.get_by_text("seconds", exact=True).click()
    assert page.locator("#chart .axis-name", has_text="training time").count() == 1
    assert curves(page) != before
    page.get_by_label("log axis").check()
    assert all("NaN" not in path for path in curves(page))


def test_metric_switch_changes_curves_and_numbers(page: Any) -> None:
    before = curves(page)
    page.select_option("#metric", "val/mlm_accuracy")
    assert curves(page) != before
    shown = page.locator("#statistics [data-metric]:visible")
    assert shown.count() == 1
    assert shown.get_attribute("data-metric") == "val/mlm_accuracy"


def test_arms_and_seeds_can_be_left_out(page: Any) -> None:
    page.get_by_label("taco", exact=True).uncheck()
    assert len(curves(page)) == 4
    row = page.locator("#readout tbody tr").first.locator("td")
    with_all = row.all_inner_texts()
    page.locator("#seeds").get_by_label("2").uncheck()
    assert row.all_inner_texts()[2] == "2"
    assert row.all_inner_texts()[0] != with_all[0]
    page.locator("#seeds").get_by_label("1").uncheck()
    page.locator("#seeds").get_by_label("3").uncheck()
    assert page.locator("#chart .empty").text_content() == "Nothing is selected."


def test_pointer_shows_values(page: Any) -> None:
    at_the_end = page.locator("#readout tbody").inner_text()
    box = page.locator("#chart").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 150)
    assert page.locator("#reading").inner_text().startswith("At step ")
    assert page.locator("#readout tbody").inner_text() != at_the_end
    assert page.locator("#chart .at").count() >= 1
    page.mouse.move(2, 2)
    assert page.locator("#reading").inner_text() == "At the end"


def test_arrow_keys_move_the_reading_position(page: Any) -> None:
    page.locator("#chart").focus()
    page.keyboard.press("Home")
    assert page.locator("#reading").inner_text() == "At step 50"
    page.keyboard.press("ArrowRight")
    assert page.locator("#reading").inner_text() == "At step 100"
    assert page.locator("#chart").get_attribute("aria-valuetext").startswith("step 100: mlm ")
    page.keyboard.press("Escape")
    assert page.locator("#reading").inner_text() == "At the end"


def test_every_control_is_reached_by_keyboard(page: Any) -> None:
    page.locator("#metric").focus()
    seen = set()
    for _ in range(16):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.name || 'arm or seed'"))
    assert {"axis", "log", "whole", "singles", "chart", "arm or seed"} <= seen


def test_curves_as_a_table(page: Any) -> None:
    page.get_by_text("The curves as a table").click()
    assert page.locator("#values tbody tr").count() == 20
    assert page.locator("#values thead th").all_inner_texts()[:2] == ["steps", "mlm"]


@pytest.mark.parametrize("width", [360, 768, 1280, 2200])
def test_nothing_runs_out_of_the_window(browser: Any, address: str, width: int) -> None:
    with opened(browser, address, width) as page:
        page.evaluate("document.querySelectorAll('details').forEach(node => node.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("#chart .curve").count() == 5


def test_dark_page_is_dark(browser: Any, address: str) -> None:
    script = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    with opened(browser, address, dark=True) as page:
        assert max(page.evaluate(script)) < 60
    with opened(browser, address) as page:
        assert min(page.evaluate(script)) > 200
