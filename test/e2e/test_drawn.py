"""Drawn work (docs/drawn.md): every draw gets a plan or a rule's sentence, a sample trains as on one rank, and the page says what was drawn.

DS_UPDATE_DOCS=1 writes the page, with DS_TEST_SCOPE=all that of planted bugs, too.
"""

import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BINARIES, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "test" / "drawn"))
import configs  # noqa: E402
import draw  # noqa: E402
import page  # noqa: E402
import pool  # noqa: E402
import shrink  # noqa: E402
from found import SMALL  # noqa: E402
from planted import PLANTED  # noqa: E402

PAGE = REPOSITORY / "docs" / "drawn.md"
SEED, COUNT, RUNS = 1, 2000, 100
draw.BINARIES = BINARIES


@pytest.fixture(scope="module")
def models():
    pool.export_all()


@pytest.fixture(scope="module")
def drawn(models):
    """What the draws hold; nothing is compiled."""
    table, pairs = draw.Table(), draw.shuffled_pairs(SEED)
    for number in range(COUNT):
        table.count(draw.Draw(SEED, number, pairs))
    return table


def test_every_draw_gets_a_plan_or_a_rule(models):
    each = draw.stride(COUNT, RUNS)
    table = draw.draw_all(SEED, range(COUNT), 2, lambda number: number % each == 0)
    faults = [f"draw.py --seed {SEED} --only {number}: {outcome.sentence}" for number, outcome in table.faults]
    assert not faults, "\n".join(faults)
    assert sum(table.numerics.values()) >= RUNS and set(table.numerics) == {"bit-equal", "reassociated", "lossy"}, table.numerics
    assert table.verdicts["plan"] > 0.8 * COUNT, table.verdicts


@pytest.mark.parametrize("fault", SMALL)
def test_what_was_found_stays_mended(tmp_path, models, fault):
    outcome = draw.judge(tmp_path, *SMALL[fault], runs=True)
    assert outcome.verdict == "plan", outcome


def test_all_pairs_of_keys_are_drawn(drawn):
    assert page.missing_pairs(drawn) == []


def test_every_honoured_key_is_drawn():
    table = (REPOSITORY / "docs" / "config.md").read_text().split("\n## Keys\n")[1].split("\n## ")[0]
    honoured = re.findall(r"^\| `([^`]+)` \|.*\| honoured[^|]*\|$", table, re.MULTILINE)
    assert len(honoured) > 50
    assert [key for key in honoured if key not in configs.AXES and key not in configs.WITHIN] == []


def test_every_pass_that_can_be_left_out_is_drawn():
    header = (REPOSITORY / "compiler" / "passes" / "Passes.h").read_text()
    assert re.findall(r'"(ds-[a-z-]+)"', header.split("optionalPasses = {")[1].split("};")[0]) == configs.OPTIONAL


def test_the_page_says_what_is_drawn(drawn):
    before = PAGE.read_text() if PAGE.exists() else ""
    bugs = before[before.index(page.PLANTED_HEAD):] if page.PLANTED_HEAD in before else page.planted([])
    text = page.page(drawn, COUNT, SEED, draw.LONGEST, draw.STEPS, bugs)
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(text)
    assert PAGE.read_text() == text


@pytest.mark.parametrize("bug", PLANTED)
def test_a_bug_can_be_planted(bug):
    path, _, text, instead = PLANTED[bug]
    assert (REPOSITORY / path).read_text().count(text) == 1 and text != instead


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of the sources and a build of ds-opt and ds-run there, mostly out of the compiler cache where there is one."""
    folder = tmp_path_factory.mktemp("planted")
    for name in subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.splitlines():
        if (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, folder / name)
    subprocess.run(["cmake", "--preset", "dev"], cwd=folder, env=cached(folder), check=True, capture_output=True)
    build(folder, "ds-opt", "ds-run")
    return folder


def cached(folder):
    return {**os.environ, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}


def build(folder, *targets):
    subprocess.run(["cmake", "--build", "build/dev", "--target", *targets], cwd=folder, env=cached(folder), check=True, capture_output=True)


@pytest.mark.skipif(os.environ.get("DS_TEST_SCOPE") != "all", reason="builds the compiler once for each bug; DS_TEST_SCOPE=all")
def test_planted_bugs_are_found(sources, models, monkeypatch):
    monkeypatch.setattr(draw, "BINARIES", sources / "build" / "dev" / "bin")
    rows, missed = [], []
    for bug, (path, what, text, instead) in PLANTED.items():
        right = (sources / path).read_text()
        (sources / path).write_text(right.replace(text, instead))
        build(sources, "ds-opt")
        found = draw.first_fault(SEED, 5000, 2, 4)
        (sources / path).write_text(right)
        if found:
            rows.append((bug, what, found[0], draw.kind_of(found[1].sentence).replace("|", "/")[:160]))
        else:
            missed.append(bug)
    if os.environ.get("DS_UPDATE_DOCS"):
        text = PAGE.read_text()
        PAGE.write_text(text[: text.index(page.PLANTED_HEAD)] + page.planted(rows))
    assert missed == []


def test_a_draw_is_the_same_every_time(models):
    pairs = draw.shuffled_pairs(7)
    assert all(vars(draw.Draw(7, number, pairs)) == vars(draw.Draw(7, number, draw.shuffled_pairs(7))) for number in range(20))


def test_a_fault_is_made_small(models):
    """A made-up fault of attention with ZeRO 2 on several ranks: nothing else is left."""
    source = random.Random(3)
    block = {"heads": 2, "grown": 3, "bias": True, "norm": "rms", "act": "Gelu", "cell": "GRU", "packed": True}
    spec = {"family": "tokens", "width": 48, "tokens": 16, "vocabulary": 96, "head": "tied", "norm": "layer", "positions": True, "frozen": "bias",
            "transposed": True, "shifted": True, "open": False, "ends": "loss", "seed": 5, "order": 3,
            "blocks": [{**block, "kind": kind} for kind in ("mlp", "attention", "recurrent")]}
    fixed = {"ranks": 6, "zero_optimization.stage": 2, "optimizer": "SGD"}
    choice = configs.legal({axis: source.choice(values) for axis, values in configs.AXES.items()} | fixed)

    def fails(small, chosen):
        return any(b["kind"] == "attention" for b in small["blocks"]) and chosen.get("zero_optimization.stage") == 2 and chosen.get("ranks", 1) > 1
    assert fails(spec, choice)
    small, chosen = shrink.shrink(spec, choice, configs.legal, configs.AXES, fails)
    assert [b["kind"] for b in small["blocks"]] == ["attention"] and small["width"] == 4
    assert chosen == {"zero_optimization.stage": 2, "ranks": 2}
