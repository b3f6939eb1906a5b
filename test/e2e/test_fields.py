"""Any field of plan.proto, edited at random in plans of all strategies (test/mutation/field_mutations.cpp): what changes the
training is refused, but for fields that docs/fields.md calls trusted or for people.

`make test` edits some; DS_TEST_SCOPE=all edits ten thousand, and DS_UPDATE_DOCS=1 writes the tables of docs/fields.md.
"""

import os
import re
import subprocess

import pytest
from conftest import BUILD, REPOSITORY
from plans_of_all_strategies import small_plans

TOOL = BUILD / "bin" / "field_mutations"
PAGE = REPOSITORY / "docs" / "fields.md"
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
MUTANTS = 10000 if WHOLE else 400
BEGIN, END = "<!-- {} written by DS_UPDATE_DOCS=1 test/e2e/test_fields.py -->\n", "<!-- end -->"


@pytest.fixture(scope="module")
def subjects(tools, tmp_path_factory):
    return small_plans(tools, tmp_path_factory.mktemp("fields"))


def edit(subjects, *options):
    plans, data = subjects
    return subprocess.run([str(word) for word in (TOOL, *plans, "--data", data, *options)], capture_output=True, text=True, timeout=5000)


def between(name):
    begin = BEGIN.format(name)
    head, rest = PAGE.read_text().split(begin)
    body, tail = rest.split(END, 1)
    return head + begin, body, END + tail


def on_page(name, text):
    """What the page has there, written anew by DS_UPDATE_DOCS."""
    head, body, tail = between(name)
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(head + text + tail)
        body = text
    return body


def fields(table):
    """The first column."""
    return re.findall(r"^\| (\w+\.\w+) \|", table, re.MULTILINE)


def test_every_field_has_a_class_on_the_page():
    listed = subprocess.run([str(TOOL), "--list"], capture_output=True, text=True, check=True).stdout
    table = "| field | class | who compares it, or what it is for |\n|---|---|---|\n" + listed
    assert on_page("classes,", table) == table


def test_an_edit_that_changes_the_training_is_refused(subjects):
    done = edit(subjects, "--mutants", MUTANTS)
    assert done.returncode == 0, done.stdout + done.stderr
    if WHOLE:
        assert fields(on_page("kills,", done.stdout)) == fields(done.stdout)  # counts depend on the machine that the plans are for
