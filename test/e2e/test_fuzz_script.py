"""scripts/fuzz.py: its table adds up over runs, and no fuzzer is left out. Needs no build."""

import re
import shutil
import sys

import pytest
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "scripts"))
import fuzz  # noqa: E402


def test_runs_add_up(tmp_path, monkeypatch):
    page = tmp_path / "fuzzing.md"
    shutil.copy(fuzz.PAGE, page)
    monkeypatch.setattr(fuzz, "PAGE", page)
    before, rest = fuzz.read_table(page.read_text()), page.read_text().partition(fuzz.BEGIN)[0]
    for run in (fuzz.Row(600, 590, 1_234_567, 80, 0), fuzz.Row(601, 10, 1_000, 90, 1)):
        fuzz.record("store_fuzzer", run)
    old = before.get("store_fuzzer", fuzz.Row())
    after = fuzz.read_table(page.read_text())
    assert after == {**before, "store_fuzzer": fuzz.Row(old.seconds + 1201, old.processor + 600, old.executions + 1_235_567, 90, old.ended + 1)}
    assert page.read_text().startswith(rest)


def test_a_page_without_a_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "PAGE", tmp_path / "page.md")
    fuzz.PAGE.write_text("no table\n")
    with pytest.raises(SystemExit, match="has no table"):
        fuzz.record("store_fuzzer", fuzz.Row())


def test_every_fuzzer_is_run_and_explained():
    files = {path.parent.name: path.read_text() for path in (REPOSITORY / "test" / "fuzz").glob("*/CMakeLists.txt")}
    built = {name: folder for folder, text in files.items() for name in re.findall(r"^ds_fuzzer\((\w+)", text, re.MULTILINE)}
    assert built == fuzz.FUZZERS
    assert set(re.findall(r"^\| `(\w+)` \|", fuzz.PAGE.read_text(), re.MULTILINE)) == set(built)
