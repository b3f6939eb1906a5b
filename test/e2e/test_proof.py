"""`make proof`: plans that call themselves bit-equal end with one rank's weights, and a wrong digest is noticed."""

import os
import re
import sys

import pytest
from conftest import BUILD, REPOSITORY

os.environ["DS_BUILD_DIR"] = str(BUILD)  # proof.py's tools are the tested ones
sys.path.insert(0, str(REPOSITORY / "scripts"))
import proof  # noqa: E402

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
SOME = r"^one rank$|recompute full$|^stage 3$|^schedule zb-h1$|^stage 3, MPI$"


def chosen(pattern):
    return [row for row in proof.rows() if re.search(pattern, row.name)]


def test_bit_equal_plans_have_one_ranks_weights():
    lines, broken = proof.table(list(proof.MODELS) if WHOLE else ["llama"], chosen("" if WHOLE else SOME))
    assert not broken, broken
    assert sum("bit-equal" in line for line in lines) >= 5


def test_a_wrong_digest_is_noticed(monkeypatch):
    digests = iter(["a", "b"])
    monkeypatch.setattr(proof, "digest", lambda path: next(digests))
    lines, broken = proof.table(["llama"], [proof.Row(), proof.Row(2, keys=proof.zero(2))])
    assert len(broken) == 1 and "differs" in lines[-1]


def test_rows_have_names_of_their_own():
    names = [(row.name, row.ranks, row.stages) for row in proof.rows()]
    assert len(set(names)) == len(names)


@pytest.mark.skipif(not WHOLE, reason="the page has all rows: DS_TEST_SCOPE=all")
def test_the_page_has_a_line_for_each_row():
    text = proof.PAGE.read_text()
    for row in proof.rows():
        assert f"| {row.name} | {row.ranks} | {row.stages} |" in text


def test_the_page_of_tests_has_todays_counts():
    import tested
    assert not list(tested.check())


def test_the_page_of_the_checker_has_todays_lines():
    import trusted_lines
    assert not list(trusted_lines.check())


def test_the_page_of_the_house_has_todays_lines():
    import room_lines
    assert not list(room_lines.check())
