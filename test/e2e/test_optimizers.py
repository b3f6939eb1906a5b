"""Every optimizer and every schedule against PyTorch's or DeepSpeed's own code: 100 updates with given gradients, to 1e-6.

PyTorch's optimizers are imported. DeepSpeed's numbers stand in test/data/deepspeed with the script that made them; where deepspeed is
installed, the script runs again and must make the same.
"""

import hashlib
import json
import sys

import numpy
import pytest
import torch
from conftest import REPOSITORY, write_config
from deepspeed_reference import LR, SCHEDULES, UPDATES, committed, first_values, gradients, maker
from plan_edits import update_in_halves
from plan_files import read_plan, write_plan
from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

ADAM = {"lr": LR, "betas": [0.9, 0.97], "eps": 1e-6, "weight_decay": 0.1}
TORCH = {
    "AdamW": ADAM,
    "Adam": {**ADAM, "adam_w_mode": False},
    "SGD": {"lr": LR, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
    "Adagrad": {"lr": 10 * LR, "lr_decay": 0.1, "weight_decay": 0.1},
}


class Trainer:
    def __init__(self, tools, folder):
        self.tools, self.folder, self.count = tools, folder, 0
        assert exporter.main(["given_gradients:build", f"--out={folder / 'model'}"]) == 0
        save_file({f"d_{name}": value for name, value in gradients().items()}, folder / "data.safetensors")

    def fresh(self, suffix):
        self.count += 1
        return self.folder / f"{self.count}{suffix}"

    def compile(self, optimizer, params, ranks=1, micro=1, options=(), **more):
        config, plan = self.fresh(".json"), self.fresh(".dsplan")
        write_config(config, micro, optimizer={"type": optimizer, "params": params}, **more)
        self.tools("ds-opt", "compile", self.folder / "model", "--config", config, "--ranks", ranks, *options, "-o", plan)
        self.tools("ds-opt", "verify", plan, "--model", self.folder / "model", "--config", config)
        return plan

    def run(self, plan, *options, steps=UPDATES):
        """The metrics of each step, and the weights."""
        weights = self.fresh(".safetensors")
        metrics, _ = self.tools.train(plan, self.folder / "data.safetensors", steps, "--export", weights, *options)
        return metrics, load_file(weights)


@pytest.fixture(scope="session")
def given(tools, tmp_path_factory):
    return Trainer(tools, tmp_path_factory.mktemp("given"))


def torch_weights(kind, params, schedule=None):
    """What torch.optim makes of the given gradients; `schedule` has DeepSpeed's rates and betas."""
    values = {name: torch.tensor(value, requires_grad=True) for name, value in first_values().items()}
    optimizer = getattr(torch.optim, kind)(list(values.values()), foreach=False, **params)
    given = gradients()
    for number in range(UPDATES):
        for name, value in values.items():
            value.grad = torch.tensor(given[name][number])
        if schedule:
            optimizer.param_groups[0].update(lr=schedule["lr"][number])
            if "beta1" in schedule:
                optimizer.param_groups[0].update(betas=(schedule["beta1"][number], schedule["betas"]))
        optimizer.step()
    return {name: value.detach().numpy() for name, value in values.items()}


def require_close(ours, expected):
    for name, value in expected.items():
        wanted = numpy.asarray(value).reshape(ours[name].shape)
        numpy.testing.assert_allclose(ours[name], wanted, rtol=1e-6, atol=1e-6, err_msg=name)
        assert numpy.abs(wanted - first_values()[name]).max() > 0.01, "nothing was learned: the test shows nothing"


@pytest.mark.parametrize("kind", TORCH)
def test_an_optimizer_is_pytorchs(given, kind):
    params = dict(TORCH[kind])
    _, weights = given.run(given.compile(kind, params))
    params.pop("adam_w_mode", None)
    require_close(weights, torch_weights(kind, params))


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_is_deepspeeds(given, name):
    """Rates, and, where the momentum is cycled, the weights that PyTorch's AdamW makes with DeepSpeed's betas of each update."""
    kind, params = SCHEDULES[name]
    metrics, weights = given.run(given.compile("AdamW", ADAM, scheduler={"type": kind, "params": params}))
    wanted = committed()["schedules"][name]
    numpy.testing.assert_allclose([line["lr"] for line in metrics], wanted["lr"], rtol=1e-12)
    if kind != "OneCycle":
        wanted.update(beta1=[ADAM["betas"][0]] * UPDATES, betas=ADAM["betas"][1])
    assert kind != "OneCycle" or min(wanted["beta1"]) < 0.9 < max(wanted["beta1"]) + 1e-9
    require_close(weights, torch_weights("AdamW", ADAM, wanted))


@pytest.mark.parametrize("optimizer, params, cycle", [
    ("SGD", {"lr": LR, "momentum": 0.9}, True),
    ("AdamW", ADAM, False),
])
def test_momentum_stays_where_nothing_cycles_it(given, optimizer, params, cycle):
    """SGD has no betas, so DeepSpeed leaves its momentum alone; cycle_momentum: false does so for all."""
    kind, shape = SCHEDULES["one-cycle"]
    _, weights = given.run(given.compile(optimizer, params, scheduler={"type": kind, "params": {**shape, "cycle_momentum": cycle}}))
    require_close(weights, torch_weights(optimizer, params, {"lr": committed()["schedules"]["one-cycle"]["lr"]}))


def test_deepspeed_still_makes_the_committed_numbers():
    deepspeed = pytest.importorskip("deepspeed", reason="deepspeed is not installed here; the committed numbers are its own")
    assert deepspeed.__version__ == "0.19.8"
    assert json.loads(json.dumps(maker.reference())) == committed()


@pytest.mark.parametrize("key, value", [("cycle_max_lr", 0.05), ("cycle_first_step_size", 11), ("cycle_min_mom", 0.7), ("decay_lr_rate", 0.5)])
def test_a_resumed_run_takes_another_cycle(given, key, value):
    """--set on a resume is a plan that was compiled so from there on; nothing is compiled again."""
    kind, params = SCHEDULES["one-cycle-uneven"]
    plan = given.compile("AdamW", ADAM, scheduler={"type": kind, "params": params})
    saved = given.fresh("")
    given.run(plan, "--save", saved, steps=5)
    _, ours = given.run(plan, "--resume", saved, "--set", f"scheduler.params.{key}={value}", steps=60)
    changed = given.compile("AdamW", ADAM, scheduler={"type": kind, "params": {**params, key: value}})
    _, expected = given.run(changed, "--resume", saved, steps=60)
    _, plain = given.run(plan, "--resume", saved, steps=60)
    for name, value in ours.items():
        numpy.testing.assert_array_equal(value, expected[name])
    assert any((ours[name] != plain[name]).any() for name in ours), "the setting changes nothing: the test shows nothing"


@pytest.mark.parametrize("setting, sentence", [
    ("scheduler.params.cycle_max_mom=1", "--set scheduler.params.cycle_max_mom=1 is not a number below 1"),
    ("scheduler.params.cycle_first_step_size=0", "is not a number of steps from 1 on"),
    ("scheduler.params.warmup_num_steps=3", "has nothing to change"),
])
def test_a_wrong_setting_is_refused(given, setting, sentence):
    kind, params = SCHEDULES["one-cycle"]
    plan = given.compile("AdamW", ADAM, scheduler={"type": kind, "params": params})
    assert sentence in given.tools("ds-run", plan, "--data", given.folder / "data.safetensors", "--set", setting, code=1).stderr


def test_lion_is_deepspeeds(given):
    _, weights = given.run(given.compile("Lion", maker.LION))
    require_close(weights, committed()["lion"])


def test_lion_takes_a_cycled_momentum(given):
    """Its beta1 is the schedule's, as the betas of DeepSpeed's Lion are: the weights are those of a Lion in float64."""
    kind, params = SCHEDULES["one-cycle"]
    _, weights = given.run(given.compile("Lion", maker.LION, scheduler={"type": kind, "params": params}))
    wanted, drawn = committed()["schedules"]["one-cycle"], gradients()
    for name, value in first_values().items():
        parameter, moment = value.astype(float), numpy.zeros(value.shape)
        for rate, beta1, gradient in zip(wanted["lr"], wanted["beta1"], drawn[name].astype(float), strict=True):
            parameter -= rate * (numpy.sign(beta1 * moment + (1 - beta1) * gradient) + maker.LION["weight_decay"] * parameter)
            moment += (1 - wanted["betas"]) * (gradient - moment)
        require_close({name: weights[name]}, {name: parameter})


@pytest.mark.parametrize("name, params", [("lamb", {}), ("lamb without bias correction", {"bias_correction": False})])
def test_lamb_is_deepspeeds(given, name, params):
    wanted = committed()[name]
    for ratios in wanted.pop("ratios").values():
        assert min(ratios) == pytest.approx(1.3) and max(ratios) == pytest.approx(1.8) and any(1.31 < ratio < 1.79 for ratio in ratios)
    _, weights = given.run(given.compile("Lamb", {**maker.LAMB, **params}))
    require_close(weights, wanted)


def lamb_in_float64(gradients, value, rates, beta1s, beta2, decay):
    """The weights after all updates, with the corrections of each update's betas, and the rest as maker.LAMB says."""
    p, m, v = value.astype(float), numpy.zeros(value.shape), numpy.zeros(value.shape)
    for number, (rate, beta1, gradient) in enumerate(zip(rates, beta1s, gradients.astype(float), strict=True), 1):
        m, v = beta1 * m + (1 - beta1) * gradient, beta2 * v + (1 - beta2) * gradient**2
        update = m / (numpy.sqrt(v) + maker.LAMB["eps"]) + decay * p
        ratio = numpy.clip(numpy.linalg.norm(p) / numpy.linalg.norm(update), maker.LAMB["min_coeff"], maker.LAMB["max_coeff"])
        p -= rate * numpy.sqrt(1 - beta2**number) / (1 - beta1**number) * ratio * update
    return p


def test_lamb_takes_a_cycled_momentum(given):
    kind, params = SCHEDULES["one-cycle"]
    _, weights = given.run(given.compile("Lamb", maker.LAMB, scheduler={"type": kind, "params": params}))
    wanted = committed()["schedules"]["one-cycle"]
    for name, value in first_values().items():
        expected = lamb_in_float64(gradients()[name], value, wanted["lr"], wanted["beta1"], wanted["betas"], maker.LAMB["weight_decay"])
        require_close({name: weights[name]}, {name: expected})


def test_lamb_has_parameter_groups(given):
    _, weights = given.run(given.compile("Lamb", maker.LAMB, deepstatic={"parameter_groups": GROUPS}))
    beta1, beta2 = maker.LAMB["betas"]
    for name, factor, decay in (("scale", 0.25, 0), ("matrix", 2, maker.LAMB["weight_decay"])):
        wanted = lamb_in_float64(gradients()[name], first_values()[name], [LR * factor] * UPDATES, [beta1] * UPDATES, beta2, decay)
        require_close({name: weights[name]}, {name: wanted})


def test_verify_derives_lambs_settings(given):
    """A plan of other bounds than the configuration's is refused, whatever the default."""
    for key, value in (("max_coeff", 2.5), ("min_coeff", 0.5), ("bias_correction", False), ("eps", 1e-3)):
        plan = given.compile("Lamb", maker.LAMB)
        config = given.fresh(".json")
        write_config(config, 1, optimizer={"type": "Lamb", "params": {**maker.LAMB, key: value}})
        message = read_plan(plan)
        message.sources.configuration_sha256 = hashlib.sha256(config.read_bytes()).digest()
        write_plan(plan, message)
        refusal = given.tools.refused("ds-opt", "verify", plan, "--model", given.folder / "model", "--config", config)
        assert f"{'epsilon' if key == 'eps' else key} of " in refusal and "by the configuration" in refusal


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_lamb_is_refused_where_parameters_are_shared_out(given, stage):
    config = given.fresh(".json")
    write_config(config, 1, optimizer={"type": "Lamb", "params": maker.LAMB}, zero_optimization={"stage": stage})
    refusal = given.tools.refused("ds-opt", "compile", given.folder / "model", "--config", config, "--ranks", 2, "-o", given.fresh(".dsplan"))
    assert f"zero_optimization.stage is {stage}; Lamb's trust ratio is of whole parameters, and stages 1 to 3 give each rank slices of them; " \
        "write 0, or another optimizer.type" in refusal


def test_a_slice_of_a_parameter_is_refused_for_lamb_alone(given):
    """Adam's update is element by element, so two calls do as well as one."""
    def halved(optimizer, params):
        plan = given.compile(optimizer, params)
        message = read_plan(plan)
        update_in_halves(message, optimizer.lower())
        return write_plan(plan, message)

    given.tools("ds-opt", "verify", halved("AdamW", ADAM))
    refusal = given.tools.refused("ds-opt", "verify", halved("Lamb", maker.LAMB), code=1)
    assert "it updates 124 of the 252 bytes of matrix in a call on 124; lamb takes norms of a parameter" in refusal


LION = {"type": "Lion", "params": {"lr": 1e-4, "weight_decay": 0.1}}
LAMB = {"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0.1, "max_coeff": 0.5}}


def tiny_run(tools, exported, text_data, folder, ranks=1, accumulation=1, options=(), steps=6, optimizer=LION, model=(), **settings):
    """A tiny Llama: the digest of the weights, and the losses."""
    model, plan, weights = exported("llama", "--size", "tiny", "--seq", 16, *model), folder / "m.dsplan", folder / "weights.safetensors"
    config = write_config(folder / "ds_config.json", 2, accumulation, optimizer, gradient_clipping=1.0, **settings)
    tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "-o", plan)
    tools("ds-opt", "verify", plan, "--model", model, "--config", config)
    metrics, _ = tools.train(plan, text_data(16), steps, "--export", weights, "-n", ranks, *options)
    return load_file(weights), [line["loss"] for line in metrics]


def require_same(ours, expected):
    assert ours[0].keys() == expected[0].keys() and ours[1] == expected[1]
    for name, value in expected[0].items():
        numpy.testing.assert_array_equal(ours[0][name], value, err_msg=name)


@pytest.mark.parametrize("settings", [*(dict(zero_optimization={"stage": stage}) for stage in range(4)),
                                      dict(deepstatic={"pipeline": {"stages": 2}})], ids=["zero0", "zero1", "zero2", "zero3", "stages"])
def test_lion_over_ranks_is_one_ranks(settings, tools, exported, text_data, tmp_path):
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    one = tiny_run(tools, exported, text_data, tmp_path / "one", accumulation=2)
    many = tiny_run(tools, exported, text_data, tmp_path / "many", ranks=2, accumulation=2 if "deepstatic" in settings else 1, **settings)
    require_same(many, one)


def test_lion_resumes_bit_by_bit(tools, exported, text_data, tmp_path):
    plain = tiny_run(tools, exported, text_data, tmp_path)
    tiny_run(tools, exported, text_data, tmp_path, options=("--save", tmp_path / "saved"), steps=3)
    resumed = tiny_run(tools, exported, text_data, tmp_path, options=("--resume", tmp_path / "saved"))
    require_same(resumed, (plain[0], plain[1][3:]))


STAGES = {"pipeline": {"stages": 2}}
TOKENS = {"loss_normalization": "tokens"}


@pytest.mark.parametrize("ranks, accumulation, zero, own, of_one", [
    (2, 1, {}, {}, {}), (2, 1, {"overlap_comm": True}, {}, {}), (2, 2, {}, STAGES, {}), (4, 1, {}, STAGES, {}), (2, 1, {}, TOKENS, TOKENS),
], ids=["ranks", "overlapped", "stages", "both", "tokens"])
def test_lamb_over_ranks_is_one_ranks(ranks, accumulation, zero, own, of_one, tools, exported, text_data, tmp_path):
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    one = tiny_run(tools, exported, text_data, tmp_path / "one", accumulation=2, optimizer=LAMB, deepstatic=of_one)
    many = tiny_run(tools, exported, text_data, tmp_path / "many", ranks=ranks, accumulation=accumulation, optimizer=LAMB,
                    zero_optimization={"stage": 0, **zero}, deepstatic=own)
    require_same(many, one)


@pytest.mark.parametrize("settings", [{}, {"bf16": {"enabled": True}}], ids=["float32", "bf16"])
def test_lambs_bits_are_not_the_workers(settings, tools, exported, text_data, tmp_path):
    """One plan, trained by one, two and three threads."""
    more = dict(accumulation=2, optimizer=LAMB, model=("--set", "vocab_size=1000"), **settings)
    runs = [tiny_run(tools, exported, text_data, tmp_path, options=("--threads", threads), **more) for threads in (1, 2, 3)]
    assert any(value.size > 2**15 for value in runs[0][0].values()), "every parameter is one piece of work: the test shows nothing"
    require_same(runs[1], runs[0])
    require_same(runs[2], runs[0])


def test_lamb_resumes_bit_by_bit(tools, exported, text_data, tmp_path):
    plain = tiny_run(tools, exported, text_data, tmp_path, optimizer=LAMB)
    tiny_run(tools, exported, text_data, tmp_path, options=("--save", tmp_path / "saved"), steps=3, optimizer=LAMB)
    resumed = tiny_run(tools, exported, text_data, tmp_path, options=("--resume", tmp_path / "saved"), optimizer=LAMB)
    require_same(resumed, (plain[0], plain[1][3:]))


GROUPS = [{"match": "scale$", "weight_decay": 0, "lr_factor": 0.25}, {"match": "s|matrix", "lr_factor": 2}]


@pytest.mark.parametrize("kind", ["AdamW", "SGD"])
def test_groups_are_pytorchs_parameter_groups(given, kind):
    """`scale` matches both: the first that matches decides."""
    params = dict(TORCH[kind])
    metrics, weights = given.run(given.compile(kind, params, deepstatic={"parameter_groups": GROUPS}))
    assert {line["lr"] for line in metrics} == {LR}, "the metric is the schedule's"
    require_close({"scale": weights["scale"]}, {"scale": torch_weights(kind, {**params, "lr": LR / 4, "weight_decay": 0})["scale"]})
    require_close({"matrix": weights["matrix"]}, {"matrix": torch_weights(kind, {**params, "lr": LR * 2})["matrix"]})


@pytest.mark.parametrize("settings", [*(dict(zero_optimization={"stage": stage}) for stage in range(4)), dict(stages=2)],
                         ids=["zero0", "zero1", "zero2", "zero3", "stages"])
def test_groups_over_ranks_are_one_ranks(settings, tools, exported, text_data, tmp_path):
    """Buckets are shared only by parameters of one group."""
    groups = {"parameter_groups": [{"match": "norm", "weight_decay": 0, "lr_factor": 0.5}, {"match": "self_attn", "lr_factor": 3}]}
    for name in ("one", "many", "plain"):
        (tmp_path / name).mkdir()
    one = tiny_run(tools, exported, text_data, tmp_path / "one", accumulation=2, deepstatic=groups)
    plain = tiny_run(tools, exported, text_data, tmp_path / "plain", accumulation=2)
    assert one[1] != plain[1], "groups change nothing: the test shows nothing"
    many = {**settings, "deepstatic": groups}
    if many.pop("stages", None):
        many["deepstatic"] = {**groups, "pipeline": {"stages": 2}}
    accumulation = 2 if "pipeline" in many["deepstatic"] else 1
    require_same(tiny_run(tools, exported, text_data, tmp_path / "many", ranks=2, accumulation=accumulation, **many), one)


@pytest.mark.parametrize("group, sentence", [
    ({"match": "nowhere"}, 'deepstatic.parameter_groups: "nowhere" matches no trained parameter that no group before it has'),
    ({"match": "("}, 'deepstatic.parameter_groups: "(" is no regular expression'),
    ({"weight_decay": 0}, 'group 1 says of no parameter that it is its; write {"match": REGEX, "weight_decay": 0}'),
    ({"match": "a", "lr_factor": -1}, "group 1 has lr_factor -1; it must be at least 0"),
    ({"match": "a", "betas": [0, 0]}, "match, weight_decay and lr_factor are available"),
])
def test_a_wrong_group_is_refused(given, group, sentence):
    config = given.fresh(".json")
    write_config(config, 1, deepstatic={"parameter_groups": [group]})
    assert sentence in given.tools.refused("ds-opt", "compile", given.folder / "model", "--config", config, "-o", given.fresh(".dsplan"))


def test_verify_derives_groups_a_second_time(given):
    """A plan that decays what the configuration's groups do not is refused."""
    plan = given.compile("AdamW", ADAM, deepstatic={"parameter_groups": GROUPS})
    message = read_plan(plan)
    update = next(op for op in message.reference.ops if op.op == "train.adamw" and "scale" in {
        message.variables[variable].name for variable in op.variables})
    next(one for one in update.attributes if one.name == "weight_decay").number = 0.1
    config = plan.with_name(f"{int(plan.stem) - 1}.json")
    write_plan(plan, message)
    refusal = given.tools("ds-opt", "verify", plan, "--model", given.folder / "model", "--config", config, code=1)
    assert "weight_decay" in refusal.stderr + refusal.stdout
