"""How each parameter is drawn at the start of training, and modules that hold no weights."""

import contextlib
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import Refusal

ZEROS, ONES = {"rule": "zeros"}, {"rule": "ones"}


def normal(mean: float, std: float) -> dict:
    return {"rule": "normal", "mean": float(mean), "std": float(std)}


def uniform(low: float, high: float) -> dict:
    """Uniform on mean +- sqrt(3) * std."""
    return {"rule": "uniform", "mean": (low + high) / 2, "std": (high - low) / (2 * math.sqrt(3))}


def constant(value: float) -> dict:
    return ZEROS if value == 0 else ONES if value == 1 else normal(value, 0.0)


def _argument(arguments, keywords, position, name, default):
    return arguments[position] if len(arguments) > position else keywords.get(name, default)


# aten operator -> rule, from its arguments after the tensor (in-place) or after the size (factories).
IN_PLACE = {
    "aten::normal_": lambda a, k: normal(_argument(a, k, 0, "mean", 0.0), _argument(a, k, 1, "std", 1.0)),
    "aten::uniform_": lambda a, k: uniform(_argument(a, k, 0, "from", 0.0), _argument(a, k, 1, "to", 1.0)),
    "aten::zero_": lambda a, k: ZEROS,
    "aten::fill_": lambda a, k: constant(float(a[0])),
}
FACTORIES = {
    "aten::randn": lambda a, k: normal(0.0, 1.0),
    "aten::rand": lambda a, k: uniform(0.0, 1.0),
    "aten::zeros": lambda a, k: ZEROS,
    "aten::ones": lambda a, k: ONES,
    "aten::full": lambda a, k: constant(float(a[0])),
}


class RecordInitializers(TorchDispatchMode):
    """Notes, for every tensor, the last operator that drew all of it.

    Sees through transformers' and torch's initializer helpers, `.data` and `no_grad`, since all end in aten operators.
    """

    def __init__(self):
        super().__init__()
        self._rules = {}  # storage -> (storage, rule or None); holding the storage keeps its address from being reused

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        name = function._schema.name
        if name in FACTORIES:
            self._note(result, FACTORIES[name](args[1:], kwargs))
        elif function._schema.is_mutable and args and isinstance(args[0], torch.Tensor):
            self._note(args[0], IN_PLACE[name](args[1:], kwargs) if name in IN_PLACE else None)
        return result

    def _note(self, tensor, rule):
        storage = tensor.untyped_storage()
        if tensor.numel() * tensor.element_size() == storage.nbytes():  # a write to some rows (padding) is no rule
            self._rules[storage._cdata] = (storage, rule)

    def inherit(self, old, new):
        """`new` stands for `old` from here on."""
        self._note(new, self.rule(old))

    def rule(self, tensor):
        """The rule of a whole tensor, or None where no single operator drew it."""
        return self._rules.get(tensor.untyped_storage()._cdata, (None, None))[1]


@contextlib.contextmanager
def empty_parameters(recorder: RecordInitializers):
    """Modules built inside have parameters without storage (device meta) and real buffers.

    Unlike `torch.device("meta")` alone, which loses the values of buffers such as rotary frequencies.
    """
    register = torch.nn.Module.register_parameter
    replaced = {}  # id -> (parameter, its empty stand-in): one parameter registered twice stays one

    def register_empty(module, name, parameter):
        register(module, name, parameter)
        if parameter is None or parameter.device.type == "meta":
            return
        if id(parameter) not in replaced:
            empty = torch.nn.Parameter(torch.empty_like(parameter, device="meta"), requires_grad=parameter.requires_grad)
            recorder.inherit(parameter, empty)
            replaced[id(parameter)] = (parameter, empty)
        module._parameters[name] = replaced[id(parameter)][1]

    torch.nn.Module.register_parameter = register_empty
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def build_recorded(make, empty: bool):
    """Runs `make()`; returns (module, {parameter name: rule or None}), tied parameters under each of their names."""
    with RecordInitializers() as recorder:
        with empty_parameters(recorder) if empty else contextlib.nullcontext():
            module = make()
        named = getattr(module, "named_parameters", None)
        rules = {name: recorder.rule(p) for name, p in named(remove_duplicate=False)} if named else {}
    return module, rules


def complete_rules(module, rules: dict) -> dict:
    """Every parameter's rule; where none was recorded it is measured from the values, which must then exist."""
    return {name: rules.get(name) or _measured(name, parameter)
            for name, parameter in module.named_parameters(remove_duplicate=False)}


def _measured(name, parameter) -> dict:
    if parameter.device.type == "meta":
        raise Refusal(f"--no-weights: parameter {name} is not drawn by one torch.nn.init function, so it has no "
                      "initializer rule; initialize it with normal_, uniform_, zeros_ or ones_, or export with weights")
    values = parameter.detach().double()
    mean, std = values.mean().item(), values.std(correction=0).item()
    return constant(mean) if std == 0 else normal(mean, std)
