"""The report's page as a browser lays it out: on a phone nothing is wider than the screen but what scrolls by itself."""

import html
import json
import re
import shutil
import subprocess

import pytest
from conftest import REPOSITORY, write_config

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
HAZARDS = REPOSITORY / "test" / "e2e" / "hazards"
MEASURE = """<script>onload = () => { const inner = document.querySelector("iframe").contentDocument, width = inner.documentElement.clientWidth;
const clip = element => { for (; element; element = element.parentElement) if (/auto|scroll/.test(getComputedStyle(element).overflowX)) return true; };
const wide = [...inner.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > width + 1 && !clip(e)).map(e => e.outerHTML.slice(0, 80));
const box = inner.querySelector("figure.memory svg").getBoundingClientRect(), output = inner.querySelector("figure.memory output");
const tile = inner.querySelector("figure.memory rect.tile"), place = tile.getBoundingClientRect();
tile.dispatchEvent(new PointerEvent("pointerdown", {clientX: place.left + place.width / 2, clientY: place.top + 1, bubbles: true}));
const said = output.textContent, lit = inner.querySelectorAll("rect.lit").length;
inner.querySelectorAll(".zoom button")[2].click();
const zoomed = inner.querySelector("figure.memory svg").getBoundingClientRect().width / box.width;
document.body.dataset.found = JSON.stringify({page: inner.documentElement.scrollWidth, width, wide, picture: box.width, said, lit, zoomed,
  height: inner.documentElement.scrollHeight}); }</script>"""


def seen(page, folder, width):
    """What a browser makes of a page that is so many pixels wide."""
    outer = folder / f"{page.stem}-{width}.html"
    inside = html.escape(page.read_text(), quote=True)
    outer.write_text(f'<!DOCTYPE html><body>{MEASURE}<iframe style="width:{width}px;height:800px;border:0" srcdoc="{inside}"></iframe></body>')
    dumped = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", outer.as_uri()], capture_output=True, text=True,
                            timeout=120, check=True).stdout
    return json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dumped)[1]))


@pytest.fixture(scope="module")
def page(tools, tmp_path_factory):
    """page(*flags of ds-opt compile) -> the report of tiny Llama."""
    folder = tmp_path_factory.mktemp("page")

    def make(*flags):
        plan = folder / f"{len(list(folder.iterdir()))}.dsplan"
        tools("ds-opt", "compile", HAZARDS / "good-llama", "--config", write_config(folder / "c.json", 1, 4), "-o", plan, *flags)
        tools("ds-opt", "report", plan, "--html", plan.with_suffix(".html"))
        return plan.with_suffix(".html")
    return make


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
@pytest.mark.parametrize("flags", [(), ("--ranks", 8, "--set", "zero_optimization.stage=3"), ("--set", "deepstatic.offload={\".*\": \"cpu\"}")],
                         ids=["one rank", "sharded", "offloaded"])
def test_a_phone_shows_all_of_it(flags, page, tmp_path):
    found = seen(page(*flags), tmp_path, 360)
    assert found["page"] == found["width"] and found["wide"] == [], found
    assert found["picture"] >= 900  # and scrolls: its letters are not smaller than on a desk
    assert re.match(r"[^;]+: [^;]+ bytes at [^;]+; ", found["said"]) and "live bytes" in found["said"], found["said"]  # a touch tells the buffer
    assert found["lit"] >= 1 and found["zoomed"] > 1


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_desk_has_the_names_beside_the_picture(page, tmp_path):
    found = seen(page(), tmp_path, 1400)
    assert found["page"] == found["width"] and found["wide"] == [] and 900 <= found["picture"] <= 1150, found


def test_many_ranks_have_contents_and_are_folded(page):
    text = page("--ranks", 2, "--set", "deepstatic.pipeline.stages=2").read_text()
    links, sections = re.findall(r'<li><a href="#(s\d+)">', text), re.findall(r'<(?:h2|details) id="(s\d+)"', text)
    assert links == sections and len(links) >= 6
    assert text.index("What would help:") < text.index("<nav>") < text.index("<figure")
    assert "<th>step</th><td>about " in text
