"""The tarball and the wheel of `make package`: nothing of theirs is missing on a bare Debian 12, and tiny GPT-2 trains there.

Takes what lies in build/package; DS_TEST_SCOPE=all makes it first.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import REPOSITORY, write_config

sys.path.insert(0, str(REPOSITORY / "scripts"))
import package_needs  # noqa: E402

OUT = REPOSITORY / "build" / "package"
GLUE = {f"deepstatic/{path.name}" for path in (REPOSITORY / "python" / "deepstatic").glob("*.py")}  # what the wheel has and the tarball has not


def one(pattern):
    path, = OUT.glob(pattern)
    return path


@pytest.fixture(scope="module")
def packages():
    """(tarball, wheel)"""
    if os.environ.get("DS_TEST_SCOPE") == "all":
        subprocess.run(["bash", REPOSITORY / "scripts" / "package.sh"], check=True)
    elif not OUT.exists():
        pytest.skip("there is no build/package; make package makes it")
    return one("*.tar.gz"), one("*.whl")


@pytest.fixture(scope="module")
def tree(packages, tmp_path_factory):
    """The tarball, unpacked."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run(["tar", "-C", folder, "-xzf", packages[0]], check=True)
    tree, = folder.iterdir()
    return tree


def files_of(folder):
    return {path.relative_to(folder).as_posix(): (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mode & 0o777)
            for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_needed_that_debian_12_has_not(tree):
    assert list(package_needs.unmet(tree)) == []


def test_a_need_that_is_not_met_is_named(tree, tmp_path):
    bare = tmp_path / "bare"
    (bare / "lib").mkdir(parents=True)
    (bare / "bin").mkdir()
    (bare / "bin" / "ds-run").write_bytes((tree / "bin" / "ds-run").read_bytes())
    assert "ds-run needs libdnnl.so.2, which is neither in lib nor on every machine" in list(package_needs.unmet(bare))


def test_the_wheel_holds_what_the_tarball_holds(packages, tree):
    with zipfile.ZipFile(packages[1]) as wheel:
        held = {entry.filename.removeprefix("deepstatic/"): (hashlib.sha256(wheel.read(entry)).digest(), entry.external_attr >> 16 & 0o777)
                for entry in wheel.infolist() if ".dist-info/" not in entry.filename and entry.filename not in GLUE}
    assert held == files_of(tree)


def test_nothing_in_the_tarball_says_who_made_it_or_when(packages):
    with tarfile.open(packages[0]) as tarball:
        entries = tarball.getmembers()
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert {(entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) for entry in entries} == {(0, 0, "", "", 315532800)}
    assert {entry.mode for entry in entries} == {0o755, 0o644}


def test_the_same_input_gives_the_same_bytes(packages):
    if os.environ.get("DS_TEST_SCOPE") != "all":
        pytest.skip("makes both again; in scope all")
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in packages]
    subprocess.run(["bash", REPOSITORY / "scripts" / "package.sh"], check=True, env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in packages] == before


def test_tools_find_their_machines_and_libraries_from_any_place(tree, exported, tmp_path):
    config, plan = write_config(tmp_path / "c.json"), tmp_path / "m.dsplan"
    clean = {"PATH": "/usr/bin:/bin"}
    link = tmp_path / "ds-opt"
    link.symlink_to(tree / "bin" / "ds-opt")
    subprocess.run([link, "compile", exported("gpt2", "--size", "tiny"), "--config", config, "--machine", "h100x8", "-o", plan], check=True,
                   cwd=tmp_path, env=clean, capture_output=True)
    maps = subprocess.run(["ldd", tree / "bin" / "ds-run"], text=True, capture_output=True, env=clean, check=True).stdout
    beside = {path.name for path in (tree / "lib").iterdir()}
    for line in (line for line in maps.splitlines() if "=>" in line):
        name, path = line.split()[0], Path(line.split()[2])
        assert (path.resolve().parent == tree / "lib") == (name in beside), line


def test_ranks_are_processes_under_the_mpirun_of_this_machine(tree, exported, text_data, tmp_path):
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not there")
    plan, data = tmp_path / "m.dsplan", text_data(128)
    subprocess.run([tree / "bin" / "ds-opt", "compile", exported("gpt2", "--size", "tiny"), "--config", write_config(tmp_path / "c.json"),
                    "--ranks", "2", "-o", plan], check=True, capture_output=True)
    train = [tree / "bin" / "ds-run", plan, "--data", data, "--steps", "2", "--quiet", "--export"]
    subprocess.run([*train, tmp_path / "threads", "-n", "2"], check=True)
    subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *train, tmp_path / "processes"], check=True, timeout=300)
    assert (tmp_path / "threads").read_bytes() == (tmp_path / "processes").read_bytes()


def test_tiny_gpt2_trains_in_a_bare_root(packages):
    done = subprocess.run(["bash", REPOSITORY / "scripts" / "try_package.sh"], text=True, capture_output=True)
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0 and "trained in a bare root" in done.stdout, done.stdout + done.stderr
