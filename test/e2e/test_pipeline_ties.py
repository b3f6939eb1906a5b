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


class Repeated(nn.Module):
    """One layer six times."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, features, targets):
        for _ in range(6):
            features = features + torch.tanh(self.layer(features))
        return nn.functional.cross_entropy(self.out(features), targets)


def compared():
    return Compared(), {"features": torch.randn(2, 8), "targets": torch.randint(4, (2,))}


def repeated():
    return Repeated(), compared()[1]


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """The exported models, and their data."""
    folder = tmp_path_factory.mktemp("features")
    for name in ("compared", "repeated"):
        assert exporter.main([f"{__name__}:{name}", f"--out={folder / name}"]) == 0
    generator = torch.Generator().manual_seed(0)
    samples = {"features": torch.randn(64, 8, generator=generator), "targets": torch.randint(4, (64,), generator=generator)}
    save_file(samples, folder / "data.safetensors")
    return folder


def trained(tools, folder, model, config, ranks, microbatches, **keys):
    """(losses, the weights' bytes) of four steps."""
    config = write_config(config, 2, microbatches, gradient_clipping=0.5, **keys)
    plan, weights = config.with_suffix(".dsplan"), config.with_suffix(".safetensors")
    tools("ds-opt", "compile", folder / model, "--config", config, "--ranks", ranks, "-o", plan)
    metrics, _ = tools.train(plan, folder / "data.safetensors", 4, "--threads", 1, "-n", ranks, "--export", weights)
    return [line["loss"] for line in metrics], weights.read_bytes()


@pytest.mark.parametrize("stage, data, microbatches", [(0, 1, 4), (0, 2, 1), (1, 2, 1), (2, 2, 2), (3, 2, 2)])
def test_a_stage_may_read_a_weight_and_add_no_gradient(tools, features, tmp_path, stage, data, microbatches):
    """One sum alone has the order of one rank, and its bits."""
    cut = trained(tools, features, "compared", tmp_path / "cut.json", 2 * data, microbatches, zero_optimization={"stage": stage},
                  deepstatic={"pipeline": {"stages": 2}})
    assert cut == trained(tools, features, "compared", tmp_path / "one.json", 1, microbatches * data, zero_optimization={"stage": stage})


@pytest.mark.parametrize("stages, data, microbatches, stage", [(2, 1, 1, 0), (2, 1, 4, 0), (3, 1, 2, 0), (3, 2, 1, 0), (2, 3, 2, 2), (2, 2, 1, 3), (3, 2, 2, 1)])
def test_stages_add_up_several_uses_of_a_weight(tools, features, tmp_path, stages, data, microbatches, stage):
    """What a stage adds up is no term of one rank's sum, of which the last stage's uses come first."""
    pipeline = {"stages": stages, "schedule": "zb-h1"}
    losses, _ = trained(tools, features, "repeated", tmp_path / "cut.json", stages * data, microbatches, zero_optimization={"stage": stage},
                        deepstatic={"pipeline": pipeline})
    assert losses == pytest.approx(trained(tools, features, "repeated", tmp_path / "one.json", 1, microbatches * data)[0], rel=1e-6)


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
