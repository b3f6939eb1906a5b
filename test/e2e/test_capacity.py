"""docs/capacity.md: the tables of bench/capacity.py and bench/ladder.py, whose plans take minutes: all of them with DS_TEST_SCOPE=all."""

import dataclasses
import itertools
import os
import subprocess
import sys

import pytest
from conftest import FOLDERS, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "bench"))
import capacity  # noqa: E402
import ladder  # noqa: E402
from capacity import NARROW_GRADIENTS, Layout  # noqa: E402
from ladder import MODEL, Rung  # noqa: E402

PAGE = REPOSITORY / "docs" / "capacity.md"
needs_time = pytest.mark.skipif(os.environ.get("DS_TEST_SCOPE") != "all", reason="exports of up to 1T parameters and 160 plans take minutes: make test-all")
SOME = (Rung(MODEL, 4, 0, accumulation=4, precision="bf16"), Rung(MODEL, 64, 1), Rung(MODEL, 1024, 1, accumulation=4, precision="bf16"),
        Rung(MODEL, 1024, 2, more=(NARROW_GRADIENTS,), accumulation=4), Rung(MODEL, 1024, 3, accumulation=4, precision="bf16"),
        Rung(MODEL, 64, 1, "optimizer", precision="bf16"), Rung(MODEL, 1024, 3, "optimizer", accumulation=4), Rung(MODEL, 64, 3, "all"))


def tables(name):
    return capacity.section(name).search(PAGE.read_text())[0]


def test_the_page_has_every_claim():
    rows = [line.split(" | ") for line in tables("claims").splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == [claim.what for claim in capacity.CLAIMS]


@needs_time
@pytest.mark.parametrize("bench, name", [("capacity.py", "claims"), ("ladder.py", "ladder")])
def test_the_page_has_todays_bytes(bench, name):
    ended = subprocess.run([sys.executable, REPOSITORY / "bench" / bench, "--bin", FOLDERS["ds-opt"]], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == tables(name).strip() and ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def compiler():
    return capacity.Compiler(FOLDERS["ds-opt"], 300, "ladder_test")


def row_of_page(table, rung):
    start = f"| {' | '.join([*ladder.label(rung), str(table.formula(rung))])} | "
    return next(line.removeprefix(start) for line in tables("ladder").partition(table.title)[2].splitlines() if line.startswith(start)).split(" | ")


@pytest.mark.parametrize("rung", SOME, ids=lambda rung: "-".join([str(rung.ranks), *ladder.label(rung), rung.precision]).replace(", ", "+"))
def test_a_rank_holds_and_sends_what_the_formulas_say(compiler, rung):
    """To 2 %, or less. The other precision's figures are the same, so the page's are."""
    figures = ladder.measure(compiler, rung)
    assert ladder.holds(figures)
    for table in (table for table in ladder.TABLES if table.has(rung)):
        assert row_of_page(table, rung)[ladder.RANKS.index(rung.ranks)].removesuffix(" |") == ladder.cell(table, [figures]), table.title


@pytest.mark.parametrize("stage, other", [(0, 1), (1, 2), (2, 1)])
def test_the_plan_of_another_stage_is_found(compiler, stage, other):
    """It holds more than the other's formulas say, or less without a reason."""
    figures = ladder.measure(compiler, Rung(MODEL, 4, stage, accumulation=4))
    figures.rung = dataclasses.replace(figures.rung, stage=other)
    assert not ladder.holds(figures)


class SmallOnesWhole(Rung):
    """With stage 3's default, by which norms are whole on each rank."""

    def config(self):
        return Layout.config(self)


def test_small_parameters_that_are_whole_are_found(compiler):
    assert not ladder.holds(ladder.measure(compiler, SmallOnesWhole(MODEL, 1024, 3, "optimizer", accumulation=4)))


def test_the_page_marks_no_figure_and_says_why_others_are_lower():
    text = tables("ladder")
    assert "**" not in text
    assert {f"({key})" for key in ladder.REASONS} <= set(itertools.chain(*(line.split() for line in text.splitlines() if line.startswith("|"))))
