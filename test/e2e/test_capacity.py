"""docs/capacity.md: the claims of bench/capacity.py, whose largest plans take minutes: all of them with DS_TEST_SCOPE=all."""

import os
import subprocess
import sys

import pytest
from conftest import FOLDERS, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "bench"))
import capacity  # noqa: E402

PAGE = REPOSITORY / "docs" / "capacity.md"


def test_the_page_has_every_claim():
    rows = [line.split(" | ") for line in capacity.TABLE.search(PAGE.read_text())[0].splitlines()[2:]]
    assert [row[0].removeprefix("| ") for row in rows] == [claim.what for claim in capacity.CLAIMS]


@pytest.mark.skipif(os.environ.get("DS_TEST_SCOPE") != "all", reason="exports of up to 1T parameters take minutes: make test-all")
def test_the_page_has_todays_bytes(tmp_path):
    ended = subprocess.run([sys.executable, REPOSITORY / "bench/capacity.py", "--bin", FOLDERS["ds-opt"]], capture_output=True, text=True, check=False)
    assert ended.stdout.strip() == capacity.TABLE.search(PAGE.read_text())[0].strip(), ended.stderr
