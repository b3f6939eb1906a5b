"""Architectures of transformers that nobody planned for, drawn at random: they train as PyTorch does, and on two ranks as on one.

The draw: the first three of zoo.names(), a seeded shuffle of every class with a language-model or classification head, whose
tiny version (zoo.TINY) has fewer than a million parameters.
"""

import json
import sys

import numpy
import pytest
import torch
import zoo
from conftest import REPOSITORY, write_config
from safetensors.torch import save_file
from torch_reference import initializers, train
from weights import read_weights, require_near

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

DRAWN = ["XGLMForCausalLM", "XLMWithLMHeadModel", "RoFormerForSequenceClassification"]
STEPS, MICRO = 3, 2
NEAR = 5e-4  # of a tensor's largest element; a step of Adam's with a wrong sign is some 3e-2 of it


def test_the_draw():
    order = zoo.names()
    assert [name for name in order if name in DRAWN] == DRAWN and order.index(DRAWN[-1]) == 4


def compiled(tools, folder, path, ranks, **config):
    """A plan of the exported folder."""
    plan = path / f"{ranks}.dsplan"
    tools("ds-opt", "compile", folder, "--config", write_config(path / f"{ranks}.json", MICRO, **config), "--ranks", ranks, "-o", plan)
    return plan


@pytest.mark.parametrize("name", DRAWN)
def test_trains(name, tools, tmp_path):
    """On one rank as PyTorch does; on two with stage 3 as on one, bit by bit."""
    folder, data = tmp_path / "model", tmp_path / "data.safetensors"
    assert exporter.main(["zoo:build", f"--set=name={name}", f"--out={folder}"]) == 0
    module, example = zoo.build(name)
    generator = torch.Generator().manual_seed(4)
    limits = {key: zoo.VOCABULARY if value.dim() > 1 else zoo.CLASSES for key, value in example.items()}
    samples = {key: torch.randint(limits[key], (2 * STEPS * MICRO, *value.shape[1:]), generator=generator) for key, value in example.items()}
    save_file(samples, data)
    plans = [compiled(tools, folder, tmp_path, 1, accumulation=2),
             compiled(tools, folder, tmp_path, 2, zero_optimization={"stage": 3, "stage3_param_persistence_threshold": 10})]
    exports = [plan.with_suffix(".safetensors") for plan in plans]
    one, two = (tools.train(plan, data, STEPS, "--threads", 1, "--export", out)[0] for plan, out in zip(plans, exports))
    assert [line["loss"] for line in two] == [line["loss"] for line in one] and exports[0].read_bytes() == exports[1].read_bytes()

    before, after = initializers(folder), read_weights(exports[0])[0]

    module.load_state_dict(before, strict=False)  # without what the loss does not reach
    expected = train(module.train(), samples, json.loads((tmp_path / "1.json").read_text()), STEPS)
    numpy.testing.assert_allclose([line["loss"] for line in one], expected.losses, rtol=1e-5)  # NaN is none of them
    require_near({key: value for key, value in after.items() if key in expected.weights}, expected.weights, NEAR)
    still = [key for key, value in after.items() if (value == before[key].numpy()).all()]
    assert [key for key in still if (expected.weights.get(key) != before[key].double().numpy()).any()] == [] and len(still) < len(after) / 2
