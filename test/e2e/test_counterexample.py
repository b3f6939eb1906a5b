"""`ds-opt report --html` of a refused plan: the two commands that nothing orders, and the missing arrow, as a browser sees them."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")


class Figure(HTMLParser):
    """What a reader of the section finds: commands, places, the arrow."""

    def __init__(self, page):
        super().__init__()
        self.commands, self.places, self.arrows = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if "data-command" in attributes:
            self.commands.append(attributes["data-command"])
            if attributes.get("class") == "place":
                self.places.append(attributes["data-command"])
        if attributes.get("id") == "missing":
            self.arrows.append(attributes["stroke"])


@pytest.fixture(scope="module")
def refused(tools, tmp_path_factory):
    """The page of a plan whose feed of micro-batch 2 no longer waits for the readers of micro-batch 0."""
    folder = tmp_path_factory.mktemp("counterexample")
    config = write_config(folder / "config.json", 1, 4)
    path = folder / "race.dsplan"
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "-o", path)
    plan = read_plan(path)
    for routine in plan.roles[0].routines:
        for command in routine.commands:
            if command.HasField("feed"):
                command.ClearField("waits")
    write_plan(path, plan)
    assert "(race)" in tools.refused("ds-opt", "verify", path)
    page = folder / "race.html"
    tools("ds-opt", "report", path, "--html", page)
    return page


def require_counterexample(page):
    figure = Figure(page)
    assert "Refused by the checker (race)" in page
    assert len(figure.places) == 2 and figure.arrows == ["#d62728"], figure.places
    assert any("routine feed" in place for place in figure.places), figure.places
    assert len(figure.commands) > 5


def test_the_page_has_the_two_commands(refused):
    require_counterexample(refused.read_text())


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")
def test_a_browser_shows_the_two_commands(refused):
    dumped = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", refused.as_uri()],
                            capture_output=True, text=True, timeout=120, check=True).stdout
    require_counterexample(dumped)
    assert re.search(r'<svg id="counterexample"', dumped)


def test_a_plan_that_is_proven_has_no_such_section(tools, tmp_path):
    config = write_config(tmp_path / "config.json", 1, 1)
    tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "-o", tmp_path / "p.dsplan")
    tools("ds-opt", "report", tmp_path / "p.dsplan", "--html", tmp_path / "p.html")
    assert "Refused by the checker" not in (tmp_path / "p.html").read_text()
