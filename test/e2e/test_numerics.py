"""--check-numerics: infinities of masks pass by; the first that anything else made is named, and each NaN."""

import warnings

import pytest
import torch
from conftest import ON_GPU, write_config
from safetensors.torch import save_file

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
LEAST = torch.finfo(torch.float32).min


class Net(torch.nn.Module):
    def __init__(self, loss):
        super().__init__()
        self.layer, self.of = torch.nn.Linear(4, 4, bias=False), loss

    def forward(self, x, mask):
        return self.of(self.layer(x), mask)


def nothing_seen(scores, mask):
    """Two least numbers make an infinity, as of a causal mask and padding."""
    scores = scores + (1 - mask) * LEAST + (1 - mask) * LEAST
    return (scores.softmax(-1) * scores.clamp(min=-9)).mean()


CASES = {
    "filled": (lambda scores, mask: (scores.masked_fill(mask == 0, -torch.inf).softmax(-1) ** 2).mean(), None),
    "added": (lambda scores, mask: ((scores + torch.where(mask == 0, -torch.inf, 0.0)).softmax(-1) ** 2).mean(), None),
    "least numbers": (nothing_seen, None),
    "of the data": (lambda scores, mask: ((scores + mask.log()).softmax(-1) ** 2).mean(), "infinity"),  # log(0), which no mask made
    "overflow": (lambda scores, mask: (scores * 1e30).exp().mean(), "infinity"),
    "division": (lambda scores, mask: (scores / mask).mean(), "infinity"),
    "NaN": (lambda scores, mask: (scores.masked_fill(mask > -1, -torch.inf).softmax(-1) ** 2).mean(), "NaN")}


@pytest.mark.parametrize("name", CASES)
def test_the_first_value_that_is_no_masks_is_named(name, tools, tmp_path):
    loss, found = CASES[name]
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(Net(loss), (torch.randn(2, 4), torch.ones(2, 4)), tmp_path / "m.onnx", dynamo=False, opset_version=17,
                          training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, input_names=["x", "mask"], output_names=["loss"],
                          dynamic_axes={"x": {0: "batch"}, "mask": {0: "batch"}})
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", write_config(tmp_path / "c.json", micro=2), "-o", tmp_path / "m.dsplan")
    save_file({"x": torch.randn(2, 4), "mask": torch.tensor([[1.0, 1, 0, 0], [1, 0, 1, 1]])}, tmp_path / "d.safetensors")
    run = ["ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "d.safetensors", "--steps", 1, "--check-numerics", "--quiet"]
    if found is None:
        tools(*run)
    else:
        said = tools.refused(*run)
        assert "--check-numerics: in micro-batch 0 it wrote" in said and found in said, said
