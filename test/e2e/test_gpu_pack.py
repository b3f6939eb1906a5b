"""scripts/gpu_pack.py: what travels to a machine with a GPU, and that it runs where nothing else is: no compiler, no packages, no network."""

import _bz2
import _hashlib
import _lzma
import os
import shutil
import subprocess
import sys
import tarfile
import zlib

import pytest
from conftest import FAKE_CUDA, REPOSITORY
from test_gpu_scripts import first_plans, summary_of  # noqa: F401

SCRIPTS = REPOSITORY / "scripts"
sys.path.insert(0, str(SCRIPTS))
import gpu_pack  # noqa: E402

TOOLS = ("bash", "env", "dirname", "basename", "grep")  # of every machine


def command(file, plans):
    return [sys.executable, SCRIPTS / "gpu_pack.py", file, "--bin", FAKE_CUDA / "ds-run", "--lib", FAKE_CUDA.parent / "lib" / "libds-cuda.so",
            "--cases", plans / "h100", "--plans", plans]


def make_pack(file, plans):
    return subprocess.run(command(file, plans), capture_output=True, text=True)


@pytest.fixture(scope="module")
def pack(first_plans, tmp_path_factory):  # noqa: F811
    file = tmp_path_factory.mktemp("pack") / "gpu-pack.tar.gz"
    return file, make_pack(file, first_plans)


def test_its_contents_are_told_and_are_the_same_each_time(pack, first_plans, tmp_path):  # noqa: F811
    file, made = pack
    assert made.returncode == 0, made.stderr
    with tarfile.open(file) as archive:
        names = {member.name.removeprefix("gpu-pack/") for member in archive if member.isfile()}
    assert {"bin/ds-run", "lib/libds-cuda.so", "scripts/gpu_first.sh", "scripts/gpu_run.py", "bench/rounds.py",
            "bench/h100/small-bfloat16.dsplan", "bench/h200/small-bfloat16.dsplan"} <= names
    with tarfile.open(file) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            assert archive.extractfile(member).read(2) != b"#!" or member.mode & 0o100, f"{member.name} is not to be executed"
    assert f"{file}: {file.stat().st_size} bytes (" in made.stdout and f"in {len(names)} files unpacked" in made.stdout
    again = make_pack(tmp_path / "again.tar.gz", first_plans)
    assert again.returncode == 0 and (tmp_path / "again.tar.gz").read_bytes() == file.read_bytes()


def test_an_archive_that_is_too_large_is_refused(first_plans, tmp_path, monkeypatch):  # noqa: F811
    assert gpu_pack.LIMIT == 44 << 20
    monkeypatch.setattr(gpu_pack, "LIMIT", 10_000)
    monkeypatch.setattr(sys, "argv", [str(word) for word in command(tmp_path / "large.tar.gz", first_plans)[1:]])
    with pytest.raises(SystemExit, match="bytes, and at most 10000 are to travel"):
        gpu_pack.main()


# The C++ library, which PyTorch brings along.
COMMON = [path for path in subprocess.run(["ldd", FAKE_CUDA / "ds-run"], capture_output=True, text=True, check=True).stdout.split()
          if path.startswith("/") and ("libstdc++" in path or "libgcc_s" in path)]


def libraries(program):
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [word for line in lines for word in line.split() if word.startswith("/")]


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a root folder needs root")
def test_it_runs_in_a_bare_root(pack, tmp_path):
    """bash, Python and the C library; a file system and a network of its own."""
    root = tmp_path / "root"
    for folder in ("proc", "dev", "tmp", "bin", sys.base_prefix.lstrip("/")):
        (root / folder).mkdir(parents=True, exist_ok=True)
    programs = [shutil.which(tool) for tool in TOOLS]
    python = os.path.realpath(sys.executable)
    modules = [module.__file__ for module in (_hashlib, _bz2, _lzma, zlib) if hasattr(module, "__file__")]
    for file in {library for program in (*programs, python, *modules) for library in libraries(program)} | set(COMMON):
        place = root / file.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    for program in programs:
        shutil.copy(program, root / "bin")
    (root / "bin" / "python3").symlink_to(python)
    with tarfile.open(pack[0]) as archive:
        archive.extractall(root, filter="data")
    inside = ["chroot", root, "/bin/env", "-i", "PATH=/bin", "OUT=/tmp", "/bin/bash", "/gpu-pack/scripts/gpu_first.sh", "--out", "/tmp/first",
              "info", "step", "profile", "strict", "tune"]
    mounts = f"mount --rbind /proc {root}/proc && mount --rbind /dev {root}/dev && mount --bind {sys.base_prefix} {root}{sys.base_prefix}"
    done = subprocess.run(["unshare", "--mount", "--net", "--fork", "sh", "-c", f'{mounts} && exec "$@"', "sh", *inside], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["info", "step", "profile", "strict", "tune"]
    assert "fallbacks 0" in summary_of(done.stdout, "step")
    with tarfile.open(root / "tmp" / "first.tar.gz") as results:
        names = results.getnames()
    assert {"first/results.jsonl", "first/step.log", "first/tune.log"} <= set(names) and not any(name.endswith(".dsplan") for name in names)
