"""Plans: compiled, looked at, verified, run."""

import html
import json
import shutil
import tempfile
from pathlib import Path

from . import programs
from .errors import DeepStaticError
from .models import graph_of
from .running import Run, run_plan


def compile(model_or_folder, ds_config, *, example_batch=None, ranks=1, machine=None, flags=(), **set) -> "Plan":
    """Compiles a training run; nothing is trained yet.

    model_or_folder  a torch module whose forward returns the loss; a folder that `save_pretrained` wrote, or such a model; a folder that
                     models/export.py wrote; an .onnx file
    ds_config        DeepSpeed's ds_config.json, as a dict or a path
    example_batch    {argument of forward: array}, for a model that is to be exported: its shapes are the plan's, dimension 0 counts samples
    ranks, machine   as `ds-opt compile --ranks --machine`
    flags            more of its flags: ["--attach-loss", "causal-lm"]
    set              keys of ds_config to override: gradient_clipping=0.5, zero_optimization={"stage": 3}

    The plan lies in a temporary folder, which goes when the Plan and its Runs do; `Plan.save` keeps it.
    """
    work = tempfile.TemporaryDirectory(prefix="deepstatic-")
    folder = Path(work.name)
    config = _config_file(ds_config, folder)
    graph = graph_of(model_or_folder, example_batch, folder)
    asked = [str(graph.path), "--config", str(config)] + (["--machine", str(machine)] if machine else [])
    asked += [argument for key, value in _leaves(set) for argument in ("--set", f"{key}={_json(value)}")] + [*map(str, flags)]
    path = folder / "model.dsplan"
    _, said = programs.run("ds-opt", "compile", *asked, "--ranks", ranks, "-o", path, show=True)
    return Plan(path, _asked=asked, _ranks=ranks, _saved=graph.saved, _work=work, _said=said)


class Plan:
    """A compiled plan: `Plan("gpt2.dsplan")` opens one that ds-opt wrote."""

    def __init__(self, path, *, _asked=None, _ranks=None, _saved=None, _work=None, _said=""):
        self.path = Path(path)
        self.saved = _saved  # the folder that transformers wrote
        self.said = _said    # by ds-opt compile
        self._asked, self._ranks, self._work = _asked, _ranks, _work
        if not self.path.is_file():
            raise DeepStaticError(f"{path} is no file")

    def __repr__(self):
        return f"Plan({str(self.path)!r}, {self.facts['model']}, {self.facts['ranks']} ranks)"

    @property
    def facts(self) -> dict:
        """`ds-opt report --format json`."""
        if not hasattr(self, "_facts"):
            self._facts = json.loads(programs.run("ds-opt", "report", self.path, "--format", "json")[1])
        return self._facts

    def report(self) -> "Report":
        """What the plan decides: prints as text; a notebook shows the page with its pictures."""
        return Report(self)

    def check(self) -> dict:
        """`ds-opt check` of the same model, configuration and machine: whether it fits, what becomes of each key."""
        return json.loads(programs.run("ds-opt", "check", *self._request("check"), "--ranks", self._ranks, "--format", "json", good=(0, 1))[1])

    def verify(self) -> "Verdict":
        """The independent check; of a plan that `compile` made, also against its model and configuration. Does not raise for a bad plan."""
        sources = ["--model", self._asked[0], "--config", self._asked[2]] if self._asked else []
        return Verdict(json.loads(programs.run("ds-opt", "verify", self.path, *sources, "--format", "json", good=(0, 1))[1]))

    def run(self, data, steps=None, **flags) -> Run:
        """Trains, and returns when that is over.

        data   {input: array}, safetensors or token files, a folder of arrow or parquet files, a `datasets` dataset
        steps  optimizer steps; None: once through the data
        flags  those of ds-run, with underscores: save="folder", save_interval=50, threads=2, shuffle=True
        """
        return run_plan(self, data, steps, flags)

    def save(self, folder) -> Path:
        """Moves the plan and the weights that it begins with into a folder; returns the plan's path there."""
        if self._work is None:
            raise DeepStaticError(f"{self.path} lies where it was made, with its weights; copy it together with them")
        folder = Path(folder)
        if folder.exists() and any(folder.iterdir()):
            raise DeepStaticError(f"{folder} is there and not empty; give a new folder for the plan")
        shutil.copytree(self.path.parent, folder, dirs_exist_ok=True)
        return folder / self.path.name

    def _request(self, what) -> list:
        if self._asked is None:
            raise DeepStaticError(f"{what} needs the model and the configuration, and {self.path} was opened without them; "
                                  "deepstatic.compile gives a Plan that has them")
        return self._asked


class Report:
    """`str(report)` is the text, `report.facts` what scripts read, `report.html` the page."""

    def __init__(self, plan: Plan):
        self.facts = plan.facts
        self._path = plan.path
        self._text = programs.run("ds-opt", "report", plan.path)[1]

    @property
    def html(self) -> str:
        return programs.run("ds-opt", "report", self._path, "--format", "html")[1]

    def save(self, path) -> None:
        """The page, as a file of its own."""
        programs.run("ds-opt", "report", self._path, "--html", path)

    def __str__(self):
        return self._text

    __repr__ = __str__

    def _repr_html_(self):
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="640" style="border: 1px solid #ccc; background: white">'
                "</iframe>")


class Verdict:
    """`bool(verdict)`: whether the plan is proven; `.facts` is what `ds-opt verify --format json` says."""

    def __init__(self, facts: dict):
        self.facts = facts

    def __bool__(self):
        return self.facts["verdict"] == "proven"

    def __repr__(self):
        if self:
            return f"proven, by {len(self.facts['claims'])} claims"
        return f"refused: {self.facts.get('rule', '')}: {self.facts.get('sentence', self.facts)}"


def _config_file(ds_config, folder: Path) -> Path:
    if isinstance(ds_config, (str, Path)):
        return Path(ds_config)
    if not isinstance(ds_config, dict):
        raise DeepStaticError(f"ds_config is a dict or the path of a ds_config.json, not {type(ds_config).__name__}")
    path = folder / "ds_config.json"
    path.write_text(_json(ds_config, indent=1))
    return path


def _json(settings, **style) -> str:
    """Numbers of numpy and torch are numbers."""
    def plain(value):
        if hasattr(value, "tolist"):
            return value.tolist()
        raise DeepStaticError(f"the configuration holds {value!r}, which is nothing that JSON has; write a number, a text, a list or a dict")
    return json.dumps(settings, default=plain, **style)


def _leaves(settings: dict, prefix=""):
    """(dotted key, value) of nested dicts."""
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
