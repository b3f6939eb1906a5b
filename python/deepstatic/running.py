"""Runs: ds-run from beginning to end."""

import json
import re
import tempfile
from pathlib import Path

from . import programs
from .data import files_of, read
from .errors import DeepStaticError

OURS = ("data", "steps", "quiet", "verbose")  # flags of ds-run that have an argument of their own here


def run_plan(plan, data, steps, flags) -> "Run":
    work = tempfile.TemporaryDirectory(prefix="deepstatic-run-")
    folder = Path(work.name)
    quiet = flags.pop("quiet", False)
    flags.setdefault("metrics", folder / "metrics.jsonl")
    if not flags.get("eval") and flags.get("device") != "null":
        flags.setdefault("export", folder / "weights.safetensors")
    arguments = [plan.path, "--data", *files_of(data, folder), *(["--steps", steps] if steps is not None else []), *flag_arguments(flags)]
    try:
        code, _ = programs.run("ds-run", *arguments, *(["--quiet"] if quiet else []), show=not quiet, good=(0, programs.STOPPED))
    except DeepStaticError as error:  # the file is ours, and gone by now
        raise DeepStaticError(re.sub(rf"{re.escape(str(folder))}/data\d+\.safetensors", "the data", error.sentence), error.try_line, error.code) from None
    return Run(plan, Path(flags["metrics"]), flags.get("export"), flags.get("save"), code == programs.STOPPED, work)


def flag_arguments(flags: dict) -> list:
    """save_interval=50 -> --save-interval 50; True is a flag alone, False none; a list repeats the flag."""
    arguments = []
    for name, value in flags.items():
        flag = "-n" if name == "n" else "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(flag)
            elif one is not None and one is not False:
                arguments += [flag, str(one)]
    return arguments


class Run:
    """A run that is over: its losses, its metrics, its weights.

    losses   of each step
    metrics  a dict a step: step, loss, grad_norm, lr, step_seconds, ...
    summary  what each rank used
    stopped  whether it ended early, as asked (max_time, a signal), with everything saved
    """

    def __init__(self, plan, metrics: Path, weights, saved, stopped: bool, work):
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        self.plan = plan
        self.metrics = [line for line in lines if "loss" in line and "step" in line]
        self.evaluations = [line for line in lines if "eval_loss" in line]
        self.summary = next((line["summary"] for line in reversed(lines) if "summary" in line), None)
        self.losses = [line["loss"] for line in self.metrics]
        self.stopped = stopped
        self._weights, self._saved, self._work = weights, saved, work

    def __repr__(self):
        ends = f", loss {self.losses[0]:.4f} to {self.losses[-1]:.4f}" if self.losses and None not in self.losses else ""
        return f"Run of {len(self.losses)} steps{ends}{', stopped as asked' if self.stopped else ''}"

    def weights(self) -> dict:
        """{PyTorch's name: array} of all parameters and persistent buffers, after the last step."""
        return read(self._file())

    def save_pretrained(self, folder, like=None, adapter=False) -> Path:
        """A folder that `transformers` loads: the one that the model came from, `like`, with the trained weights. Low-rank adapters are merged
        into them; with `adapter` they are written alone, as `peft` loads them."""
        return save_pretrained(self._file(), folder, like or self.plan.saved, adapter)

    def _file(self) -> Path:
        if self.stopped:  # ds-run exports after the last step alone
            path = Path(self._work.name) / "saved.safetensors"
            programs.run("ds-run", "export", self._saved, "-o", path)
            return path
        return Path(self._weights)

    def _repr_html_(self):
        return f"<p>{self!r}</p>{curve(self.losses)}"


def save_pretrained(source, folder, like, adapter) -> Path:
    if like is None:
        raise DeepStaticError("the model did not come from a folder that transformers wrote; give one with like=FOLDER")
    programs.run("ds-run", "export", source, "--hf", folder, "--like", like, *(["--adapter"] if adapter else []))
    return Path(folder)


def curve(values, width=560, height=220) -> str:
    """An SVG of the values over the steps."""
    values = [value for value in values if value is not None]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    points = " ".join(f"{56 + (width - 72) * i / (len(values) - 1):.1f},{16 + (height - 48) * (high - value) / span:.1f}"
                      for i, value in enumerate(values))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="sans-serif" font-size="12">'
            f'<rect width="{width}" height="{height}" fill="white"/><path d="M56 16V{height - 32}H{width - 16}" fill="none" stroke="black"/>'
            f'<text x="50" y="20" text-anchor="end">{high:.3g}</text><text x="50" y="{height - 32}" text-anchor="end">{low:.3g}</text>'
            f'<text x="{width - 16}" y="{height - 12}" text-anchor="end">{len(values)} steps</text><text x="64" y="{height - 12}">loss</text>'
            f'<polyline points="{points}" fill="none" stroke="#1f4e8c" stroke-width="1.5"/></svg>')
