"""The same plan and seed give the same bits: twice, on any number of threads, and under the checks."""

import hashlib

import pytest
from conftest import write_config

STEPS = 6


def digest(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def plans(tools, exported, tmp_path_factory):
    """Plans with dropout, clipping and accumulation, so that everything that could differ takes part."""
    folder = tmp_path_factory.mktemp("plans")
    config = write_config(folder / "ds_config.json", 3, 2, gradient_clipping=1.0)
    compiled = {}
    for name in ("gpt2", "llama"):
        compiled[name] = folder / f"{name}.dsplan"
        tools("ds-opt", "compile", exported(name, "--size", "tiny", "--seq", 64, "--dropout", 0.1), "--config", config,
              "--ranks", 1, "-o", compiled[name])
    return compiled


def outcome(tools, plan, data, out, *options):
    """(SHA-256 of the final weights, numbers of all steps) of a run."""
    metrics, _ = tools.train(plan, data, STEPS, "--export", out, *options)
    return digest(out), [(line["loss"], line["grad_norm"], line["lr"]) for line in metrics]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_any_number_of_threads_gives_the_same_bits(name, tools, plans, text_data, tmp_path):
    runs = {threads: outcome(tools, plans[name], text_data(64), tmp_path / f"{threads}.safetensors", "--threads", threads)
            for threads in (1, 2, 3, 8)}
    again = outcome(tools, plans[name], text_data(64), tmp_path / "again.safetensors", "--threads", 2)
    assert set(map(str, runs.values())) == {str(again)}


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_checks_change_no_bit(name, tools, plans, text_data, tmp_path):
    plain = outcome(tools, plans[name], text_data(64), tmp_path / "plain.safetensors")
    for check in ("--check-memory", "--check-numerics"):
        assert outcome(tools, plans[name], text_data(64), tmp_path / "checked.safetensors", check) == plain, check


def test_what_may_change_the_bits_does(tools, plans, text_data, tmp_path):
    """So that equal digests above mean something."""
    options = {"plain": (), "seed": ("--seed", 1), "shuffle": ("--shuffle",)}
    runs = {name: outcome(tools, plans["gpt2"], text_data(64), tmp_path / f"{name}.safetensors", *given)
            for name, given in options.items()}
    assert len({digest for digest, _ in runs.values()}) == len(options)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_compiling_twice_gives_the_same_bytes(name, tools, plans, exported, tmp_path):
    folder = exported(name, "--size", "tiny", "--seq", 64, "--dropout", 0.1)
    config = plans[name].parent / "ds_config.json"
    again = plans[name].with_name(f"{name}-again.dsplan")
    tools("ds-opt", "compile", folder, "--config", config, "--ranks", 1, "-o", again)
    assert again.read_bytes() == plans[name].read_bytes()
    # from another working directory, with relative paths
    tools("ds-opt", "compile", folder.name, "--config", config, "--ranks", 1, "-o", again, cwd=folder.parent)
    assert again.read_bytes() == plans[name].read_bytes()
