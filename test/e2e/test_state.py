"""State that forward changes (state_modules.py): trained and evaluated beside PyTorch, with the same bits however the step is cut, and known to `verify`."""

import json
import os
import sys

import numpy
import onnx
import pytest
import state_modules
import torch
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

STEPS, MICRO, ACCUMULATION = 5, 3, 2
SGD = {"type": "SGD", "params": {"lr": 0.1}}
CUTS = {
    "recompute": (1, {"deepstatic": {"recompute": "full"}}),
    "stages": (2, {"deepstatic": {"pipeline": {"stages": 2}}}),
    "zero bubble": (2, {"deepstatic": {"recompute": "full", "pipeline": {"stages": 2, "schedule": "zb-h1"}}}),
    "by layer": (1, {"deepstatic": {"pipeline": {"schedule": "accumulate-by-layer"}}}),
}
ALL = os.environ.get("DS_TEST_SCOPE") == "all"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """folders(name) -> the exported module; each is exported once."""
    made = {}

    def exported(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("state") / "model"
            arguments = [f"--set=name={json.dumps(name)}", "--skip-gradient-check"]  # test_gradients_of_modules.py compares them
            assert exporter.main(["state_modules:build", *arguments, f"--out={made[name]}"]) == 0
        return made[name]

    return exported


class Runs:
    """Plans of one module, trained on the same samples."""

    def __init__(self, tools, folder, tmp_path):
        self.tools, self.folder, self.path = tools, folder, tmp_path
        self.data = state_modules.samples(STEPS * MICRO * ACCUMULATION, seed=2)
        self.unseen = state_modules.samples(2 * MICRO, seed=3)
        save_file(self.data, tmp_path / "data.safetensors")
        save_file(self.unseen, tmp_path / "evaluation.safetensors")

    def compile(self, ranks=1, micro=MICRO, accumulation=ACCUMULATION, **settings):
        config, plan = self.path / "config.json", self.path / "m.dsplan"
        write_config(config, micro, accumulation, SGD, **settings)
        self.tools("ds-opt", "compile", self.folder, "--config", config, "--ranks", ranks, "-o", plan)
        self.tools("ds-opt", "verify", plan, "--model", self.folder, "--config", config)
        return plan

    def train(self, plan, *options, steps=STEPS, ranks=1):
        """Losses, and what is exported; `evaluated` is the loss of an evaluation at the end."""
        after, report = self.path / "after.safetensors", self.path / f"{os.urandom(4).hex()}.jsonl"
        self.tools("ds-run", plan, "--data", self.path / "data.safetensors", "--steps", steps, "-n", ranks, "--export", after, "--quiet",
                   "--metrics", report, "--eval-data", self.path / "evaluation.safetensors", *options)
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        self.evaluated = [line["eval_loss"] for line in lines if "eval_loss" in line]
        return [line["loss"] for line in lines if "loss" in line], load_file(after)


@pytest.fixture
def runs(tools, folders, tmp_path):
    return lambda name: Runs(tools, folders(name), tmp_path)


def require_same(found, expected):
    assert found[0] == expected[0]
    assert found[1].keys() == expected[1].keys()
    for name, value in expected[1].items():
        assert torch.equal(found[1][name], value), name


def by_torch(name, data):
    """Losses of the same steps by PyTorch, and the module."""
    module, _ = state_modules.build(name)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = 0.0
        for part in range(ACCUMULATION):
            first = MICRO * (step * ACCUMULATION + part)
            own = module(**{key: value[first:first + MICRO] for key, value in data.items()}) / ACCUMULATION
            own.backward()
            loss += own.item()
        optimizer.step()
        losses.append(loss)
    return losses, module


@pytest.mark.parametrize("name", [name for name in state_modules.MODULES if ALL or name not in ("average always", "gain", "spectral")])
def test_is_pytorchs(name, runs):
    own = runs(name)
    losses, module = by_torch(name, own.data)
    found, after = own.train(own.compile())
    numpy.testing.assert_allclose(found, losses, rtol=1e-5)
    changed = {key: value for key, value in module.named_buffers() if not key.endswith("num_batches_tracked") or name in ("batch means", "batch twice")}
    assert changed
    for key, value in changed.items():
        numpy.testing.assert_allclose(after[key], value, rtol=1e-6, atol=1e-6 * float(value.abs().max()), err_msg=key)
    with torch.no_grad():  # one that writes buffers in evaluation writes the first half's before it sees the second
        if name != "average always":
            numpy.testing.assert_allclose(own.evaluated, [module.eval()(**own.unseen).item()], rtol=1e-5)


@pytest.mark.parametrize("name, cut", [(name, cut) for name in state_modules.MODULES for cut in CUTS
                                       if ALL or (name, cut) in (("average", "recompute"), ("gain", "zero bubble"), ("centre", "stages"),
                                                                 ("centre", "by layer"))])
def test_bits_do_not_depend_on_how_a_step_is_cut(name, cut, runs):
    own = runs(name)
    one, evaluated = own.train(own.compile()), own.evaluated
    ranks, settings = CUTS[cut]
    found = own.train(own.compile(ranks, **settings), ranks=ranks)
    if name.startswith("spectral") and ranks > 1:  # two stages read a weight: each adds up its own part of the gradient
        numpy.testing.assert_allclose(found[0], one[0], rtol=1e-6)
    else:
        require_same(found, one)
    numpy.testing.assert_allclose(own.evaluated, evaluated, rtol=1e-6)


def test_state_that_follows_from_weights_is_the_same_on_data_ranks(runs):
    """Two ranks of three samples are one of six."""
    own = runs("spectral, old")
    one = own.train(own.compile(micro=2 * MICRO, accumulation=1))
    two = own.train(own.compile(2, accumulation=1, zero_optimization={"stage": 2}), ranks=2)
    numpy.testing.assert_allclose(two[0], one[0], rtol=1e-5)
    for name, value in one[1].items():
        numpy.testing.assert_allclose(two[1][name], value, rtol=0, atol=1e-5, err_msg=name)
    said = own.tools("ds-opt", "report", own.path / "m.dsplan").stdout
    assert "but for 6 buffers such as layers.0.weight_" in said and "rank 0's are exported" in said


def test_resumes_bit_by_bit(runs):
    own = runs("average")
    plan = own.compile()
    whole = own.train(plan)
    begin = own.train(plan, "--save", own.path / "checkpoints", steps=2)
    end = own.train(plan, "--resume", own.path / "checkpoints")
    require_same((begin[0] + end[0], end[1]), whole)


def test_a_second_opinion(runs):
    """ds-audit computes each data rank's own state."""
    own = runs("average")
    done = own.tools(sys.executable, REPOSITORY / "tools" / "ds-audit" / "ds-audit", own.compile(2, zero_optimization={"stage": 2}), "--orders", 1)
    assert "are the reference program's" in done.stdout


class Loses(state_modules.Layers):
    """Its evaluation does without the state."""

    def __init__(self):
        super().__init__(state_modules.averages, between=lambda m, h, index: state_modules.average(False)(m, h, index) if m.training else h)


@pytest.mark.parametrize("name, module, note", [
    ("average", state_modules.MODULES["average"], None),
    ("average always", state_modules.MODULES["average always"], "note: forward changes scale0 and 2 more in evaluation mode, too; "),
    ("loses", Loses, "note: the loss of an evaluation is not that of module.eval(): ")])
def test_an_export_says_what_an_evaluation_is(name, module, note, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(state_modules.MODULES, name, module)
    assert exporter.main(["state_modules:build", f"--set=name={json.dumps(name)}", "--skip-gradient-check", f"--out={tmp_path / 'model'}"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "gradients not compared" not in line]
    assert len(notes) == bool(note) and all(line.startswith(note) for line in notes), notes


def export_without_weights(name, folder):
    return exporter.main(["state_modules:build", f"--set=name={json.dumps(name)}", "--no-weights", f"--out={folder}"])


def test_first_values_are_there_without_weights(tools, tmp_path, capsys):
    folder = tmp_path / "model"
    assert export_without_weights("instance", folder) == 0
    tools("ds-opt", "compile", folder, "--config", write_config(tmp_path / "config.json"), "-o", tmp_path / "m.dsplan")
    said = {one.name: one.persistent for one in read_plan(tmp_path / "m.dsplan").variables}
    assert said["norms.0.running_mean"] and "norms.0.deepstatic_training" not in said
    assert export_without_weights("spectral, old", tmp_path / "none") == 1
    assert "follows from weights, which are left out: export without --no-weights" in capsys.readouterr().err


def write_model(folder, out, change=None):
    """A copy of a model, weights outside; `change` changes its deepstatic.state."""
    model = onnx.load(folder / "model.onnx")
    (out / "model.onnx.data").unlink(missing_ok=True)
    notes = {entry.key: entry for entry in model.metadata_props}
    state = json.loads(notes["deepstatic.state"].value)
    if change:
        change(state)
    notes["deepstatic.state"].value = json.dumps(state)
    for entry in [entry for entry in model.graph.metadata_props if entry.key.endswith("graph_signature")]:
        model.graph.metadata_props.remove(entry)
    onnx.save(model, out / "model.onnx", save_as_external_data=True, location="model.onnx.data", size_threshold=0)


@pytest.mark.parametrize("change, sentence", [
    (lambda state: state.pop("scale1"), "forward changes scale1 (deepstatic.state), but the plan stores nothing there"),
    (lambda state: state["scale1"].update(value=state["scale2"]["value"]), "the plan stores in scale1 what '"),
])
def test_verify_refuses_another_state(change, sentence, runs, tools, tmp_path):
    """A plan of another model, which says that it is of this one."""
    own = runs("average")
    whole, own.folder = own.folder, tmp_path / "model"
    own.folder.mkdir()
    write_model(whole, own.folder, change)
    plan = read_plan(own.compile())
    write_model(whole, own.folder)
    plan.sources.model_sha256 = read_plan(own.compile()).sources.model_sha256
    write_plan(tmp_path / "edited.dsplan", plan)
    tools("ds-opt", "verify", tmp_path / "edited.dsplan")
    said = tools.refused("ds-opt", "verify", tmp_path / "edited.dsplan", "--model", own.folder, "--config", tmp_path / "config.json")
    assert sentence in said, said


@pytest.mark.parametrize("said_to_store, sentence", [(True, "it stores centre, but train.store"), (False, "of what its operands hold")])
def test_the_checker_knows_whose_state_it_is(said_to_store, sentence, runs, tools, tmp_path):
    """Where the old value is stored the second micro-batch finds what the first one has found."""
    own = runs("centre")
    own.compile()
    tools("ds-opt", "compile", own.folder, "--config", tmp_path / "config.json", "--without", "ds-elide-copies", "-o", tmp_path / "m.dsplan")
    plan = read_plan(tmp_path / "m.dsplan")
    role = plan.roles[0]
    buffer = next(index for index, one in enumerate(role.buffers) if one.name == "centre" and one.HasField("variable"))
    commands = next(one for one in role.routines if one.name == "forward").commands
    store = next(command for command in commands if any(operand.buffer == buffer and operand.access == 2 for operand in command.kernel.operands))
    store.kernel.operands[0].buffer = buffer
    if not said_to_store:
        del store.reference[:]
    write_plan(tmp_path / "broken.dsplan", plan)
    said = tools.refused("ds-opt", "verify", tmp_path / "broken.dsplan")
    assert "micro-batch" in said and sentence in said, said
