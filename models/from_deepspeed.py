#!/usr/bin/env python3
"""Makes a checkpoint that `ds-run --resume` reads out of one that DeepSpeed saved with ZeRO 1, 2 or 3.

    ds-run checkpoint convert saved --from-deepspeed deepspeed-run/checkpoints

runs this script. It takes DeepSpeed's float32 weights, the optimizer's state, the step, and the loss scale of fp16. Needs PyTorch, not DeepSpeed:
of the .pt files only tensors and plain values are read, and nothing that they name is run.
"""

import argparse
import hashlib
import json
import math
import os
import pickle
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from exporting import Refusal, first_line
from exporting.arguments import Parser

SLOTS = {"exp_avg", "exp_avg_sq", "momentum_buffer", "sum"}  # of optimizer state, as PyTorch names it
SHARD_BYTES = 4 << 30
NAMES = {"float32": "F32", "float64": "F64", "int64": "I64", "int32": "I32", "bool": "BOOL"}  # of PyTorch's types in safetensors


def main(arguments=None) -> int:
    args = parse(arguments)
    try:
        folder = convert(args.source, args.out)
    except Refusal as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 1
    print(f"wrote {folder}")
    return 0


def parse(arguments) -> argparse.Namespace:
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="the folder given to save_checkpoint, or one global_stepN in it")
    parser.add_argument("out", type=Path, help="a folder of checkpoints for ds-run; made where it is not there")
    return parser.parse_args(arguments)


# ---- DeepSpeed's files


class Inert:
    """Stands for an object of a class that is not read: keeps its attributes, runs nothing."""

    def __new__(cls, *arguments, **_):
        self = super().__new__(cls)
        self.arguments = arguments
        return self

    def __init__(self, *_, **__):
        pass

    def ignore(self, *_):
        pass

    append = extend = __setitem__ = ignore


def tensor_without_attributes(function, _, arguments, __):
    """torch._tensor._rebuild_from_type_v2 without what stage 3 hangs on its tensors; `function` is one that find_class knows."""
    return function(*arguments)


class Unpickler(pickle.Unpickler):
    """Knows what tensors and plain values are made of; every other class is Inert."""

    def find_class(self, module, name):
        if (module, name) == ("torch._tensor", "_rebuild_from_type_v2"):
            return tensor_without_attributes
        tensors = module == "torch._utils" and name in ("_rebuild_tensor_v2", "_rebuild_parameter")
        types = module == "torch" and (name.endswith("Storage") or name in ("Size", "device", "float16", "bfloat16", "float32"))
        if tensors or types or (module, name) in (("collections", "OrderedDict"), ("builtins", "set")):
            return super().find_class(module, name)
        return type(name, (Inert,), {})


def load(path: Path) -> dict:
    import torch
    plain = SimpleNamespace(Unpickler=Unpickler, load=pickle.load, __name__="plain")
    try:
        content = torch.load(path, map_location="cpu", mmap=True, weights_only=False, pickle_module=plain)
    except FileNotFoundError:
        raise Refusal(f"{path} is missing; copy the checkpoint again, with the files of all ranks") from None
    except Exception as error:  # a damaged archive or pickle raises about anything
        raise Refusal(f"{path} cannot be read: {first_line(error)}; copy the checkpoint again") from error
    if not isinstance(content, dict):
        raise Refusal(f"{path} is no file of a DeepSpeed checkpoint: it holds a {type(content).__name__}")
    return content


def need(content: dict, key: str, path: Path):
    if not isinstance(content, dict) or key not in content:
        raise Refusal(f"{path} has no '{key}', so it is not what DeepSpeed's ZeRO 1, 2 or 3 saves")
    return content[key]


@dataclass
class Saved:
    """A checkpoint's files. `states` and `modules` are by data-parallel rank; stages 1 and 2 have one module."""

    folder: Path
    paths: list = field(default_factory=list)
    states: list = field(default_factory=list)
    modules: list = field(default_factory=list)
    stage: int = 0


def find_folder(source: Path) -> Path:
    latest = source / "latest"
    folder = source / latest.read_text().strip() if latest.is_file() else source
    if not folder.is_dir():
        raise Refusal(f"{folder} is no folder; give the one that save_checkpoint wrote, with its file 'latest', or one global_stepN in it")
    return folder


def read(folder: Path) -> Saved:
    found = {}
    for path in sorted(folder.glob("*_optim_states.pt")):
        if match := re.fullmatch(r"(?:bf16_|fp16_)?zero_pp_rank_(\d+)_mp_rank_(\d+)_optim_states\.pt", path.name):
            if int(match[2]) > 0:
                raise Refusal(f"{folder} is of a model in several tensor- or pipeline-parallel parts ({path.name}); only data-parallel ones are read")
            found[int(match[1])] = path
        elif path.name.startswith("expp_rank"):
            raise Refusal(f"{folder} has DeepSpeed's expert parallelism ({path.name}), which is not available yet")
    if not found:
        raise Refusal(f"{folder} has no file zero_pp_rank_0_mp_rank_00_optim_states.pt, which ZeRO 1, 2 and 3 save; convert such a checkpoint")
    saved = Saved(folder)
    for rank in range(max(found) + 1):
        path = found.get(rank, folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
        saved.states.append(need(load(path), "optimizer_state_dict", path))
        saved.paths.append(path)
    stage = need(saved.states[0], "zero_stage", saved.paths[0])
    saved.stage = stage if isinstance(stage, int) else stage.arguments[0]
    names = [f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt" for rank in range(len(saved.states))] if saved.stage == 3 else ["mp_rank_00_model_states.pt"]
    saved.modules = [load(folder / name) for name in names]
    if (world := saved.modules[0].get("dp_world_size")) != len(saved.states):
        raise Refusal(f"{folder} is of {world} data-parallel ranks, but has the optimizer states of {len(saved.states)}; copy the files of all ranks")
    return saved


# ---- flat groups -> parameters


def groups_of(saved: Saved, rank: int) -> list:
    """Of each flat group of a rank: {slot: 1-D tensor}, the weights under slot ''; and the updates done, where the optimizer counts them."""
    state, path = saved.states[rank], saved.paths[rank]
    weights = need(state, "fp32_flat_groups" if saved.stage == 3 else "single_partition_of_fp32_groups", path)
    inner = need(state, "optimizer_state_dict" if saved.stage == 3 else "base_optimizer_state", path)
    if not isinstance(inner, dict) or "state" not in inner:
        raise Refusal(f"{path} holds its optimizer's state in parts (elastic_checkpoint); save it without that option")
    groups = []
    for index, flat in enumerate(weights):
        if str(flat.dtype) != "torch.float32":
            raise Refusal(f"{path} has weights in {flat.dtype}; only a checkpoint with float32 master weights can be resumed")
        slots = {slot: tensor for slot, tensor in inner["state"].get(index, {}).items() if slot in SLOTS}
        if wrong := next((slot for slot, tensor in slots.items() if tensor.numel() != flat.numel()), None):
            raise Refusal(f"{path} has {slots[wrong].numel()} elements of {wrong} for {flat.numel()} weights; they lie elsewhere, as on NVMe")
        groups.append({"": flat.flatten(), **{slot: tensor.flatten() for slot, tensor in slots.items()}})
    return groups


def fragments_by_address(saved: Saved) -> dict:
    """Stages 1 and 2: {parameter: [{slot: elements} of rank 0, 1, ...]}; a rank's partition says where each parameter's elements are."""
    fragments = {}
    for rank, state in enumerate(saved.states):
        for group, addresses in zip(groups_of(saved, rank), need(state, "param_slice_mappings", saved.paths[rank])):
            for name, address in addresses.items():
                fragments.setdefault(name, []).append({slot: flat[address.start:address.start + address.numel] for slot, flat in group.items()})
    return fragments


def fragments_by_order(saved: Saved) -> dict:
    """Stage 3: likewise; each rank has ceil(elements / ranks) of every parameter, one after the other."""
    ranks, fragments = len(saved.states), {}
    shapes = {name: shape for group in saved.modules[0]["param_shapes"] for name, shape in group.items()}
    for rank in range(ranks):
        groups, index, begin = groups_of(saved, rank), 0, 0
        for name, shape in shapes.items():
            count = math.ceil(math.prod(shape) / ranks)
            while index < len(groups) and begin >= groups[index][""].numel():
                index, begin = index + 1, 0
            if index == len(groups) or begin + count > groups[index][""].numel():
                raise Refusal(f"{saved.paths[rank]} has fewer elements than its parameters; {name} is beyond its end")
            fragments.setdefault(name, []).append({slot: flat[begin:begin + count] for slot, flat in groups[index].items()})
            begin += count
    return fragments


# ---- the checkpoint that is written


@dataclass
class Writer:
    """Tensors -> rank-00000.safetensors, rank-00001.safetensors, ... of SHARD_BYTES each, and the manifest's lists."""

    folder: Path
    variables: list = field(default_factory=list)
    files: list = field(default_factory=list)
    pending: dict = field(default_factory=dict)
    bytes: int = 0

    def add(self, name, tensor, **fields):
        dtype = NAMES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None:
            raise Refusal(f"buffer {name} is {tensor.dtype}, which is not known here")
        piece = {"file": f"rank-{len(self.files):05}.safetensors", "tensor": name, "begin": 0, "end": tensor.numel()}
        self.variables.append({"name": name, **fields, "dtype": dtype, "shape": list(tensor.shape), "pieces": [piece]})
        self.pending[name] = tensor.contiguous()
        self.bytes += tensor.nbytes
        if self.bytes >= SHARD_BYTES:
            self.flush()

    def flush(self):
        from safetensors.torch import save_file
        if not self.pending:
            return
        path = self.folder / f"rank-{len(self.files):05}.safetensors"
        save_file(self.pending, path)
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.files.append({"name": path.name, "bytes": path.stat().st_size, "sha256": digest})
        self.pending, self.bytes = {}, 0


def write_parameters(saved: Saved, writer: Writer):
    import torch
    module = saved.modules[0]
    shapes = {name: shape for group in need(module, "param_shapes", saved.folder) for name, shape in group.items()}
    fragments = fragments_by_order(saved) if saved.stage == 3 else fragments_by_address(saved)
    aliases = {}
    for alias, name in (module.get("shared_params") or {}).items():
        aliases.setdefault(name, []).append(alias)
    for name, shape in shapes.items():
        parts = fragments.get(name, [])
        for slot in parts[0] if parts else [""]:
            flat = torch.cat([part[slot] for part in parts]) if parts else torch.empty(0)
            if flat.numel() < math.prod(shape):
                raise Refusal(f"{saved.folder} has {flat.numel()} of the {math.prod(shape)} elements of {name}")
            tensor = flat[:math.prod(shape)].view(*shape)
            if slot:
                writer.add(f"{name}::{slot}", tensor, kind="optimizer", of=name, slot=slot)
            else:
                writer.add(name, tensor, kind="parameter", **({"aliases": aliases[name]} if name in aliases else {}))
    for name, shape in (module.get("frozen_param_shapes") or {}).items():
        parts = [one["frozen_param_fragments"][name].flatten() for one in saved.modules]
        writer.add(name, torch.cat(parts)[:math.prod(shape)].view(*shape).float(), kind="parameter")
    for name in module.get("buffer_names") or []:
        value = module["module"][name]
        writer.add(name, value.float() if value.is_floating_point() else value, kind="buffer", persistent=True)


def write_scalars(saved: Saved, writer: Writer):
    import torch
    module, scaler = saved.modules[0], saved.states[0].get("loss_scaler")
    updates = module["global_steps"] - module["skipped_steps"]
    writer.add("optimizer::step", torch.tensor(updates), kind="scalar")
    if (module["module"] and next(iter(module["module"].values())).dtype) != torch.float16:
        return
    writer.add("optimizer::loss_scale", torch.tensor(float(scaler.cur_scale)), kind="scalar")
    if scaler.dynamic:
        # Steps since the last overflow; those of a whole number of windows are one window, as what comes next depends on the rest alone.
        clean = scaler.cur_iter - scaler.last_overflow_iter - 1
        clean = (clean - 1) % scaler.scale_window + 1 if clean > 0 else 0
        writer.add("optimizer::loss_scale_clean_steps", torch.tensor(clean), kind="scalar")
        writer.add("optimizer::loss_scale_hysteresis", torch.tensor(scaler.cur_hysteresis), kind="scalar")


def manifest_of(saved: Saved, writer: Writer) -> dict:
    module, ranks = saved.modules[0], len(saved.states)
    steps, samples = module["global_steps"], module["global_samples"]
    return {"format": 1, "deepstatic": f"from DeepSpeed {module.get('ds_version')}", "plan": "", "model": "", "run": "", "step": steps, "samples": samples,
            "samples_per_step": samples // steps if steps else 1, "seed": 0, "shuffle": False, "data": [], "set": [],
            "layout": {"ranks": ranks, "data_parallel": ranks, "stages": 1, "zero": saved.stage}, "variables": writer.variables, "files": writer.files}


def sealed(text: str) -> str:
    """A manifest with the SHA-256 of its text, by which ds-run notices edits (runtime/checkpoint/Manifest.cpp)."""
    content = text.removesuffix("\n}")
    return f'{content},\n "sha256": "{hashlib.sha256(content.encode()).hexdigest()}"\n}}\n'


def convert(source: Path, out: Path) -> Path:
    """The folder global_stepN in `out`, whole or not there."""
    try:
        import safetensors.torch  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        raise Refusal(f"DeepSpeed's files are read by PyTorch and safetensors, and {sys.executable} has no module {error.name}; activate the "
                      f"environment that wrote them") from None
    saved = read(find_folder(source))
    target = out / f"global_step{need(saved.modules[0], 'global_steps', saved.folder)}"
    if target.exists():
        raise Refusal(f"{target} is there already; give another folder")
    part = out / f"{target.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        writer = Writer(part)
        write_parameters(saved, writer)
        write_scalars(saved, writer)
        writer.flush()
        (part / "manifest.json").write_text(sealed(json.dumps(manifest_of(saved, writer), indent=1)))
        part.rename(target)
        (out / "latest").write_text(target.name + "\n")
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        if isinstance(error, OSError):
            raise Refusal(f"{part} cannot be written: {error.strerror or first_line(error)}") from error
        raise
    return target


if __name__ == "__main__":
    sys.exit(main())
