"""The simulation (docs/simulation.md): planted bugs are found, a seed is replayed exactly, the sources are the product's.

That the runtime itself holds under seeds 0 to 2999 is a test of ctest's list. DS_UPDATE_DOCS=1 writes the page's table.
"""

import os
import re
import subprocess
import sys

import pytest
from conftest import BUILD, REPOSITORY

TOOL = BUILD / "bin" / "simulate"
PAGE = REPOSITORY / "docs" / "simulation.md"
SEEDS = 3000
HEAD = "| bug | what it does | seed | what is seen |\n|---|---|---|---|\n"
sys.path.insert(0, str(REPOSITORY / "test" / "simulation"))
from edits import PLANTED  # noqa: E402

if not TOOL.exists():
    pytest.fail(f"{TOOL} is missing; build it by scripts/build.sh dev simulate", pytrace=False)


def simulate(*arguments, seconds=120):
    done = subprocess.run([str(a) for a in (TOOL, *arguments)], capture_output=True, text=True, timeout=seconds)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def found():
    """bug -> (seed that found it, what was wrong)."""
    rows = {}
    for bug in PLANTED:
        code, output = simulate("--planted", bug, "--seeds", f"0-{SEEDS - 1}")
        seed = re.search(r"^seed (\d+) \((.*)\): (.*)$", output, re.MULTILINE)
        rows[bug] = (int(seed[1]), seed[3].split(":")[0]) if code == 1 and seed else None
    if os.environ.get("DS_UPDATE_DOCS"):
        lines = "".join(f"| `{bug}` | {PLANTED[bug][0]} | {row[0]} | {row[1]} |\n" for bug, row in rows.items() if row)
        text = PAGE.read_text()
        PAGE.write_text(text[: text.index("| bug | what it does |")] + HEAD + lines)
    return rows


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_bug_is_found(found, bug):
    assert found[bug] is not None, f"no seed below {SEEDS} finds it"


def test_page_lists_the_planted_bugs():
    assert re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text().partition(HEAD)[2], re.MULTILINE) == list(PLANTED)


def test_seed_is_replayed_exactly(found):
    bug, (seed, broken) = next(iter(found.items()))
    first, second = (simulate("--planted", bug, "--seed", seed) for _ in range(2))
    assert first == second
    assert first[0] == 1 and f"seed {seed} (" in first[1] and broken in first[1]


def test_edit_that_no_longer_fits_is_named(tmp_path):
    file = "runtime/device/Counter.h"
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text((REPOSITORY / file).read_text().replace("changes_.notify();", "tell();"))
    script = ("import sys, simulated_sources as s; from pathlib import Path; "
              "s.HOOKS.clear(); bug = 'event-wakes-nobody'; one = s.PLANTED[bug]; s.PLANTED.clear(); s.PLANTED[bug] = one; s.main()")
    done = subprocess.run([sys.executable, "-B", "-c", script, tmp_path, tmp_path / "out", file], capture_output=True, text=True,
                          cwd=REPOSITORY / "test" / "simulation", timeout=60)
    assert done.returncode == 1
    assert "edits.py, event-wakes-nobody: runtime/device/Counter.h has this text 0 times, not once" in done.stderr
