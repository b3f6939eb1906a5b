"""What the tools say when they are called without anything, or with what they do not know."""

import json
import os
import pty
import re
import shutil
import subprocess

import numpy
import pytest
from conftest import FOLDERS, ON_GPU, REPOSITORY, write_config
from safetensors.numpy import save_file

COMMANDS = ("import", "compile", "verify", "explain", "check", "report", "diff", "zoo")


def run(*arguments, **more):
    return subprocess.run([(FOLDERS[arguments[0]] / arguments[0]).resolve(), *arguments[1:]], capture_output=True, text=True, timeout=60, **more)


@pytest.mark.parametrize("flag", ["--help", "-h", "--commands"])
def test_help_lists_the_commands(flag):
    done = run("ds-opt", flag, stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)
    assert "--help-list" in done.stdout


def test_a_terminal_gets_help_and_a_pipe_mlir_opt():
    terminal, side = pty.openpty()
    try:
        assert "Subcommands:" in run("ds-opt", stdin=side).stdout
    finally:
        os.close(terminal)
        os.close(side)
    assert run("ds-opt", input="module {}").stdout.split() == ["module", "{", "}"]


def test_a_terminal_is_told_that_nothing_is_kept(tmp_path):
    """Who watches a run that keeps nothing hears of it before the first step, not after the last."""
    write_config(tmp_path / "c.json", 1)
    run("ds-opt", "compile", REPOSITORY / "test" / "e2e" / "hazards" / "good-gpt2", "--config", "c.json", "-o", "p.dsplan", cwd=tmp_path)
    save_file({name: numpy.zeros((4, 4), numpy.int64) for name in ("input_ids", "labels")}, tmp_path / "d.safetensors")

    def said(*flags):
        terminal, side = pty.openpty()
        try:
            done = subprocess.run([FOLDERS["ds-run"] / "ds-run", "p.dsplan", "--data", "d.safetensors", *flags], cwd=tmp_path, stderr=side, timeout=60)
            assert done.returncode == 0
            return os.read(terminal, 1 << 16).decode()
        finally:
            os.close(terminal)
            os.close(side)
    note = "note: without --save FOLDER and --export FILE the trained weights end with the run"
    assert note in said()
    assert note not in said("--export", "w.safetensors") + said("--save", "s") + said("--eval")
    assert note not in run("ds-run", "p.dsplan", "--data", "d.safetensors", cwd=tmp_path).stderr


def test_a_loss_that_is_nan_has_no_sign(tmp_path):
    """0 / 0 is -NaN on a processor of Intel's."""
    write_config(tmp_path / "c.json", 1)
    run("ds-opt", "compile", REPOSITORY / "test" / "e2e" / "hazards" / "good-gpt2", "--config", "c.json", "-o", "p.dsplan", cwd=tmp_path)
    ids = numpy.zeros((1, 4), numpy.int64)
    save_file({"input_ids": ids, "labels": ids - 100}, tmp_path / "d.safetensors")
    done = run("ds-run", "p.dsplan", "--data", "d.safetensors", "--on-nonfinite", "continue", cwd=tmp_path)
    assert "loss nan  lr" in done.stderr, done.stderr


def test_version():
    assert run("ds-opt", "--version").stdout.startswith("ds-opt 0.")
    assert run("ds-run", "--version").stdout == run("ds-opt", "--version").stdout.replace("ds-opt", "ds-run")
    assert run("ds-run", "info").stdout.startswith("ds-run         0.")


def test_an_unknown_command_is_named(tmp_path):
    done = run("ds-opt", "repotr", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"error: 'repotr' is neither a command of ds-opt nor a file; the commands are {', '.join(COMMANDS)}\n"


def test_a_file_named_like_a_word_is_read(tmp_path):
    (tmp_path / "repotr").write_text("module {}")
    assert run("ds-opt", "repotr", cwd=tmp_path).returncode == 0


def test_an_unknown_flag_gets_the_nearest_of_its_command():
    done = run("ds-opt", "report", "p.dsplan", "--fromat", "json")
    assert (done.returncode, done.stderr) == (2, "error: there is no flag --fromat; the nearest is --format; see ds-opt report --help\n")


def test_flags_stand_before_a_command_too():
    done = run("ds-opt", "--quiet", "report", "missing.dsplan")
    assert (done.returncode, done.stderr) == (1, "error: plan missing.dsplan: cannot be opened: No such file or directory\n")


def test_info_names_the_instruction_set_of_kernels():
    for cap in ("baseline", "avx2"):
        line = next(line for line in run("ds-run", "info", env={**os.environ, "DS_CPU_ISA": cap}).stdout.splitlines()
                    if line.startswith("instructions"))
        assert line.endswith(("; kernels use baseline", f"; kernels use {cap}"))


def test_help_of_ds_run_is_whole():
    """No byte that is no text, and what stands last in the source is there."""
    done = run("ds-run", "--help")
    assert done.returncode == 0 and not re.search(r"[^\n\x20-\x7e]", done.stdout)
    for word in ("--on-nonfinite", "{stop,skip,continue}", "--certify", "--bisect", "--tune", "--quiet", "--verbose", "--version", "info", "postmortem", "export", "checkpoint"):
        assert word in done.stdout, word


@pytest.mark.parametrize("tool, arguments", [
    ("ds-run", ["p.dsplan", "--save", ""]), ("ds-run", ["p.dsplan", "--export", ""]), ("ds-run", ["p.dsplan", "--metrics", ""]),
    ("ds-run", ["p.dsplan", "--resume", ""]), ("ds-run", ["p.dsplan", "--weights", ""]), ("ds-run", ["p.dsplan", "--certify", ""]),
    ("ds-run", ["p.dsplan", "--tag", ""]), ("ds-run", ["export", "there", "-o", ""]), ("ds-run", ["checkpoint", "ls", ""]), ("ds-run", [""]),
    ("ds-opt", ["compile", "m", "--config", "c.json", "-o", ""]), ("ds-opt", ["compile", "m", "--config", ""]),
    ("ds-opt", ["verify", "p.dsplan", "--certificate", ""]), ("ds-opt", ["report", "p.dsplan", "--html", ""])], ids=str)
def test_an_empty_value_is_refused(tool, arguments, tmp_path):
    done = run(tool, *arguments, cwd=tmp_path)
    assert done.returncode == 2 and "an empty value was given; leave it out, or give one" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flag", ["--steps", "--seed", "--replica-digest-interval", "--save-interval", "--keep", "--threads", "-n"])
@pytest.mark.parametrize("value", ["-1", "010", "0x8", "1e3", "18446744073709551616", "100000000000000000000000", "nan", " 1"])
def test_a_number_is_read_as_it_is_written(flag, value):
    done = run("ds-run", "p.dsplan", "--data", "d", f"{flag}={value}" if flag != "-n" else f"-n{value}")
    assert done.returncode == 2 and done.stderr.startswith("error: ") and len(done.stderr) < 300, done.stderr


@pytest.mark.parametrize("value", ["010", "0x8", "nan", "100000000000000000000000"])
def test_a_number_of_ranks_is_read_as_it_is_written(value):
    for command in ("compile", "check"):
        assert run("ds-opt", command, "m", "--config", "c", f"--ranks={value}").returncode == 2


@pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
def test_results_never_overwrite_what_they_are_made_of(exported, tmp_path):
    """Model, its data, configuration, machine file, plan, checkpoint: refused by name, and each byte as before."""
    shutil.copytree(exported("gpt2", "--size", "tiny", "--seq", 16), tmp_path / "m")
    model, data = "m/model.onnx", "m/model.onnx.data"
    config = str(write_config(tmp_path / "c.json"))
    (tmp_path / "machine.json").write_text(json.dumps({"name": "m"}))
    assert run("ds-opt", "compile", "m", "--config", config, "-o", "p.dsplan", cwd=tmp_path).returncode == 0
    os.link(tmp_path / data, tmp_path / "linked")
    compile_it = ["compile", "m", "--config", config]
    cases = [[*compile_it, "-o", path] for path in (model, data, "linked", config, "./m/../c.json")]
    cases += [[*compile_it, "--machine", "./machine.json", "-o", "machine.json"], [*compile_it, "--emit", "train", "-o", model],
              ["import", "m", "-o", model], ["import", model, "-o", data], ["check", "m", "--config", config, "-o", config],
              ["verify", "p.dsplan", "--certificate", "p.dsplan"], ["verify", "p.dsplan", "--model", "m", "--certificate", model],
              ["verify", "p.dsplan", "--certificate", data], ["report", "p.dsplan", "-o", "p.dsplan"], ["report", "p.dsplan", "--html", data],
              ["diff", "p.dsplan", "p.dsplan", "-o", "p.dsplan"]]
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for arguments in cases:
        done = run("ds-opt", *arguments, cwd=tmp_path)
        assert done.returncode == 1 and " would overwrite " in done.stderr and "Traceback" not in done.stderr, (arguments, done.stderr)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    (tmp_path / "w.safetensors").write_bytes(b"w")
    done = run("ds-run", "export", "w.safetensors", "-o", "./w.safetensors", cwd=tmp_path)
    assert done.returncode == 1 and "would overwrite what it is made of" in done.stderr


@pytest.mark.parametrize("limit, sentence", [("-s 64", "the limit of a stack is 64 KiB (ulimit -s), and ds-run needs 256")])
def test_a_limit_that_is_too_low_is_named(limit, sentence):
    done = subprocess.run(["bash", "-c", f"ulimit {limit}; exec {FOLDERS['ds-run'] / 'ds-run'} info"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"error: {sentence}\n")


def test_what_kernels_are_capped_to_is_one_of_a_list():
    done = run("ds-run", "info", env={**os.environ, "DS_CPU_ISA": "evil"})
    assert (done.returncode, done.stderr) == (1, "error: the environment variable DS_CPU_ISA is 'evil', which is none of baseline, avx2, avx512, avx512_bf16, amx\n")


@pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
def test_a_folder_that_takes_no_checkpoint_is_refused_before_the_first_step(tools, exported, text_data, tmp_path):
    """By names too long for the files in it; root may write into any folder. Likewise pipes in place of a checkpoint's files."""
    plan, data = tmp_path / "p.dsplan", text_data(64)
    tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64), "--config", write_config(tmp_path / "c.json"), "-o", plan)
    long = tmp_path
    while len(str(long)) < 3900:
        long /= "x" * 100
    long /= "y" * (4040 - len(str(long)) - 1)
    said = tools.refused("ds-run", plan, "--data", data, "--steps", 1, "--save", long, "--metrics", tmp_path / "m.jsonl", "--quiet")
    assert "cannot take a checkpoint" in said and said.endswith("File name too long"), said[-200:]
    assert not (tmp_path / "m.jsonl").exists()
    tools("ds-run", plan, "--data", data, "--steps", 1, "--save", tmp_path / "saved", "--quiet")
    for name in ("latest", "global_step1/manifest.json"):
        (tmp_path / "saved" / name).unlink()
        os.mkfifo(tmp_path / "saved" / name)
        assert tools.refused("ds-run", plan, "--data", data, "--resume", tmp_path / "saved", "--quiet").endswith(f"{name} is not a regular file")
        (tmp_path / "saved" / name).unlink()
        if name == "latest":
            (tmp_path / "saved" / name).write_text("global_step1")


def test_a_job_of_one_process_is_told_of_the_flag(tools, exported, tmp_path):
    plan = tmp_path / "p.dsplan"
    tools("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 64), "--config", write_config(tmp_path / "c.json"), "--ranks", 2, "-o", plan)
    said = tools.refused("ds-run", plan, "--data", "d", env={**os.environ, "OMPI_COMM_WORLD_SIZE": "1"})
    assert said == f"mpirun started one process, to be one rank, but plan {plan} is for 2 ranks; start as many, or run all in this process by -n 2"
