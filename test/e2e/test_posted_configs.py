"""Keys of configurations that people post, whose refusal leads on: its try line compiles, or it names what the file is."""

import json
import shlex

import pytest
from conftest import ON_GPU

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
ADAMW = {"type": "AdamW", "params": {"lr": 1e-4}}


@pytest.mark.parametrize("more, words", [
    ({"zero_optimization": {"stage": 2, "cpu_offload": True}}, 'the old name of zero_optimization.offload_optimizer.device "cpu"'),
    ({"bf16": {"enabled": True, "loss_scale": 0, "loss_scale_window": 1000}}, "bfloat16 has float32's range and needs no loss scale"),
    ({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 500, "warmup_num_steps": 10}}}, "WarmupLR has no such parameter"),
    ({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 1}, "x 1 rank = 2")], ids=["cpu_offload", "bf16", "schedule", "ranks"])
def test_the_try_line_works(more, words, exported, tools, tmp_path):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"train_batch_size": 8, "optimizer": ADAMW, **more}))
    compile_it = ["ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 16), "--config", config, "-o", tmp_path / "m.dsplan"]
    done = tools(*compile_it, code=1)
    assert words in done.stderr
    line = next(line.removeprefix("try: ") for line in done.stderr.splitlines() if line.startswith("try: "))
    tools(*compile_it, *shlex.split(line))


@pytest.mark.parametrize("text, words", [
    ("compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n", "is a file of accelerate's, not DeepSpeed's"),
    ('{"fp16": {"enabled": true, "loss_scale": Infinity}}', 'c.json:1: key "loss_scale" is Infinity, which is no number of JSON'),
    ('{"train_batch_size": NaN, "a": 1}', 'key "train_batch_size" is NaN, which is no number of JSON'), ('{"fp16": {"enabled": True}}', "'True' is Python's"),
    ('{"train_batch_size": 08, "a": 1}', 'is 08, which is no number of JSON'), ('{"train_batch_size": +1}', 'is +1, which is no number of JSON'),
    ('{"train_batch_size": 0x10}', 'is 0x10, which is no number of JSON')], ids=["accelerate", "infinity", "nan", "python", "octal", "plus", "hex"])
def test_what_is_no_configuration_is_named(text, words, exported, tools, tmp_path):
    config = tmp_path / "c.json"
    config.write_text(text)
    assert words in tools.refused("ds-opt", "compile", exported("gpt2", "--size", "tiny", "--seq", 16), "--config", config, "-o", tmp_path / "m.dsplan")
