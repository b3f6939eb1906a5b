"""What the end-to-end tests share: the tools as a user calls them, exported models, metrics.

DS_BUILD_DIR names the build that has what only tests use (default build/release). DS_BINARIES names the folder of the ds-opt and ds-run that
are tested, if they are of another build. DS_TEST_DEVICE=cuda compiles for a GPU what names no machine, and runs it with build/cuda's ds-run.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import standstill

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DS_BUILD_DIR", REPOSITORY / "build" / "release"))
ON_GPU = os.environ.get("DS_TEST_DEVICE") == "cuda"
BINARIES = Path(os.environ.get("DS_BINARIES", BUILD / "bin"))
FOLDERS = {"ds-opt": BINARIES, "ds-run": REPOSITORY / "build" / "cuda" / "bin" if ON_GPU else BINARIES}
FAKE_CUDA = BUILD / "fake-cuda" / "bin"  # tools that have device cuda without a GPU (test/shim)
GPU = REPOSITORY / "test" / "e2e" / "gpu.json"


UNPLANNED = 150e6  # bytes that a ds-run process may hold beside its arenas, files it maps aside


class Tools:
    """Runs ds-opt, ds-run and the Python tools; a failure that was not expected shows the tool's stderr."""

    def __call__(self, *arguments, code=0, **keywords) -> subprocess.CompletedProcess:
        arguments = [str(a) for a in arguments]
        if ON_GPU and arguments[:2] == ["ds-opt", "compile"] and "--machine" not in arguments:
            arguments += ["--machine", str(GPU)]
        if arguments[0] in FOLDERS:
            arguments[0] = str(FOLDERS[arguments[0]] / arguments[0])
        elif arguments[0].endswith(".py"):
            arguments = [sys.executable, str(REPOSITORY / "models" / arguments[0]), *arguments[1:]]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, **keywords)
        assert code is None or done.returncode == code, f"{arguments} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def refused(self, *arguments, code=1, **keywords) -> str:
        """The error sentence of a call that must be refused: one line, no crash, no stack trace."""
        done = self(*arguments, code=code, **keywords)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, done.stderr
        return lines[0].removeprefix("error: ")

    def train(self, plan, data, steps, *more, **keywords):
        """Steps' metrics and the summary of a ds-run."""
        metrics = Path(plan).with_suffix(f".{os.urandom(4).hex()}.jsonl")
        self("ds-run", plan, "--data", data, "--steps", steps, "--metrics", metrics, "--quiet", *more, **keywords)
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        self.require_planned_bytes(plan, lines[-1]["summary"])
        return [line for line in lines if "loss" in line], lines[-1]["summary"]

    def require_planned_bytes(self, plan, summary):
        """What ds-run's allocators and communicators counted is what ds-opt reports of the plan."""
        planned = json.loads(self("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"]
        assert len(planned) == len(summary["ranks"])
        # Ranks of one process share its memory; what is not planned of it is code and threads.
        held = sum(rank[f"{space}_bytes"] for rank in summary["ranks"] for space in ("device", "host"))
        assert ON_GPU or max(rank["rss_anon_bytes"] for rank in summary["ranks"]) <= held + UNPLANNED, summary
        for rank, counted in zip(planned, summary["ranks"]):
            for space in ("device", "host", "nvme"):
                assert counted[f"{space}_bytes"] == rank["memory"][space]["arena_bytes"], (space, rank["rank"])
            wire, sent = rank["wire_bytes_per_step"], counted["wire_bytes_per_step"]
            assert {kind: sent.get(kind, 0) for kind in wire} == wire and sum(sent.values()) == sum(wire.values())


def write_config(path: Path, micro=4, accumulation=1, optimizer=None, **more) -> Path:
    """A ds_config.json; clipping is off unless given."""
    optimizer = optimizer or {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}
    path.write_text(json.dumps({
        "train_micro_batch_size_per_gpu": micro, "gradient_accumulation_steps": accumulation,
        "optimizer": optimizer, "gradient_clipping": 0, **more}))
    return path


# `make test` runs every n-th case of files that take long and whose cases are many of a kind; `make test-all` runs all.
EVERY = {"test_docs_commands.py": 4, "test_padding.py": 3, "test_real_plans.py": 4, "test_fake_cuda.py": 2, "test_fake_cuda_offload.py": 3,
         "test_fake_nccl.py": 2, "test_offload.py": 2, "test_delayed.py": 2, "test_by_layer.py": 2, "test_offload_ratio.py": 2,
         "test_offload_times.py": 2, "test_offload_or_recompute.py": 2, "test_audit.py": 2, "test_optimizers.py": 2, "test_user_modules.py": 2}


def pytest_collection_modifyitems(config, items):
    if os.environ.get("DS_TEST_SCOPE") != "subset":
        return
    seen, kept, left = {}, [], []
    for item in items:
        name = item.path.name
        seen[name] = seen.get(name, -1) + 1
        (left if seen[name] % EVERY.get(name, 1) else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    return (yield from standstill.call())


@pytest.fixture(scope="session")
def tools() -> Tools:
    return Tools()


@pytest.fixture(scope="session")
def exported(tools, tmp_path_factory):
    """exported("gpt2", "--dropout", "0.1") -> folder; each combination is exported once a session."""
    folders = {}

    def export(name, *options) -> Path:
        key = (name, *map(str, options))
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("model") / str(name)
            tools("export.py", name, *options, "--out", folders[key])
        return folders[key]

    return export


@pytest.fixture(scope="session")
def text_data(tools, tmp_path_factory):
    """text_data(64) -> safetensors of samples of 64 bytes of a licence text."""
    files = {}

    def prepare(seq) -> Path:
        if seq not in files:
            files[seq] = tmp_path_factory.mktemp("data") / "data.safetensors"
            tools("prepare_data.py", "text", "/usr/share/common-licenses/GPL-3", "--tokenizer", "bytes",
                  "--seq", seq, "--out", files[seq])
        return files[seq]

    return prepare


@pytest.fixture(scope="session")
def masked_data(tools, tmp_path_factory):
    """masked_data(64) -> the same for a masked language model; 3 is a byte that the text does not hold."""
    files = {}

    def prepare(seq) -> Path:
        if seq not in files:
            files[seq] = tmp_path_factory.mktemp("data") / "masked.safetensors"
            tools("prepare_data.py", "masked", "/usr/share/common-licenses/GPL-3", "--seq", seq, "--mask-token", 3, "--out", files[seq])
        return files[seq]

    return prepare
