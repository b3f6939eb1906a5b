"""The onnx package's own backend tests of opsets 19 to 25: none gives a wrong result, and docs/onnx.md says by operator how many pass.

DS_UPDATE_DOCS=1 writes the table.
"""

import collections
import os
import re
import sys

import pytest
from conftest import BUILD, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "test" / "conformance" / "onnx"))
import backend_cases  # noqa: E402

PAGE = REPOSITORY / "docs" / "onnx.md"
BEGIN, END = "<!-- backend tests -->\n", "<!-- end -->\n"
# Why a case is refused: the first words that its sentence holds, and what the table says.
REASONS = [(r" is no tensor", "sequences or optionals as inputs"), (r"is complex|ONNX's type", "complex numbers"),
           (r" is (?!no )(u?int\d+|float\d\w*|bfloat16|string|data type \d+)", r"\1"), (r"casts to (\w+)", r"\1"),
           (r"would be (\w+)", r"\1"), (r"depends? on", "values that are fed"),
           (r"operators of domain '([^']*)'", r"domain \1"), (r"the operator is not supported", "not supported")]


def reason_of(sentence: str) -> str:
    for pattern, says in REASONS:
        if found := re.search(pattern, sentence):
            return found.expand(says)
    return re.sub(r"^.*?\(\w+, opset \d+\): ", "", sentence).split(";")[0]


@pytest.fixture(scope="module")
def outcomes(tools, tmp_path_factory):
    """(operator, outcome, sentence) of each case."""
    folder = tmp_path_factory.mktemp("cases")
    cases = backend_cases.write(folder)
    lines = tools(BUILD / "bin" / "run_onnx_cases", folder).stdout.splitlines()
    found = {}
    for line in lines:
        outcome, name, *sentence = re.fullmatch(r"(\w+) (\w+)(?:: (.*))?", line).groups()
        found[name] = (cases[name][0], outcome, sentence[0])
    assert set(found) == set(cases)
    return found


def table(outcomes) -> str:
    by_operator = collections.defaultdict(list)
    for operator, outcome, sentence in outcomes.values():
        by_operator[operator].append((outcome, sentence))
    lines = ["| operator | cases | pass | the others |", "|---|---|---|---|"]
    for operator, cases in sorted(by_operator.items()):
        passed = sum(outcome == "passed" for outcome, _ in cases)
        others = collections.Counter(reason_of(sentence) for outcome, sentence in cases if outcome != "passed")
        lines.append(f"| {operator} | {len(cases)} | {passed} | {', '.join(f'{count} {reason}' for reason, count in sorted(others.items()))} |")
    passed = sum(outcome == "passed" for _, outcome, _ in outcomes.values())
    lines.append(f"| all | {len(outcomes)} | {passed} | |")
    return "\n".join(lines) + "\n"


def test_no_case_is_wrong(outcomes):
    wrong = {name: sentence for name, (_, outcome, sentence) in outcomes.items() if outcome == "failed"}
    assert not wrong


def test_the_page_says_how_many_pass(outcomes):
    head, rest = PAGE.read_text().split(BEGIN)
    written, tail = rest.split(END)
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(head + BEGIN + "\n" + table(outcomes) + "\n" + END + tail)
    else:
        assert written.strip() == table(outcomes).strip()
