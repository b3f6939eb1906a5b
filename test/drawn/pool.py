"""Models of models/export.py's own zoo and untied decoders, exported once and kept in a folder."""

import functools
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy
import onnx

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = {
    "gpt2": ["gpt2", "--size", "tiny", "--seq", "16"], "llama": ["llama", "--size", "tiny", "--seq", "16"],
    "bert": ["bert", "--size", "tiny", "--seq", "16"], "moe": ["moe", "--size", "tiny", "--seq", "16"],
    "vit": ["vit", "--size", "tiny", "--set", "image_size=32"],
    "lora": ["llama", "--size", "tiny", "--seq", "8", "--lora", "2"],
    "dropout": ["gpt2", "--size", "tiny", "--seq", "8", "--dropout", "0.1"],
    "decoder": ["decoder:small"], "wide decoder": ["decoder:wide"], "statistics": ["decoder:normed"], "cells": ["decoder:cells"],
}


@functools.cache
def folder() -> Path:
    """Where they lie; another one when the exporter or a module changes."""
    sources = [*Path(__file__).parent.glob("*.py"), ROOT / "models" / "export.py", *(ROOT / "models" / "exporting").glob("*.py")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources) if path.stem in ("pool", "decoder") or "models" in path.parts))
    return ROOT / "build" / "drawn" / f"models-{digest.hexdigest()[:12]}"


def place_of(name) -> Path:
    return folder() / name.replace(" ", "-") / "model.onnx"


def export_all():
    """Exports what is not there yet, in a process of its own, which loads PyTorch once."""
    if not all(place_of(name).exists() for name in EXPORTS):
        subprocess.run([sys.executable, __file__], check=True, stdout=subprocess.DEVNULL)


def export_missing():
    sys.path[:0] = [str(ROOT / "models"), str(Path(__file__).parent)]
    import export
    for name, arguments in EXPORTS.items():
        if not place_of(name).exists() and export.main([*arguments, "--out", str(place_of(name).parent)]):
            raise SystemExit(f"{name}: not exported")


def inputs_of(path, samples, seed) -> dict:
    """Random inputs: whole numbers below 5, which every vocabulary and number of classes has, and normal numbers."""
    random, inputs = numpy.random.default_rng(seed), {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = (samples, *(d.dim_value for d in value.type.tensor_type.shape.dim[1:]))
        made = random.standard_normal(shape) if kind.kind == "f" else random.integers(0, 2 if "mask" in value.name else 5, shape)
        inputs[value.name] = made.astype(kind)
    return inputs


@functools.lru_cache
def trained_of(path) -> list:
    """Names of the parameters that train."""
    properties = {p.key: p.value for p in onnx.load(path, load_external_data=False).metadata_props}
    return json.loads(properties["deepstatic.trainable"])


if __name__ == "__main__":
    export_missing()
