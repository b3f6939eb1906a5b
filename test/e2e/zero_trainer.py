"""What the tests of ZeRO share: three tiny models with every hazard at once, and runs of them on any number of ranks.

Tied embeddings, one parameter frozen, one that the loss does not reach, one of a single element, sizes that no number of
ranks divides, and a gradient that is clipped.
"""

import hashlib
import json
import os
import re
import sys

import numpy
import onnx
import pytest
from conftest import FOLDERS, REPOSITORY, write_config
from onnx import TensorProto, helper
from safetensors.numpy import save_file
from weights import read_weights

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

STEPS = 20
SAMPLES, SEQUENCE, VOCABULARY = 64, 4, 37
SETTINGS = {
    "gpt2": dict(n_layer=2, n_embd=10, n_head=2, n_positions=SEQUENCE, vocab_size=VOCABULARY),
    "llama": dict(hidden_size=12, intermediate_size=18, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                  max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY, tie_word_embeddings=True),
    "bert": dict(hidden_size=10, intermediate_size=14, num_hidden_layers=2, num_attention_heads=2,
                 max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY),
}
MODELS = tuple(SETTINGS)
FROZEN = {"gpt2": "transformer.wpe.weight", "llama": "model.layers.0.mlp.up_proj.weight",
          "bert": "bert.embeddings.position_embeddings.weight"}
GAIN, UNREACHED = "gain.weight", "unreached.weight"
# Small enough that a bucket never holds the model, and that some parameters are shared out and some are not.
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


def export(name, folder, *options):
    """What models/export.py writes, and two parameters more: loss * gain + 0 * count(unreached > 0)."""
    settings = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS[name].items()]
    assert exporter.main([name, "--size=tiny", f"--seq={SEQUENCE}", *settings, *options, f"--out={folder}"]) == 0
    path = folder / "model.onnx"
    model = onnx.load(path, load_external_data=False)
    graph = model.graph
    for node in graph.node:
        for i, output in enumerate(node.output):
            if output == "loss":
                node.output[i] = "plain_loss"
    graph.initializer.extend([helper.make_tensor(GAIN, TensorProto.FLOAT, [], [1.5]),
                              helper.make_tensor(UNREACHED, TensorProto.FLOAT, [11], numpy.arange(-5.0, 6.0)),
                              helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])])
    graph.node.extend([
        helper.make_node("Greater", [UNREACHED, "zero"], ["positive"]),
        helper.make_node("Cast", ["positive"], ["ones"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["ones"], ["count"], keepdims=0),
        helper.make_node("Mul", ["count", "zero"], ["nothing"]),
        helper.make_node("Mul", ["plain_loss", GAIN], ["scaled_loss"]),
        helper.make_node("Add", ["scaled_loss", "nothing"], ["loss"])])
    trainable = next(entry for entry in model.metadata_props if entry.key == "deepstatic.trainable")
    trainable.value = json.dumps([*json.loads(trainable.value), GAIN, UNREACHED])
    onnx.save(model, path)


def write_data(path):
    generator = numpy.random.default_rng(0)
    tokens = generator.integers(0, VOCABULARY, (SAMPLES, SEQUENCE), dtype=numpy.int64)
    save_file({"input_ids": tokens, "labels": tokens, "attention_mask": numpy.ones_like(tokens)}, path)


class Trainer:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.folders, self.single, self.exports = {}, {}, {}
        self.data = folder / "data.safetensors"
        write_data(self.data)

    def model(self, name, *options):
        """The exported folder; "gpt2" or ("gpt2", "--dropout=0.1")."""
        key = (name, *options)
        if key not in self.folders:
            self.folders[key] = self.folder / f"model{len(self.folders)}"
            export(name, self.folders[key], *options)
        return self.folders[key]

    def compile(self, model, ranks, accumulation, stage=0, without=None, keys=None, **zero):
        """A plan; `model` is a name, or a name with options of the export. `without`: a pass left out. `keys`: more of the configuration."""
        model, keys = (model,) if isinstance(model, str) else model, keys or {}
        digest = hashlib.sha256(f"{model} {without} {keys} {zero}".encode()).hexdigest()[:8]
        name = f"{model[0]}-{ranks}-{accumulation}-{stage}-{digest}"
        config = write_config(self.folder / f"{name}.json", 1, accumulation, gradient_clipping=0.5,
                              zero_optimization={"stage": stage, **SMALL, **zero}, **keys)
        plan = self.folder / f"{name}.dsplan"
        self.tools("ds-opt", "compile", self.model(*model), "--config", config, "--ranks", ranks, "--frozen",
                   f"^{re.escape(FROZEN[model[0]])}$", "-o", plan, *(["--without", without] if without else []))
        return plan

    def run(self, plan, *options, steps=STEPS, data=None, **keywords):
        """(digest of the final weights, losses, norms, summary)."""
        out = plan.with_suffix(f".{os.urandom(4).hex()}.safetensors")
        metrics, summary = self.tools.train(plan, data or self.data, steps, "--threads", 1, "--export", out, *options, **keywords)
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        self.exports[digest] = out
        return digest, [line["loss"] for line in metrics], [line["grad_norm"] for line in metrics], summary

    def run_by_mpi(self, plan, ranks, steps=STEPS, **environment):
        """The same under mpirun."""
        out, metrics = (plan.with_suffix(f".{os.urandom(4).hex()}.{kind}") for kind in ("safetensors", "jsonl"))
        forwarded = [word for name in environment for word in ("-x", name)]
        self.tools("mpirun", "--oversubscribe", "-n", ranks, *forwarded, FOLDERS["ds-run"] / "ds-run", plan, "--data", self.data,
                   "--steps", steps, "--threads", 1, "--quiet", "--export", out, "--metrics", metrics,
                   env={**os.environ, **OPEN_MPI, **{key: str(value) for key, value in environment.items()}})
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        steps = [line for line in lines if "loss" in line]
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        return digest, [line["loss"] for line in steps], [line["grad_norm"] for line in steps], lines[-1]["summary"]

    def one_rank(self, model, microbatches):
        """The run that all others are measured by."""
        key = (model, microbatches)
        if key not in self.single:
            self.single[key] = self.run(self.compile(model, 1, microbatches))[:3]
        return self.single[key]

    def weights(self, digest):
        """Of a run that gave this digest: name -> array."""
        return read_weights(self.exports[digest])[0]

    def report(self, plan):
        return json.loads(self.tools("ds-opt", "report", plan, "--format", "json").stdout)


@pytest.fixture(scope="module")
def trainer(tools, tmp_path_factory):
    return Trainer(tools, tmp_path_factory.mktemp("zero"))


def sent(wire):
    """Bytes of all kinds of collectives."""
    return sum(wire.values())


def gradient_bytes(rank):
    """P: bytes of the parameters that learn, padding included, all ranks' slices together."""
    return sum(4 * bucket["elements"] for bucket in rank["zero"]["buckets"] if bucket["name"].endswith("::gradient"))
