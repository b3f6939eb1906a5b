"""Ranks that are processes with a GPU each and talk by NCCL, on a machine without a GPU: the transport as it is, over a fake NCCL on a fake
CUDA runtime (docs/gpu-shim.md)."""

import os
import signal
import subprocess

import pytest
from conftest import FAKE_CUDA
from pipeline_trainer import Cut, trainer  # noqa: F401
from rank_jobs import MPI_ENVIRONMENT, Job, await_condition, complete_lines, free_port, has_mpi, mpirun, seconds_until

pytestmark = pytest.mark.skipif(not has_mpi, reason="mpirun is not here")
DS_RUN = FAKE_CUDA / "ds-run"
STEPS = 4
CUTS = {"zero0": Cut(data=2, microbatches=2), "zero2": Cut(data=2, zero=2), "zero3": Cut(data=2, zero=3, microbatches=2),
        "pipe": Cut(stages=2, microbatches=4)}
BOTH = {"pipe zero1": Cut(stages=2, data=2, zero=1, microbatches=4), "pipe zero3": Cut(stages=2, data=2, zero=3, microbatches=4)}
ALL = {**CUTS, **BOTH}
OVERLAP = {"zero_optimization.overlap_comm": "true"}
BF16 = {"bf16.enabled": "true"}
HALF_SUMS = {"fp16.enabled": "true", "communication_data_type": "fp16"}


class Runs:
    def __init__(self, trainer, folder):
        self.trainer, self.folder, self.plans, self.done, self.losses_on_cpu = trainer, folder, {}, {}, {}

    def plan(self, cut, machine, settings):
        key = (cut, machine, *settings.items())
        if key not in self.plans:
            sets = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
            made = self.trainer.compile("gpt2", ALL[cut], "--machine", machine, *sets)
            self.plans[key] = made.rename(made.with_suffix(f".{len(self.plans)}.dsplan"))
        return self.plans[key]

    def command(self, cut, settings, *more):
        return [DS_RUN, self.plan(cut, "h100x8", settings), "--data", self.trainer.data("gpt2"), "--quiet", *more]

    def on_cpu(self, cut, settings={}):
        key = (cut, *settings.items())
        if key not in self.losses_on_cpu:
            self.losses_on_cpu[key] = self.trainer.run("gpt2", self.plan(cut, "cpu", settings), ALL[cut].ranks, steps=STEPS)[1]
        return self.losses_on_cpu[key]

    def start(self, launcher, command, **environment):
        """The end of a run: exit code, losses, weights and what was said on the standard error."""
        metrics, weights = (self.folder / f"{os.urandom(4).hex()}.{kind}" for kind in ("jsonl", "safetensors"))
        done = subprocess.run([str(word) for word in [*launcher, *command, "--steps", STEPS, "--metrics", metrics, "--export", weights]],
                              capture_output=True, text=True, timeout=120,
                              env={**os.environ, **MPI_ENVIRONMENT, "DS_FAKE_CUDA_GPUS": "2", "DS_FAKE_CUDA_REPORT": "1", **environment})
        losses = [line["loss"] for line in complete_lines(metrics) if "loss" in line]
        return done.returncode, losses, weights.read_bytes() if weights.exists() else b"", done.stderr

    def by_mpi(self, cut, settings={}, **environment):
        """The same of a run of a process for each rank that must end well."""
        key = (cut, *settings.items(), *environment.items())
        if key not in self.done:
            ranks = ALL[cut].ranks
            self.done[key] = self.start(mpirun(ranks), self.command(cut, settings), DS_FAKE_CUDA_GPUS=str(ranks), **environment)
            assert self.done[key][0] == 0, self.done[key][3]
            assert "the fake NCCL refuses" not in self.done[key][3], self.done[key][3]
        return self.done[key][1:]


@pytest.fixture(scope="module")
def runs(trainer, tmp_path_factory):  # noqa: F811
    return Runs(trainer, tmp_path_factory.mktemp("fake-nccl"))


def graphs(stderr):
    """Of each process."""
    return [int(line.split()[-2]) for line in stderr.splitlines() if line.startswith("the fake CUDA ran ")]


@pytest.mark.parametrize("settings", [{}, OVERLAP, BF16, HALF_SUMS], ids=["plain", "overlap_comm", "bf16", "fp16"])
@pytest.mark.parametrize("cut", ALL)
def test_losses_are_the_cpus(cut, settings, runs):
    losses, _, stderr = runs.by_mpi(cut, settings)
    assert losses == pytest.approx(runs.on_cpu(cut, settings), rel=2e-3 if settings in (BF16, HALF_SUMS) else 1e-5)
    assert graphs(stderr) == [STEPS - 1] * ALL[cut].ranks, "all steps but the first are launched as one graph"


@pytest.mark.parametrize("seed", ["0", "1", "3", "5"])
@pytest.mark.parametrize("cut", ALL)
def test_no_order_of_streams_changes_a_bit(cut, seed, runs):
    assert runs.by_mpi(cut, OVERLAP, DS_FAKE_CUDA_SEED=seed)[:2] == runs.by_mpi(cut, OVERLAP)[:2]


@pytest.mark.parametrize("seed", ["0", "1", "3"])
@pytest.mark.parametrize("cut", ["zero3", "pipe"])
def test_a_graph_has_the_bits_of_its_commands(cut, seed, runs):
    losses, weights, stderr = runs.by_mpi(cut, OVERLAP, DS_FAKE_CUDA_SEED=seed, DS_CUDA_GRAPH="0")
    assert (losses, weights) == runs.by_mpi(cut, OVERLAP)[:2] and graphs(stderr) == [0, 0]


def test_ranks_that_torchrun_starts(runs):
    with Job(runs.folder) as job:
        port = free_port()
        for rank in range(2):
            job.start([*runs.command("zero3", {}), "--steps", STEPS, "--metrics", runs.folder / "torchrun.jsonl"], f"rank{rank}",
                      DS_FAKE_CUDA_GPUS=2, **by_torchrun(rank, port))
        assert [process.wait(60) for process in job.started] == [0, 0], job.said("rank0") + job.said("rank1")
    losses = [line["loss"] for line in complete_lines(runs.folder / "torchrun.jsonl") if "loss" in line]
    assert losses == runs.by_mpi("zero3")[0]


def by_torchrun(rank, port):
    return {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}


@pytest.mark.parametrize("fault", ["", "silent"])
@pytest.mark.parametrize("cut", ["zero3", "pipe"])
def test_a_rank_that_is_killed_ends_the_other(cut, fault, runs, tmp_path):
    """By NCCL's own error or, where NCCL does not notice, by the control plane."""
    with Job(tmp_path) as job:
        port, metrics = free_port(), tmp_path / "metrics.jsonl"
        for rank in range(2):
            job.start([*runs.command(cut, {}), "--steps", 10**6, "--collective-timeout", 10, "--metrics", metrics], f"rank{rank}",
                      DS_FAKE_CUDA_GPUS=2, DS_FAKE_NCCL_FAULT=fault, **by_torchrun(rank, port))
        await_condition(lambda: len(complete_lines(metrics)) > 2, 60, "a step")
        job.started[1].send_signal(signal.SIGKILL)
        assert seconds_until(lambda: job.started[0].poll() is not None, 10) is not None, job.said("rank0")
        errors = [line for line in job.said("rank0").splitlines() if line.startswith("error: ")]
        assert job.started[0].returncode == 1 and len(errors) == 1 and "rank 1 has ended" in errors[0], errors
        assert not fault or "NCCL says" not in errors[0], errors


def on_rank_0(variable, command):
    """The command, which has the variable on that rank of mpirun's alone."""
    return ["sh", "-c", f'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then export {variable}; fi; exec "$@"', "sh", *command]


@pytest.mark.parametrize("cut", ["zero0", "zero3"])
def test_members_that_make_different_calls_are_named(cut, runs):
    code, _, _, stderr = runs.start(mpirun(2), on_rank_0("DS_FAKE_NCCL_FAULT=mismatch", runs.command(cut, {})))
    assert code != 0
    errors = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert errors and all("NCCL says invalid usage: rank " in line and ", but rank " in line for line in errors), stderr


def test_modules_are_loaded_before_nccls_kernels_run(runs):
    """Loading a kernel may wait for those: ds-run asks for all at the start, and the user's word is the last."""
    code, _, _, stderr = runs.start(mpirun(2), runs.command("zero3", {}), CUDA_MODULE_LOADING="LAZY")
    assert code != 0 and "is loaded at its first launch, which may wait for a kernel of NCCL" in stderr, stderr


def test_two_ranks_of_one_gpu_are_refused(runs):
    code, _, _, stderr = runs.start(mpirun(2), runs.command("zero0", {}), DS_FAKE_CUDA_GPUS="1")
    assert code != 0 and "shares GPU 0 with another of the 2 processes of this machine, and NCCL wants one for each" in stderr, stderr


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize("variable, why", [("DS_FAKE_CUDA_FAULT=capture", "rank 0"),
                                           ("DS_FAKE_CUDA_FAULT=graph", "the end of a CUDA graph: CUDA says cudaErrorMemoryAllocation"),
                                           ("DS_CUDA_GRAPH=0", None)])
@pytest.mark.parametrize("cut", ["zero3", "pipe"])
def test_where_one_rank_has_no_graph_none_has(cut, variable, why, seed, runs):
    """NCCL wants a collective to be launched from a graph by all ranks or by none."""
    command = on_rank_0(variable, runs.command(cut, OVERLAP))
    code, losses, weights, stderr = runs.start(mpirun(2), command, DS_FAKE_CUDA_SEED=seed)
    assert code == 0, stderr
    assert (losses, weights) == runs.by_mpi(cut, OVERLAP)[:2] and graphs(stderr) == [0, 0]
    notes = [line for line in stderr.splitlines() if "could not be recorded" in line]
    assert len(notes) == (1 if why else 0) and (not why or why in notes[0]), stderr
