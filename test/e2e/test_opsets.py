"""GPT-2 and Llama as torch.onnx.export writes them for each opset that it knows: they train with PyTorch's losses.

Every pair of model, opset and optimization here; all with DS_TEST_SCOPE=all.
"""

import itertools
import os

import architectures
import pytest
from conftest import write_config
from pairwise import covering

NAMES = ["GPT2LMHeadModel", "LlamaForCausalLM"]
BY_NAME = {architecture.name: architecture for architecture in architectures.ARCHITECTURES}
CASES = [(name, opset, optimize) for name, opset, optimize in itertools.product(NAMES, range(18, 26), [True, False])]


@pytest.mark.parametrize("name, opset, optimize", CASES if os.environ.get("DS_TEST_SCOPE") == "all" else covering(CASES))
def test_trains_as_pytorch(name, opset, optimize, tools, tmp_path):
    form = f"torch, opset {opset}{', optimize=False' * (not optimize)}"
    one = architectures.outcome(tools, BY_NAME[name], tmp_path / "model", form)
    assert not one.refusal and one.parameters > 0


@pytest.mark.parametrize("opset", [26, 27])
def test_an_opset_that_torch_does_not_write(opset, tools, tmp_path):
    """torch writes operators of opset 23 and says 18: the file is refused with the way out, before anything else."""
    import onnx
    module = architectures.build(BY_NAME["LlamaForCausalLM"])
    architectures.export(BY_NAME["LlamaForCausalLM"], module, tmp_path, "torch", opset_version=opset)
    proto = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    assert proto.opset_import[0].version == 18 and {"Attention", "RMSNormalization"} & {node.op_type for node in proto.graph.node}
    message = tools.refused("ds-opt", "compile", tmp_path / "model.onnx", "--config", write_config(tmp_path / "c.json", 2),
                            "--attach-loss", "causal-lm", "-o", tmp_path / "m.dsplan")
    assert "the model says opset 18, but the operator is known in opsets 23 to 27" in message
    assert "export with opset_version=20, or any from 18 to 25" in message
