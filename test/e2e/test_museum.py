"""The bug museum (docs/museum): scripts print the numbers of their pages, planted defects are refused by the rules that the pages name.

DS_UPDATE_DOCS=1 writes what ds-opt says into the pages, and the score into the README; the rule of each page is written by hand.
"""

import os
import re
import subprocess
import sys
import textwrap

import museum_defects
import numpy
import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file

MUSEUM = REPOSITORY / "docs" / "museum"
README = MUSEUM / "README.md"
PAGES = sorted(MUSEUM.glob("[0-9][0-9]-*.md"))
NAMES = [page.stem for page in PAGES]
UPDATE = os.environ.get("DS_UPDATE_DOCS") == "1"
ACCEPTED = "accepted today"
ROW = re.compile(r"^\| ([a-z ]+) \| (.*) \|$", re.M)
SCORE = re.compile(r"(?<=<!-- score -->\n).*(?=<!-- end of the score -->)", re.S)


def facts(page) -> dict:
    return dict(ROW.findall(page.read_text()))


def title(page) -> str:
    return page.read_text().splitlines()[0].removeprefix("# ")


def place_of(page, heading):
    """Of the text of the first code block below a heading."""
    return re.search(rf"^## {heading}\n.*?^```\n(.*?)^```$", page.read_text(), re.S | re.M)


def block(page, heading) -> str:
    return place_of(page, heading).group(1)


def update(page, heading, text):
    begin, end = place_of(page, heading).span(1)
    page.write_text(page.read_text()[:begin] + text + page.read_text()[end:])


def masked(text) -> str:
    """Numbers of commands, buffers and calls change with every pass that is added."""
    return re.sub(r"\d+", "#", " ".join(text.split()))


def score() -> str:
    rows = [facts(page) for page in PAGES]
    accepted = sum(row["refused by"] == ACCEPTED for row in rows)
    lines = [f"{len(PAGES)} exhibits: {len(PAGES) - accepted} planted defects are refused, {accepted} "
             f"{'is' if accepted == 1 else 'are'} accepted today.", "",
             "| exhibit | report | class | planted defect | refused by |", "|---|---|---|---|---|"]
    for page, row in zip(PAGES, rows):
        number, name = title(page).split(": ", 1)
        refused = f"**{ACCEPTED}**" if row["refused by"] == ACCEPTED else row["refused by"]
        lines.append(f"| [{number}]({page.name}): {name} | {row['report']} | {row['class']} | {row['planted defect']} | {refused} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def plans(tools, tmp_path_factory):
    """plans("zero2") -> a right plan's file; each is compiled once."""
    folder, made = tmp_path_factory.mktemp("museum"), {}

    def compiled(name):
        if name not in made:
            model, ranks, micro, stage, zero, own, export = museum_defects.PLANS[name]
            source = REPOSITORY / "test/e2e/hazards" / f"good-{model}"
            if export:
                (folder / "module.py").write_text(export)
                source = folder / name
                tools("export.py", "module:build", "--out", source, env={**os.environ, "PYTHONPATH": str(folder)})
            config = write_config(folder / f"{name}.json", 1, micro, gradient_clipping=0.5, deepstatic=own,
                                  zero_optimization={"stage": stage, **zero})
            made[name] = folder / f"{name}.dsplan"
            tools("ds-opt", "compile", source, "--config", config, "--ranks", ranks, "-o", made[name])
        return made[name]

    return compiled


@pytest.mark.parametrize("name", museum_defects.PLANS)
def test_the_plans_are_right(name, tools, plans):
    tools("ds-opt", "verify", plans(name))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_script_prints_the_numbers_of_its_page(page):
    script = MUSEUM / f"{page.stem.replace('-', '_')}.py"
    assert len(script.read_text().splitlines()) <= 31, "thirty lines and what it is"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=True,
                             env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}).stdout
    wrong, right = (re.fullmatch(rf"{word}: (.*) (\S+)", line).groups() for word, line in zip(("wrong", "right"), printed.splitlines()))
    assert wrong[1] != right[1] and len(printed.splitlines()) == 2
    if UPDATE:
        update(page, "The number", printed)
    assert block(page, "The number") == printed


@pytest.fixture
def broken(plans, tmp_path):
    """broken(page) -> the page's plan with its defect planted, and the plan as it was."""
    def plant(page):
        name, defect = museum_defects.EXHIBITS[page.stem]
        plan = read_plan(plans(name))
        before = plan.SerializeToString(deterministic=True)
        defect(plan)
        assert plan.SerializeToString(deterministic=True) != before
        return write_plan(tmp_path / "broken.dsplan", plan), plans(name)

    return plant


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_defect_is_judged_as_its_page_says(page, tools, broken):
    plan, _ = broken(page)
    accepted = facts(page)["refused by"] == ACCEPTED
    done = tools("ds-opt", "verify", plan.name, code=0 if accepted else 1, cwd=plan.parent)
    said = done.stdout if accepted else done.stderr
    assert accepted or len(re.findall("^error: ", said, re.M)) == 1
    if UPDATE:
        update(page, "What ds-opt says", wrapped(said))
    assert masked(block(page, "What ds-opt says")) == masked(said)
    if not accepted:
        rule = re.search(r"is refused by the checker \((\w+)\)", said)
        assert facts(page)["refused by"] == (rule.group(1) if rule else "the plan reader"), said


@pytest.mark.parametrize("page", [page for page in PAGES if facts(page)["refused by"] == ACCEPTED], ids=lambda page: page.stem)
def test_what_is_accepted_is_harmful(page, tools, broken, tmp_path):
    """Else it is no defect: other weights come out of it."""
    tokens = numpy.random.default_rng(0).integers(0, 8, (64, 4), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens}, tmp_path / "data.safetensors")
    weights = []
    for plan in broken(page):
        out = tmp_path / f"{plan.stem}.safetensors"
        tools("ds-run", plan, "--data", tmp_path / "data.safetensors", "--steps", 3, "--export", out, "--quiet")
        weights.append(out.read_bytes())
    assert weights[0] != weights[1]


def wrapped(text, width=130) -> str:
    """As pages show it: lines that fit."""
    lines = [textwrap.fill(line, width, subsequent_indent="  " * line.startswith(" "), break_long_words=False, break_on_hyphens=False)
             for line in text.strip().splitlines()]
    return "\n".join(lines) + "\n"


def test_the_score():
    if UPDATE:
        README.write_text(SCORE.sub(lambda _: score(), README.read_text()))
    assert SCORE.search(README.read_text()).group(0) == score()


def test_every_defect_has_a_page():
    assert list(museum_defects.EXHIBITS) == NAMES and len(NAMES) >= 20
    for page in PAGES:
        assert set(facts(page)) == {"report", "class", "planted defect", "refused by"}, page
        assert re.search(r"https://github.com/[\w-]+/[\w.-]+/(issues|pull)/\d+", facts(page)["report"]), page
