"""What users call a model -> the graph that ds-opt compiles."""

import contextlib
import copy
import importlib
import io
import sys
import types
from pathlib import Path
from typing import NamedTuple

from .data import columns_of
from .errors import DeepStaticError, need
from .programs import exporter


class Graph(NamedTuple):
    path: Path            # a folder with model.onnx, or the file
    saved: Path | None    # the folder that transformers wrote, where it came from one


def graph_of(model, example_batch, work: Path) -> Graph:
    """Exports what is no graph yet into `work`. A torch module stays as it is; its copy is exported."""
    if isinstance(model, (str, Path)):
        return _of_path(Path(model), example_batch, work)
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module):
        raise DeepStaticError(f"a model is a torch module, a folder that save_pretrained wrote, or an exported graph, not {type(model).__name__}")
    if getattr(model, "peft_config", None):
        raise DeepStaticError("a model of peft saves its adapter alone; give a torch module around it whose forward returns the loss, or the model without "
                              "adapters and flags that make them; save_pretrained merges these",
                              "deepstatic.compile(model, ds_config, example_batch=data, flags=['--lora', '8'])")
    if hasattr(model, "save_pretrained"):
        saved = work / "saved"
        model.save_pretrained(saved)
        return _of_saved(saved, example_batch, work, _copy_of(model))
    if not example_batch:
        raise DeepStaticError("a torch module needs example_batch, the arguments of its forward by name, to be exported",
                              "deepstatic.compile(module, config, example_batch={'x': x, 'targets': targets})")
    return Graph(_export(_named_function(model, example_batch), [], work), None)


def _of_path(path: Path, example_batch, work: Path) -> Graph:
    if path.suffix == ".onnx" or (path / "model.onnx").exists():
        if example_batch is not None:
            raise DeepStaticError(f"example_batch is for models that are to be exported, and {path} is a graph already; "
                                  "sizes of its symbolic dimensions are given as flags=['--dim', 'seq=128']")
        return Graph(path, None)
    if not path.is_dir():
        raise DeepStaticError(f"{path} is neither a folder nor an .onnx file; nothing is fetched, so a model of a hub is to be saved first "
                              "(save_pretrained)")
    return _of_saved(path, example_batch, work)


def _of_saved(folder: Path, example_batch, work: Path, module=None) -> Graph:
    columns = columns_of(example_batch) if example_batch is not None else None
    options = []
    if columns and "input_ids" in columns and columns["input_ids"].ndim > 1:
        options = ["--seq", str(columns["input_ids"].shape[1])]
    return Graph(_export(str(folder.resolve()), options, work, columns, module), folder)  # a relative one may be the name of a known model


def _named_function(model, example_batch) -> str:
    """`module:function` of a function that gives the user's module, as export.py wants it."""
    import torch
    name = f"deepstatic_{type(model).__name__}"
    module = types.ModuleType(name)
    examples = {key: torch.as_tensor(value) for key, value in columns_of(example_batch).items()}
    module.model = lambda: (_copy_of(model), examples)
    sys.modules[name] = module
    return f"{name}:model"


def _copy_of(model):
    """With the hooks of its parameters, which deepcopy leaves out and export.py looks at."""
    copied = copy.deepcopy(model)
    for old, new in zip(model.parameters(), copied.parameters()):
        for hook in (old._backward_hooks or {}).values():
            new.register_hook(hook)
        for hook in (old._post_accumulate_grad_hooks or {}).values():
            new.register_post_accumulate_grad_hook(hook)
    return copied


def _export(source: str, options: list, work: Path, columns=None, module=None) -> Path:
    """models/export.py, in this process: a module that was defined in a notebook exists nowhere else. Its notes are the user's. `module` is what
    the folder `source` was saved of."""
    need("torch", "exporting a model")
    need("onnxscript", "exporting a model")
    out = work / "graph"
    if str(exporter()) not in sys.path:
        sys.path.append(str(exporter()))
    export = importlib.import_module("export")
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            args = export.parse([source, *options, "--out", str(out)])
            args.columns, args.module = columns, module
            export.export(args)
        except SystemExit:  # wrong usage
            raise DeepStaticError(said.getvalue().strip().removeprefix("error: ")) from None
        except export.Refusal as refusal:
            raise DeepStaticError(str(refusal), refusal.try_line) from None
    for line in said.getvalue().splitlines():
        if line.startswith("note: "):
            print(line, file=sys.stderr)
    return out
