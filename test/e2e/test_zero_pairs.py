"""Features of ZeRO together: such plans are proven, and train as one rank does."""

import numpy
import pytest
from conftest import write_config
from safetensors.numpy import load_file, save_file
from test_user_modules import export
from weights import require_near

STEPS = 3
CPU = {"device": "cpu"}
CASES = {
    # Two gradients that are one sum, in one bucket and in two.
    "one sum": (2, {"zero_optimization": {"stage": 2}}),
    "one sum, two buckets": (3, {"zero_optimization": {"stage": 3, "reduce_bucket_size": 1, "stage3_param_persistence_threshold": 0}}),
    # A gradient that is a block by itself is rounded where it is computed.
    "rounded alone": (2, {"zero_optimization": {"stage": 2, "reduce_bucket_size": 64}, "communication_data_type": "bf16"}),
    "rounded alone, sharded": (2, {"zero_optimization": {"stage": 3, "reduce_bucket_size": 64, "stage3_param_persistence_threshold": 0},
                                   "communication_data_type": "fp16"}),
    # Other ranks' slices are of other parameters than the first rank's, or padding alone.
    "rounded slices": (3, {"zero_optimization": {"stage": 2, "reduce_bucket_size": 2048, "offload_param": CPU},
                           "communication_data_type": "bf16", "gradient_accumulation_steps": 2}),
    # A norm's kernel writes two gradients into two buckets, and ranks other than the first follow some of their bytes.
    "two of a norm": (2, {"zero_optimization": {"stage": 2, "reduce_bucket_size": 2048, "offload_param": CPU}}),
    "small moments": (3, {"zero_optimization": {"stage": 1, "reduce_bucket_size": 64, "offload_optimizer": CPU, "offload_param": CPU}}),
    "small moments, delayed": (4, {"zero_optimization": {"stage": 2, "reduce_bucket_size": 64, "offload_optimizer": CPU, "offload_param": CPU},
                                   "deepstatic": {"delayed_update": True}}),
    # Squares are of the sum over the ranks, which the update makes.
    "rounded, in files": (2, {"zero_optimization": {"stage": 0, "reduce_bucket_size": 64,
                                                    "offload_optimizer": {"device": "nvme", "nvme_path": "NVME"}},
                              "communication_data_type": "fp16"}),
    # The sum over the ranks is made in the backward, so the host does not add up the embedding's gradient there.
    "rounded, early": (2, {"zero_optimization": {"stage": 0, "reduce_bucket_size": 1024, "overlap_comm": True, "offload_optimizer": CPU},
                           "communication_data_type": "bf16"})}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    export("shared_sums", (), folder / "model")
    tokens = numpy.random.default_rng(0).integers(0, 64, (32, 2, 6), dtype=numpy.int64)
    save_file({"tokens": tokens[:, 0].copy(), "targets": tokens[:, 1].copy()}, folder / "data.safetensors")
    return folder


def trained(tools, model, folder, ranks, accumulation, **keys):
    """(losses, weights) of a plan with clipping."""
    config = write_config(folder / f"{ranks}.json", 1, accumulation, gradient_clipping=0.5, **keys)
    plan, out = folder / f"{ranks}.dsplan", folder / f"{ranks}.safetensors"
    tools("ds-opt", "compile", model / "model", "--config", config, "--ranks", ranks, "-o", plan)
    metrics, _ = tools.train(plan, model / "data.safetensors", STEPS, "--threads", 1, "-n", ranks, "--export", out)
    return [line["loss"] for line in metrics], load_file(out)


@pytest.mark.parametrize("case", CASES)
def test_it_trains_as_one_rank(tools, model, tmp_path, case):
    ranks, keys = CASES[case]
    keys = {"gradient_accumulation_steps": 1, **keys}
    accumulation = keys.pop("gradient_accumulation_steps")
    delays, rounds = "deepstatic" in keys, "communication_data_type" in keys
    offload = keys["zero_optimization"].get("offload_optimizer", {})
    if "nvme_path" in offload:
        keys = {**keys, "zero_optimization": {**keys["zero_optimization"], "offload_optimizer": {**offload, "nvme_path": str(tmp_path)}}}
    losses, weights = trained(tools, model, tmp_path, ranks, accumulation, **keys)
    alone = {"zero_optimization": {"offload_optimizer": CPU}, "deepstatic": keys["deepstatic"]} if delays else {}
    one_losses, one_weights = trained(tools, model, tmp_path, 1, ranks * accumulation, **alone)
    if not rounds:
        assert losses == one_losses
        assert all(numpy.array_equal(weights[name], one_weights[name]) for name in one_weights)
    else:
        assert losses != one_losses and losses == pytest.approx(one_losses, rel=0.02)
        require_near(weights, one_weights, 0.2)
