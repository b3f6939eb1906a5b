"""Plans for device cuda train on a machine without a GPU: the device, its kernels and its communication over a fake CUDA runtime whose
streams run late and in an order that a seed draws (docs/gpu-shim.md)."""

import json
import os
import re
import subprocess

import numpy
import pytest
from conftest import FAKE_CUDA, FOLDERS, write_config
from onnx import TensorProto, helper, numpy_helper, save
from pipeline_trainer import Cut, trainer  # noqa: F401
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file

DS_RUN = FAKE_CUDA / "ds-run"
STEPS = 4
HALVES = {kind: ("--set", f"{kind}.enabled=true") for kind in ("bf16", "fp16")}
PRECISIONS = {"float32": (), **HALVES}
WHOLE = Cut(microbatches=2)
CUTS = {"zero0": Cut(data=2, microbatches=2), "zero2": Cut(data=2, zero=2), "zero3": Cut(data=2, zero=3, microbatches=2),
        "pipe": Cut(stages=2, microbatches=4)}


class Runs:
    def __init__(self, trainer, folder):
        self.trainer, self.folder, self.plans, self.losses_on_cpu, self.done = trainer, folder, {}, {}, {}

    def plan(self, name, cut, machine, *options):
        key = (name, cut, machine, *options)
        if key not in self.plans:
            made = self.trainer.compile(name, cut, "--machine", machine, *options)
            self.plans[key] = made.rename(made.with_suffix(f".{len(self.plans)}.dsplan"))
        return self.plans[key]

    def on_cpu(self, name, cut, *options):
        key = (name, cut, *options)
        if key not in self.losses_on_cpu:
            self.losses_on_cpu[key] = self.trainer.run(name, self.plan(name, cut, "cpu", *options), cut.ranks, steps=STEPS)[1]
        return self.losses_on_cpu[key]

    def on_cuda(self, name, cut, *options, **environment):
        """Losses, the bytes of the weights, and what ds-run wrote on its standard error."""
        key = (name, cut, *options, *environment.items())
        if key not in self.done:
            self.done[key] = self.train(name, cut, *options, **environment)
            assert self.done[key][0] == 0, self.done[key][3]
        return self.done[key][1:]

    def train(self, name, cut, *options, run=(), **environment):
        """The exit code, losses, the bytes of the weights and the standard error. `run`: more of ds-run's arguments."""
        return self.launch(self.plan(name, cut, "h100x8", *options), name, *run, **environment)

    def launch(self, plan, name, *run, **environment):
        weights, metrics = self.folder / "weights.safetensors", self.folder / "metrics.jsonl"
        steps = () if "--steps" in run else ("--steps", str(STEPS))
        done = subprocess.run([DS_RUN, plan, "--data", self.trainer.data(name), *steps, "--export", weights,
                               "--metrics", metrics, "--quiet", *run], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "DS_FAKE_CUDA_REPORT": "1", **environment})
        if done.returncode != 0:
            return done.returncode, [], b"", done.stderr
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        return 0, [line["loss"] for line in lines if "loss" in line], weights.read_bytes(), done.stderr


@pytest.fixture(scope="module")
def runs(trainer, tmp_path_factory):  # noqa: F811
    return Runs(trainer, tmp_path_factory.mktemp("fake-cuda"))


def graphs(stderr):
    return int(re.search(r"the fake CUDA ran [\d]+ commands and (\d+) graphs", stderr)[1])


def gelus(plan):
    """Products of a plan that take a GELU or its gradient's along."""
    commands = [command.kernel for role in read_plan(plan).roles for routine in role.routines for command in routine.commands]
    return sum(attribute.name == "epilogue" and attribute.text != "" for kernel in commands for attribute in kernel.attributes)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bert", "moe", "vit"])
def test_losses_are_the_cpus(name, runs):
    """A mixture of experts runs every expert on every token; a vision transformer's patches are a convolution, cuDNN's by its stand-in."""
    losses, _, stderr = runs.on_cuda(name, WHOLE, **({"DS_CUDA_STRICT": "1"} if name == "vit" else {}))
    assert losses == pytest.approx(runs.on_cpu(name, WHOLE), rel=1e-5)
    assert graphs(stderr) == STEPS - 1, "all steps but the first are launched as one graph"


def test_resnet(runs):
    """Its convolutions are cuDNN's, by the stand-in; DS_CUDA_STRICT=1 makes one that is not an error."""
    losses, _, stderr = runs.on_cuda("resnet float32", WHOLE, DS_CUDA_STRICT="1")
    assert losses == pytest.approx(runs.on_cpu("resnet float32", WHOLE), rel=1e-4)
    assert graphs(stderr) == STEPS - 1


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_16_bits(name, kind, runs):
    """Attention is cuDNN's, forward and backward; a test of kernels that is ours."""
    losses, weights, stderr = runs.on_cuda(name, WHOLE, *HALVES[kind], DS_CUDA_STRICT="1")
    assert losses == pytest.approx(runs.on_cpu(name, WHOLE, *HALVES[kind]), rel=2e-3)
    assert graphs(stderr) == STEPS - 1
    assert runs.on_cuda(name, WHOLE, *HALVES[kind], DS_FAKE_CUDA_SEED="3")[:2] == (losses, weights)


@pytest.mark.parametrize("name", ["gpt2 fp16", "llama fp16", "bert fp16"])
def test_fp16_skips_the_steps_that_the_cpu_skips(name, runs, tmp_path):
    """The first loss scale is far too large, and it is doubled after every two steps that are made."""
    told = {}
    for machine, folder in (("cpu", FOLDERS["ds-run"]), ("h100x8", FAKE_CUDA)):
        metrics = tmp_path / f"{machine}.jsonl"
        done = subprocess.run([folder / "ds-run", runs.plan(name, WHOLE, machine), "--data", runs.trainer.data(name), "--steps", "24",
                               "--metrics", metrics, "--quiet"], capture_output=True, text=True, env={**os.environ, "DS_CUDA_STRICT": "1"})
        assert done.returncode == 0, done.stderr
        told[machine] = [line for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
    scales, losses = ([[line[key] for line in told[machine]] for machine in told] for key in ("loss_scale", "loss"))
    assert scales[0] == scales[1] and losses[1] == pytest.approx(losses[0], rel=2e-3)
    skipped = [[line["skipped"] for line in told[machine]] for machine in told]
    assert skipped[0] == skipped[1] and skipped[0][0] and 4 < sum(skipped[0]) < 20


@pytest.mark.parametrize("options", PRECISIONS.values(), ids=PRECISIONS)
def test_compiled_programs_compute_what_the_interpreter_does(options, runs):
    """tanh, exp and the like are some units of the last place apart."""
    compiled = runs.on_cuda("gpt2", WHOLE, *options)
    interpreted = runs.on_cuda("gpt2", WHOLE, *options, "--without", "ds-compile-elementwise")
    assert compiled[0] == pytest.approx(interpreted[0], rel=2e-3 if options else 1e-5)
    assert "does not take its code" not in compiled[2]


@pytest.mark.parametrize("options", PRECISIONS.values(), ids=PRECISIONS)
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_a_residual_that_a_norms_gradient_adds_keeps_its_bits(name, options, runs):
    assert runs.on_cuda(name, WHOLE, *options)[:2] == runs.on_cuda(name, WHOLE, *options, "--without", "ds-fuse-residual-gradients")[:2]


@pytest.mark.parametrize("options", PRECISIONS.values(), ids=PRECISIONS)
@pytest.mark.parametrize("name", ["gpt2", "llama", "bert"])
def test_a_residual_that_a_norm_adds_keeps_its_bits(name, options, runs):
    assert runs.on_cuda(name, WHOLE, *options)[:2] == runs.on_cuda(name, WHOLE, *options, "--without", "ds-fuse-residual-sums")[:2]


@pytest.mark.parametrize("options", PRECISIONS.values(), ids=PRECISIONS)
@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_a_loss_made_with_its_gradient_keeps_its_bits(name, options, runs):
    assert runs.on_cuda(name, WHOLE, *options)[:2] == runs.on_cuda(name, WHOLE, *options, "--without", "ds-fuse-loss-gradient")[:2]


def test_where_no_epilogue_is_fused_their_parts_run(runs):
    """A cuBLASLt that has algorithms for products alone."""
    losses, _, stderr = runs.on_cuda("gpt2", WHOLE, DS_FAKE_CUBLASLT_EPILOGUES="0")
    summary = json.loads((runs.folder / "metrics.jsonl").read_text().splitlines()[-1])["summary"]["ranks"][0]
    named = {kind: int(count) for count, kind in re.findall(r"(\d+) of kernel '(\w+)' in float32", summary["fallback_kernels"])}
    assert set(named) == {"linear_weight_grad", "matmul"} and sum(named.values()) == summary["fallbacks"]
    assert named["matmul"] == gelus(runs.plan("gpt2", WHOLE, "h100x8"))
    assert losses == pytest.approx(runs.on_cpu("gpt2", WHOLE), rel=1e-5)
    assert "kernel 'linear_weight_grad' in float32 is run by our own slower kernel: cuBLASLt does not add up the columns" in stderr
    assert "kernel 'matmul' in float32 is run by our own slower kernel: cuBLASLt does not take GELU as it multiplies" in stderr


@pytest.mark.parametrize("options", PRECISIONS.values(), ids=PRECISIONS)
def test_gelu_in_products_computes_what_programs_do(options, runs):
    """The epilogues round elsewhere than the parts do. Each layer's GELU and its gradient's are no commands of their own."""
    fused, without = (runs.on_cuda("gpt2", WHOLE, *options, *more) for more in ((), ("--without", "ds-fuse-gelu")))
    assert fused[0] == pytest.approx(without[0], rel=2e-3 if options else 1e-5)
    assert "slower kernel" not in fused[2]
    assert gelus(runs.plan("gpt2", WHOLE, "h100x8", *options)) > 0 == gelus(runs.plan("gpt2", WHOLE, "h100x8", *options, "--without", "ds-fuse-gelu"))


def test_where_no_ptx_is_taken_the_interpreter_runs(runs):
    """A driver that is too old for a text. It is said once for a type of operands."""
    file = runs.plan("gpt2", WHOLE, "h100x8")
    plan = read_plan(file)
    for code in plan.codes:
        code.text = code.text.replace(".version 7.8", ".version 99.0")
    refused = write_plan(file.with_name("refused.dsplan"), plan)
    code, losses, weights, stderr = runs.launch(refused, "gpt2")
    assert code == 0, stderr
    assert (losses, weights) == runs.on_cuda("gpt2", WHOLE, "--without", "ds-compile-elementwise")[:2]
    notes = [line for line in stderr.splitlines() if "the driver does not take its code" in line]
    assert notes and len(set(notes)) == len(notes) <= 2, stderr
    assert notes[0].startswith("note: kernel 'elementwise' in "), stderr
    code, *_, stderr = runs.launch(refused, "gpt2", DS_CUDA_STRICT="1")
    assert code != 0 and "the driver does not take its code (PTX of version 99.0, and the driver knows 9.0)" in stderr, stderr


@pytest.mark.parametrize("seed", ["0", "1", "3", "5"])
@pytest.mark.parametrize("name, cut", [("gpt2", WHOLE), ("gpt2", CUTS["zero3"])])
def test_no_order_of_streams_changes_a_bit(name, cut, seed, runs):
    first = runs.on_cuda(name, cut, DS_FAKE_CUDA_GPUS="1")  # under seed 2
    again = runs.on_cuda(name, cut, DS_FAKE_CUDA_SEED=seed)
    assert again[:2] == first[:2]


def test_a_graph_has_the_bits_of_its_commands(runs):
    recorded = runs.on_cuda("gpt2", WHOLE)
    without = runs.on_cuda("gpt2", WHOLE, "--without", "ds-choose-captured-programs")
    off = runs.on_cuda("gpt2", WHOLE, DS_CUDA_GRAPH="0")
    assert [graphs(one[2]) for one in (recorded, without, off)] == [STEPS - 1, 0, 0]
    assert recorded[:2] == without[:2] == off[:2]


@pytest.mark.parametrize("refused, why", [("capture", " cannot be captured"),
                                          ("graph", "the end of a CUDA graph: CUDA says cudaErrorMemoryAllocation")])
def test_a_step_that_cannot_be_recorded_is_enqueued(refused, why, runs):
    recorded = runs.on_cuda("gpt2", WHOLE)
    enqueued = runs.on_cuda("gpt2", WHOLE, DS_FAKE_CUDA_FAULT=refused)
    assert graphs(enqueued[2]) == 0 and enqueued[:2] == recorded[:2]
    notes = [line for line in enqueued[2].splitlines() if "could not be recorded" in line]
    assert len(notes) == 1 and notes[0].startswith("note: program step is enqueued command by command"), enqueued[2]
    assert why in notes[0] and "DS_CUDA_GRAPH=0" in notes[0]


@pytest.mark.parametrize("gpus", ["1", "2"])
@pytest.mark.parametrize("cut", CUTS)
def test_ranks_of_one_process(cut, gpus, runs):
    losses, _, stderr = runs.on_cuda("gpt2", CUTS[cut], DS_FAKE_CUDA_GPUS=gpus)
    assert losses == pytest.approx(runs.on_cpu("gpt2", CUTS[cut]), rel=1e-5)
    assert graphs(stderr) == 0, "ranks that share a process meet on the host"


@pytest.mark.parametrize("kind", HALVES)
@pytest.mark.parametrize("cut", ["zero0", "zero2", "zero3"])
def test_gradients_are_summed_over_ranks_in_16_bits(cut, kind, runs):
    options = ("--set", f"communication_data_type={kind}")
    losses, weights, _ = runs.on_cuda("gpt2", CUTS[cut], *options)
    assert losses == pytest.approx(runs.on_cpu("gpt2", CUTS[cut], *options), rel=1e-4)
    assert weights != runs.on_cuda("gpt2", CUTS[cut])[1]


@pytest.mark.parametrize("check", ["--check-memory", "--check-numerics", "--trace", "--save"])
def test_what_looks_at_a_run_changes_no_bit(check, runs, tmp_path):
    more = {"--trace": (tmp_path / "trace.json",), "--save": (tmp_path / "saved",)}.get(check, ())
    losses, weights, _ = runs.on_cuda("gpt2", WHOLE)
    code, again, same, stderr = runs.train("gpt2", WHOLE, run=(check, *more))
    assert (code, again, same) == (0, losses, weights), stderr
    assert graphs(stderr) == (STEPS - 1 if check == "--save" else 0)


def test_a_saved_run_is_resumed(runs, tmp_path):
    losses, weights, _ = runs.on_cuda("gpt2", WHOLE)
    code, first, *_ = runs.train("gpt2", WHOLE, run=("--save", tmp_path / "saved", "--steps", str(STEPS // 2)))
    assert (code, first) == (0, losses[:STEPS // 2])
    code, all_steps, same, stderr = runs.train("gpt2", WHOLE, run=("--resume", tmp_path / "saved"))
    assert (code, all_steps, same) == (0, losses, weights), stderr


@pytest.mark.parametrize("machine, why", [
    ({"DS_FAKE_CUDA_CAPABILITY": "75"}, "has compute capability 7.5, and this ds-run has code for 9.0; choose another GPU by CUDA_VISIBLE_DEVICES"),
    ({"DS_FAKE_CUDA_BYTES": "1000000"}, "of 1000000 bytes free: CUDA and other processes hold")], ids=["capability", "memory"])
def test_a_gpu_that_cannot_hold_or_run_the_plan_is_refused(machine, why, runs):
    code, *_, stderr = runs.train("gpt2", WHOLE, **machine)
    assert code == 1 and why in stderr and stderr.count("error: ") == 1


def test_info_names_it():
    done = subprocess.run([DS_RUN, "info"], capture_output=True, text=True)
    assert done.returncode == 0 and "a processor in place of a GPU" in done.stdout, done.stdout + done.stderr


def test_a_norm_of_more_tensors_than_a_launch_takes(tools, tmp_path):
    """Of a product of 1,030 parameters; one launch takes 1,024 of them."""
    names = [f"p{i}.weight" for i in range(1030)]
    nodes = [helper.make_node("Mul", [f"v{i}", name], [f"v{i + 1}"]) for i, name in enumerate(names)]
    nodes.append(helper.make_node("ReduceMean", [f"v{len(names)}"], ["loss"], keepdims=0))
    graph = helper.make_graph(nodes, "product", [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["batch", 4])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
                              [numpy_helper.from_array(numpy.full(4, 1 + i * 1e-7, numpy.float32), name) for i, name in enumerate(names)])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    save_file({"v0": numpy.ones((8, 4), numpy.float32)}, tmp_path / "data.safetensors")
    config = write_config(tmp_path / "c.json", 2, gradient_clipping=0.5)
    norms = {}
    for machine, folder in (("cpu", FOLDERS["ds-run"]), ("h100x8", FAKE_CUDA)):
        plan, metrics = tmp_path / f"{machine}.dsplan", tmp_path / f"{machine}.jsonl"
        tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--machine", machine, "-o", plan)
        done = subprocess.run([folder / "ds-run", plan, "--data", tmp_path / "data.safetensors", "--steps", "2", "--metrics", metrics, "--quiet"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        norms[machine] = [line["grad_norm"] for line in map(json.loads, metrics.read_text().splitlines()) if "grad_norm" in line]
    assert len(norms["cpu"]) == 2 and norms["h100x8"] == pytest.approx(norms["cpu"], rel=1e-6)
