"""What is frozen and lies in its file in 16 bits is held so: half the bytes, and the same bits of everything else."""

import re
import subprocess
import sys

import numpy
import onnx
import pytest
import torch
from conftest import REPOSITORY, write_config
from onnx import numpy_helper
from plan_files import read_plan, write_plan
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as torch_save

SEQ, RANK, STEPS, MICRO, ACCUMULATION = 16, 2, 3, 2, 2
SAMPLES = STEPS * ACCUMULATION * MICRO * 2
STORED = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
MATRIX = re.compile(r"(proj|c_fc|c_attn|mlp\.\w+)\.weight$")  # what products read
WITHOUT = ["--without", "ds-narrow-frozen"]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def base(request, exported, tmp_path_factory):
    """(export of a model, {type: its weights in that type}, data); all weights are multiples that float16 and bfloat16 hold."""
    folder = exported(request.param, "--size", "tiny", "--seq", SEQ)
    place = tmp_path_factory.mktemp("weights")
    initializers = {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "model.onnx").graph.initializer}
    weights = {name: torch.from_numpy(value.copy()).bfloat16().half().float() for name, value in initializers.items() if value.dtype == numpy.float32 and value.size > 1}
    files = {}
    for kind, dtype in STORED.items():
        files[kind] = place / f"{kind}.safetensors"
        torch_save({name: value.to(dtype) for name, value in weights.items()}, files[kind])
    files["wide"] = place / "wide.safetensors"
    torch_save({name: value * 1.001 for name, value in weights.items()}, files["wide"])
    tokens = numpy.random.default_rng(2).integers(0, 256, (SAMPLES, SEQ))
    save_file({"input_ids": tokens, "labels": tokens}, place / "data.safetensors")
    return folder, files, place / "data.safetensors"


def compiled(tools, base, folder, stored, *options, precision="bf16", **more):
    """A plan, its configuration, and {name: element type's number} of what is not trained."""
    model, files, _ = base
    config = write_config(folder / "c.json", MICRO, ACCUMULATION, gradient_clipping=1.0, **{precision: {"enabled": True}}, **more)
    plan = folder / "p.dsplan"
    tools("ds-opt", "compile", model, "--weights", files[stored], "--lora", RANK, "--config", config, "-o", plan, *options)
    proto = read_plan(plan)
    kind = type(proto.variables[0])
    return plan, config, {v.name: v.dtype for v in proto.variables if v.kind == kind.PARAMETER and not v.trainable}


def numbers(plan):
    return {value.name: value.number for value in read_plan(plan).DESCRIPTOR.file.enum_types_by_name["DType"].values}


def trained(tools, base, plan, folder, *options):
    folder.mkdir(exist_ok=True)
    tools("ds-run", plan, "--data", base[2], "--steps", STEPS, "--export", folder / "after.safetensors", *options)
    return (folder / "after.safetensors").read_bytes()


WAYS = {"one": {}, **{f"zero{stage}": {"zero_optimization": {"stage": stage}} for stage in range(4)},
        "stages": {"deepstatic": {"pipeline": {"stages": 2}}},
        "host": {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "offload_optimizer": {"device": "cpu"}}}}


@pytest.mark.parametrize("way", WAYS)
def test_bits_are_those_of_float32(way, base, tools, tmp_path):
    ranks = 1 if way == "one" else 2
    exports = []
    for name, options in [("held", []), ("widened", WITHOUT)]:
        folder = tmp_path / name
        folder.mkdir()
        plan, config, frozen = compiled(tools, base, folder, "bf16", "--ranks", ranks, *options, **WAYS[way])
        matrices = [dtype for variable, dtype in frozen.items() if MATRIX.search(variable)]
        assert matrices and set(matrices) == {numbers(plan)["DTYPE_F32" if options else "DTYPE_BF16"]}
        exports.append(trained(tools, base, plan, folder, "-n", ranks, "--save", folder / "saved"))
        tools("ds-opt", "verify", plan, "--model", base[0], "--config", config, "--weights", base[1]["bf16"])
        tools("ds-run", "export", folder / "saved", "-o", folder / "later.safetensors")
        assert (folder / "later.safetensors").read_bytes() == exports[-1]
    assert exports[0] == exports[1]
    assert {value.dtype.name for value in load_file(tmp_path / "held" / "after.safetensors").values()} == {"float32"}


def test_half_the_bytes_are_held(base, tools, tmp_path):
    arenas = []
    for options in ([], WITHOUT):
        plan, _, frozen = compiled(tools, base, tmp_path, "bf16", *options)
        proto = read_plan(plan)
        widths = {numbers(plan)["DTYPE_F32"]: 4, numbers(plan)["DTYPE_BF16"]: 2}
        arenas.append(sum(widths[v.dtype] * int(numpy.prod(v.shape)) for v in proto.variables if v.name in frozen))
    assert arenas[0] < 0.53 * arenas[1], "norms and biases that are read in float32 stay"


@pytest.mark.parametrize("stored, precision, holds", [("fp16", "fp16", "DTYPE_F16"), ("fp32", "bf16", "DTYPE_F32"), ("bf16", "fp16", "DTYPE_F32")])
def test_only_where_the_file_has_no_more(stored, precision, holds, base, tools, tmp_path):
    plan, _, frozen = compiled(tools, base, tmp_path, stored, precision=precision)
    assert {dtype for name, dtype in frozen.items() if MATRIX.search(name)} == {numbers(plan)[holds]}


def test_what_is_trained_stays_float32(base, tools, tmp_path):
    plan, *_ = compiled(tools, base, tmp_path, "bf16", "--trainable", "mlp")
    assert {v.dtype for v in read_plan(plan).variables if v.trainable} == {numbers(plan)["DTYPE_F32"]}


def test_a_run_goes_on(base, tools, tmp_path):
    """Also from a checkpoint of a plan that holds all of it in float32."""
    plan, *_ = compiled(tools, base, tmp_path, "bf16")
    whole = trained(tools, base, plan, tmp_path / "whole")
    for options in ([], WITHOUT):
        (folder := tmp_path / f"part{len(options)}").mkdir()
        first, *_ = compiled(tools, base, folder, "bf16", *options)
        tools("ds-run", first, "--data", base[2], "--steps", STEPS - 1, "--save", folder / "saved")
        assert trained(tools, base, plan, folder, "--resume", folder / "saved") == whole


def test_a_checkpoint_with_more_digits_is_refused(base, tools, tmp_path):
    (first := tmp_path / "first").mkdir()
    wide, *_ = compiled(tools, base, first, "wide")
    tools("ds-run", wide, "--data", base[2], "--steps", 1, "--save", first / "saved")
    plan, *_ = compiled(tools, base, tmp_path, "bf16")
    said = tools("ds-run", plan, "--data", base[2], "--steps", STEPS, "--resume", first / "saved", code=1).stderr
    assert re.search(r"error: the checkpoint has \S+ as element \d+ of \S+, which is no number of bfloat16, .* --without ds-narrow-frozen", said), said


@pytest.mark.parametrize("given", ["wide", "fp32"])
def test_weights_with_more_digits_are_refused(given, base, tools, tmp_path):
    """Exact ones are as good as the file's own."""
    config, plan = write_config(tmp_path / "c.json", MICRO, bf16={"enabled": True}), tmp_path / "p.dsplan"
    tools("ds-opt", "compile", base[0], "--weights", base[1]["bf16"], "--frozen", "mlp", "--config", config, "-o", plan)
    run = ["ds-run", plan, "--data", base[2], "--steps", 1, "--weights", base[1][given], "--export", tmp_path / "e.safetensors"]
    said = tools(*run, code=1 if given == "wide" else 0).stderr
    if given == "wide":
        assert re.search(r"error: \S+wide.safetensors has \S+ as element \d+ of \S+, which is no number of bfloat16, .* compile with these weights", said), said


def test_a_second_opinion(base, tools, tmp_path):
    plan, *_ = compiled(tools, base, tmp_path, "bf16", "--ranks", 2, zero_optimization={"stage": 2})
    said = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan], capture_output=True, text=True, timeout=600)
    assert said.returncode == 0 and said.stdout.startswith("audited: "), said.stderr


def test_another_type_than_the_files_is_refused(base, tools, tmp_path):
    plan, config, frozen = compiled(tools, base, tmp_path, "bf16")
    proto = read_plan(plan)
    variable = next(v for v in proto.variables if frozen.get(v.name) == numbers(plan)["DTYPE_BF16"])
    variable.dtype = numbers(plan)["DTYPE_F16"]
    said = tools("ds-opt", "verify", write_plan(tmp_path / "q.dsplan", proto), "--model", base[0], "--config", config, "--weights", base[1]["bf16"], code=1)
    assert said.stderr.startswith("error: ")
