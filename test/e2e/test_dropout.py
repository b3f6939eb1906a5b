"""Dropout's masks, read from what training does: keep rate, scaling, and the same mask forward and backward.

The weights, factors and rates below are small integers and powers of two, so that every sum is exact in float32 and masks can
be read off without a tolerance.
"""

import json
import math

import numpy
import pytest
from conftest import write_config
from safetensors import numpy as safetensors

# loss = mean(x) * (sum(dropout(a) * c) + sum(dropout(b) * c)): with SGD at rate 1, (a before - a after) / mean(x) is the
# gradient mask * c / (1 - p).
MODULE = '''
import torch, torch.nn as nn, torch.nn.functional as F

class Masks(nn.Module):
    def __init__(self, ratio):
        super().__init__()
        draw = torch.Generator().manual_seed(7)
        self.a = nn.Parameter(torch.randint(1, 5, (256, 512), generator=draw).float())
        self.b = nn.Parameter(torch.randint(1, 5, (256, 512), generator=draw).float())
        self.register_buffer("c", torch.randint(1, 3, (256, 512), generator=draw).float())
        self.ratio = ratio

    def forward(self, x):
        kept = [(F.dropout(w, self.ratio, self.training) * self.c).sum() for w in (self.a, self.b)]
        return x.mean() * (kept[0] + kept[1])

def build(ratio=0.5):
    return Masks(ratio), torch.ones(2, 1)
'''
SHAPE = (256, 512)
SGD = {"type": "SGD", "params": {"lr": 1.0}}


@pytest.fixture(scope="module")
def masks(tools, tmp_path_factory):
    """masks(ratio) -> folder with the exported module; x.safetensors beside it is all ones."""
    root = tmp_path_factory.mktemp("masks")
    (root / "masks.py").write_text(MODULE)
    safetensors.save_file({"x": numpy.ones((16, 1), numpy.float32)}, root / "x.safetensors")
    folders = {}

    def export(ratio):
        if ratio not in folders:
            folders[ratio] = root / f"masks{ratio}"
            tools("export.py", "masks:build", "--set", f"ratio={ratio}", "--out", folders[ratio], cwd=root)
        return folders[ratio]

    export.data = root / "x.safetensors"
    return export


@pytest.fixture(scope="module")
def first_values():
    """a, b and c as build() draws them."""
    space = {}
    exec(MODULE, space)  # noqa: S102 - our own text above
    module = space["Masks"](0.5)
    return {name: value.detach().numpy() for name, value in (*module.named_parameters(), *module.named_buffers())}


class Trained:
    """Weights after each of the first steps, and each step's loss."""

    def __init__(self, tools, plan, data, steps, *options):
        self.weights, self.losses = [], []
        for step in range(1, steps + 1):
            path = plan.with_suffix(f".{step}.safetensors")
            metrics, _ = tools.train(plan, data, step, "--export", path, *options)
            self.weights.append(safetensors.load_file(path))
            self.losses = [line["loss"] for line in metrics]


@pytest.fixture
def trained(tools, masks, tmp_path):
    """trained(ratio, steps, *options, accumulation=1) -> Trained"""
    def run(ratio, steps, *options, accumulation=1, data=None):
        plan = tmp_path / f"{ratio}.{accumulation}.dsplan"
        config = write_config(tmp_path / "ds_config.json", 2, accumulation, SGD)
        tools("ds-opt", "compile", masks(ratio), "--config", config, "--ranks", 1, "-o", plan)
        return Trained(tools, plan, data or masks.data, steps, *options)
    return run


def mask_of(before, after, c, ratio=0.5):
    """The 0/1 mask of a step whose mean(x) is 1; asserts that the gradient is 0 or exactly c / (1 - ratio)."""
    gradient = before - after
    scaled = c * numpy.float32(1 / (1 - ratio))
    assert ((gradient == 0) | (gradient == scaled)).all()
    return gradient != 0


def assert_rate(mask, keep):
    """Within five standard deviations of a binomial."""
    assert mask.size >= 100_000
    assert abs(mask.mean() - keep) < 5 * math.sqrt(keep * (1 - keep) / mask.size)


def assert_independent(one, other, keep):
    """Two masks agree as often as independent draws do: never equal, never complementary."""
    agree = keep ** 2 + (1 - keep) ** 2
    assert abs((one == other).mean() - agree) < 5 * math.sqrt(agree * (1 - agree) / one.size)


def test_keep_rate_scaling_and_replay(trained, first_values):
    """Backward's mask, read from the gradient, is the one that forward's loss was computed with."""
    run, c = trained(0.5, 1), first_values["c"]
    loss = 0.0
    for name in ("a", "b"):
        mask = mask_of(first_values[name], run.weights[0][name], c)
        assert_rate(mask, 0.5)
        loss += 2 * (mask * first_values[name].astype(numpy.float64) * c).sum()
    assert run.losses == [loss]


def test_scale_of_a_ratio_that_is_no_power_of_two(tools, masks, tmp_path, first_values):
    """From weights of 0 a step leaves -gradient, so that 1 / (1 - 0.1) is seen in all its bits."""
    plan, weights, zeros = tmp_path / "m.dsplan", tmp_path / "w.safetensors", tmp_path / "zeros.safetensors"
    safetensors.save_file({name: numpy.zeros(SHAPE, numpy.float32) for name in ("a", "b")}, zeros)
    tools("ds-opt", "compile", masks(0.1), "--config", write_config(tmp_path / "c.json", 2, 1, SGD), "--ranks", 1, "-o", plan)
    tools.train(plan, masks.data, 1, "--weights", zeros, "--export", weights)
    for name in ("a", "b"):
        assert_rate(mask_of(0, safetensors.load_file(weights)[name], first_values["c"], 0.1), 0.9)


def test_every_step_and_op_has_its_own_mask(trained, first_values):
    run, drawn = trained(0.5, 3), []
    for name in ("a", "b"):
        before = first_values[name]
        for weights in run.weights:
            drawn.append(mask_of(before, weights[name], first_values["c"]))
            before = weights[name]
    for i, one in enumerate(drawn):
        assert_rate(one, 0.5)
        for other in drawn[:i]:
            assert_independent(one, other, 0.5)


def test_every_microbatch_has_its_own_mask(trained, first_values, tmp_path):
    """mean(x) is 2 in the first micro-batch and 4 in the second, so their sum tells both masks."""
    data = tmp_path / "x.safetensors"
    safetensors.save_file({"x": numpy.array([[2], [2], [4], [4]], numpy.float32)}, data)
    run = trained(0.5, 1, accumulation=2, data=data)
    single = trained(0.5, 1)
    for name in ("a", "b"):
        # the mean over two micro-batches of x * mask * c * 2, in units of 2 * c: 0, 1, 2 or 3
        sums = (first_values[name] - run.weights[0][name]) / (2 * first_values["c"])
        assert set(numpy.unique(sums)) == {0, 1, 2, 3}
        first, second = sums % 2 == 1, sums >= 2
        assert_rate(second, 0.5)
        assert_independent(first, second, 0.5)
        assert (first == mask_of(first_values[name], single.weights[0][name], first_values["c"])).all(), \
            "the first micro-batch's mask does not depend on how many follow"


def test_seed_decides_the_mask(trained, first_values):
    runs = {name: trained(0.5, 1, *options) for name, options in
            {"default": (), "0": ("--seed", 0), "7": ("--seed", 7), "7 again": ("--seed", 7), "large": ("--seed", 2 ** 63)}.items()}
    mask = {name: mask_of(first_values["a"], run.weights[0]["a"], first_values["c"]) for name, run in runs.items()}
    assert (mask["default"] == mask["0"]).all() and (mask["7"] == mask["7 again"]).all()
    assert runs["7"].losses == runs["7 again"].losses
    for one, other in (("0", "7"), ("0", "large"), ("7", "large")):
        assert_independent(mask[one], mask[other], 0.5)


def evaluate(tools, plan, data) -> float:
    metrics = plan.with_suffix(".eval.jsonl")
    tools("ds-run", plan, "--data", data, "--eval", "--metrics", metrics)
    return json.loads(metrics.read_text().splitlines()[0])["eval_loss"]


def test_evaluation_drops_nothing(tools, masks, tmp_path, first_values):
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", masks(0.5), "--config", write_config(tmp_path / "c.json", 2, 1, SGD), "--ranks", 1, "-o", plan)
    expected = sum((first_values[name].astype(numpy.float64) * first_values["c"]).sum() for name in ("a", "b"))
    assert evaluate(tools, plan, masks.data) == expected


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_models_train_with_dropout(name, tools, exported, text_data, tmp_path):
    """With attention dropout too. Losses are another walk than without, near it, and go down; evaluation is the same."""
    config, losses, evaluations = write_config(tmp_path / "c.json"), {}, {}
    for ratio in (0, 0.1):
        folder = exported(name, "--size", "tiny", "--seq", 64, *(["--dropout", ratio] if ratio else []))
        plan = tmp_path / f"{ratio}.dsplan"
        tools("ds-opt", "compile", folder, "--config", config, "--ranks", 1, "-o", plan)
        losses[ratio] = [line["loss"] for line in tools.train(plan, text_data(64), 20)[0]]
        evaluations[ratio] = evaluate(tools, plan, text_data(64))
    assert numpy.isfinite(losses[0.1]).all()
    assert all(one != other for one, other in zip(losses[0], losses[0.1]))
    numpy.testing.assert_allclose(losses[0.1], losses[0], rtol=0.1)
    assert losses[0.1][-1] < losses[0.1][0] - 0.5
    assert evaluations[0.1] == pytest.approx(evaluations[0], rel=1e-6)
