"""The arena against the most bytes alive at once: what is lost between the two, which the report names.

`make test` takes small sizes; DS_TEST_SCOPE=all goes up to 7B, without weights.
"""

import json
import os

import pytest
from conftest import write_config

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
TINY = ["--size", "tiny", "--seq", 64]
SMALL = {"gpt2": TINY, "bert": TINY, "llama 160M": ["--size", "160m", "--seq", 256, "--no-weights"]}
# BERT's bias of the predictions is made by no initializer, so it is exported with weights.
LARGE = {"llama": TINY, "gpt2 124M": ["--size", "small", "--seq", 256, "--no-weights"], "bert base": ["--size", "base", "--seq", 256],
         "gpt2 XL": ["--size", "xl", "--seq", 1024, "--no-weights"], "llama 1B": ["--size", "1b", "--seq", 1024, "--no-weights"],
         "llama 7B": ["--size", "7b", "--seq", 2048, "--no-weights"]}
MODELS = {**SMALL, **LARGE} if WHOLE else SMALL
# Recompute: shorter lives of more sizes are harder to pack.
RECOMPUTE = ("none", 20, "full") if WHOLE else ("none", "full")
# One micro-batch in flight and several: limits of what may be lost, of the peak.
ONE, SEVERAL = 0.02, 0.05


@pytest.fixture(scope="module")
def memory(tools, exported, tmp_path_factory):
    """memory(model, recompute, accumulation, ranks, keys) -> what the report says of each rank's device memory."""

    def of(model, recompute, accumulation=1, ranks=1, keys=()):
        folder = tmp_path_factory.mktemp("arena")
        config = write_config(folder / "c.json", 4, accumulation)
        settings = [f"deepstatic.recompute={json.dumps(recompute)}", *keys]
        tools("ds-opt", "compile", exported(model.split()[0], *MODELS[model]), "--config", config, "--ranks", ranks,
              *[option for setting in settings for option in ("--set", setting)], "-o", folder / "p.dsplan")
        report = json.loads(tools("ds-opt", "report", folder / "p.dsplan", "--format", "json", "--all-ranks").stdout)
        devices = [rank["memory"]["device"] for rank in report["ranks_detail"]]
        assert len(devices) == ranks
        return devices

    return of


def lost_share(device):
    """Lost bytes of a byte at the peak; every lost byte has a name."""
    lost = device["arena_bytes"] - device["peak_live_bytes"]
    assert sum(device["lost"].values()) == lost and min(device["lost"].values()) >= 0, device
    return lost / device["peak_live_bytes"]


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.parametrize("recompute", RECOMPUTE)
@pytest.mark.parametrize("model", MODELS)
def test_one_micro_batch_in_flight(memory, model, recompute, accumulation):
    """Forward, backward and update on one time axis."""
    [device] = memory(model, recompute, accumulation)
    assert lost_share(device) <= ONE, device


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("model", [model for model in MODELS if model.startswith("llama ")])
def test_several_micro_batches_in_flight(memory, model, stages):
    keys = [f"deepstatic.pipeline.stages={stages}", 'deepstatic.pipeline.schedule="1f1b"']
    for device in memory(model, "none", 8, stages, keys):
        assert lost_share(device) <= SEVERAL, device


def test_copies_that_wait_long_are_named(memory):
    """With interleaved stages more may be lost, most of it to copies of a value that wait for their micro-batch."""
    keys = ["deepstatic.pipeline.stages=2", "deepstatic.pipeline.chunks=2", 'deepstatic.pipeline.schedule="interleaved"']
    for device in memory("gpt2", "none", 8, 2, keys):
        share, lost = lost_share(device), device["lost"]
        assert lost["idle_slots"] > lost["gaps"] + lost["alignment"], device
        assert share < 0.4, device
