"""Where a graph is cut that nobody marked up: between the blocks of GPT-2 medium, one tensor at each boundary, whatever its names."""

import json

import onnx
import pytest
from conftest import write_config


@pytest.fixture(scope="module")
def medium(tools, tmp_path_factory):
    """GPT-2 medium without weights."""
    folder = tmp_path_factory.mktemp("medium") / "gpt2"
    tools("export.py", "gpt2", "--size", "medium", "--seq", 64, "--no-weights", "--out", folder)
    return folder


def stages(tools, model, tmp_path):
    plan = tmp_path / "p.dsplan"
    config = write_config(tmp_path / "c.json", micro=1, accumulation=8, deepstatic={"pipeline": {"stages": 4}})
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 4, "-o", plan)
    return json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["pipeline"]["stages_detail"]


def test_cuts_lie_between_blocks(tools, medium, tmp_path):
    found = stages(tools, medium, tmp_path)
    assert [len(stage["sent"]) for stage in found] == [1, 1, 1, 0]
    for before, after in zip(found, found[1:]):
        block, _, rest = after["first_op"].removeprefix("transformer/").partition("/")
        assert block.startswith("h.") and rest.startswith("ln_1/")
        assert before["last_op"].startswith(f"transformer/h.{int(block[2:]) - 1}/"), (before["last_op"], after["first_op"])


def test_names_do_not_matter(tools, medium, tmp_path):
    """The same graph with every node's name and scope taken away is cut at the same values."""
    model = onnx.load(medium / "model.onnx", load_external_data=False)
    for node in model.graph.node:
        node.name = ""
        del node.metadata_props[:]
    (tmp_path / "bare").mkdir()
    onnx.save(model, tmp_path / "bare" / "model.onnx")
    named, bare = stages(tools, medium, tmp_path), stages(tools, tmp_path / "bare", tmp_path)
    for one, other in zip(named, bare):
        assert [value["bytes"] for value in one["sent"]] == [value["bytes"] for value in other["sent"]]
        assert one["forward_seconds"] == pytest.approx(other["forward_seconds"])
