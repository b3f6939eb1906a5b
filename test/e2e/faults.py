"""What test_io_faults.py and test_full_disk.py share: commands with all their files in one folder, and what a fault may do to them.

A Scenario is one call of a tool. It runs once whole, which gives its results and counts its system calls; then once for each fault, each in a
copy of its folder. `broken` says in words what of docs/faults.md's rule does not hold.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
import onnx
from conftest import BUILD, FOLDERS, REPOSITORY, write_config
from safetensors.numpy import save_file

INJECT, NO_MEMORY = BUILD / "bin" / "inject_fault", BUILD / "lib" / "libfail_allocation.so"
SECONDS = 60  # until a command has ended, whatever fails, on a machine that others use, too
SAMPLES, SEQ, VOCABULARY = 8, 4, 50

# What may be injected into each kind of call. SHORT: half of the bytes.
ERRORS = {
    "open": ("EMFILE", "EIO", "EINTR", "ENOSPC"),
    "read": ("EIO", "EINTR", "SHORT"),
    "write": ("ENOSPC", "EIO", "EINTR", "SHORT"),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "rename": ("EIO", "ENOSPC"),
    "mkdir": ("ENOSPC", "EIO"),
    "mmap": ("ENOMEM", "EMFILE"),
    "truncate": ("EIO", "EINTR"),
    "close": ("EIO", "EINTR"),
    "unlink": ("EIO",),
    "stat": ("EIO", "ENOMEM"),
    "lseek": ("EIO",),
    "chmod": ("EIO",),
    "flock": ("EIO", "EINTR"),
    "fcntl": ("EIO",),
}
TRANSPARENT = ("EINTR", "SHORT")  # the command ends as if nothing had been
REASONS = {"EIO": "Input/output error", "ENOSPC": "No space left on device", "EMFILE": "Too many open files",
           "ENOMEM": "Cannot allocate memory"}


@dataclass(frozen=True)
class Fault:
    call: str
    number: int
    error: str
    later: bool = False  # this call, and all that follow

    def flags(self):
        return ["--call", self.call, "--number", f"{self.number}{'+' * self.later}", "--error", self.error]

    def __str__(self):
        return f"{self.error} of {self.call} {self.number}{'+' * self.later}"


@dataclass(frozen=True)
class Scenario:
    """`command` runs in a folder that holds in/ and out/; stdout goes to out/stdout."""

    name: str
    command: tuple
    side: tuple = ()  # files in out/ that are not worth a run
    reads: tuple = ()  # files that must not end the command by SIGBUS when they shrink

    @property
    def tool(self):
        return Path(self.command[0]).name


@dataclass
class Ending:
    code: int | None  # None: it did not end
    errors: str
    files: dict  # in out/: name -> bytes
    log: dict
    seconds: float


class Bench:
    """Runs scenarios, each time in a fresh copy of one folder of inputs."""

    def __init__(self, inputs: Path, place: Path):
        self.inputs, self.place, self.runs = inputs, place, 0

    def run(self, scenario, fault=None, *, environment=None, injector=True, shrink=None) -> Ending:
        self.runs += 1
        folder = self.place / f"run{self.runs}"
        shutil.copytree(self.inputs, folder / "in")
        (folder / "out").mkdir()
        log = self.place / "log.json"
        log.unlink(missing_ok=True)
        command = [INJECT, "--under", folder, "--log", log, *(fault.flags() if fault else ())]
        command += ["--shrink", folder / shrink] if shrink else []
        command = [*(command + ["--"] if injector else []), *scenario.command]
        begin = time.monotonic()
        with open(folder / "out" / "stdout", "wb") as out:
            process = subprocess.Popen([str(c) for c in command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                                       text=True, errors="replace",
                                       env={**(environment or os.environ), "TMPDIR": str(self.place)})  # where weights are rescued to
            try:
                errors = process.communicate(timeout=SECONDS)[1]
                code = process.returncode
            except subprocess.TimeoutExpired:
                process.kill()  # and the kernel kills what it traces
                errors, code = process.communicate()[1], None
        seconds = time.monotonic() - begin
        files = {str(p.relative_to(folder / "out")): p.read_bytes() for p in sorted((folder / "out").rglob("*")) if p.is_file()}
        ending = Ending(code, errors.replace(str(folder) + "/", ""), files, json.loads(log.read_text()) if log.exists() else {}, seconds)
        shutil.rmtree(folder)
        return ending


def comparable(name, data):
    """Bytes of a file without what the clock puts there."""
    if name == "metrics.jsonl":
        lines = [json.loads(line) for line in data.decode().splitlines()]
        return [{k: v for k, v in line.items() if k in ("step", "loss", "grad_norm", "lr", "eval_loss")} for line in lines]
    if name == "trace.json":
        return sorted({str(event["name"]) for event in json.loads(data)["traceEvents"]})
    return data


def sentence(errors):
    """The one line with which a command ended; None if there is none, or several."""
    lines = [line for line in errors.splitlines() if not line.startswith(("try: ", "note: ", "warning: ", "  note: ", "  also: "))]
    return lines[0] if len(lines) == 1 and lines[0].startswith("error: ") else None


def broken(scenario, whole: Ending, ending: Ending, fault: Fault | None) -> str:
    """Which part of the rule a run broke; "" if none."""
    if ending.code is None:
        return f"did not end within {SECONDS} s"
    if ending.code > 128 or ending.code < 0:
        return f"died by {signal.Signals(ending.code - 128 if ending.code > 0 else -ending.code).name}: {ending.errors[-300:]}"
    for name in ending.files.keys() - whole.files.keys():
        if not (re.fullmatch(r"rescued-\d+-weights", name) or (fault and fault.call == "unlink") or
                (name.startswith("metrics.jsonl.") and "metrics.jsonl" in scenario.side)):
            return f"left {name}"
    for name in whole.files:
        said = "note: " in ending.errors
        try:
            same = name in ending.files and comparable(name, ending.files[name]) == comparable(name, whole.files[name])
        except ValueError as error:
            return f"{name} is no JSON any more: {error}"
        if same or (name in scenario.side and (said or ending.code != 0)):
            continue
        if ending.code == 0:
            return f"gave code 0, and {name} is {'not as without a fault' if name in ending.files else 'missing'}"
        if name in ending.files and name != "stdout":
            return f"failed and left a {name} that is not whole"
    if ending.code == 0:
        return ""
    if fault and fault.error in TRANSPARENT:
        return f"gave code {ending.code}: {ending.errors[:300]}"
    answered = scenario.name == "check" and not ending.errors  # its answer is that the file cannot be read
    line = ending.files["stdout"].decode() if answered else sentence(ending.errors)
    if ending.code != 1 or line is None:
        return f"gave code {ending.code} and said {ending.errors[:300]!r}"
    if fault:
        file = Path(ending.log["file"])
        stem = file.name.split(".")[0]  # a temporary file is named after its result; the folder of all has relative names for us
        failing = [stem] + [name.split(".")[0] for name in whole.files if fault.later]  # what fails last has the word
        if not any(name in line for name in failing) and not re.fullmatch(r"run\d+", stem):
            return f"did not name {file.name}: {line}"
        if REASONS[fault.error] not in line:
            return f"did not give the reason {REASONS[fault.error]}: {line}"
    return ""


OPT, RUN = (str(FOLDERS[tool] / tool) for tool in ("ds-opt", "ds-run"))
TRAINING = ("in/config.dsplan", "--quiet", "--steps", "2", "--threads", "1")
PLANNING = ("in/gpt2", "--config", "in/config.json", "--machine", "in/machine.json")
MODEL = ("in/gpt2/model.onnx", "in/gpt2/model.onnx.data")
SHARDS = ("in/shards/model.safetensors.index.json", "in/shards/model-00002-of-00002.safetensors")
SCENARIOS = {s.name: s for s in (
    Scenario("import", (OPT, "import", "in/gpt2", "--dim", "batch=2", "-o", "out/m.mlir"), reads=MODEL),
    Scenario("import weights by an index", (OPT, "import", "in/bare", "--dim", "batch=2", "--weights", "in/shards"), reads=SHARDS),
    Scenario("compile", (OPT, "compile", *PLANNING, "-o", "out/p.dsplan"), reads=MODEL),
    Scenario("compile to text", (OPT, "compile", *PLANNING, "--emit", "plan-text")),
    Scenario("check", (OPT, "check", *PLANNING)),
    Scenario("verify", (OPT, "verify", "in/config.dsplan")),
    Scenario("report", (OPT, "report", "in/config.dsplan", "--format", "html", "-o", "out/report.html")),
    Scenario("report to stdout", (OPT, "report", "in/config.dsplan", "--format", "json")),
    Scenario("diff", (OPT, "diff", "in/config.dsplan", "in/other.dsplan", "-o", "out/diff")),
    Scenario("train", (RUN, *TRAINING, "--data", "in/data.safetensors", "--eval-data", "in/eval.safetensors", "--metrics", "out/metrics.jsonl",
                       "--trace", "out/trace.json", "--export", "out/weights"),
             side=("metrics.jsonl", "trace.json"), reads=("in/config.dsplan", "in/data.safetensors", "in/eval.safetensors", MODEL[1])),
    Scenario("train from tokens", (RUN, *TRAINING, "--data", "in/tokens.bin", "--weights", "in/shards", "--export", "out/weights"),
             reads=("in/tokens.bin", *SHARDS)),
)}


def write_inputs(tools, folder: Path) -> Path:
    """A tiny model with weights beside it, a configuration, two plans, data, tokens and weights."""
    folder.mkdir(parents=True)
    shutil.copytree(REPOSITORY / "test/e2e/hazards/good-gpt2", folder / "gpt2")
    write_shards(folder)
    (folder / "machine.json").write_text('{"name": "small", "threads": 1}')
    write_config(folder / "config.json", 2)
    write_config(folder / "other.json", 2, optimizer={"type": "SGD", "params": {"lr": 0.1}})
    for name in ("config", "other"):
        tools("ds-opt", "compile", "in/gpt2", "--config", f"in/{name}.json", "--machine", "in/machine.json", "-o", f"in/{name}.dsplan", "--quiet",
              cwd=folder.parent)
    draw = numpy.random.default_rng(0)
    for name in ("data", "eval"):
        tokens = draw.integers(0, VOCABULARY, (SAMPLES, SEQ))
        save_file({"input_ids": tokens, "labels": tokens}, folder / f"{name}.safetensors")
    (folder / "tokens.bin").write_bytes(draw.integers(0, VOCABULARY, SAMPLES * SEQ + 1, dtype=numpy.uint16).tobytes())
    return folder


def write_shards(folder: Path):
    """in/bare: the model, its weights as inputs; in/shards: those weights, in two safetensors files and their index."""
    model = onnx.load(folder / "gpt2" / "model.onnx")
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer if onnx.numpy_helper.to_array(t).dtype == numpy.float32}
    for tensor in [t for t in model.graph.initializer if t.name in weights]:
        model.graph.initializer.remove(tensor)
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    (folder / "bare").mkdir()
    onnx.save(model, folder / "bare" / "model.onnx")
    (folder / "shards").mkdir()
    where = {}
    for i in range(2):
        part = {key: numpy.ascontiguousarray(weights[key]) for key in sorted(weights)[i::2]}
        save_file(part, folder / "shards" / f"model-{i + 1:05}-of-00002.safetensors")
        where |= dict.fromkeys(part, f"model-{i + 1:05}-of-00002.safetensors")
    (folder / "shards" / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))
