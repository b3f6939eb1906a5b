"""scripts/include_graph.py refuses what docs/architecture.md does not allow: each case breaks a scratch copy in one place."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/include_graph.py"
FOLDERS = ("compiler", "core", "dialects", "docs", "kernels", "runtime", "tools")


@pytest.fixture
def copy(tmp_path):
    """The sources, without what is built."""
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def graph(root, *arguments):
    return subprocess.run([sys.executable, SCRIPT, "--root", root, *arguments], text=True, capture_output=True)


def include(root, file, header):
    path = root / file
    path.write_text(f'#include "{header}"\n' + path.read_text())


def test_the_checkout_is_as_the_page_says(copy):
    done = graph(copy, "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forbidden_include(copy):
    include(copy, "runtime/plan/world/Mesh.cpp", "dialects/Plan/PlanOps.h")
    done = graph(copy, "--check")
    assert done.returncode == 1
    assert ("runtime/plan/world/Mesh.cpp:1 includes dialects/Plan/PlanOps.h, but the table of docs/architecture.md does not let runtime/plan/world "
            "include dialects/Plan; ") in done.stderr


def test_a_library_from_outside(copy):
    include(copy, "runtime/executor/Run.h", "mlir/IR/Value.h")
    done = graph(copy, "--check")
    assert done.returncode == 1 and "does not let runtime/executor include MLIR" in done.stderr


def test_a_circle(copy):
    """The table allows each arrow of it, and still it is refused; no graph of it is written."""
    include(copy, "runtime/device/Device.h", "runtime/comm/Transport.h")
    page = copy / "docs/architecture.md"
    row = "| `runtime/device` | "
    assert row in page.read_text()
    page.write_text(page.read_text().replace(row, row + "`runtime/comm`, "))
    done = graph(copy, "--check")
    assert done.returncode == 1
    assert "folders include each other: runtime/comm -> runtime/device -> runtime/comm (" in done.stderr
    assert "runtime/device/Device.h:1 includes runtime/comm/Transport.h" in done.stderr and "does not let" not in done.stderr
    assert graph(copy, "--write").returncode == 1


def test_a_full_folder_and_one_without_a_row(copy):
    for i in range(41):
        (copy / f"core/Many{i}.h").write_text("#pragma once\n")
    (copy / "runtime/attic").mkdir()
    (copy / "runtime/attic/Old.h").write_text("#pragma once\n")
    done = graph(copy, "--check")
    assert done.returncode == 1
    assert "core holds" in done.stderr and "more than 40" in done.stderr
    assert "runtime/attic has no row in the table of docs/architecture.md" in done.stderr


def test_a_row_without_a_folder(copy):
    shutil.rmtree(copy / "runtime/comm/tcp")
    done = graph(copy, "--check")
    assert done.returncode == 1 and "has a row for runtime/comm/tcp, but no folder has that name" in done.stderr


def test_a_graph_that_is_not_the_codes(copy):
    include(copy, "tools/ds-run/Info.h", "runtime/trace/Trace.h")
    page = copy / "docs/architecture.md"
    page.write_text(page.read_text().replace("| `tools/ds-run` | ", "| `tools/ds-run` | `runtime/trace`, "))
    include(copy, "runtime/trace/Trace.h", "core/Error.h")
    page.write_text(page.read_text().replace("| `runtime/trace` | ", "| `runtime/trace` | `core`, "))
    done = graph(copy, "--check")
    stale = "is not the code's; run scripts/include_graph.py --write"
    assert done.returncode == 1 and stale in done.stderr
    assert graph(copy, "--write").returncode == 0
    assert stale not in graph(copy, "--check").stderr
