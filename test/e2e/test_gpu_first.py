"""scripts/gpu_first.sh in a folder as gpu_pack.py makes it, with tools that only pretend: what it gives them, and how it ends where the
machine lacks something, a part hangs or the machine is taken away."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest
from conftest import FOLDERS, REPOSITORY
from test_gpu_scripts import first_plans  # noqa: F401

SCRIPTS = REPOSITORY / "scripts"
sys.path[:0] = [str(SCRIPTS), str(REPOSITORY / "bench")]
import gpu_first  # noqa: E402
import gpu_run  # noqa: E402

DS_RUN = """#!/bin/sh
echo "$LD_LIBRARY_PATH $1" >>"$SEEN"
[ "$1" = info ] && { echo "cuda  available; driver"; echo "gpu 0   $GPU, capability 9.0"; exit; }
while [ $# -gt 0 ]; do [ "$1" = --metrics ] && metrics=$2; shift; done
for step in 1 2 3 4 5 6 7 8; do echo '{"loss": 1.0, "step_seconds": 0.1}'; done >"$metrics"
echo '{"summary": {"ranks": [{"device_bytes": 1024, "fallbacks": 0}]}}' >>"$metrics"
"""
TOO_OLD = """#!/bin/sh
echo "cuda           the NVIDIA driver is for CUDA 12.4, and this ds-run needs 13.0; driver for CUDA 12.4, built with 13.0"
"""
NVIDIA_SMI = """#!/bin/sh
case $1 in --query-gpu=memory.free) echo "1234 MiB" ;; esac
"""
TORCH = """import json, os
print(json.dumps({"seconds": [0.1], "device_bytes": 1}))
open(os.environ["SEEN"], "a").write(os.environ["LD_LIBRARY_PATH"] + " torch\\n")
class cuda:
    is_available = staticmethod(lambda: False)
"""


def tool(file, text):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A folder with the scripts and plans that are none; `tmp_path`/tools comes first in PATH."""
    pack = tmp_path / "pack"
    for folder in ("bin", "lib", "cases", "bench/h100", "bench/h200", "scripts", "../tools"):
        (pack / folder).mkdir(parents=True)
    for gpu in ("h100", "h200"):
        (pack / "bench" / gpu / "small-bfloat16.dsplan").touch()
        (pack / "bench" / gpu / "small-bfloat16.json").write_text(json.dumps({"arena_bytes": 1024, "model_flops": 1, "commands": []}))
    for file in (*SCRIPTS.glob("gpu_*"), *(REPOSITORY / "bench" / name for name in ("gpu_step.py", "rounds.py"))):
        shutil.copy(file, pack / file.parent.name)
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:/usr/bin:/bin")
    monkeypatch.setenv("SEEN", f"{tmp_path}/seen")
    monkeypatch.setenv("OUT", str(tmp_path))
    return pack


def first(pack, *parts):
    """The exit code, what was said, and each part's line of results.jsonl in the archive."""
    done = subprocess.run(["bash", pack / "scripts" / "gpu_first.sh", "--out", "out", *parts], capture_output=True, text=True)
    with tarfile.open(pack.parent / "out.tar.gz") as kept:
        results = [json.loads(line) for line in kept.extractfile("out/results.jsonl")]
    return done.returncode, done.stdout + done.stderr, {result["part"]: result for result in results}


@pytest.mark.parametrize("name, folder", [("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA H200", "h200")])
def test_tools_get_the_machines_plans_and_libraries(packed, tmp_path, monkeypatch, name, folder):
    tool(packed / "bin" / "ds-run", DS_RUN)
    tool(tmp_path / "tools" / "nvidia-smi", NVIDIA_SMI)
    site = tmp_path / "site"
    (site / "nvidia" / "x" / "lib").mkdir(parents=True)
    tool(site / "torch.py", TORCH)
    for variable, value in (("PYTHONPATH", str(site)), ("LD_LIBRARY_PATH", "/old"), ("GPU", name)):
        monkeypatch.setenv(variable, value)
    code, told, results = first(packed, "step", "speed")
    assert code == 0, told
    assert results["step"]["found"].endswith("; fallbacks 0; 1234 MiB free behind it")
    seen = [line.rsplit(" ", 1) for line in (tmp_path / "seen").read_text().splitlines()]
    plan = str(packed / "bench" / folder / "small-bfloat16.dsplan")
    assert {(word, path) for path, word in seen} == {
        ("torch", "/old"), *((word, f"{site}/nvidia/x/lib:{packed}/lib:/old") for word in ("info", plan))}


def of_another_version(pack):
    """The real ds-run, beside a library that needs a cuBLASLt which is not there."""
    shutil.copy(FOLDERS["ds-run"] / "ds-run", pack / "bin")
    build = ["gcc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-Wl,--no-as-needed"]
    subprocess.run([*build, "-Wl,-soname,libcublasLt.so.99", "-o", pack / "libcublasLt.so"], check=True)
    subprocess.run([*build, f"-L{pack}", "-lcublasLt", "-o", pack / "lib" / "libds-cuda.so"], check=True)


@pytest.mark.parametrize("prepare, reason", [
    (lambda pack: tool(pack / "bin" / "ds-run", TOO_OLD), "the NVIDIA driver is for CUDA 12.4, and"),
    (of_another_version, "not available: libcublasLt.so.99: cannot open .*name their folders in LD_LIBRARY_PATH"),
], ids=["driver", "library"])
def test_a_machine_without_a_usable_gpu_ends_it_at_once(packed, prepare, reason):
    prepare(packed)
    code, told, results = first(packed, "second")
    sentence = f"ds-run can use no GPU: {reason}"
    assert code == 1 and re.fullmatch(rf"info: FAILED: {sentence}.* \(\d s\)\n", told), told
    assert list(results) == ["info"] and re.match(sentence, results["info"]["failed"])


def test_ds_run_names_a_library_of_another_version(packed, tools, first_plans):  # noqa: F811
    of_another_version(packed)
    done = subprocess.run([packed / "bin" / "ds-run", first_plans / "h100" / "small-bfloat16.dsplan", "--data",
                           first_plans / "h100" / "small.safetensors", "--steps", "1"], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.fullmatch(r"error: .*libcublasLt\.so\.99: cannot open .* LD_LIBRARY_PATH\n", done.stderr), done.stderr


@pytest.mark.parametrize("says, code, line", [
    (None, 0, "skipped: compute-sanitizer is not there"),
    ("no driver", 0, "skipped: compute-sanitizer does not work here: compute-sanitizer ended with 1: no driver"),
    ("ERROR SUMMARY: 2 errors", 1, "FAILED: compute-sanitizer ended with 1: ERROR SUMMARY: 2 errors"),
])
def test_a_sanitizer_that_cannot_look_is_skipped(packed, tmp_path, monkeypatch, says, code, line):
    monkeypatch.setenv("GPU", "NVIDIA H200")
    tool(packed / "bin" / "ds-run", DS_RUN)
    if says:
        tool(tmp_path / "tools" / "compute-sanitizer", f"#!/bin/sh\necho '{says}'\nexit 1\n")
    returned, told, _ = first(packed, "sanitizer")
    assert (returned, told.splitlines()[-1].rsplit(" (", 1)[0]) == (code, f"sanitizer: {line}")


def test_a_call_has_the_time_for_its_parts():
    """The page's commands name two calls, which have all parts; their minutes are enough for each part to take all of its limit."""
    page = (REPOSITORY / "docs" / "cuda.md").read_text()
    minutes = {name: int(number) for number, name in re.findall(r"gpu_first\.sh --out \w+ --minutes (\d+) (\w+)", page)}
    calls = {name: gpu_first.parts_of([name]) for name in ("first", "second")}
    assert minutes.keys() == calls.keys()
    assert calls["first"][:2] == ["info", "step"] and calls["second"][0] == "info"
    assert calls["first"] + calls["second"][1:] == list(gpu_first.PARTS)
    for name, parts in calls.items():
        assert sum(gpu_first.PARTS[part] for part in parts) <= 60 * minutes[name] <= 540, "of the 10 that a command may take"


def hanging(packed, command):
    """Tools that end at once, but for a call whose first argument is like `command`: half a minute, less than the limit of its part."""
    for name in ("ds-run", "CudaKernelsTest"):
        tool(packed / "bin" / name, f'#!/bin/sh\necho begun $1; case $1 in {command}) echo $$ >"$SEEN"; exec sleep 30 ;; esac\n'
                                    "echo cuda available; echo gpu 0; echo all passed\n")


@pytest.mark.parametrize("limit, minutes, command, ends", [
    (1, 5, "info", {"info": "FAILED: ds-run did not end in time", "bfloat16": "all passed; fallbacks 0", "kernels": "all passed"}),
    (30, 0.03, "*/bfloat16", {"info": "gpu 0; cuda available", "bfloat16": "FAILED: CudaKernelsTest did not end in time",
                              "kernels": "not run, the 0.03 minutes are over"}),
], ids=["its own limit", "all minutes"])
def test_a_part_that_hangs_is_ended(packed, monkeypatch, capsys, limit, minutes, command, ends):
    hanging(packed, command)
    monkeypatch.setitem(gpu_first.PARTS, "info", limit)
    words = ["bin", "cases", "bench", "--out", "out", "--minutes", str(minutes), "bfloat16", "kernels"]
    monkeypatch.chdir(packed)
    monkeypatch.setattr(sys, "argv", ["gpu_first.py", *words])
    with pytest.raises(SystemExit) as ended:
        gpu_first.main()
    assert ended.value.code == 1
    lines = [line.split(": ", 1) for line in capsys.readouterr().out.splitlines()]
    assert {part: re.sub(r" \(\d+ s\)$", "", found) for part, found in lines} == ends
    cut, = (part for part in ends if "did not end" in ends[part])
    assert (packed / "out" / f"{cut}.log").read_text().startswith("begun"), "what it said is seen before it ends"


def test_what_was_found_is_kept_where_the_machine_goes_away(packed, tmp_path):
    hanging(packed, "*/bfloat16")
    running = subprocess.Popen(["bash", packed / "scripts" / "gpu_first.sh", "--out", "out", "bfloat16"], stdout=subprocess.DEVNULL)
    while not (tmp_path / "seen").exists() and running.poll() is None:
        time.sleep(0.02)
    running.kill()
    running.wait()
    while not (pid := (tmp_path / "seen").read_text()):
        time.sleep(0.02)
    os.kill(int(pid), signal.SIGKILL)
    with tarfile.open(tmp_path / "out.tar.gz") as kept:
        assert "out/info.log" in kept.getnames()
        assert [json.loads(line)["found"] for line in kept.extractfile("out/results.jsonl")] == ["gpu 0; cuda available"]


def test_a_bench_ends_with_what_it_has_started(tmp_path):
    pid = tmp_path / "pid"
    code, _ = gpu_run.streamed([sys.executable, "-c", f"import sys; sys.path.append({str(REPOSITORY / 'bench')!r}); import rounds; "
                                f"rounds.run([['sh', '-c', 'echo $$ >{pid}; exec sleep 60']], 60)"], 1)
    assert code is None
    assert not pid.exists() or not os.path.exists(f"/proc/{pid.read_text().strip()}")
