"""Real full file systems: a tmpfs with too little room under each result of ds-opt and ds-run."""

import json
import os
import subprocess
from dataclasses import replace

import pytest
from faults import SCENARIOS, Ending, sentence, write_inputs

KIB = 1024


@pytest.fixture(scope="module")
def inputs(tools, tmp_path_factory):
    return write_inputs(tools, tmp_path_factory.mktemp("full") / "in")


def on_a_small_disk(scenario, inputs, folder, size, room):
    """The command with out/ on a tmpfs of `size` bytes of which `room` are free, in mount (and user) namespaces of its own."""
    (folder / "in").symlink_to(inputs)
    (folder / "out").mkdir()
    script = ('mount -t tmpfs -o size=$1 none out || exit 97; head -c $2 /dev/zero >out/ballast; shift 2; "$@" >stdout 2>stderr; code=$?; '
              "rm out/ballast; cp -r out kept; exit $code")
    unshare = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    done = subprocess.run([*unshare, "sh", "-c", script, "sh", str(size), str(size - room), *scenario.command], cwd=folder, timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not (folder / "kept").exists():
        pytest.skip(f"this machine does not let us mount a small tmpfs: {done.stderr.strip()}")
    files = {str(p.relative_to(folder / "kept")): p.read_bytes() for p in (folder / "kept").rglob("*") if p.is_file()}
    return Ending(done.returncode, (folder / "stderr").read_text(), files, {}, 0)


@pytest.mark.parametrize("name", ["import", "compile", "report", "diff"])
def test_ds_opt_on_a_full_disk(name, inputs, tmp_path):
    """One sentence and nothing left, the temporary file included; the older result stays."""
    ending = on_a_small_disk(SCENARIOS[name], inputs, tmp_path, 64 * KIB, 0)
    line = sentence(ending.errors)
    result = SCENARIOS[name].command[-1]
    assert ending.code == 1 and f"cannot write {result}: " in line and "No space left on device" in line, ending
    assert ending.files == {}


def test_stdout_on_a_full_disk(inputs, tmp_path):
    """Half a report with code 0 would be taken for the whole."""
    command = SCENARIOS["report to stdout"].command
    done = subprocess.run(command, cwd=inputs.parent, stdout=open("/dev/full", "w"), stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "error: cannot write to stdout: No space left on device\n")


def training(steps, export="out/weights"):
    """SCENARIOS' run of so many steps; 300 make 60 KiB of metrics."""
    command = list(SCENARIOS["train"].command)
    command[command.index("--steps") + 1] = str(steps)
    command[command.index("out/weights")] = export
    return replace(SCENARIOS["train"], command=tuple(command))


def test_metrics_and_trace_on_a_full_disk(inputs, tmp_path):
    """Room for neither trace nor metrics of many steps: said once each, and the weights are there."""
    ending = on_a_small_disk(training(300, "weights"), inputs, tmp_path, 64 * KIB, 16 * KIB)
    notes = ending.errors.splitlines()
    assert ending.code == 0 and (tmp_path / "weights").stat().st_size > 10000, ending
    assert len(notes) == 2 and all("No space left on device" in note for note in notes), notes
    assert set(ending.files) == {"metrics.jsonl"}
    steps = [line["step"] for line in map(json.loads, ending.files["metrics.jsonl"].splitlines()) if "loss" in line]
    assert steps[:10] == list(range(1, 11)) and steps == sorted(steps) and len(steps) < 300  # a shorter line may still fit


def test_an_export_without_room(inputs, tmp_path):
    """Known before the first step."""
    ending = on_a_small_disk(training(2), inputs, tmp_path, 64 * KIB, 0)
    assert ending.code == 1 and "--export out/weights needs" in sentence(ending.errors) and ending.files == {}


def test_an_export_on_a_disk_that_fills_up(inputs, tmp_path):
    """The metrics take the room that the export had: it is rescued elsewhere, and nothing half is left."""
    ending = on_a_small_disk(training(300), inputs, tmp_path, 64 * KIB, 24 * KIB)
    rescued = list(tmp_path.glob("rescued-*-weights"))
    assert ending.code == 1 and len(rescued) == 1 and f"the weights are in {rescued[0]} instead" in ending.errors, ending
    assert set(ending.files) == {"metrics.jsonl"}
