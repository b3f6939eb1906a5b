"""Forward graphs of transformers' architectures, as its own exporter and torch's write them: ds-opt attaches the loss, finds optimized weights
by their values, and trains them as PyTorch does.

A few of them here; all with DS_TEST_SCOPE=all. docs/architectures.md has the table.
"""

import os

import architectures
import pytest

FEW = ["LlamaForCausalLM", "ViTForImageClassification", "MambaForCausalLM"]
BY_NAME = {architecture.name: architecture for architecture in architectures.ARCHITECTURES}
ROWS = [line.strip("| ").split(" | ") for line in architectures.PAGE.read_text().splitlines() if line.startswith("| ")]
FORMS = ROWS[0][3:]
CELLS = {(row[0], form): cell for row in ROWS[1:] for form, cell in zip(FORMS, row[3:])}


@pytest.mark.parametrize("name,form", [case for case in CELLS if os.environ.get("DS_TEST_SCOPE") == "all" or case[0] in FEW])
def test_trains_as_pytorch_or_is_refused_as_the_page_says(name, form, tools, tmp_path):
    one, cell = architectures.outcome(tools, BY_NAME[name], tmp_path / "model", form), CELLS[name, form]
    assert bool(one.refusal) == cell.startswith("refused"), f"{one}, but the page says: {cell}"
    if one.refusal:
        assert cell == f"refused ({architectures.reason_of(one.refusal)})"
    else:
        assert cell.endswith(f", {one.parameters} weights")


def test_the_page_has_all_and_enough_of_them_train():
    assert {row[0] for row in ROWS[1:]} == set(BY_NAME) and len(BY_NAME) >= 40
    assert sum(any(not cell.startswith("refused") for cell in row[3:]) for row in ROWS[1:]) >= 34
