"""zero_optimization.offload_optimizer.ratio: a share of the optimizer state leaves, the rest stays and is updated by the device.

`make test` takes pairs of what is combined, DS_TEST_SCOPE=all all of it.
"""

import itertools
import json
import os

import pytest
from conftest import write_config
from offload_plans import compile_plan, report_of, with_links
from pairwise import covering
from test_offload import arena, moments, parameters_there, prepared, require_same_bits, second_places, weights

WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
# Model, ZeRO stage, ranks, stages, micro-batches; where state lies, share that leaves, clipping, whether parameters leave, too.
CROSS = [(model, stage, ranks, stages, accumulation, space, ratio, clipping, parameters) for model, stage, ranks, stages, accumulation, space, ratio, clipping, parameters in itertools.product(
             ("gpt2", "llama"), (0, 1, 2, 3), (1, 2), (1, 2), (1, 2), ("host", "nvme"), (0.8, 0.5), (0, 0.5), (False, True))
         if stages <= ranks and (stage == 0 or ranks > stages)]
BUCKETS = {"reduce_bucket_size": 20000}  # of elements: several, of which some can stay


def keys_of(space, folder, ratio, parameters=False):
    where = {"device": "cpu"} if space == "host" else {"device": "nvme", "nvme_path": str(folder)}
    return {**BUCKETS, "offload_optimizer": {**where, "ratio": ratio}, **(parameters_there(space, folder)["zero_optimization"] if parameters else {})}


@pytest.mark.parametrize("case", CROSS if WHOLE else covering(CROSS), ids=str)
def test_a_share_leaves(tools, tmp_path, prepared, case):
    """At least the share that is asked for, and of whole parameters no more than that takes; the same bits."""
    shape, (space, ratio, clipping, parameters) = case[:5], case[5:]
    model, micro, data = prepared(shape[0])
    plain, before = compile_plan(tools, tmp_path, model, micro, shape, {"gradient_clipping": clipping, "zero_optimization": BUCKETS})
    plan, after = compile_plan(tools, tmp_path, model, micro, shape, {"gradient_clipping": clipping, "zero_optimization": keys_of(space, tmp_path, ratio, parameters)})
    away, all_moments = moments(after, space) - second_places(plan), moments(before, "device")
    assert 0.98 * ratio * all_moments < away < 0.95 * all_moments  # what is small stays anyway
    assert not parameters or weights(after, space) > 0.8 * weights(before, "device")
    require_same_bits(tools, plain, plan, after, data, shape[2])


BY_LAYER = {"deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}}}
MORE = {"by layer": BY_LAYER, "by layer, not clipped": {**BY_LAYER, "gradient_clipping": 0}, "bf16": {"bf16": {"enabled": True}},
        "fp16": {"fp16": {"enabled": True, "initial_scale_power": 40}}, "tokens": {"deepstatic": {"loss_normalization": "tokens"}},
        "sgd": {"optimizer": {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}}, "lamb": {"optimizer": {"type": "Lamb", "params": {"lr": 0.01}}}}


@pytest.mark.parametrize("space", ["host", "nvme"])
@pytest.mark.parametrize("kind", MORE)
def test_a_share_leaves_with(tools, tmp_path, prepared, kind, space):
    """Beside links that let updates run ahead, and with two micro-batches."""
    shape = ("llama", 0, 1, 1, 2)
    model, micro, data = prepared("llama")
    links = with_links(tmp_path, 20, 5)
    plain, before = compile_plan(tools, tmp_path, model, micro, shape, MORE[kind], *links)
    plan, after = compile_plan(tools, tmp_path, model, micro, shape, {**MORE[kind], "zero_optimization": keys_of(space, tmp_path, 0.5)}, *links)
    away = moments(after, space) - second_places(plan)
    assert 0.49 * moments(before, "device") < away < 0.95 * moments(before, "device")
    require_same_bits(tools, plain, plan, after, data, 1)


def test_a_bucket_that_is_too_large_is_said(tools, tmp_path, exported):
    """ZeRO keeps or moves whole buckets: one of all parameters leaves, and ds-opt says so."""
    model = exported("gpt2", "--size", "tiny", "--seq", 64)
    for buckets, said in ((BUCKETS, False), ({}, True)):
        zero = {"stage": 2, **keys_of("host", tmp_path, 0.5)}
        if not buckets:
            del zero["reduce_bucket_size"]
        config = write_config(tmp_path / "c.json", 2, 1, zero_optimization=zero)
        done = tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "-o", tmp_path / "p.dsplan")
        assert ("offload_optimizer.ratio is 0.5" in done.stderr and "all of the state leaves: the smallest bucket has more than the rest of it" in done.stderr) == said


@pytest.mark.parametrize("space", ["host", "nvme"])
def test_nothing_leaves(tools, tmp_path, prepared, space):
    """With ratio 0 the plan has no other memory than the device's."""
    shape = ("gpt2", 0, 1, 1, 1)
    model, micro, data = prepared("gpt2")
    plain, before = compile_plan(tools, tmp_path, model, micro, shape, {})
    plan, after = compile_plan(tools, tmp_path, model, micro, shape, {"zero_optimization": keys_of(space, tmp_path, 0)})
    assert arena(after, "host") == arena(after, "nvme") == 0 and arena(after) == arena(before)
    require_same_bits(tools, plain, plan, after, data, 1)


# ---- "auto"

# Micro-batches, clipping, GB/s of the links: transfers of all state take 0.9 of compute and more, and less than 0.8 of them are hidden.
EXPOSED = [*((1, clipping, 1.5, None) for clipping in (0, 0.5)), *((2, clipping, 20, 1.65) for clipping in (0, 0.5))]


def compile_auto(tools, folder, model, microbatches, clipping, host, nvme, *flags):
    """What ds-opt says that "auto" stands for, why, and rank 0 of the report."""
    links = [{"between": "device-host", "bandwidth_gb_per_s": host, "latency_us": 2}] if host else []
    links += [{"between": "host-nvme", "bandwidth_gb_per_s": nvme, "latency_us": 20}] if nvme else []
    machine = folder / "machine.json"
    machine.write_text(json.dumps({"name": "box", "device": "cpu", "links": links}))
    config = write_config(folder / "auto.json", 1, microbatches, gradient_clipping=clipping, zero_optimization=keys_of("nvme" if nvme else "host", folder, "auto"))
    plan = folder / "auto.dsplan"
    said = tools("ds-opt", "compile", model, "--config", config, "--machine", machine, "-o", plan, *flags)
    before = "auto: zero_optimization.offload_optimizer.ratio is "
    ratio, why = next(line for line in (said.stdout + said.stderr).splitlines() if line.startswith(before)).removeprefix(before).split(" ", 1)
    return float(ratio), why, report_of(tools, plan)


@pytest.fixture(scope="module")
def small(exported):
    return exported("gpt2", "--size", "small", "--seq", 64, "--dropout", "0.1")


@pytest.mark.parametrize("case", EXPOSED, ids=str)
def test_what_cannot_be_hidden_stays(tools, tmp_path, small, case):
    """As much as that takes: of the rest at least 80 % is hidden, and the step is shorter than where all leaves."""
    ratio, why, report = compile_auto(tools, tmp_path, small, *case)
    assert 0.4 <= ratio < 1 and "shorter" in why
    times = report["ranks_detail"][0]["transfer_times"]
    assert times["hidden"] >= 0.8, times["hidden"]
    assert times["alone_seconds"] <= times["compute_seconds"]


def test_auto_stays_within_memory(tools, tmp_path, small):
    """The device's memory bounds what stays: a little more than all leaves takes leaves no room."""
    case = EXPOSED[0]
    _, _, free = compile_auto(tools, tmp_path, small, *case)
    config = json.loads((tmp_path / "auto.json").read_text())
    config["zero_optimization"]["offload_optimizer"]["ratio"] = 1.0
    (tmp_path / "all.json").write_text(json.dumps(config))
    tools("ds-opt", "compile", small, "--config", tmp_path / "all.json", "--machine", tmp_path / "machine.json", "-o", tmp_path / "all.dsplan")
    least = arena(report_of(tools, tmp_path / "all.dsplan"))
    assert least < arena(free)
    ratio, why, report = compile_auto(tools, tmp_path, small, *case, "--device-memory", least + (1 << 20))
    assert ratio == 1 and "fits" in why and arena(report) <= least + (1 << 20)


@pytest.mark.parametrize(("host", "nvme", "why"), [(None, None, "how fast links are"), (100, None, "no step that fits")], ids=["no links", "fast link"])
def test_auto_is_one_where_nothing_is_gained(tools, tmp_path, small, host, nvme, why):
    ratio, said, _ = compile_auto(tools, tmp_path, small, 1, 0, host, nvme)
    assert ratio == 1 and why in said


# ---- bad input


@pytest.mark.parametrize("ratio", [-0.1, 1.5])
def test_shares_are_from_0_to_1(tools, tmp_path, exported, ratio):
    config = write_config(tmp_path / "c.json", 2, 1, zero_optimization=keys_of("host", tmp_path, ratio))
    done = tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64), "--config", config, "-o", tmp_path / "p.dsplan", code=1)
    assert f"zero_optimization.offload_optimizer.ratio is {ratio}; it is the share of the optimizer state that leaves device memory; it takes 0 to 1" in done.stderr
    assert "--set zero_optimization.offload_optimizer.ratio=1.0" in done.stderr and not (tmp_path / "p.dsplan").exists()


def test_several_lengths_take_a_number(tools, tmp_path, exported):
    config = write_config(tmp_path / "c.json", 2, 1, zero_optimization=keys_of("host", tmp_path, "auto"))
    done = tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64), "--config", config, "--dim", "seq=32,64", "-o", tmp_path / "p.dsplan", code=1)
    assert 'ratio is "auto", but --dim seq has several sizes; give one, or write the ratio' in done.stderr
