"""Checkpoints of DeepSpeed 0.19.8 become ours: its float32 weights bit by bit, and its next losses.

They lie in test/data/deepspeed/checkpoints with the script that made them. DS_TEST_SCOPE=all installs DeepSpeed and makes them anew.
"""

import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
from conftest import REPOSITORY
from safetensors.numpy import load_file, save_file

DATA = REPOSITORY / "test" / "data" / "deepspeed"
sys.path.insert(0, str(DATA))
import make_checkpoints as maker  # noqa: E402

PYTHON = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # ds-run starts python3
TOLERANCE = {"bf16": 2e-3, "fp16": 1e-3, "fp32": 1e-5}
PACKAGES = ["deepspeed==0.19.8", "einops", "hjson", "msgpack", "ninja", "psutil", "py-cpuinfo", "pydantic", "pydantic-core", "typing-inspection",
            "annotated-types", "typing_extensions", "packaging", "tqdm"]


class Continued:
    """Converts checkpoints and goes on with them."""

    def __init__(self, tools, folder):
        self.tools, self.folder, self.count = tools, folder, 0
        tools("export.py", DATA / "checkpoints" / "gpt2", "--seq", maker.SEQUENCE, "--out", folder / "model")
        samples = maker.samples()
        save_file({"input_ids": samples, "labels": samples}, folder / "data.safetensors")

    def fresh(self, suffix):
        self.count += 1
        return self.folder / f"{self.count}{suffix}"

    def convert(self, source):
        out = self.fresh("")
        self.tools("ds-run", "checkpoint", "convert", out, "--from-deepspeed", source, env=PYTHON)
        self.tools("ds-run", "checkpoint", "verify", out)
        return out

    def refused(self, source, out=None, env=PYTHON):
        out = out or self.fresh("")
        said = self.tools.refused("ds-run", "checkpoint", "convert", out, "--from-deepspeed", source, env=env)
        assert not list(out.glob("global_step*.part")), "nothing is left behind"
        return said

    def losses(self, name, checkpoint, ranks, stage, stages=1):
        """Of the steps that follow, of DeepSpeed's configuration on other ranks."""
        config, plan = self.fresh(".json"), self.fresh(".dsplan")
        settings = maker.configuration(name)
        settings["zero_optimization"] = {"stage": stage}
        settings["gradient_accumulation_steps"] = maker.RANKS * maker.MICRO_BATCHES // (ranks // stages)
        config.write_text(json.dumps({**settings, "deepstatic": {"pipeline": {"stages": stages}}}))
        self.tools("ds-opt", "compile", self.folder / "model", "--config", config, "--ranks", ranks, "-o", plan)
        steps, _ = self.tools.train(plan, self.folder / "data.safetensors", maker.BEFORE + maker.AFTER, "-n", ranks, "--resume", checkpoint)
        assert [line["step"] for line in steps] == [5, 6, 7, 8]
        return [line["loss"] for line in steps]


@pytest.fixture(scope="module")
def continued(tools, tmp_path_factory):
    return Continued(tools, tmp_path_factory.mktemp("deepspeed"))


def require_same(continued, source, name, layouts):
    checkpoint = continued.convert(source / name)
    weights, theirs = continued.fresh(".safetensors"), load_file(source / name / "weights.safetensors")
    continued.tools("ds-run", "export", checkpoint, "-o", weights)
    ours = load_file(weights)
    assert set(ours) | {"lm_head.weight"} == set(theirs) | {"lm_head.weight"}
    for key, value in ours.items():
        assert value.tobytes() == theirs[key].tobytes(), key
    expected = json.loads((source / name / "losses.json").read_text())["losses"][maker.BEFORE:]
    for layout in layouts:
        assert numpy.allclose(continued.losses(name, checkpoint, *layout), expected, rtol=TOLERANCE[name.split("-")[1]], atol=0), layout


@pytest.mark.parametrize("name", maker.CASES)
def test_goes_on_where_deepspeed_ended(continued, name):
    stage = maker.CASES[name]["zero_optimization"]["stage"]
    require_same(continued, DATA / "checkpoints", name, [(2, stage), (1, 0), (4, 3), (2, 1, 2)])


@pytest.mark.skipif(os.environ.get("DS_TEST_SCOPE") != "all", reason="installs DeepSpeed: DS_TEST_SCOPE=all")
def test_checkpoints_of_deepspeed_as_it_is_installed_now(continued):
    site, made = continued.fresh("-site"), continued.fresh("-made")
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", site, "--no-deps", *PACKAGES], check=True, timeout=600)
    subprocess.run([sys.executable, DATA / "make_checkpoints.py", "--out", made], check=True, timeout=600, env={**PYTHON, "PYTHONPATH": str(site)})
    for name in maker.CASES:
        require_same(continued, made, name, [(2, 2)])


# ---- bad input


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(DATA / "checkpoints" / "zero2-fp16", tmp_path / "copy")


def test_files_that_are_missing_or_damaged(continued, copy, tmp_path):
    step = copy / "global_step4"
    states = step / "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    whole = states.read_bytes()
    states.write_bytes(whole[:len(whole) // 2])
    assert f"{states} cannot be read" in continued.refused(copy)
    states.unlink()
    assert "is of 2 data-parallel ranks, but has the optimizer states of 1" in continued.refused(copy)
    states.write_bytes(whole)
    (step / "mp_rank_00_model_states.pt").unlink()
    assert "mp_rank_00_model_states.pt is missing" in continued.refused(copy)
    assert "is no folder; give the one that save_checkpoint wrote" in continued.refused(tmp_path / "nothing")
    assert "has no file zero_pp_rank_0_mp_rank_00_optim_states.pt" in continued.refused(DATA)


def test_what_is_there_is_kept(continued, copy):
    out = continued.convert(copy)
    assert "global_step4 is there already; give another folder" in continued.refused(copy, out)


def test_python_without_pytorch(continued, copy, tmp_path):
    (tmp_path / "python3").write_text(f"#!/bin/sh\nexec {sys.executable} -S \"$@\"\n")
    (tmp_path / "python3").chmod(0o755)
    assert "has no module " in continued.refused(copy, env={**PYTHON, "PATH": f"{tmp_path}:{PYTHON['PATH']}"})
    assert "python3, which reads DeepSpeed's files, cannot be started" in continued.refused(copy, env={**PYTHON, "PATH": str(tmp_path / "none")})


class Hostile:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_nothing_that_a_file_names_is_run(continued, copy, tmp_path):
    states = copy / "global_step4" / "zero_pp_rank_0_mp_rank_00_optim_states.pt"
    with zipfile.ZipFile(states) as archive:
        parts = {info.filename: archive.read(info) for info in archive.infolist()}
    name = next(name for name in parts if name.endswith("data.pkl"))
    parts[name] = pickle.dumps(Hostile(str(tmp_path / "made")), 2)
    with zipfile.ZipFile(states, "w", zipfile.ZIP_STORED) as archive:
        for key, value in parts.items():
            archive.writestr(key, value)
    assert "it holds a mkdir" in continued.refused(copy)
    assert not (tmp_path / "made").exists()
