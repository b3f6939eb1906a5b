"""Architectures of transformers that nobody planned for, drawn at random: they train with PyTorch's losses, or an op is refused by name.

The draw: the first three of zoo.names(), a seeded shuffle of every class with a language-model or classification head, whose
tiny version (zoo.TINY) has fewer than a million parameters.
"""

import re
import sys

import numpy
import pytest
import torch
import zoo
from conftest import REPOSITORY, write_config
from safetensors.torch import save_file
from torch_reference import initializers

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

DRAWN = ["XGLMForCausalLM", "XLMWithLMHeadModel", "RoFormerForSequenceClassification"]
STEPS, MICRO = 3, 2


def test_the_draw():
    order = zoo.names()
    assert [name for name in order if name in DRAWN] == DRAWN and order.index(DRAWN[-1]) == 4


@pytest.mark.parametrize("name", DRAWN)
def test_trains_or_names_the_op(name, tools, tmp_path):
    folder, plan, data = tmp_path / "model", tmp_path / "m.dsplan", tmp_path / "data.safetensors"
    assert exporter.main(["zoo:build", f"--set=name={name}", f"--out={folder}"]) == 0
    config = write_config(tmp_path / "c.json", MICRO)
    done = tools("ds-opt", "compile", folder, "--config", config, "-o", plan, code=None)
    if done.returncode != 0:
        assert done.returncode == 1 and re.search(r"^error: .*node '.*' \(\w+, opset 20\): ", done.stderr), done.stderr
        return
    module, example = zoo.build(name)
    module.load_state_dict(initializers(folder), strict=False)  # without what the loss does not reach
    module.train()
    generator = torch.Generator().manual_seed(4)
    limits = {key: zoo.VOCABULARY if value.dim() > 1 else zoo.CLASSES for key, value in example.items()}
    samples = {key: torch.randint(limits[key], (STEPS * MICRO, *value.shape[1:]), generator=generator) for key, value in example.items()}
    save_file(samples, data)
    metrics, _ = tools.train(plan, data, STEPS)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = module(**{key: value[step * MICRO:(step + 1) * MICRO] for key, value in samples.items()})
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    numpy.testing.assert_allclose([line["loss"] for line in metrics], losses, rtol=1e-5)
