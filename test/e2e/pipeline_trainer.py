"""What the tests of pipelines share: four tiny models of eight blocks, and runs of them cut into any number of stages.

Eight blocks, so that four ranks may hold two stages each. ResNet is in float64, where PyTorch's losses are ours to the last digits
(test_parity_images.py says why float32 is not); its micro-batches have two samples, for batch norm.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import sys
from pathlib import Path

import numpy
import pytest
import torch
from conftest import FOLDERS, REPOSITORY, write_config
from safetensors import safe_open
from safetensors.torch import save_file
from test_parity_images import fill
from torch_reference import load_model, train
from weights import REORDERED, read_weights, require_near

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402
from exporting.resnet import ResNet  # noqa: E402

STEPS, SEQUENCE, VOCABULARY, IMAGE, LABELS = 10, 8, 61, 64, 10
SAMPLES = 2 * STEPS * 8 * 2  # ResNet's, of the largest step
SCHEDULES = ("gpipe", "1f1b", "interleaved", "zb-h1")
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
TEXT = {
    "llama": dict(hidden_size=16, intermediate_size=24, num_hidden_layers=8, num_attention_heads=2, num_key_value_heads=1,
                  max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY),
    "gpt2": dict(n_layer=8, n_embd=16, n_head=2, n_positions=SEQUENCE, vocab_size=VOCABULARY),
    "bert": dict(hidden_size=16, intermediate_size=24, num_hidden_layers=8, num_attention_heads=2,
                 max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY),
}
MIXTURE = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
               max_position_embeddings=SEQUENCE, vocab_size=VOCABULARY, num_local_experts=4, num_experts_per_tok=2)
VIT = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=64, patch_size=16, num_labels=10)
RESNET = dict(blocks=(2, 2, 2, 2), width=4, num_labels=LABELS, image_size=IMAGE)
SKIPPING = {"enabled": True, "initial_scale_power": 30, "loss_scale_window": 2, "hysteresis": 1}  # most of 40 steps are skipped
MODELS = (*TEXT, "resnet")  # "gpt2 tied" and "bert tied" exist, too; "moe" and "vit" are in no cross


@dataclasses.dataclass(frozen=True)
class Cut:
    """How a model is spread out. One stage: `schedule` means nothing."""
    stages: int = 1  # ranks along the pipeline
    microbatches: int = 1
    schedule: str = "1f1b"
    zero: int = 0
    data: int = 1

    @property
    def ranks(self):
        return self.stages * self.data

    @property
    def chunks(self):
        return 2 if self.schedule == "interleaved" else 1

    def admissible(self):
        return self.schedule != "interleaved" or self.microbatches % self.stages == 0

    def whole(self):
        """The plan of one stage that it must equal."""
        return Cut(1, self.microbatches, "1f1b", self.zero, self.data)


def every_cut():
    """(model, cut) of the whole cross, without those that a schedule does not admit."""
    cross = itertools.product(MODELS, SCHEDULES, (2, 4), (1, 4, 8), range(4), (1, 2))
    cases = [(model, Cut(stages, microbatches, schedule, zero, data)) for model, schedule, stages, microbatches, zero, data in cross]
    return [case for case in cases if case[1].admissible()]


def write_text(path):
    generator = numpy.random.default_rng(0)
    tokens = torch.from_numpy(generator.integers(0, VOCABULARY, (SAMPLES, SEQUENCE)))  # 0 is BERT's padding_idx
    save_file({"input_ids": tokens, "labels": tokens.clone(), "attention_mask": torch.ones_like(tokens)}, path)


def write_images(path, dtype):
    generator = numpy.random.default_rng(0)
    save_file({"pixel_values": torch.from_numpy(generator.standard_normal((SAMPLES, 3, IMAGE, IMAGE))).to(dtype),
               "labels": torch.from_numpy(generator.integers(0, LABELS, SAMPLES))}, path)


def zero(cut, **more):
    """The section of a configuration, with buckets small enough that there are several."""
    return {"stage": cut.zero, "reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000,
            "stage3_param_persistence_threshold": 40, **more}


class Trainer:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.models, self.results, self.references, self.exports = {}, {}, {}, {}
        write_text(folder / "text.safetensors")
        for dtype in (torch.float64, torch.float32):
            write_images(folder / f"images-{dtype}.safetensors", dtype)

    def model(self, name) -> Path:
        """The exported folder of "gpt2", "gpt2 tied", "gpt2 dropout", "gpt2 one block", "gpt2 fp16", ..., "resnet", "resnet float32"."""
        if name in self.models:
            return self.models[name]
        if name.startswith("resnet"):
            settings = {key: list(value) if isinstance(value, tuple) else value for key, value in RESNET.items()}
            options = ("resnet50", "--size", "tiny", "--dtype", name.partition(" ")[2] or "float64")
        elif name == "vit":
            settings, options = VIT, ("vit", "--size", "tiny")
        else:
            base, _, form = name.partition(" ")
            settings, options = {**TEXT, "moe": MIXTURE}[base], (base, "--size", "tiny", "--seq", SEQUENCE)
            settings = {**settings, "tie_word_embeddings": form == "tied"}
            settings |= {"n_layer": 1} if form == "one block" else {}
            options += ("--dropout", 0.25) if form == "dropout" else ()
        self.models[name] = self.folder / name.replace(" ", "-")
        sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        assert exporter.main([*map(str, options), *sets, f"--out={self.models[name]}"]) == 0  # in this process, which knows torch
        return self.models[name]

    def data(self, name):
        base, _, form = name.partition(" ")
        dtype = {"resnet": form or "float64", "vit": "float32"}.get(base)
        return self.folder / (f"images-torch.{dtype}.safetensors" if dtype else "text.safetensors")

    def config(self, name, cut, **more):
        pipeline = {"stages": cut.stages, "schedule": cut.schedule, "chunks": cut.chunks} if cut.stages > 1 else {"stages": 1}
        settings = {"gradient_clipping": 0.5, "zero_optimization": zero(cut), "deepstatic": {"pipeline": pipeline}, **more}
        settings |= {"fp16": SKIPPING} if name.endswith("fp16") else {}
        digest = hashlib.sha256(json.dumps([name, dataclasses.astuple(cut), settings]).encode()).hexdigest()[:12]
        return write_config(self.folder / f"{digest}.json", 2 if name.startswith("resnet") else 1, cut.microbatches, **settings)

    def compile(self, name, cut, *options, **more):
        config = self.config(name, cut, **more)
        plan = config.with_suffix(".dsplan")
        self.tools("ds-opt", "compile", self.model(name), "--config", config, "--ranks", cut.ranks, "-o", plan, *options)
        return plan

    def run(self, name, plan, ranks, *options, steps=STEPS):
        """(digest of the final weights, losses, norms, summary)."""
        out = plan.with_suffix(f".{os.urandom(4).hex()}.safetensors")
        metrics, summary = self.tools.train(plan, self.data(name), steps, "--threads", 1, "-n", ranks, "--export", out, *options)
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        self.exports[digest] = out
        return digest, *curves(metrics), summary

    def weights(self, name, plan, ranks, steps=1):
        """Every exported tensor after a few steps, in float64."""
        out = plan.with_suffix(".weights.safetensors")
        self.tools("ds-run", plan, "--data", self.data(name), "--steps", steps, "--threads", 1, "-n", ranks, "--export", out, "--quiet")
        with safe_open(out, "np") as file:
            return {key: file.get_tensor(key).astype(numpy.float64) for key in file.keys()}

    def run_by_mpi(self, name, plan, ranks, steps=STEPS):
        out, lines = (plan.with_suffix(f".{os.urandom(4).hex()}.{kind}") for kind in ("safetensors", "jsonl"))
        self.tools("mpirun", "--oversubscribe", "-n", ranks, FOLDERS["ds-run"] / "ds-run", plan, "--data", self.data(name), "--steps", steps,
                   "--threads", 1, "--quiet", "--export", out, "--metrics", lines, env={**os.environ, **OPEN_MPI})
        metrics = [json.loads(line) for line in lines.read_text().splitlines()]
        return (hashlib.sha256(out.read_bytes()).hexdigest(), *curves([line for line in metrics if "loss" in line]), metrics[-1]["summary"])

    def one_stage(self, name, cut):
        """What a cut must equal, bit by bit."""
        key = (name, cut.whole())
        if key not in self.results:
            self.results[key] = self.run(name, self.compile(name, cut.whole()), cut.data)[:3]
        return self.results[key]

    def require_near_one_stage(self, name, cut, result):
        """Losses, norms and weights of a run whose sums have another order than one stage's."""
        digest, losses, norms = result
        one_digest, one_losses, one_norms = self.one_stage(name, cut)
        assert losses == pytest.approx(one_losses, rel=1e-6)
        assert norms == pytest.approx(one_norms, rel=1e-4)
        ours, expected = (read_weights(self.exports[one])[0] for one in (digest, one_digest))
        require_near(ours, expected, REORDERED)

    def pytorch(self, name, cut):
        """PyTorch's losses; only the number of micro-batches of a step matters."""
        key = (name, cut.microbatches * cut.data)
        if key not in self.references:
            with safe_open(self.data(name), "pt") as file:
                samples = {column: file.get_tensor(column) for column in file.keys()}
            if not name.startswith("bert"):
                samples.pop("attention_mask", None)
            config = json.loads(self.config(name, Cut(1, key[1])).read_text())
            self.references[key] = train(self.module(name), samples, config, STEPS).losses
        return self.references[key]

    def module(self, name):
        if name == "resnet":
            return fill(ResNet(**RESNET), self.model(name)).double().train()
        base, _, form = name.partition(" ")
        return load_model(base, self.model(name), **TEXT[base], tie_word_embeddings=form == "tied")

    def report(self, plan):
        return json.loads(self.tools("ds-opt", "report", plan, "--format", "json").stdout)


def curves(metrics):
    return [line["loss"] for line in metrics], [line["grad_norm"] for line in metrics]


@pytest.fixture(scope="module")
def trainer(tools, tmp_path_factory):
    return Trainer(tools, tmp_path_factory.mktemp("pipeline"))
