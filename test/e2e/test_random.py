"""Random numbers of training graphs: their distributions, who draws the same, stochastic depth, and what evaluation makes of them.

Draws are read from gradients: of the loss sum(p * draw), p being a parameter of zeros, one step of SGD with rate 1 leaves -draw, all bits of it.
"""

import hashlib
import json
import math
import os
import sys

import numpy
import pytest
from conftest import REPOSITORY, write_config
from onnx import TensorProto
from onnx_models import BATCH, Graph, central_difference
from plan_files import read_plan, write_plan
from safetensors.numpy import load_file, save_file
from test_user_modules import MICRO, SAMPLES, STEPS, Trained, export, same_losses, trained  # noqa: F401

SHAPE = (256, 512)
SGD = {"type": "SGD", "params": {"lr": 1.0}}


class Draws:
    """Graphs that draw, and the numbers that training drew."""

    def __init__(self, tools, folder):
        self.tools, self.folder, self.made = tools, folder, 0

    def compile(self, *makers, accumulation=1, ranks=1, first=0.0):
        """One parameter a maker, which gives the name of its draw."""
        self.made += 1
        folder = self.folder / str(self.made)
        folder.mkdir()
        graph = Graph(dtype=TensorProto.FLOAT)
        graph.inputs = {"x": numpy.zeros((4 * BATCH, 1), numpy.float32)}
        for i, maker in enumerate(makers):
            name = graph.parameter(f"p.{i}", numpy.full(SHAPE, first, numpy.float32))
            graph.terms.append(graph.sum(graph.op("Mul", name, maker(graph, name))))
        config = write_config(folder / "c.json", BATCH, accumulation, SGD)
        self.tools("ds-opt", "compile", graph.write(folder), "--config", config, "--ranks", ranks, "-o", folder / "m.dsplan")
        return folder

    def run(self, folder, *options, steps=1):
        """The sum of each parameter's draws over the steps."""
        after = folder / "after.safetensors"
        self.tools.train(folder / "m.dsplan", folder / "data.safetensors", steps, "--export", after, *options)
        return [-value for _, value in sorted(load_file(after).items())]

    def __call__(self, *makers, **keywords):
        return self.run(self.compile(*makers), **keywords)


@pytest.fixture
def draws(tools, tmp_path):
    return Draws(tools, tmp_path)


def uniform(graph, like):
    return graph.op("RandomUniformLike", like)


def near(value, expected, deviation, count):
    """Within five standard deviations of the mean of `count` draws."""
    assert abs(value - expected) < 5 * deviation / math.sqrt(count), (value, expected)


def require_independent(one, other):
    """Uncorrelated as independent draws are."""
    near(numpy.corrcoef(one.ravel(), other.ravel())[0, 1], 0, 1, one.size)


def require_rows_differ(drawn):
    assert len(numpy.unique(drawn, axis=0)) == len(drawn)
    require_independent(drawn[0::2], drawn[1::2])


# ---- distributions

def test_uniform(draws):
    shape = list(SHAPE)
    drawn = draws(lambda graph, like: graph.op("RandomUniform", shape=shape), uniform,
                  lambda graph, like: graph.op("RandomUniform", shape=shape, low=-3.0, high=5.0),
                  lambda graph, like: graph.op("RandomUniformLike", like, low=2.0, high=2.5))
    for values, low, high in zip(drawn, (0, 0, -3, 2), (1, 1, 5, 2.5)):
        assert values.min() >= low and values.max() < high
        near(values.mean(dtype=float), (low + high) / 2, (high - low) / math.sqrt(12), values.size)
        centered = (values.astype(float) - (low + high) / 2) / (high - low)
        near((centered ** 2).mean(), 1 / 12, math.sqrt(1 / 180), values.size)
        require_rows_differ(values)
    assert (drawn[0] * 2**24 == numpy.round(drawn[0] * 2**24)).all()
    require_independent(drawn[0], drawn[1])


def test_normal(draws):
    drawn = draws(lambda graph, like: graph.op("RandomNormal", shape=list(SHAPE)), lambda graph, like: graph.op("RandomNormalLike", like),
                  lambda graph, like: graph.op("RandomNormalLike", like, mean=2.0, scale=0.5))
    for values, mean, scale in zip(drawn, (0, 0, 2), (1, 1, 0.5)):
        z, count = (values.astype(float) - mean) / scale, values.size
        near(z.mean(), 0, 1, count)
        near((z ** 2).mean(), 1, math.sqrt(2), count)
        near((z ** 3).mean(), 0, math.sqrt(15), count)
        near((z ** 4).mean(), 3, math.sqrt(96), count)
        for bound in (0.5, 1, 2, 3):
            within = math.erf(bound / math.sqrt(2))
            near((abs(z) < bound).mean(), within, math.sqrt(within * (1 - within)), count)
        require_rows_differ(values)
    require_independent(drawn[0], drawn[1])


def test_bernoulli_follows_each_probability(draws):
    rates = numpy.linspace(0, 1, SHAPE[0], dtype=numpy.float32)[:, None].repeat(SHAPE[1], 1)
    drawn, integers = draws(lambda graph, like: graph.op("Bernoulli", graph.constant(rates)),
                            lambda graph, like: graph.op("Cast", graph.op("Bernoulli", graph.constant(rates), dtype=TensorProto.INT64), to=1))
    for values in (drawn, integers):
        assert set(numpy.unique(values)) == {0, 1}
        assert not values[0].any() and values[-1].all()
        near(((values - rates) / numpy.sqrt(0.25)).mean(dtype=float), 0, 1, values.size)
        for row in range(1, SHAPE[0] - 1):
            assert abs(values[row].mean() - rates[row, 0]) < 6 * math.sqrt(rates[row, 0] * (1 - rates[row, 0]) / SHAPE[1])
    assert (drawn != integers).any()


def test_in_16_bits_no_number_is_1(draws):
    """Multiples of 2^-8, as torch.rand's; two in a thousand would be rounded up to 1."""
    drawn, = draws(lambda graph, like: graph.op("Cast", graph.op("RandomUniformLike", like, dtype=TensorProto.BFLOAT16), to=1))
    assert set(numpy.unique(drawn * 256)) == set(range(256))
    near(drawn.mean(dtype=float), 0.5 - 1 / 512, 1 / math.sqrt(12), drawn.size)


# ---- who draws the same

def test_each_step_and_microbatch_has_its_own_numbers(draws):
    folder = draws.compile(uniform)
    one, = draws.run(folder)
    two = draws.run(folder, steps=2)[0] - one
    require_independent(one, two)
    halves, = draws.run(draws.compile(uniform, accumulation=2))
    second = 2 * halves.astype(float) - one  # the mean over two micro-batches, the first of which draws as if alone
    assert second.min() > -1e-6 and second.max() < 1 + 1e-6
    require_independent(one, second)


def test_ranks_draw_apart(draws):
    """A rank's micro-batch is another; the checker knows that a sum over the ranks is no multiple of what one has."""
    one, = draws.run(draws.compile(uniform, accumulation=2))
    folder = draws.compile(uniform, ranks=2)
    assert (draws.run(folder)[0] == one).all()
    draws.tools("ds-opt", "verify", folder / "m.dsplan")


def test_seeds(draws):
    """The run's seed decides all numbers. A node's own seed names a draw: equal seeds are equal numbers."""
    shape = list(SHAPE)
    folder = draws.compile(uniform, *[lambda graph, like, seed=seed: graph.op("RandomUniform", shape=shape, seed=seed) for seed in (3.0, 4.0, 3.0)])
    plain, three, four, again = draws.run(folder)
    assert (three == again).all()
    for one, other in ((plain, three), (plain, four), (three, four)):
        require_independent(one, other)
    assert all((one == other).all() for one, other in zip(draws.run(folder, "--seed", 0), (plain, three, four, again)))
    for one, other in zip(draws.run(folder, "--seed", 7), (plain, three, four, again)):
        require_independent(one, other)


def test_differences_see_the_numbers_that_gradients_used(tools, tmp_path):
    """In float64. Nothing flows through a draw: not into the probabilities, whose numbers do not cross them here."""
    graph = Graph()
    name = graph.parameter("p.0", numpy.random.default_rng(0).standard_normal((30, 40)))
    normal = graph.op("Mul", graph.op("Tanh", name), graph.op("RandomNormalLike", name))
    noise = graph.op("Add", normal, graph.op("Mul", graph.op("RandomUniformLike", name), graph.op("Exp", name)))
    kept = graph.op("Mul", noise, graph.op("Bernoulli", graph.op("Sigmoid", name)))
    graph.project(kept, numpy.random.default_rng(1))
    tools("ds-opt", "compile", graph.write(tmp_path), "--config", write_config(tmp_path / "c.json", BATCH, 1, SGD), "-o", tmp_path / "m.dsplan")

    def loss(parameters, *more):
        save_file(parameters, tmp_path / "w.safetensors")
        return tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", 1, "--weights", tmp_path / "w.safetensors", *more)[0][0]["loss"]

    loss(graph.parameters, "--export", tmp_path / "after.safetensors")
    gradient = graph.parameters[name] - load_file(tmp_path / "after.safetensors")[name]
    for seed in range(3):
        direction = numpy.random.default_rng(seed).standard_normal(gradient.shape)
        expected = central_difference(loss, graph.parameters, name, direction, h=1e-7)
        assert abs((gradient * direction).sum() - expected) <= 1e-5 * max(abs(expected), numpy.linalg.norm(gradient))


# ---- stochastic depth

PATHS = '''
import torch, torch.nn as nn
from user_modules import DropPath

class Paths(nn.Module):
    """Rows of weights that are dropped as samples are; mean(x) is 1."""
    def __init__(self, form):
        super().__init__()
        self.a, self.b = (nn.Parameter(torch.zeros(4096, 8)) for _ in range(2))
        self.register_buffer("c", torch.arange(1.0, 9))
        self.drop = DropPath(0.25, form)

    def forward(self, x):
        return x.mean() * sum((self.drop(w) * self.c).sum() for w in (self.a, self.b))

def build(form):
    return Paths(form), torch.ones(2, 1)
'''


@pytest.mark.parametrize("form", ["transformers", "timm", "vit-pytorch"])
def test_rows_are_dropped_or_scaled(form, tools, tmp_path):
    (tmp_path / "paths.py").write_text(PATHS)
    tools("export.py", "paths:build", "--set", f"form={form}", "--out", tmp_path / "model", cwd=tmp_path,
          env={**os.environ, "PYTHONPATH": str(REPOSITORY / "test" / "e2e")})
    save_file({"x": numpy.ones((4, 1), numpy.float32)}, tmp_path / "x.safetensors")
    config = write_config(tmp_path / "c.json", 2, 1, SGD)
    tools("ds-opt", "compile", tmp_path / "model", "--config", config, "-o", tmp_path / "m.dsplan")
    tools.train(tmp_path / "m.dsplan", tmp_path / "x.safetensors", 1, "--export", tmp_path / "after.safetensors")
    masks = []
    for name in ("a", "b"):
        rows = -load_file(tmp_path / "after.safetensors")[name]
        kept = numpy.arange(1, 9, dtype=numpy.float32) * numpy.float32(1 / 0.75)
        masks.append(rows.any(1))
        numpy.testing.assert_allclose(rows[masks[-1]], numpy.broadcast_to(kept, (masks[-1].sum(), 8)), rtol=1e-6)
        near(masks[-1].mean(), 0.75, math.sqrt(0.75 * 0.25), len(rows))
    agree = 0.75 ** 2 + 0.25 ** 2
    near((masks[0] == masks[1]).mean(), agree, math.sqrt(agree * (1 - agree)), 4096)


def evaluate(tools, plan, data) -> float:
    metrics = plan.with_suffix(".eval.jsonl")
    tools("ds-run", plan, "--data", data, "--eval", "--metrics", metrics)
    return json.loads(metrics.read_text().splitlines()[0])["eval_loss"]


def in_bfloat16(graph, value):
    return graph.op("Cast", value, to=TensorProto.BFLOAT16)


@pytest.mark.parametrize("maker, mean", [
    (lambda graph, like: graph.op("RandomUniformLike", like, low=2.0, high=3.0), 2.5),
    (lambda graph, like: graph.op("RandomNormalLike", like, mean=2.0, scale=3.0), 2),
    (lambda graph, like: graph.op("Bernoulli", graph.op("Mul", like, graph.constant(numpy.float32(0.25)))), 0.25),
    (lambda graph, like: graph.op("Floor", graph.op("Add", graph.constant(numpy.float32(1.75)), uniform(graph, like))), 1.75),
    (lambda graph, like: graph.op("Cast", graph.op("Floor", graph.op("Add", in_bfloat16(graph, graph.constant(numpy.float32(0.75))), graph.op(
        "RandomUniformLike", like, dtype=TensorProto.BFLOAT16))), to=1), 0.75),
    (lambda graph, like: graph.op("Cast", graph.op("Greater", graph.constant(numpy.float32(1.5)), uniform(graph, like)), to=1), 1),
    (lambda graph, like: graph.op("Cast", graph.op("Greater", uniform(graph, like), graph.constant(numpy.float32(0.75))), to=1), 0.25),
    (lambda graph, like: graph.op("Where", graph.op("Less", uniform(graph, like), graph.constant(numpy.float32(0.3))), graph.constant(
        numpy.float32(5)), graph.constant(numpy.float32(7))), 7)],
    ids=["uniform", "normal", "bernoulli", "floor", "floor in bfloat16", "always", "greater", "choice"])
def test_evaluation_takes_means(maker, mean, draws):
    folder = draws.compile(maker, first=1.0)
    assert evaluate(draws.tools, folder / "m.dsplan", folder / "data.safetensors") == pytest.approx(mean * math.prod(SHAPE), rel=1e-6)


@pytest.mark.parametrize("form", ["transformers", "timm"])
def test_evaluation_drops_no_path(form, tools, tmp_path):
    """A mask's mean is its probability, so that a branch is handed on."""
    losses = []
    for rate in (0.25, 0):
        folder = tmp_path / str(rate)
        export("stochastic_depth", [("rate", rate), ("form", form)], folder)
        plan = tmp_path / f"{rate}.dsplan"
        tools("ds-opt", "compile", folder, "--config", write_config(tmp_path / "c.json", MICRO), "-o", plan)
        generator = numpy.random.default_rng(3)
        save_file({"features": generator.standard_normal((6, 8)).astype(numpy.float32), "targets": generator.integers(0, 4, 6)},
                  tmp_path / "data.safetensors")
        losses.append(evaluate(tools, plan, tmp_path / "data.safetensors"))
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


@pytest.mark.parametrize("name", ["convnext", "swin"])
def test_models_of_transformers_train_with_drop_path(name, trained, tmp_path):  # noqa: F811
    """With rate 0 by PyTorch's losses; with 0.3 another walk, which learns, and evaluates as without."""
    without = trained(name)
    same_losses(without)
    start = evaluate(without.tools, without.plan, tmp_path / "data.safetensors")
    (tmp_path / "dropping").mkdir()
    dropping = Trained(without.tools, tmp_path / "dropping", name, ("rate", 0.3))
    text = without.tools("ds-opt", "import", tmp_path / "dropping" / "model", "--dim", f"batch={MICRO}").stdout
    assert text.count("train.uniform") >= 2
    losses = [[step["loss"] for step in run.metrics] for run in (without, dropping)]
    assert numpy.isfinite(losses).all() and losses[0] != losses[1]
    numpy.testing.assert_allclose(losses[1], losses[0], rtol=0.2)
    assert evaluate(dropping.tools, dropping.plan, tmp_path / "data.safetensors") == pytest.approx(start, rel=1e-5)


# ---- the same numbers however training is shared out

WHOLE = {"ranks": 1, "microbatches": 4}
# With one micro-batch a rank where gradients are summed over the ranks once a step: sums have one order then.
CUTS = {"data 4": {"ranks": 4}, "zero 1": {"ranks": 4, "stage": 1}, "zero 2": {"ranks": 2, "microbatches": 2, "stage": 2},
        "zero 3": {"ranks": 2, "microbatches": 2, "stage": 3}, "stages 2": {"ranks": 2, "microbatches": 4, "stages": 2},
        "stages 2, zb-h1": {"ranks": 2, "microbatches": 4, "stages": 2, "schedule": "zb-h1"},
        "stages 2, zero 2": {"ranks": 4, "microbatches": 2, "stages": 2, "stage": 2}, "recompute": {**WHOLE, "recompute": {".*": "recompute"}},
        "stages 2, recompute": {"ranks": 2, "microbatches": 4, "stages": 2, "recompute": "full"}}


class Cuts:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        export("drawing", [], folder / "model")
        generator = numpy.random.default_rng(3)
        save_file({"features": generator.standard_normal((SAMPLES, 8)).astype(numpy.float32), "targets": generator.integers(0, 4, SAMPLES)},
                  folder / "data.safetensors")
        self.expected = self.run(self.compile(**WHOLE))

    def compile(self, ranks, microbatches=1, stage=0, stages=1, schedule="1f1b", recompute="none", **more):
        pipeline = {"stages": stages, **({"schedule": schedule} if stages > 1 else {})}
        config = write_config(self.folder / "c.json", 2, microbatches, gradient_clipping=0.5,
                              zero_optimization={"stage": stage, "stage3_param_persistence_threshold": 10},
                              deepstatic={"pipeline": pipeline, "recompute": recompute}, **more)
        name = hashlib.sha256(f"{ranks} {microbatches} {stage} {stages} {schedule} {recompute} {more}".encode()).hexdigest()[:8]
        plan = self.folder / f"{name}.dsplan"
        self.tools("ds-opt", "compile", self.folder / "model", "--config", config, "--ranks", ranks, "-o", plan)
        return plan

    def run(self, plan, *options, steps=3):
        out = plan.with_suffix(".safetensors")
        metrics, _ = self.tools.train(plan, self.folder / "data.safetensors", steps, "--export", out, *options)
        return hashlib.sha256(out.read_bytes()).hexdigest(), {line["step"]: line["loss"] for line in metrics}


@pytest.fixture(scope="module")
def cuts(tools, tmp_path_factory):
    return Cuts(tools, tmp_path_factory.mktemp("cuts"))


@pytest.mark.parametrize("cut", CUTS)
def test_weights_are_those_of_one_rank(cut, cuts):
    """Every random function at once: same weights and losses, bit by bit; the checker finds the plan right."""
    plan = cuts.compile(**CUTS[cut])
    assert cuts.run(plan) == cuts.expected
    cuts.tools("ds-opt", "verify", plan)


@pytest.mark.parametrize("cut", ["zero 3", "stages 2, recompute"])
def test_the_second_opinion_agrees(cut, cuts):
    """ds-audit; and it refuses a plan in which one draw has the number of another."""
    plan, tool = cuts.compile(**CUTS[cut]), [sys.executable, REPOSITORY / "tools" / "ds-audit" / "ds-audit"]
    assert cuts.tools(*tool, plan).stdout.startswith("audited: ")
    edited = read_plan(plan)
    draw = [command for role in edited.roles for routine in role.routines for command in routine.commands if command.kernel.kernel == "uniform"][0]
    next(attribute for attribute in draw.kernel.attributes if attribute.name == "op_id").integer += 1
    broken = write_plan(cuts.folder / "broken.dsplan", edited)
    assert "error: " in cuts.tools(*tool, broken, code=1).stderr
    assert "attribute op_id is not that of train.uniform" in cuts.tools.refused("ds-opt", "verify", broken)


def test_trains_in_bfloat16(cuts):
    """Draws stay float32; losses are near those of float32."""
    plan = cuts.compile(**WHOLE, bf16={"enabled": True})
    losses = [list(run[1].values()) for run in (cuts.run(plan), cuts.expected)]
    numpy.testing.assert_allclose(*losses, rtol=0.05)
    assert losses[0] != losses[1]


def test_recompute_draws_again(cuts):
    """The mask's elementwise ops are in the routine twice, or its draw is."""
    text = cuts.tools("ds-opt", "report", cuts.compile(**CUTS["recompute"]), "--format", "json").stdout
    assert json.loads(text)["ranks_detail"][0]["recompute_flops_per_step"] > 0


@pytest.mark.parametrize("cut", ["data 4", "stages 2"])
def test_resumes_with_the_numbers_of_its_steps(cut, cuts, tmp_path):
    plan, saved = cuts.compile(**CUTS[cut]), tmp_path / "saved"
    cuts.run(plan, "--save", saved, steps=1)
    weights, losses = cuts.run(plan, "--resume", saved)
    assert (weights, losses) == (cuts.expected[0], {step: cuts.expected[1][step] for step in (2, 3)})


def test_an_evaluation_between_steps_draws_nothing(cuts):
    """The next step's numbers are the same, and so is a repeated evaluation."""
    plan, data = cuts.compile(**WHOLE), cuts.folder / "data.safetensors"
    assert cuts.run(plan, "--eval-data", data, "--eval-interval", 1) == cuts.expected
    assert evaluate(cuts.tools, plan, data) == evaluate(cuts.tools, plan, data)
