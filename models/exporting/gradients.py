"""The graph's gradients, as ds-opt derives and ds-run computes them, beside PyTorch's own of the module."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy
import onnx
import torch
from safetensors.torch import load_file, save_file
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from . import Refusal, first_line
from .graph import parameter_names
from .selfcheck import LOSS_CHECK_LIMIT, RANDOM, NoDropout, computes_narrow
from .sources import Model

WIDE_LIMIT = 20_000_000  # parameters; above, weights and activations of twice the size take too long
RATE = 2.0**20           # of one step of SGD, so that a weight's own rounding is small beside the step
# Of a parameter's largest gradient, and of the largest of all: what is zero but for rounding. Some modules round to
# float32 in a module of float64.
TOLERANCE, FLOOR = 1e-4, 1e-6
FLOAT_TOLERANCE, FLOAT_FLOOR = 1e-2, 1e-5
NARROW_TOLERANCE, NARROW_FLOOR = 1e-1, 1e-2
FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE


CHOOSING = ("topk", "kthvalue", "median", "nanmedian", "mode")  # of equal numbers PyTorch takes any one


class Unable(Exception):
    """Why gradients cannot be compared."""


def check_gradients(model: Model, proto, folder: Path, skip: bool = False) -> float | None:
    """Refuses a graph whose gradient is not the module's; a note says where nothing was compared. Returns the largest difference."""
    try:
        if skip:
            raise Unable("--skip-gradient-check")
        return _compare(model, proto, folder)
    except Unable as reason:
        print(f"note: gradients not compared with PyTorch's: {reason}; what detach, torch.no_grad, autograd.Function and hooks do to them "
              "was not checked", file=sys.stderr)
        return None


def _compare(model: Model, proto, folder: Path) -> float:
    parameters = sum(p.numel() for p in model.module.parameters())
    drawn = sorted({node.op_type for part in (proto.graph, *proto.functions) for node in part.node} & set(RANDOM))
    if not model.has_weights:
        raise Unable("the file has no weights")
    if parameters > LOSS_CHECK_LIMIT:
        raise Unable(f"{parameters:,} parameters, compared up to {LOSS_CHECK_LIMIT:,}")
    if drawn:
        raise Unable(f"its {', '.join(drawn)} draw other numbers than PyTorch")
    if not any(p.requires_grad for p in model.module.parameters()):
        raise Unable("no parameter is trained")
    tools = {name: _find(name) for name in ("ds-opt", "ds-run")}
    narrow = computes_narrow(proto)
    attempts = [(torch.float32, *((NARROW_TOLERANCE, NARROW_FLOOR) if narrow else (FLOAT_TOLERANCE, FLOAT_FLOOR)))]
    if any(p.dtype == torch.float64 for p in model.module.parameters()):
        attempts = [(torch.float64, TOLERANCE, FLOOR)]
    elif not narrow and parameters <= WIDE_LIMIT:
        attempts.insert(0, (torch.float64, TOLERANCE, FLOOR))
    reason = None
    for dtype, tolerance, floor in attempts:
        try:
            return _compare_as(model, proto, folder, tools, dtype, tolerance, floor)
        except Unable as found:
            reason = found
    raise reason


def _find(program: str) -> str:
    """Of the package, on the PATH, or made by `make build`."""
    root = Path(__file__).resolve().parents[2]  # the checkout, or share/deepstatic beside bin
    for path in (root.parents[1] / "bin" / program, shutil.which(program), root / "build" / "release" / "bin" / program):
        if path and os.path.exists(path):
            return os.path.abspath(path)
    raise Unable(f"{program} is neither beside models/export.py nor on the PATH (make build makes it)")


def _compare_as(model, proto, folder, tools, dtype, tolerance, floor) -> float:
    """The largest difference, in parts of what a parameter's largest gradient allows."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="gradients.") as work:
        graph = _Graph(tools, model, folder, Path(work), dtype)
        worst, compared, functions = 0.0, False, []
        for batch in _batches(model.inputs):
            watch = _Watch()
            try:
                alike = dtype == torch.float32 or _rounds_alike(model, batch)
                expected = _of_module(model, batch, dtype, watch)
            except Exception as error:
                if not compared:
                    raise Unable(f"PyTorch cannot compute them: {first_line(error)}") from error
                continue
            if not all(torch.isfinite(value).all() for value in expected.values()):
                if not compared:
                    raise Unable("PyTorch's are not finite for the example inputs")
                continue
            if not alike:
                raise Unable("in float64 the module computes another loss")
            found = graph.gradients(batch)
            compared = True
            worst = max(worst, _refuse_difference(model, expected, found, tolerance, floor, watch))
            if watch.changing:
                raise Refusal(f"{watch.changing[0]} gives another gradient, which for the example is the same, and a graph does not call it; clip by "
                              "gradient_clipping, write it with detach(), or leave it out; --skip-gradient-check exports all the same")
            functions = watch.functions or functions
        if functions:
            print(f"note: {', '.join(functions[:3])}: the backward written by hand is the derivative for the example, and the graph has the derivative; "
                  "where it differs for other values, write it with detach()", file=sys.stderr)
        return worst


def _batches(inputs: dict):
    """The example, one sample longer than it; and the same with a sample that is 0 throughout, as padding is."""
    longer = {name: torch.cat([value, value[:1]]) for name, value in inputs.items()}
    yield longer
    padded = {name: value.clone() for name, value in longer.items()}
    for value in padded.values():
        value[-1] = 0
    yield padded


# --- the graph's


class _Graph:
    """A plan of one step of SGD on the graph, dropout off."""

    def __init__(self, tools, model: Model, folder: Path, work: Path, dtype):
        self.dims = ["--dim", f"seq={model.any_of}"] if model.any_of else []
        self.tools, self.work, self.dtype = tools, work, dtype
        whole = onnx.load(folder / "model.onnx")
        self.names = parameter_names(whole.graph)
        _without_dropout(whole)
        if dtype == torch.float64:
            _widen(whole)
        self.before = {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy()) for tensor in whole.graph.initializer
                       if tensor.name in self.names}
        onnx.save(whole, work / "model.onnx", save_as_external_data=True, location="model.onnx.data")
        self.size = None

    def gradients(self, batch: dict) -> dict:
        """Name -> gradient; NaN where ds-run stops at a value that is not finite."""
        size = len(next(iter(batch.values())))
        if self.size is None:
            self._compile(size)
        save_file({name: value.contiguous() for name, value in _in(batch, self.dtype).items()}, self.work / "data.safetensors")
        out = self.work / "after.safetensors"
        out.unlink(missing_ok=True)
        done = self._run("ds-run", "plan.dsplan", "--data", "data.safetensors", "--steps", "1", "--export", out.name, "--quiet")
        if done.returncode == 3 or not out.exists():
            if "finite" in done.stderr or "NaN" in done.stderr or "nan" in done.stderr:
                return {name: torch.full_like(value, torch.nan) for name, value in self.before.items()}
            raise Unable(f"ds-run says: {_said(done)}")
        after = load_file(out)
        return {name: (value.double() - after[name].double()) / RATE if name in after else torch.zeros_like(value)
                for name, value in self.before.items()}

    def _compile(self, size: int) -> None:
        config = {"train_micro_batch_size_per_gpu": size, "gradient_clipping": 0, "optimizer": {"type": "SGD", "params": {"lr": RATE}}}
        (self.work / "config.json").write_text(json.dumps(config))
        done = self._run("ds-opt", "compile", "model.onnx", "--config", "config.json", "-o", "plan.dsplan", *self.dims)
        if done.returncode:
            raise Unable(f"ds-opt says: {_said(done)}")
        self.size = size

    def _run(self, program, *arguments):
        try:
            return subprocess.run([self.tools[program], *arguments], cwd=self.work, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        except OSError as error:
            raise Unable(f"{self.tools[program]} does not start ({error.strerror})") from error


def _said(done) -> str:
    lines = [line.removeprefix("error: ") for line in done.stderr.splitlines() if line.startswith("error: ")]
    return lines[-1] if lines else f"nothing, and ended with code {done.returncode}"


def _without_dropout(proto) -> None:
    for part in (proto.graph, *proto.functions):
        for node in part.node:
            if node.op_type == "Dropout":
                node.op_type = "Identity"
                del node.input[1:], node.attribute[:]


def _widen(proto) -> None:
    """float32 becomes float64 everywhere."""
    for graph in _graphs(proto.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == FLOAT:
                value.type.tensor_type.elem_type = DOUBLE
        for tensor in graph.initializer:
            _widen_tensor(tensor)
    for part in (*_graphs(proto.graph), *proto.functions):
        for node in part.node:
            _widen_node(node)


def _graphs(graph):
    """A graph and the bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _widen_node(node) -> None:
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype") and attribute.i == FLOAT:
            attribute.i = DOUBLE
        elif attribute.type == onnx.AttributeProto.TENSOR:
            _widen_tensor(attribute.t)
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = numpy.array(attribute.f if attribute.name == "value_float" else attribute.floats, numpy.float64)
            attribute.CopyFrom(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(values)))


def _widen_tensor(tensor) -> None:
    if tensor.data_type == FLOAT:
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name))


# --- the module's


def _of_module(model: Model, batch: dict, dtype, watch) -> dict:
    """Name -> gradient of each trained parameter, under its first name, by the module itself: hooks hang on its own parameters."""
    module = model.module
    with as_it_was(module), torch.random.fork_rng(devices=[]):
        if dtype == torch.float64:
            module.double()
        for parameter in module.parameters():
            parameter.grad = None
        # Its fused kernels' gradient is wrong where a finite mask hides every key: exp(score - lse) is 1 for each of them.
        with sdpa_kernel(SDPBackend.MATH), torch.enable_grad(), watch, NoDropout():
            loss = module(**_in(batch, dtype))
        watch.walk(loss)
        with watch.hooks_of(module):
            loss.backward()
        return {name: torch.zeros_like(p) if p.grad is None else p.grad.detach().to_dense().clone()
                for name, p in module.named_parameters() if p.requires_grad}


def _rounds_alike(model: Model, batch: dict) -> bool:
    """Whether float64 has float32's loss. Where a mask is the least number of a type, and two are added, it may not."""
    if any(p.dtype != torch.float32 for p in model.module.parameters()):
        return True
    losses = [_loss_as(model.module, batch, dtype) for dtype in (torch.float32, torch.float64)]
    return abs(losses[0] - losses[1]) <= 1e-3 * abs(losses[1])


def _loss_as(module, batch: dict, dtype) -> float:
    with as_it_was(module), torch.random.fork_rng(devices=[]), torch.no_grad(), NoDropout():
        if dtype == torch.float64:
            module.double()
        return module(**_in(batch, dtype)).item()


def _in(batch: dict, dtype) -> dict:
    return {name: value.to(dtype) if value.dtype in (torch.float32, torch.float64) else value for name, value in batch.items()}


@contextlib.contextmanager
def as_it_was(module):
    """Values, types and gradients of parameters and buffers come back."""
    parameters = [(p, p.data, p.data.clone(), p.grad) for p in module.parameters()]
    buffers = [(part, name, value, value.clone()) for part in module.modules() for name, value in part._buffers.items() if value is not None]
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, data, value, gradient in parameters:
                data.copy_(value)
                parameter.grad = None
                parameter.data = data
                parameter.grad = gradient
            for part, name, buffer, value in buffers:
                buffer.copy_(value)
                part._buffers[name] = buffer


class _Watch(TorchFunctionMode):
    """Sees what a graph cannot say, for the sentence that refuses: where gradients are off, and whose backward is written by hand."""

    def __init__(self):
        super().__init__()
        self.causes, self.functions, self.changing = [], [], []  # the last: hooks that gave a gradient
        self.chooses = False  # among equal numbers

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in ("detach_", "register_hook", "register_post_accumulate_grad_hook"):  # the exporter forgets the first
            self._note(f"Tensor.{name}")
            if name == "register_hook" and len(args) > 1:
                args = (args[0], self._watched(args[1], self.causes[-1] if self.causes else f"Tensor.{name}"))
        elif not torch.is_grad_enabled() and name not in ("__get__", "__set__") and any(
                isinstance(value, torch.Tensor) and value.is_floating_point() for value in args):
            self._note("torch.no_grad")
        if name in CHOOSING and _has_ties(args[0], args[2] if len(args) > 2 else (kwargs or {}).get("dim", -1)):
            self.chooses = True
            self._note(f"equal numbers in torch.{name}")
        return function(*args, **(kwargs or {}))

    def _watched(self, hook, what: str):
        def call(*given):
            held = given[0].grad if isinstance(given[0], torch.nn.Parameter) else None
            version = None if held is None else held._version
            made = hook(*given)
            if (made is not None or version is not None and (given[0].grad is not held or held._version != version)) and what not in self.changing:
                self.changing.append(what)
            return made
        return call

    @contextlib.contextmanager
    def hooks_of(self, module):
        """Watches what hooks on the module's own parameters and parts give."""
        kept = [(hooks, dict(hooks)) for hooks, _ in _hook_places(module)]
        for hooks, what in _hook_places(module):
            hooks.update({key: self._watched(hook, what) for key, hook in hooks.items()})
        try:
            yield
        finally:
            for hooks, own in kept:
                hooks.update(own)

    def _note(self, what: str) -> None:
        """With the user's own line: the innermost outside of torch and of this package."""
        inside = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
        stack = traceback.extract_stack()
        if any(frame.filename == torch.autograd.function.__file__ for frame in stack):
            return  # in the forward of a Function, which walk() names
        lines = [frame for frame in stack if not frame.filename.startswith(inside)]
        where = f" in {os.path.basename(lines[-1].filename)}:{lines[-1].lineno}" if lines else ""
        if what + where not in self.causes:
            self.causes.append(what + where)

    def walk(self, loss) -> None:
        """The names of autograd.Functions in the graph of the loss."""
        seen, left = set(), [loss.grad_fn]
        while left:
            node = left.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if isinstance(node, torch.autograd.function.BackwardCFunction):
                name = re.sub(r"Backward$", "", type(node).__name__)
                if f"autograd.Function {name}" not in self.causes:
                    self.causes.append(f"autograd.Function {name}")
                    if not type(node)._forward_cls.__module__.startswith("torch."):
                        self.functions.append(f"autograd.Function {name}")
            left.extend(function for function, _ in node.next_functions)


def _has_ties(values, dim: int) -> bool:
    """Whether equal numbers stand along a dimension."""
    return values.dim() > 0 and bool((values.detach().sort(dim).values.diff(dim=dim) == 0).any())


def _hook_places(module) -> list:
    """(hooks, whose they are) of the module's own parameters and parts that have some."""
    places = [(hooks, f"a hook on {name}") for name, p in module.named_parameters()
              for hooks in (p._backward_hooks, getattr(p, "_post_accumulate_grad_hooks", None))]
    places += [(hooks, f"a backward hook on {name or 'the module'}") for name, part in module.named_modules()
               for hooks in (part._backward_hooks, part._backward_pre_hooks)]
    return [(hooks, what) for hooks, what in places if hooks]


def _refuse_difference(model, expected, found, tolerance, floor, watch) -> float:
    """The largest difference in parts of the tolerated; raises Refusal where it is more than that."""
    largest = max(float(value.abs().max()) for value in expected.values() if value.numel())
    aliases = {}
    for name, parameter in model.module.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(parameter), []).append(name)
    named = dict(model.module.named_parameters())
    worst = 0.0
    for name, value in expected.items():
        ours = next((found[alias] for alias in aliases[id(named[name])] if alias in found), torch.zeros_like(value))
        if not value.numel():
            continue
        difference = float((ours.double() - value.double()).abs().max())
        top = float(value.abs().max())
        allowed = tolerance * top + floor * largest
        if not difference <= allowed:
            counting = [f"scale_grad_by_freq of {part}" for part, layer in model.module.named_modules() if getattr(layer, "scale_grad_by_freq", False)]
            causes = ([what for _, what in _hook_places(model.module)] + counting + watch.causes)[:3]
            way = ("of equal numbers a graph takes the first, so tell them apart, as by adding 1e-6 * torch.arange(n)" if watch.chooses else
                   "a graph knows of detach() alone, so write it with detach(), or leave it out")
            why = f"; likely because of {', '.join(causes)}" if causes else ""
            how = "it is not finite" if difference != difference else f"it differs by {difference:.2g}"
            frozen = "" if top else f", or freeze {name}, which PyTorch does not train, by requires_grad_(False)"
            raise Refusal(f"the graph's gradient of {name} is not PyTorch's: {how} where the largest is {top:.2g}{why}; "
                          f"{way}{frozen}; --skip-gradient-check exports all the same")
        worst = max(worst, difference / max(top, floor * largest) if largest else 0.0)
    return worst
