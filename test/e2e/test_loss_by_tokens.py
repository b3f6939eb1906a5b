"""deepstatic.loss_normalization "tokens" (docs/loss.md): every label that counts has the same weight, wherever it stands in a global batch."""

import copy
import hashlib
import json
import math

import numpy
import pytest
import torch
from conftest import write_config
from plan_edits import at, collectives, insert
from plan_files import read_plan, write_plan
from safetensors.numpy import save_file
from torch_reference import load_model, make_optimizer

MICRO, SEQ, STEPS, IGNORED = 2, 16, 6, -100
UNTIED = {"gpt2": {"tie_word_embeddings": False}, "llama": {}}
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}
OPTIMIZER = {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.1}}
CLIP = 0.25  # clips every step of these runs


def samples(count):
    """Of most samples few labels count, and of some many, so that means of micro-batches weigh labels very differently."""
    generator = numpy.random.default_rng(3)
    tokens = generator.integers(0, 64, (count, SEQ), dtype=numpy.int64)
    labels = tokens.copy()
    for i, row in enumerate(labels):
        row[:0 if i % 5 == 0 else SEQ - 1 - i % 3] = IGNORED
    return {"input_ids": tokens, "labels": labels}


class Runs:
    def __init__(self, tools, exported, folder):
        self.tools, self.exported, self.folder, self.results = tools, exported, folder, {}
        self.data = folder / "data.safetensors"
        save_file(samples(STEPS * MICRO * 8), self.data)

    def model(self, name="gpt2"):
        settings = [f"--set={key}={json.dumps(value)}" for key, value in UNTIED[name].items()]
        return self.exported(name, "--size=tiny", f"--seq={SEQ}", *settings)

    def compile(self, ranks=1, accumulation=1, stage=0, pipeline=None, model="gpt2", normalization="tokens", **more):
        deepstatic = {"loss_normalization": normalization, **({"pipeline": pipeline} if pipeline else {})}
        settings = {"gradient_clipping": CLIP, "zero_optimization": {"stage": stage, **SMALL}, "deepstatic": deepstatic, **more}
        key = hashlib.sha256(repr((ranks, accumulation, model, settings)).encode()).hexdigest()[:12]
        plan = self.folder / f"{key}.dsplan"
        if not plan.exists():
            config = write_config(plan.with_suffix(".json"), MICRO, accumulation, settings.pop("optimizer", OPTIMIZER), **settings)
            self.tools("ds-opt", "compile", self.model(model), "--config", config, "--ranks", ranks, "-o", plan)
            self.tools("ds-opt", "verify", plan, "--model", self.model(model), "--config", config)
        return plan

    def train(self, *arguments, **keywords):
        """(a digest of the final weights, the lines of the steps)."""
        plan = self.compile(*arguments, **keywords)
        if plan not in self.results:
            out = plan.with_suffix(".safetensors")
            lines, _ = self.tools.train(plan, self.data, STEPS, "--export", out, "--threads", 1)
            self.results[plan] = hashlib.sha256(out.read_bytes()).hexdigest(), lines
        return self.results[plan]


@pytest.fixture(scope="module")
def runs(tools, exported, tmp_path_factory):
    return Runs(tools, exported, tmp_path_factory.mktemp("tokens"))


def curve(lines, key="loss"):
    return [line[key] for line in lines]


def torch_curves(folder, microbatches, by_tokens=True, model="gpt2"):
    """(losses, norms, targets) of transformers' model, whose loss takes num_items_in_batch as its Trainer gives it."""
    network = load_model(model, folder, **UNTIED[model])
    optimizer = make_optimizer({"optimizer": OPTIMIZER}, network.parameters())
    data = {name: torch.from_numpy(value) for name, value in samples(STEPS * MICRO * 8).items()}
    losses, norms, targets = [], [], []
    for step in range(STEPS):
        begin = step * microbatches * MICRO
        batches = [{name: value[at:at + MICRO] for name, value in data.items()} for at in range(begin, begin + microbatches * MICRO, MICRO)]
        count = sum(int((batch["labels"][:, 1:] != IGNORED).sum()) for batch in batches)
        optimizer.zero_grad()
        total = 0
        for batch in batches:
            loss = network(**batch, num_items_in_batch=torch.tensor(count)).loss if by_tokens else network(**batch).loss / microbatches
            loss.backward()
            total += loss.item()
        losses.append(total)
        targets.append(count)
        norms.append(torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP).item())
        optimizer.step()
    return losses, norms, targets


def near(found, expected, tolerance):
    numpy.testing.assert_allclose(found, expected, rtol=tolerance, atol=0)


# ---- against PyTorch

# ranks, accumulation, ZeRO stage, pipeline
SPREADS = [(1, 1, 0, None), (1, 2, 0, None), (2, 1, 0, None), (2, 1, 3, None), (2, 2, 0, None), (2, 2, 2, None), (2, 2, 3, None),
           (2, 2, 0, {"stages": 2}), (4, 2, 1, {"stages": 2}), (2, 4, 0, {"stages": 2, "schedule": "zb-h1"})]


@pytest.mark.parametrize("ranks, accumulation, stage, pipeline", SPREADS)
def test_pytorch_has_the_same_curves(runs, ranks, accumulation, stage, pipeline):
    _, lines = runs.train(ranks, accumulation, stage, pipeline)
    microbatches = accumulation * ranks // (pipeline or {"stages": 1})["stages"]
    losses, norms, targets = torch_curves(runs.model(), microbatches)
    near(curve(lines), losses, 1e-5)
    near(curve(lines, "grad_norm"), norms, 1e-4)
    assert curve(lines, "targets") == targets and all(norm > CLIP for norm in norms)


def test_llama_and_no_clipping(runs):
    near(curve(runs.train(2, 2, 3, model="llama")[1]), torch_curves(runs.model("llama"), 4, model="llama")[0], 1e-5)
    _, free = runs.train(2, 2, 2, gradient_clipping=0)
    assert curve(free)[0] == curve(runs.train(2, 2, 2)[1])[0] and curve(free) != curve(runs.train(2, 2, 2)[1])


def test_the_mean_of_means_is_another_loss(runs):
    """The data can tell: micro-batches of few labels pull the plain mean away."""
    _, plain = runs.train(1, 2, normalization="microbatch")
    near(curve(plain), torch_curves(runs.model(), 2, by_tokens=False)[0], 1e-5)
    tokens = curve(runs.train(1, 2)[1])
    assert max(abs(a - b) for a, b in zip(curve(plain), tokens)) > 1e-2
    assert "targets" not in plain[0]


# ---- bits

@pytest.mark.parametrize("spread, same", [
    ((2, 1, 0), (1, 2, 0)), ((2, 1, 2), (1, 2, 0)), ((2, 1, 3), (1, 2, 0)), ((2, 2, 2), (1, 4, 0)), ((2, 2, 3), (1, 4, 0)),
    ((2, 2, 1), (2, 2, 0)), ((2, 2, 0, {"stages": 2}), (1, 2, 0)), ((2, 2, 0, {"stages": 2, "schedule": "gpipe"}), (1, 2, 0)),
    ((4, 2, 2, {"stages": 2}), (1, 4, 0))], ids=str)
def test_ranks_and_stages_have_the_bits_of_one(runs, spread, same):
    (weights, lines), (expected, others) = runs.train(*spread), runs.train(*same)
    assert weights == expected
    for key in ("loss", "grad_norm", "targets"):
        assert curve(lines, key) == curve(others, key)


# ---- evaluation, and labels that all are ignored

@pytest.mark.parametrize("ranks, accumulation, pipeline", [(1, 1, None), (2, 2, None), (2, 2, {"stages": 2}), (4, 2, {"stages": 2})])
def test_an_evaluation_weighs_labels_too(runs, tmp_path, ranks, accumulation, pipeline):
    plan = runs.compile(ranks, accumulation, pipeline=pipeline, optimizer={"type": "SGD", "params": {"lr": 0.0}})
    held = {name: value[:16] for name, value in samples(32).items()}
    save_file(held, tmp_path / "held.safetensors")
    runs.tools("ds-run", plan, "--data", runs.data, "--steps", 1, "--eval-data", tmp_path / "held.safetensors", "--threads", 1,
               "--metrics", tmp_path / "m.jsonl", "--quiet")
    found = next(json.loads(line)["eval_loss"] for line in (tmp_path / "m.jsonl").read_text().splitlines() if "eval_loss" in line)
    with torch.no_grad():
        expected = load_model("gpt2", runs.model(), **UNTIED["gpt2"])(**{name: torch.from_numpy(value) for name, value in held.items()}).loss
    near(found, expected.item(), 1e-5)


def test_a_microbatch_without_targets_adds_nothing(runs, tmp_path):
    """Its own mean would be 0 / 0."""
    data = samples(2 * MICRO)
    data["labels"][:MICRO] = IGNORED
    save_file(data, tmp_path / "data.safetensors")
    lines, _ = runs.tools.train(runs.compile(1, 2), tmp_path / "data.safetensors", 1)
    assert lines[0]["targets"] == (data["labels"][:, 1:] != IGNORED).sum() and math.isfinite(lines[0]["loss"])
    said = runs.tools.refused("ds-run", runs.compile(1, 2, normalization="microbatch"), "--data", tmp_path / "data.safetensors", "--steps", 1,
                              code=None)
    assert "loss is NaN" in said
    data["labels"][:] = IGNORED
    save_file(data, tmp_path / "none.safetensors")
    assert "loss is NaN" in runs.tools.refused("ds-run", runs.compile(1, 2), "--data", tmp_path / "none.safetensors", "--steps", 1, code=None)


def test_labels_out_of_range_are_refused_before_a_step(runs, tmp_path):
    data = samples(MICRO)
    data["labels"][0, 3] = 9999
    save_file(data, tmp_path / "data.safetensors")
    assert "labels" in runs.tools.refused("ds-run", runs.compile(), "--data", tmp_path / "data.safetensors", "--steps", 1, code=None)


# ---- what is refused

PENALIZED = '''
import torch, torch.nn as nn, torch.nn.functional as F

class Penalized(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, 16)

    def forward(self, tokens, targets):
        return F.cross_entropy(self.table(tokens).flatten(0, 1), targets.flatten()) + self.table.weight.pow(2).sum()

def build():
    tokens = torch.arange(16).reshape(2, 8)
    return Penalized(), (tokens, tokens.clone())
'''


def test_another_loss_is_refused(tools, tmp_path):
    (tmp_path / "penalized.py").write_text(PENALIZED)
    tools("export.py", "penalized:build", "--out", tmp_path / "model", cwd=tmp_path)
    config = write_config(tmp_path / "c.json", 2, 1, deepstatic={"loss_normalization": "tokens"})
    said = tools.refused("ds-opt", "compile", tmp_path / "model", "--config", config, "--ranks", 1, "-o", tmp_path / "plan")
    assert "is not one mean cross entropy of labels" in said and 'leave it at "microbatch"' in said
    tools("ds-opt", "compile", tmp_path / "model", "--config", config, "--set", "deepstatic.loss_normalization=microbatch", "--ranks", 1,
          "-o", tmp_path / "plan")


# ---- what verify asks: test/unit/sources/TargetsTest.cpp has more

@pytest.mark.parametrize("made, asked, said", [
    ("microbatch", "tokens", "the scale of gradients is 0.5 in the plan, but 1"),
    ("tokens", "microbatch", "the scale of gradients is 1 in the plan, but 0.5")])
def test_a_plan_that_ignores_the_key_is_refused(runs, made, asked, said):
    """As a compiler would make it that read the key and forgot it."""
    plan, other = runs.compile(1, 2, normalization=made), runs.compile(1, 2, normalization=asked)
    broken = read_plan(plan)
    broken.sources.configuration_sha256 = read_plan(other).sources.configuration_sha256
    forged = write_plan(plan.with_name(f"{made}-for-{asked}.dsplan"), broken)
    runs.tools("ds-opt", "verify", forged)
    assert said in runs.tools.refused("ds-opt", "verify", forged, "--model", runs.model(), "--config", other.with_suffix(".json"))


def test_a_count_that_is_summed_twice_is_refused(runs):
    """Counts and losses are summed over the ranks by one command of two parts; another that says nothing of it runs before it."""
    plan = runs.compile(2, 2, 2)
    broken = read_plan(plan)
    place = next(place for place in collectives(broken, "ALL_REDUCE") if len(at(broken, place).collective.parts) == 2)
    first = copy.deepcopy(at(broken, place))
    first.ClearField("reference")
    first.ClearField("signals")
    insert(broken, place, first)
    forged = write_plan(plan.with_name("summed-twice.dsplan"), broken)
    assert "takes micro-batch 0 into the sum over ranks of" in runs.tools.refused("ds-opt", "verify", forged)
