"""Any field of plan.proto, edited at random in plans of all strategies (test/mutation/field_mutations.cpp): what changes the
training is refused, but for fields that docs/fields.md calls trusted or for people.

`make test` edits some; DS_TEST_SCOPE=all edits ten thousand, and DS_UPDATE_DOCS=1 writes the tables of docs/fields.md.
"""

import os
import subprocess

import numpy
import pytest
from conftest import BUILD, REPOSITORY, write_config
from safetensors.numpy import save_file

TOOL = BUILD / "bin" / "field_mutations"
PAGE = REPOSITORY / "docs" / "fields.md"
WHOLE = os.environ.get("DS_TEST_SCOPE") == "all"
MUTANTS = 10000 if WHOLE else 400
BEGIN, END = "<!-- {} written by DS_UPDATE_DOCS=1 test/e2e/test_fields.py -->\n", "<!-- end -->"
SGD = {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}
ADAGRAD = {"type": "Adagrad", "params": {"lr": 0.01, "lr_decay": 0.1}}
SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}


def zero(stage, **more):
    return {"zero_optimization": {"stage": stage, **SMALL, **more}}


def staged(schedule, chunks=1, **more):
    return {"deepstatic": {"pipeline": {"stages": 2, "schedule": schedule, "chunks": chunks}, **more}}


# model, ranks, micro-batches, more of the configuration
PLANS = [
    ("gpt2", 1, 1, {}), ("llama", 1, 3, {}), ("gpt2", 1, 2, {"optimizer": SGD}), ("llama", 1, 2, {"optimizer": ADAGRAD}),
    ("gpt2", 1, 2, {"gradient_clipping": 0}), ("llama", 1, 2, {"bf16": {"enabled": True}}),
    ("gpt2", 1, 2, {"deepstatic": {"recompute": "full"}}), ("llama", 1, 1, {"deepstatic": {"recompute": 1}}),
    ("gpt2", 1, 1, {"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9}}}),
    ("gpt2", 2, 3, zero(0)), ("llama", 2, 2, zero(0, overlap_comm=True)), ("llama", 3, 1, zero(1)), ("gpt2", 2, 2, zero(1, overlap_comm=True)),
    ("llama", 4, 2, zero(2)), ("gpt2", 3, 2, zero(2, overlap_comm=True)), ("gpt2", 2, 2, zero(3)), ("llama", 2, 3, zero(3, overlap_comm=False)),
    ("gpt2", 4, 1, zero(3, stage3_max_live_parameters=0)), ("llama", 2, 2, {**zero(3), "bf16": {"enabled": True}}),
    ("llama", 2, 2, {**zero(2), "optimizer": SGD}), ("gpt2", 2, 2, {**zero(3), "deepstatic": {"recompute": "full"}}),
    ("llama", 2, 3, staged("1f1b")), ("gpt2", 2, 3, staged("gpipe")), ("llama", 2, 4, staged("interleaved", 2)), ("gpt2", 2, 4, staged("zb-h1")),
    ("gpt2", 4, 3, {**staged("1f1b"), **zero(1)}), ("llama", 4, 2, {**staged("zb-h1"), **zero(2)}), ("llama", 4, 4, {**staged("1f1b"), **zero(3)}),
    ("llama", 2, 3, staged("1f1b", recompute="full")), ("gpt2", 4, 2, {**staged("gpipe"), **zero(0, overlap_comm=True)}),
]


@pytest.fixture(scope="module")
def subjects(tools, tmp_path_factory):
    """The plans, and what they train on."""
    folder = tmp_path_factory.mktemp("fields")
    tokens, labels = (numpy.random.default_rng(seed).integers(0, 8, (64, 4), dtype=numpy.int64) for seed in (0, 1))
    save_file({"input_ids": tokens, "labels": labels}, folder / "data.safetensors")
    plans = []
    for number, (model, ranks, accumulation, more) in enumerate(PLANS):
        plan = folder / f"{number}-{model}.dsplan"
        config = write_config(plan.with_suffix(".json"), 1, accumulation, **{"gradient_clipping": 0.5, **more})
        tools("ds-opt", "compile", REPOSITORY / "test/e2e/hazards" / f"good-{model}", "--config", config, "--ranks", ranks, "-o", plan)
        plans.append(plan)
    return plans, folder / "data.safetensors"


def edit(subjects, *options):
    plans, data = subjects
    return subprocess.run([str(word) for word in (TOOL, *plans, "--data", data, *options)], capture_output=True, text=True, timeout=5000)


def between(name):
    begin = BEGIN.format(name)
    head, rest = PAGE.read_text().split(begin)
    body, tail = rest.split(END, 1)
    return head + begin, body, END + tail


def require_on_page(name, text):
    head, body, tail = between(name)
    if os.environ.get("DS_UPDATE_DOCS"):
        PAGE.write_text(head + text + tail)
        body = text
    assert body == text


def test_every_field_has_a_class_on_the_page():
    listed = subprocess.run([str(TOOL), "--list"], capture_output=True, text=True, check=True).stdout
    require_on_page("classes,", "| field | class | who compares it, or what it is for |\n|---|---|---|\n" + listed)


def test_an_edit_that_changes_the_training_is_refused(subjects):
    done = edit(subjects, "--mutants", MUTANTS)
    assert done.returncode == 0, done.stdout + done.stderr
    if WHOLE:
        require_on_page("kills,", done.stdout)
