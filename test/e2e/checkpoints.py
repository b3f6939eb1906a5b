"""What the tests of checkpoints share: the tiny models of pipeline_trainer, and runs that save and resume."""

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field

import numpy
import pytest
from conftest import FOLDERS
from pipeline_trainer import OPEN_MPI, Cut, Trainer
from safetensors import safe_open

STEPS = 6


@dataclass
class Done:
    code: int
    errors: str
    losses: dict = field(default_factory=dict)  # by step
    weights: str = ""  # SHA-256 of the export


class Runs:
    """Plans of one model and runs of them. `place` gets metrics, exports and checkpoints."""

    def __init__(self, tools, folder):
        self.trainer, self.folder, self.numbers, self.plans = Trainer(tools, folder), folder, 0, {}

    def plan(self, model, cut):
        if (model, cut) not in self.plans:
            self.plans[model, cut] = self.trainer.compile(model, cut)
        return self.plans[model, cut]

    def fresh(self, name):
        self.numbers += 1
        return self.folder / f"{name}{self.numbers}"

    def command(self, model, cut, *options, steps=STEPS, mpi=False):
        launcher = ["mpirun", "--oversubscribe", "-n", cut.ranks] if mpi else []
        return [str(word) for word in (*launcher, (FOLDERS["ds-run"] / "ds-run").resolve(), self.plan(model, cut).resolve(), "--data",
                                       self.trainer.data(model).resolve(), "--steps", steps, "--threads", 1, "--quiet", *options)]

    def run(self, model, cut, *options, steps=STEPS, mpi=False, code=0, metrics=None):
        metrics, export = metrics or self.fresh("metrics"), self.fresh("export")
        command = self.command(model, cut, "--metrics", metrics, "--export", export, *options, steps=steps, mpi=mpi)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **OPEN_MPI})
        assert code is None or done.returncode == code, f"{command} gave {done.returncode}\n{done.stderr}"
        return Done(done.returncode, done.stderr, losses_of(metrics), hashlib.sha256(export.read_bytes()).hexdigest() if export.exists() else "")


def losses_of(metrics):
    """step -> (loss, norm) of the last whole line of each step."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines() if line.endswith("}")] if metrics.exists() else []
    return {line["step"]: (line["loss"], line["grad_norm"]) for line in lines if "loss" in line}


def manifest_of(checkpoint):
    return json.loads((checkpoint / "manifest.json").read_text())


def state_of(checkpoint):
    """name -> bytes of every logical variable, put together from the files: what must not depend on the layout."""
    files, state = {}, {}
    for variable in manifest_of(checkpoint)["variables"]:
        parts = []
        for piece in variable["pieces"]:
            if any(piece.get("at", {}).values()):
                continue  # another rank's own values
            if piece["file"] not in files:
                files[piece["file"]] = safe_open(checkpoint / piece["file"], "np")
            parts.append(files[piece["file"]].get_tensor(piece["tensor"]).reshape(-1))
            assert parts[-1].size == piece["end"] - piece["begin"]
        state[variable["name"]] = numpy.concatenate(parts).tobytes() if parts else b""
    return state


def digest_of(checkpoint):
    """SHA-256 of the state, in the order of names."""
    digest = hashlib.sha256()
    for name, data in sorted(state_of(checkpoint).items()):
        digest.update(name.encode() + b"\0" + len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def runs(tools, tmp_path_factory):
    return Runs(tools, tmp_path_factory.mktemp("checkpoints"))


def name_of(cut):
    return f"{cut.stages}x{cut.data}-zero{cut.zero}" + (f"-{cut.schedule}" if cut.stages > 1 else "")


ONE = Cut()
LAYOUTS = [ONE, Cut(data=2, zero=0), Cut(data=2, zero=1), Cut(data=4, zero=2), Cut(data=3, zero=3), Cut(data=4, zero=3),
           Cut(stages=2, microbatches=2), Cut(stages=2, microbatches=2, data=2, zero=1)]
