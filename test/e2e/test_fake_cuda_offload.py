"""Plans for device cuda that keep activations, optimizer state and parameters in host memory or in files train over the fake CUDA
runtime: updates are the host's beside streams that run late (docs/cuda.md)."""

import json
import subprocess

import pytest
from conftest import FAKE_CUDA, FOLDERS
from pipeline_trainer import Cut, trainer  # noqa: F401
from plan_files import read_plan
from test_fake_cuda import CUTS, WHOLE, Runs, graphs
from test_public_configs import FOLDER, batch_of, what_became_of


def sets(*settings):
    return tuple(word for setting in settings for word in ("--set", setting))


OPTIMIZER = "zero_optimization.offload_optimizer.device=cpu"
PARAMETERS = "zero_optimization.offload_param.device=cpu"
ACTIVATIONS = "activation_checkpointing.cpu_checkpointing=true"
UNCLIPPED, BF16 = "gradient_clipping=0", "bf16.enabled=true"
ONE, THREE = Cut(), CUTS["zero3"]
STOCK = sorted(file.name for file in FOLDER.glob("*.json") if '"device": "cpu"' in file.read_text())


def files(folder):
    return ("zero_optimization.offload_optimizer.device=nvme", f"zero_optimization.offload_optimizer.nvme_path={folder}")


@pytest.fixture(scope="module")
def runs(trainer, exported, tmp_path_factory):  # noqa: F811
    """Of Llama, one whose parameters have 4,096 bytes and more, so that they leave."""
    trainer.models["llama wide"] = exported("llama", "--size=tiny", "--seq=8")
    return Runs(trainer, tmp_path_factory.mktemp("fake-cuda-offload"))


def queues(plan):
    return {queue.name for role in read_plan(plan).roles for queue in role.queues}


def require_cpus_losses(runs, name, cut, settings, tolerance=1e-5):
    losses, _, stderr = runs.on_cuda(name, cut, *sets(*settings))
    assert losses == pytest.approx(runs.on_cpu(name, cut, *sets(*settings)), rel=tolerance)
    assert losses != losses[:1] * len(losses), "it learns"
    return stderr


@pytest.mark.parametrize("name", ["gpt2", "gpt2 tied", "llama wide"])
@pytest.mark.parametrize("settings", [(OPTIMIZER,), (PARAMETERS,), (ACTIVATIONS,), (OPTIMIZER, PARAMETERS, ACTIVATIONS), (OPTIMIZER, UNCLIPPED)],
                         ids=["optimizer", "parameters", "activations", "all", "unclipped"])
def test_losses_are_the_cpus(name, settings, runs):
    stderr = require_cpus_losses(runs, name, WHOLE, settings)
    computes = "host_compute" in queues(runs.plan(name, WHOLE, "h100x8", *sets(*settings)))
    assert computes == (OPTIMIZER in settings)
    assert graphs(stderr) == (0 if computes else 3), "the host's work is no part of a record"


@pytest.mark.parametrize("settings", [(OPTIMIZER,), (OPTIMIZER, PARAMETERS)], ids=["optimizer", "both"])
@pytest.mark.parametrize("stage", range(4))
def test_ranks(stage, settings, runs):
    require_cpus_losses(runs, "gpt2", Cut(data=2, zero=stage, microbatches=2), settings)


@pytest.mark.parametrize("settings", [(OPTIMIZER,), (OPTIMIZER, PARAMETERS)], ids=["optimizer", "both"])
@pytest.mark.parametrize("name", ["gpt2", "llama wide"])
def test_bf16(name, settings, runs):
    require_cpus_losses(runs, name, WHOLE, (BF16, *settings), 2e-3)


@pytest.mark.parametrize("cut", [ONE, WHOLE, THREE], ids=["one", "two", "zero3"])
@pytest.mark.parametrize("more", [(), (UNCLIPPED,), ("zero_optimization.offload_param.device=nvme", "deepstatic.nvme_path={folder}", ACTIVATIONS)],
                         ids=["clipped", "unclipped", "parameters"])
def test_files(cut, more, runs):
    folder = runs.folder / "files"
    folder.mkdir(exist_ok=True)
    settings = (*files(folder), *(setting.format(folder=folder) for setting in more))
    require_cpus_losses(runs, "gpt2", cut, settings)
    assert {"nvme_read", "nvme_write", "host_compute"} <= queues(runs.plan("gpt2", cut, "h100x8", *sets(*settings)))


@pytest.mark.parametrize("seed", ["0", "1", "3", "5"])
@pytest.mark.parametrize("kind", ["optimizer", "all", "files", "zero3"])
def test_no_order_of_streams_changes_a_bit(kind, seed, runs):
    cut = THREE if kind == "zero3" else WHOLE
    settings = {"optimizer": (OPTIMIZER,), "files": files(runs.folder)}.get(kind, (OPTIMIZER, PARAMETERS, ACTIVATIONS))
    first = runs.on_cuda("gpt2", cut, *sets(*settings), DS_FAKE_CUDA_GPUS="1")  # under seed 2
    assert runs.on_cuda("gpt2", cut, *sets(*settings), DS_FAKE_CUDA_SEED=seed)[:2] == first[:2]


def test_threads_of_the_host_change_no_bit(runs):
    options = sets(OPTIMIZER, PARAMETERS)
    losses, weights, _ = runs.on_cuda("gpt2", WHOLE, *options)
    code, again, same, stderr = runs.train("gpt2", WHOLE, *options, run=("--threads", "3"))
    assert (code, again, same) == (0, losses, weights), stderr


@pytest.mark.parametrize("check", ["--check-memory", "--check-numerics", "--trace", "--save"])
def test_what_looks_at_a_run_changes_no_bit(check, runs, tmp_path):
    options = sets(*files(runs.folder), PARAMETERS)
    more = {"--trace": (tmp_path / "trace.json",), "--save": (tmp_path / "saved",)}.get(check, ())
    losses, weights, _ = runs.on_cuda("gpt2", WHOLE, *options)
    code, again, same, stderr = runs.train("gpt2", WHOLE, *options, run=(check, *more))
    assert (code, again, same) == (0, losses, weights), stderr


def test_a_saved_run_is_resumed(runs, tmp_path):
    options = sets(*files(runs.folder))
    losses, weights, _ = runs.on_cuda("gpt2", WHOLE, *options)
    code, first, _, stderr = runs.train("gpt2", WHOLE, *options, run=("--save", tmp_path / "saved", "--steps", "2"))
    assert (code, first) == (0, losses[:2]), stderr
    code, all_steps, same, stderr = runs.train("gpt2", WHOLE, *options, run=("--resume", tmp_path / "saved"))
    assert (code, all_steps, same) == (0, losses, weights), stderr


@pytest.mark.parametrize("name", STOCK)
def test_stock_configurations_train(name, runs, exported, tools, tmp_path):
    """With what ds-opt asks for, on two ranks."""
    model, data = exported("gpt2", "--size=tiny", "--seq=8"), runs.trainer.data("gpt2")
    _, flags, last = what_became_of(tools, model, FOLDER / name, tmp_path, "--machine", "h100x8")
    assert not last
    losses = {}
    for machine, folder in (("cpu", FOLDERS["ds-run"]), ("h100x8", FAKE_CUDA)):
        plan, metrics = tmp_path / f"{machine}.dsplan", tmp_path / f"{machine}.jsonl"
        tools("ds-opt", "compile", model, "--config", FOLDER / name, "--ranks", 2, "--machine", machine,
              *batch_of(FOLDER / name), *flags, "-o", plan)
        done = subprocess.run([folder / "ds-run", plan, "--data", data, "--steps", "2", "--metrics", metrics, "--quiet"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        losses[machine] = [line["loss"] for line in map(json.loads, metrics.read_text().splitlines()) if "loss" in line]
        assert "host_compute" in queues(plan)
    is_narrow = json.loads(read_plan(plan).config_json)["bf16"]["enabled"]
    assert losses["h100x8"] == pytest.approx(losses["cpu"], rel=2e-3 if is_narrow else 1e-5)
