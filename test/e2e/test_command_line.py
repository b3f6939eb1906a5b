"""What the tools say when they are called without anything, or with what they do not know."""

import os
import pty
import subprocess

import pytest
from conftest import FOLDERS

COMMANDS = ("import", "compile", "verify", "explain", "check", "report", "diff", "zoo")


def run(*arguments, **more):
    return subprocess.run([FOLDERS[arguments[0]] / arguments[0], *arguments[1:]], capture_output=True, text=True, timeout=60, **more)


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


def test_version():
    assert run("ds-opt", "--version").stdout.startswith("ds-opt 0.")
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
