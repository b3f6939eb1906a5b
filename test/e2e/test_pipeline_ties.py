"""Tied weights cut into stages whose ranks share out state, collectives beside compute or not: every plan passes the checker.

`make test` compiles a subset that covers every pair of (model, schedule, stages, micro-batches, ZeRO stage, overlap, data ranks);
DS_TEST_SCOPE=all compiles the cross. Some are trained, too.
"""

import itertools
import os

import pytest
import torch
from conftest import write_config
from pairwise import covering
from pipeline_trainer import SCHEDULES, Cut, exporter, trainer, zero  # noqa: F401 - trainer is a fixture
from safetensors.torch import save_file
from torch import nn

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"


def cases():
    cross = itertools.product(("gpt2 tied", "bert tied", "gpt2"), SCHEDULES, (2, 4), (1, 4), range(4), (False, True), (1, 2, 3))
    everything = [(model, stages, microbatches, schedule, stage, overlap, data)
                  for model, schedule, stages, microbatches, stage, overlap, data in cross
                  if Cut(stages, microbatches, schedule, stage, data).admissible()]
    return everything if WHOLE else covering(everything)


@pytest.mark.parametrize("model, stages, microbatches, schedule, stage, overlap, data", cases())
def test_plans_pass_the_checker(trainer, model, stages, microbatches, schedule, stage, overlap, data):
    """ds-opt compile runs the checker, and fails where it refuses."""
    cut = Cut(stages, microbatches, schedule, stage, data)
    plan = trainer.compile(model, cut, zero_optimization=zero(cut, overlap_comm=overlap))
    assert trainer.report(plan)["numerics"] == ("reassociated" if "tied" in model else "bit-equal")


# A send of the tied gradients once left before they were summed over the data ranks.
TRAINED = [("gpt2 tied", Cut(2, 4, "1f1b", 0, 2)), ("bert tied", Cut(2, 4, "zb-h1", 1, 2)),
           ("gpt2 tied", Cut(4, 4, "interleaved", 1, 2)), ("bert tied", Cut(4, 1, "gpipe", 0, 2)),
           ("gpt2 tied", Cut(2, 4, "1f1b", 3, 2))]


@pytest.mark.parametrize("model, cut", TRAINED, ids=str)
def test_overlap_changes_no_bit(trainer, model, cut):
    """Losses and weights are near one stage's, whose sum over the tie's uses has another order, and those without overlap to the last bit."""
    results = []
    for overlap in (True, False):
        plan = trainer.compile(model, cut, zero_optimization=zero(cut, overlap_comm=overlap))
        results.append(trainer.run(model, plan, cut.ranks)[:3])
    assert results[0] == results[1]
    trainer.require_near_one_stage(model, cut, results[0])


# --- weights that a stage reads and adds no gradient to


class Compared(nn.Module):
    """The last layer reads the first one's weight; nothing flows back through the comparison."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
        self.out = nn.Linear(8, 4)

    def forward(self, features, targets):
        for layer in self.layers:
            features = features + torch.tanh(layer(features))
        signs = (self.layers[0].weight > 0).to(features.dtype)
        return nn.functional.cross_entropy(self.out(features @ signs), targets)


def compared():
    return Compared(), {"features": torch.randn(2, 8), "targets": torch.randint(4, (2,))}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """The exported model, and its data."""
    folder = tmp_path_factory.mktemp("compared")
    assert exporter.main([f"{__name__}:compared", f"--out={folder / 'model'}"]) == 0
    generator = torch.Generator().manual_seed(0)
    samples = {"features": torch.randn(64, 8, generator=generator), "targets": torch.randint(4, (64,), generator=generator)}
    save_file(samples, folder / "data.safetensors")
    return folder / "model", folder / "data.safetensors"


@pytest.mark.parametrize("stage, data, microbatches", [(0, 1, 4), (0, 2, 1), (1, 2, 1), (2, 2, 2), (3, 2, 2)])
def test_a_stage_may_read_a_weight_and_add_no_gradient(tools, features, tmp_path, stage, data, microbatches):
    """One sum alone has the order of one rank, and its bits."""
    weights = []
    for stages, ranks, accumulation in ((2, 2 * data, microbatches), (1, 1, microbatches * data)):
        config = write_config(tmp_path / f"{stages}.json", 2, accumulation, zero_optimization={"stage": stage}, gradient_clipping=0.5,
                              deepstatic={"pipeline": {"stages": stages}})
        plan = config.with_suffix(".dsplan")
        tools("ds-opt", "compile", features[0], "--config", config, "--ranks", ranks, "-o", plan)
        tools.train(plan, features[1], 4, "--threads", 1, "-n", ranks, "--export", config.with_suffix(".safetensors"))
        weights.append(config.with_suffix(".safetensors").read_bytes())
    assert weights[0] == weights[1]


# --- 16 bits


@pytest.mark.parametrize("model, cut", [("bert", Cut(2, 1, "1f1b", 0, 1)), ("bert", Cut(2, 1, "1f1b", 0, 2)), ("bert", Cut(4, 4, "zb-h1", 3, 2)),
                                        ("bert tied", Cut(2, 1, "gpipe", 1, 2))], ids=str)
def test_norms_before_a_cut_in_bf16(trainer, model, cut):
    """What follows the cut widens the norm's result under the norm's name; the norm's gradient stays in front of it."""
    narrow = {"bf16": {"enabled": True}}
    results = [trainer.run(model, trainer.compile(model, one, **narrow), one.ranks)[:3] for one in (cut, cut.whole())]
    if "tied" in model:
        assert results[0][1] == pytest.approx(results[1][1], rel=1e-4)
    else:
        assert results[0] == results[1]
