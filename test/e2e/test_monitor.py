"""What a run writes beside its metrics: TensorBoard's event files and CSV as ds_config.json asks, and the progress line of a terminal."""

import csv
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios

import pytest
from conftest import FOLDERS, write_config
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from plan_files import REPOSITORY, crc32c

STEPS, MICRO, SEQ = 4, 3, 8
TAGS = {"Train/Samples/train_loss": "loss", "Train/Samples/lr": "lr", "Train/Samples/grad_norm": "grad_norm"}


@pytest.fixture(scope="module")
def ran(tools, exported, text_data, tmp_path_factory):
    """(folder of tensorboard, folder of csv_monitor, metrics) of four steps with an evaluation at the end."""
    folder = tmp_path_factory.mktemp("monitor")
    config = write_config(folder / "c.json", MICRO, gradient_clipping=1.0,
                          tensorboard={"enabled": True, "output_path": str(folder / "tb"), "job_name": "tiny"},
                          csv_monitor={"enabled": True, "output_path": str(folder / "csv"), "job_name": "tiny"})
    tools("ds-opt", "compile", exported("gpt2", "--size=tiny", f"--seq={SEQ}"), "--config", config, "--ranks", 2, "-o",
          folder / "plan")
    done = tools("ds-run", folder / "plan", "--data", text_data(SEQ), "--eval-data", text_data(SEQ), "--steps", STEPS, "--metrics",
                 folder / "m.jsonl")
    for place in ("tb/tiny/events.out.tfevents.", "csv/tiny"):
        assert f"note: as the configuration asks, metrics go to {folder}/{place}" in done.stderr
    metrics = [json.loads(line) for line in (folder / "m.jsonl").read_text().splitlines()]
    return folder / "tb" / "tiny", folder / "csv" / "tiny", metrics


def event_class(folder):
    subprocess.run(["protoc", f"-I{REPOSITORY}", f"--descriptor_set_out={folder}/set", "runtime/monitor/events.proto"], check=True)
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString((folder / "set").read_bytes()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ds.monitor.Event"))


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def records(file):
    """The data of each record, whose checksums are right."""
    data = file.read_bytes()
    while data:
        (length, crc), rest = struct.unpack("<QI", data[:12]), data[12:]
        assert crc == masked(data[:8])
        yield rest[:length]
        assert struct.unpack("<I", rest[length:length + 4])[0] == masked(rest[:length])
        data = rest[length + 4:]


def expected_points(metrics):
    """{tag: [(samples, value)]} as the metrics have them."""
    steps = [line for line in metrics if "lr" in line]
    assert len(steps) == STEPS
    points = {tag: [(line["step"] * MICRO * 2, line[key]) for line in steps] for tag, key in TAGS.items()}
    evaluation, = (line for line in metrics if "eval_loss" in line)
    return {**points, "Eval/Samples/eval_loss": [(STEPS * MICRO * 2, evaluation["eval_loss"])]}


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def test_event_files(ran, tmp_path):
    folder, _, metrics = ran
    file, = folder.glob("events.out.tfevents.*")
    first, *events = [event_class(tmp_path).FromString(data) for data in records(file)]
    assert first.file_version == "brain.Event:2"
    found = {}
    for event in events:
        for value in event.summary.value:
            found.setdefault(value.tag, []).append((event.step, value.simple_value))
    assert found == {tag: [(step, single(value)) for step, value in points] for tag, points in expected_points(metrics).items()}
    times = [event.wall_time for event in (first, *events)]
    assert times == sorted(times)


def test_tensorboards_own_reader(ran):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator", reason="no tensorboard in this Python")
    folder, _, metrics = ran
    read = loader.EventAccumulator(str(folder)).Reload()
    for tag, points in expected_points(metrics).items():
        assert [(one.step, one.value) for one in read.Scalars(tag)] == [(step, single(value)) for step, value in points]


def test_csv_files(ran):
    _, folder, metrics = ran
    expected = expected_points(metrics)
    assert {file.name for file in folder.iterdir()} == {tag.replace("/", "_") + ".csv" for tag in expected}
    for tag, points in expected.items():
        heading, *rows = csv.reader((folder / (tag.replace("/", "_") + ".csv")).open())
        assert heading == ["step", tag.split("/")[-1]]
        assert [(int(step), single(float(value))) for step, value in rows] == [(step, single(value)) for step, value in points]


def test_a_folder_that_cannot_be_made_is_refused_before_the_first_step(tools, exported, text_data, tmp_path):
    (tmp_path / "file").write_text("")
    for section in ("tensorboard", "csv_monitor"):
        config = write_config(tmp_path / "c.json", MICRO, **{section: {"enabled": True, "output_path": str(tmp_path / "file")}})
        tools("ds-opt", "compile", exported("gpt2", "--size=tiny", f"--seq={SEQ}"), "--config", config, "-o", tmp_path / "plan")
        sentence = tools.refused("ds-run", tmp_path / "plan", "--data", text_data(SEQ), "--steps", 1)
        assert f"{section}.output_path: the folder {tmp_path}/file/DeepSpeedJobName cannot be made: Not a directory" in sentence


@pytest.mark.parametrize("columns", [200, 60, 30, 12])
def test_the_progress_line_fits_the_terminal(exported, tools, text_data, tmp_path, columns):
    tools("ds-opt", "compile", exported("gpt2", "--size=tiny", f"--seq={SEQ}"), "--config", write_config(tmp_path / "c.json", MICRO),
          "-o", tmp_path / "plan")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([FOLDERS["ds-run"] / "ds-run", tmp_path / "plan", "--data", text_data(SEQ), "--steps", "50"], stderr=theirs) as run:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                shown += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert run.returncode == 0
    lines = [line for line in re.sub(r"\x1b\[K|\n", "", shown.decode()).split("\r") if line and not line.startswith("note: ")]
    assert lines and all(len(line) < columns for line in lines), lines
    last = lines[-1]
    assert "50/50" in last and (columns < 30 or "0:00 left" in last) and ("[####" in last) == (columns >= 60)
    assert ("tokens/s" in last) == (columns >= 60)
