"""Forward graphs of transformers' architectures, as its own exporter and torch's write them: ds-opt attaches the loss, finds optimized weights
by their values, and trains them as PyTorch does. With their own losses models/export.py finds PyTorch's gradients.

A few of them here; all with DS_TEST_SCOPE=all. models/zoo.json has what came of each; docs/architectures.md and `ds-opt zoo` show it.
"""

import json
import os
import sys

import architectures
import pytest
from conftest import BINARIES, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

FEW = ["LlamaForCausalLM", "ViTForImageClassification", "MambaForCausalLM"]
FEW_GRADIENTS = ["ViTForImageClassification", "T5ForConditionalGeneration", "DebertaV2ForSequenceClassification"]
BY_NAME = {architecture.name: architecture for architecture in architectures.ARCHITECTURES}
ZOO = json.loads(architectures.ZOO.read_text())
CELLS = {(one["class"], form): cell for one in ZOO["architectures"] for form, cell in one["forms"].items()}


@pytest.mark.parametrize("name,form", [case for case in CELLS if os.environ.get("DS_TEST_SCOPE") == "all" or case[0] in FEW])
def test_trains_as_pytorch_or_is_refused_as_the_page_says(name, form, tools, tmp_path):
    one, cell = architectures.outcome(tools, BY_NAME[name], tmp_path / "model", form), CELLS[name, form]
    assert bool(one.refusal) == ("refused" in cell), f"{one}, but models/zoo.json says: {cell}"
    if one.refusal:
        assert architectures.reason_of(cell["refused"]) == architectures.reason_of(one.refusal)
    else:
        assert cell["weights"] == one.parameters


@pytest.mark.parametrize("name", BY_NAME if os.environ.get("DS_TEST_SCOPE") == "all" else FEW_GRADIENTS)
def test_gradients_are_pytorchs(name, tmp_path, capsys, monkeypatch):
    """With its own loss, through models/export.py, which compares each parameter's."""
    monkeypatch.setenv("PATH", f"{BINARIES}{os.pathsep}{os.environ['PATH']}")
    assert exporter.main(["architectures:with_loss", f'--set=name="{name}"', f"--out={tmp_path / 'model'}"]) == 0
    said = capsys.readouterr()
    notes = [line for line in said.err.splitlines() if line.startswith("note: ") and "the backward written by hand is the derivative" not in line]  # BLOOM's GELU
    assert "gradients: those of PyTorch, largest relative difference" in said.out and not notes, said


def test_all_are_there_and_enough_of_them_train():
    assert [(one["class"], one["kind"], one["attach_loss"]) for one in ZOO["architectures"]] == [
        (one.name, one.kind, one.loss) for one in architectures.ARCHITECTURES] and len(BY_NAME) >= 40
    assert sum(any("refused" not in cell for cell in one["forms"].values()) for one in ZOO["architectures"]) >= 34


def test_the_page_is_written_from_the_same_file():
    assert architectures.ZOO.read_text() == architectures.zoo_text(ZOO)
    assert architectures.PAGE.read_text() == architectures.page(ZOO)


def test_ds_opt_zoo_prints_it(tools):
    assert json.loads(tools("ds-opt", "zoo", "--format", "json").stdout) == ZOO
    lines = tools("ds-opt", "zoo").stdout.splitlines()
    shown = {line.split()[0]: line for line in lines[1:-1]}
    assert len(shown) == len(BY_NAME) + 1  # and the head
    for one in ZOO["architectures"]:
        line = shown[one["class"]]
        assert one["attach_loss"] in line and line.count("refused") == sum("refused" in cell for cell in one["forms"].values())
    assert "zoo can write text and json" in tools.refused("ds-opt", "zoo", "--format", "html")
