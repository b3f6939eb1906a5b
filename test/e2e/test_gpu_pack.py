"""scripts/gpu_pack.py: what travels to a machine with a GPU, and that it runs where nothing else is: no compiler, no packages, no network."""

import _bz2
import _hashlib
import _lzma
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib

import pytest
from conftest import FAKE_CUDA, REPOSITORY
from test_gpu_scripts import first_plans, summary_of  # noqa: F401

SCRIPTS = REPOSITORY / "scripts"
sys.path.insert(0, str(SCRIPTS))
import gpu_first  # noqa: E402
import gpu_pack  # noqa: E402

TOOLS = ("bash", "env", "dirname", "basename", "grep", "gzip", "cp", "rm")  # of every machine


def command(file, plans, tool=FAKE_CUDA / "ds-run", library=FAKE_CUDA.parent / "lib" / "libds-cuda.so"):
    return [sys.executable, SCRIPTS / "gpu_pack.py", file, "--bin", tool, "--lib", library, "--cases", plans / "h100", "--plans", plans]


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
    sums = {}
    with tarfile.open(file) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            content = archive.extractfile(member).read()
            assert content[:2] != b"#!" or member.mode & 0o100, f"{member.name} is not to be executed"
            if re.match("gpu-pack/(bin|lib)/", member.name):
                sums.setdefault(hashlib.sha256(content).hexdigest(), []).append(member.name)
    assert all(len(same) == 1 for same in sums.values()), sums
    assert f"{file}: {file.stat().st_size} bytes (" in made.stdout and f"in {len(names)} files unpacked" in made.stdout
    again = make_pack(tmp_path / "again.tar.gz", first_plans)
    assert again.returncode == 0 and (tmp_path / "again.tar.gz").read_bytes() == file.read_bytes()


def test_an_archive_that_is_too_large_is_refused(first_plans, tmp_path, monkeypatch):  # noqa: F811
    assert gpu_pack.LIMIT == 44 << 20
    monkeypatch.setattr(gpu_pack, "LIMIT", 10_000)
    small = shutil.which("basename")
    monkeypatch.setattr(sys, "argv", [str(word) for word in command(tmp_path / "large.tar.gz", first_plans, small, small)[1:]])
    with pytest.raises(SystemExit, match="bytes, and at most 10000 are to travel"):
        gpu_pack.main()


def test_make_gpu_pack_packs_what_is_built_for_hopper(tmp_path):
    """pack_gpu.sh with scripts that only tell how they are called."""
    tells = '#!/bin/sh\necho "$(basename "$0") $*"\n'
    for name in ("scripts/install.sh", "scripts/install-cuda.sh", "scripts/build.sh", "scripts/gpu_plans.sh", "build/venv/bin/python"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(tells)
        (tmp_path / name).chmod(0o755)
    shutil.copy(SCRIPTS / "pack_gpu.sh", tmp_path / "scripts")
    told = subprocess.run(["bash", tmp_path / "scripts" / "pack_gpu.sh", "FILE"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "build.sh dev ds-opt" in told and "build.sh hopper gpu-tests" in told[:-1]
    assert told[-1].startswith("python scripts/gpu_pack.py FILE --bin build/hopper/bin/ds-run ")
    assert told[-1].endswith(" --lib build/hopper/lib/libds-cuda.so --cases build/gpu-cases --plans build/gpu-plans")
    presets = json.loads((REPOSITORY / "CMakePresets.json").read_text())["configurePresets"]
    assert next(preset for preset in presets if preset["name"] == "hopper")["cacheVariables"] == {"DS_CUDA_CODE": "sm_90a"}


HOPPER = REPOSITORY / "build" / "hopper" / "lib" / "libds-cuda.so"


@pytest.mark.skipif(not HOPPER.exists(), reason="make gpu-pack builds it")
def test_hopper_has_code_for_sm_90_alone():
    """What cuobjdump would list: regions begin with magic, version, size of the header and of the entries; an entry with its kind (1 is PTX,
    2 machine code), two bytes, the sizes of its header and of its content, and 28 bytes behind its begin the architecture."""
    content, found, at = HOPPER.read_bytes(), set(), 0
    while (at := content.find(struct.pack("<IHH", 0xBA55ED50, 1, 16), at)) >= 0:
        end = at + 16 + struct.unpack_from("<Q", content, at + 8)[0]
        at += 16
        while at < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", content, at)
            found.add((kind, *struct.unpack_from("<I", content, at + 28)))
            at += header + size
    assert found == {(2, 90)}


# The C++ library, which PyTorch brings along.
COMMON = [path for path in subprocess.run(["ldd", FAKE_CUDA / "ds-run"], capture_output=True, text=True, check=True).stdout.split()
          if path.startswith("/") and ("libstdc++" in path or "libgcc_s" in path)]


def libraries(program):
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return [word for line in lines for word in line.split() if word.startswith("/")]


@pytest.fixture
def bare_root(pack, tmp_path):
    """A root folder with bash, Python, the C library and an archive, and what runs a line of shell in it with no network."""
    root = tmp_path / "root"
    for folder in ("proc", "dev", "tmp", "bin", "usr", sys.base_prefix.lstrip("/")):
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
    (root / "usr" / "bin").symlink_to("/bin")
    shutil.copy(pack[0], root)
    mounts = f"mount --rbind /proc {root}/proc && mount --rbind /dev {root}/dev && mount --bind {sys.base_prefix} {root}{sys.base_prefix}"

    def run(line):
        inside = ["chroot", root, "/bin/env", "-i", "PATH=/bin", "OUT=/tmp", "/bin/bash", "-c", line]
        return subprocess.run(["unshare", "--mount", "--net", "--fork", "sh", "-c", f'{mounts} && exec "$@"', "sh", *inside],
                              capture_output=True, text=True)
    return root, run


def commands_of_the_page():
    page = (REPOSITORY / "docs" / "cuda.md").read_text()
    return next(block for block in page.split("```") if "tarfile -e gpu-pack.tar.gz" in block).strip().splitlines()


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a root folder needs root")
def test_the_pages_commands_run_in_a_bare_root(bare_root):
    """bash, Python and the C library; a file system and a network of its own."""
    root, run = bare_root
    first, second = commands_of_the_page()
    done = run(first)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == gpu_first.CALLS["first"]
    assert "fallbacks 0" in summary_of(done.stdout, "step")
    with tarfile.open(root / "tmp" / "f.tar.gz") as results:
        names = results.getnames()
    assert {"f/results.jsonl", "f/step.log", "f/tune.log"} <= set(names) and not any(name.endswith(".dsplan") for name in names)
    # This archive has neither tests nor a GPU that the bench knows.
    done = run(second)
    assert done.returncode == 1 and [line.split(":")[0] for line in done.stdout.splitlines()] == ["info", *gpu_first.CALLS["second"]], done.stderr
    with tarfile.open(root / "tmp" / "s.tar.gz") as results:
        assert "s/speed-xl.log" in results.getnames()


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a root folder needs root")
def test_half_an_archive_is_refused_in_a_bare_root(bare_root):
    root, run = bare_root
    os.truncate(root / "gpu-pack.tar.gz", (root / "gpu-pack.tar.gz").stat().st_size // 2)
    done = run(commands_of_the_page()[0])
    assert done.returncode == 1 and done.stderr.strip() == "gzip: gpu-pack.tar.gz: unexpected end of file"
    assert not (root / "gpu-pack").exists()


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "half"])
def test_a_checkout_that_cannot_build_unpacks_the_archive(pack, tmp_path, whole):
    """As on a machine with nvcc and no compiler else."""
    shutil.copytree(SCRIPTS, tmp_path / "scripts")
    (tmp_path / "bin").mkdir()
    for name in (*TOOLS, "python3"):
        (tmp_path / "bin" / name).symlink_to(os.path.realpath(sys.executable) if name == "python3" else shutil.which(name))
    (tmp_path / "bin" / "nvcc").symlink_to("basename")
    (tmp_path / "build").mkdir()
    archive = tmp_path / "build" / "gpu-pack.tar.gz"
    shutil.copy(pack[0], archive)
    if not whole:
        os.truncate(archive, archive.stat().st_size // 2)
    done = subprocess.run(["bash", tmp_path / "scripts" / "gpu_first.sh", "--out", tmp_path / "out", "info"], capture_output=True, text=True,
                          env={"PATH": f"{tmp_path}/bin"})
    told = done.stderr.splitlines()
    assert told[0] == "this machine cannot build, so build/gpu-pack.tar.gz is unpacked"
    if whole:
        assert done.returncode == 0 and done.stdout.startswith("info: gpu 0 ") and len(told) == 1, done.stderr
        assert (tmp_path / "out.tar.gz").exists()
    else:
        assert (done.returncode, len(told), told[1].split(", ")[0]) == (1, 2, "error: build/gpu-pack.tar.gz cannot be unpacked")
        assert [file.name for file in (tmp_path / "build").iterdir()] == ["gpu-pack.tar.gz"], "nothing is left that a later call would run"
