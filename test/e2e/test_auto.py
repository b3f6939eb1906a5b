"""`"auto"` in a ds_config.json: what it becomes, where that is said, and that `ds-opt verify` derives it again."""

import json

import pytest
from plan_files import read_plan, write_plan

STOCK = {  # transformers' ds_config_zero3.json, without its offload
    "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000, "initial_scale_power": 16, "hysteresis": 2,
             "min_loss_scale": 1},
    "bf16": {"enabled": "auto"},
    "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
    "zero_optimization": {
        "stage": 3, "overlap_comm": True, "contiguous_gradients": True, "sub_group_size": 1e9, "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto", "stage3_max_live_parameters": 1e9,
        "stage3_max_reuse_distance": 1e9, "stage3_gather_16bit_weights_on_model_save": True},
    "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "steps_per_print": 2000, "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto", "wall_clock_breakdown": False,
}


def written(folder, **more):
    path = folder / "ds_config.json"
    path.write_text(json.dumps({**STOCK, **more}))
    return path


@pytest.fixture(scope="module")
def compiled(tools, exported, tmp_path_factory):
    """(model, configuration, plan, stdout) of tiny GPT-2, whose hidden size is 64, on two ranks."""
    folder = tmp_path_factory.mktemp("auto")
    model, config = exported("gpt2", "--size=tiny", "--seq=8"), written(folder)
    done = tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "--dim", "batch=3", "-o", folder / "plan")
    return model, config, folder / "plan", done.stdout


def hidden_size(plan):
    return next(one.shape[0] for one in read_plan(plan).variables if one.name.endswith("ln_f.weight"))


def test_a_stock_configuration_compiles_and_says_what_became_of_it(tools, compiled):
    _, _, plan, printed = compiled
    h = hidden_size(plan)
    report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)
    answers = {one["path"]: one for one in report["config"]}
    expected = {
        "zero_optimization.reduce_bucket_size": h * h, "zero_optimization.stage3_prefetch_bucket_size": int(0.9 * h * h),
        "zero_optimization.stage3_param_persistence_threshold": 10 * h, "train_batch_size": 6, "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0, "optimizer.params.lr": 5e-5, "optimizer.params.betas": [0.9, 0.999], "optimizer.params.eps": 1e-8,
        "optimizer.params.weight_decay": 0, "scheduler.params.warmup_min_lr": 0, "scheduler.params.warmup_max_lr": 5e-5,
        "scheduler.params.warmup_num_steps": 0, "bf16.enabled": False, "fp16.enabled": False}
    assert {path: answers[path]["value"] for path in expected} == expected
    for path in expected:
        assert answers[path]["note"].startswith('"auto": ') and answers[path]["status"] in ("honoured", "subsumed")
    lines = [line for line in printed.splitlines() if line.startswith("auto: ")]
    assert len(lines) == len(expected)
    assert f"auto: zero_optimization.reduce_bucket_size is {h * h} (the model's hidden size {h} squared)" in lines
    assert answers["train_micro_batch_size_per_gpu"]["value"] == 3  # --dim says it


def test_the_second_reading_derives_it_too(tools, compiled, tmp_path):
    model, config, plan, _ = compiled
    verified = json.loads(tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--format", "json").stdout)
    claims = {claim["id"]: claim["claim"] for claim in verified["claims"]}
    h = hidden_size(plan)
    assert f"at most {int(0.9 * h * h)} elements" in claims["buckets"]
    edited = read_plan(plan)
    edited.bucket_elements += 1
    write_plan(tmp_path / "edited", edited)
    assert "the limit of a bucket" in tools.refused("ds-opt", "verify", tmp_path / "edited", "--config", config)


@pytest.mark.parametrize("name, options, hidden", [
    ("llama", ("--size=tiny", "--seq=8"), lambda names: names["model.norm.weight"][0]),
    ("bert", ("--size=tiny", "--seq=8"), lambda names: names["bert.embeddings.LayerNorm.weight"][0]),
    ("moe", ("--size=tiny", "--seq=8"), lambda names: names["model.norm.weight"][0]),
    ("vit", ("--size=tiny",), lambda names: names["vit.layernorm.weight"][0]),
    ("resnet50", ("--size=tiny",), lambda names: next(shape[1] for shape in names.values() if len(shape) == 2)),
])
def test_hidden_sizes(tools, exported, tmp_path, name, options, hidden):
    """What transformers calls hidden_size, or the largest of hidden_sizes, found in the graph."""
    model, plan = exported(name, *options), tmp_path / "plan"
    tools("ds-opt", "compile", model, "--config", written(tmp_path), "--ranks", 2, "--dim", "batch=2", "-o", plan)
    names = {one.name: tuple(one.shape) for one in read_plan(plan).variables if one.trainable}
    report = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)
    assert hidden(names)**2 == next(one["value"] for one in report["config"] if one["path"].endswith("reduce_bucket_size")), names
    tools("ds-opt", "verify", plan, "--model", model, "--config", tmp_path / "ds_config.json")


def test_nothing_says_what(tools, exported, tmp_path):
    model, config = exported("gpt2", "--size=tiny", "--seq=8"), written(tmp_path)
    done = tools("ds-opt", "compile", model, "--config", config, code=1)
    assert 'train_micro_batch_size_per_gpu is "auto"; nothing says how many samples' in done.stderr
    assert "try: --set train_micro_batch_size_per_gpu=8" in done.stderr and not list(tmp_path.glob("*.dsplan"))


def test_two_flags_for_the_micro_batch(tools, exported, tmp_path):
    flags = ("--dim", "batch=2", "--set", "train_micro_batch_size_per_gpu=4")
    sentence = tools.refused("ds-opt", "compile", exported("gpt2", "--size=tiny", "--seq=8"), "--config", written(tmp_path), *flags)
    assert "--dim batch=2 and --set train_micro_batch_size_per_gpu=4 both say how many samples" in sentence
    config = written(tmp_path, train_micro_batch_size_per_gpu=4)
    sentence = tools.refused("ds-opt", "compile", exported("gpt2", "--size=tiny", "--seq=8"), "--config", config, "--dim", "batch=2")
    assert f"--dim batch=2, but train_micro_batch_size_per_gpu is 4 in {config}" in sentence
