"""What the reference of the passes shows is what they do: the example in each pass' description runs."""

import importlib.util
import os
from pathlib import Path

import pytest

from conftest import FOLDERS, REPOSITORY

SPEC = importlib.util.spec_from_file_location("pass_examples", REPOSITORY / "scripts" / "pass_examples.py")
pass_examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pass_examples)

FILECHECK = Path(os.environ.get("DS_LLVM_BIN", "/usr/lib/llvm-22/bin")) / "FileCheck"
DS_OPT = FOLDERS["ds-opt"] / "ds-opt"
DESCRIPTIONS = pass_examples.descriptions()


@pytest.mark.parametrize("flag", sorted(DESCRIPTIONS))
def test_the_example_is_what_the_pass_does(flag):
    wrong = pass_examples.run(flag, DESCRIPTIONS[flag], DS_OPT, FILECHECK)
    assert not wrong, f"{flag}: {wrong}"


TRANSPOSE = """
```mlir
%t = train.transpose %w by [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
%y = train.matmul %x, %t : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
// becomes
AFTER
```
"""


@pytest.mark.parametrize("after", [
    "%y = train.matmul %w, %x transposed : ...",
    "%y = train.matmul %x, %w : ...",
    "%y = train.matmul %x, %w transposed",
    "%y = train.matmul %x, %w transposed : ...\n%z = train.exp %y : ...",
    "%t = train.transpose %w by [1, 0] : ...\n%y = train.matmul %x, %t : ...",
    "...\n%t = train.exp %w : ...",
], ids=["operands", "attribute", "rest-of-line", "line-too-many", "before", "line-that-is-not-there"])
def test_a_wrong_example_is_found(after):
    flag = "ds-fold-transposes"
    assert not pass_examples.run(flag, TRANSPOSE.replace("AFTER", "%y = train.matmul %x, %w transposed : ..."), DS_OPT, FILECHECK)
    assert pass_examples.run(flag, TRANSPOSE.replace("AFTER", after), DS_OPT, FILECHECK)


def test_a_line_that_the_example_leaves_out_is_found():
    description = """
```mlir
%y = train.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
%g = train.gradient %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
// becomes
%y = train.mul %x, %x : ...
```
"""
    assert "return" in pass_examples.run("ds-expand-gradients", description, DS_OPT, FILECHECK).split("ds-opt's output")[0]


def test_a_description_without_an_example_is_refused():
    assert "0 mlir blocks" in pass_examples.run("ds-fuse-bias", "Adds a bias.", DS_OPT, FILECHECK)
    assert "0 lines" in pass_examples.run("ds-fuse-bias", "```mlir\n%y = train.exp %x\n```", DS_OPT, FILECHECK)
