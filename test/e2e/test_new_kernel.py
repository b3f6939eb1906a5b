"""A kernel is added in files of its own and one row: the example of CONTRIBUTING.md, in a copy of the sources.

Builds KernelsTest there, from the compiler cache where there is one; without, it takes minutes: DS_TEST_SCOPE=all.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SECTION = (REPOSITORY / "CONTRIBUTING.md").read_text().split("## Add a kernel\n")[1].split("\n## ")[0]
NEW = ["kernels/example/negate.cpp", "kernels/example/negate_reference.cpp", "test/unit/kernels/negate_test.cpp"]
TABLE = "kernels/Kernels.inc"


def example():
    """The row, and each file's text by its path."""
    row = re.search(r"```cpp\n(DS_KERNEL.*?)```", SECTION, re.DOTALL).group(1)
    blocks = re.findall(r"```cpp\n(// ([\w/]+\.cpp): .*?)```", SECTION, re.DOTALL)
    return row, {path: text for text, path in blocks}


def git(folder, *arguments):
    options = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(["git", *options, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_example_names_its_files():
    row, files = example()
    assert sorted(files) == NEW and row.startswith("DS_KERNEL(negate, Negate,")


@pytest.mark.skipif(os.environ.get("DS_TEST_SCOPE") != "all", reason="builds the kernels anew; DS_TEST_SCOPE=all")
def test_a_kernel_is_its_own_files_and_one_row(tmp_path):
    for name in git(REPOSITORY, "ls-files").splitlines():
        if (REPOSITORY / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, tmp_path / name)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "before")
    row, files = example()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    with open(tmp_path / TABLE, "a") as table:
        table.write(row)

    options = ["-DDS_ENABLE_COMPILER=OFF", "-DDS_ENABLE_MPI=OFF"]
    environment = {**os.environ, "CCACHE_BASEDIR": str(tmp_path), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "pch_defines,time_macros"}
    subprocess.run(["cmake", "--preset", "dev", *options], cwd=tmp_path, env=environment, check=True)
    subprocess.run(["cmake", "--build", "build/dev", "--target", "KernelsTest"], cwd=tmp_path, env=environment, check=True)
    tests = "Negate.*:KernelTable.HasAKernelOfEveryRowInBothRegistries"
    done = subprocess.run(["build/dev/bin/KernelsTest", f"--gtest_filter={tests}"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "[  PASSED  ] 2 tests." in done.stdout, done.stdout

    changed = git(tmp_path, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert sorted(line[3:] for line in changed) == sorted([TABLE, *NEW])
    assert git(tmp_path, "diff", "--numstat").split() == [str(len(row.splitlines())), "0", TABLE]
