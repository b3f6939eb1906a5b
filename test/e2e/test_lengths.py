"""One plan for several sizes of a dimension: each step takes the smallest that holds its samples, and computes what a plan for that alone does."""

import json
import os
import shutil
import struct
import sys

import numpy
import pytest
import torch
import transformers
from conftest import FOLDERS, REPOSITORY, write_config
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(REPOSITORY / "tools" / "ds-audit"))
from ds_audit.plans import crc32c, read_plan  # noqa: E402

SIZES, MICRO, STEPS = (16, 32, 64), 2, 6
# Of samples; the first step of one rank with two micro-batches takes four of them.
LENGTHS = [10, 16, 9, 14, 30, 20, 17, 5, 64, 40, 50, 33, 12, 12, 12, 12, 28, 32, 1, 2, 7, 8, 64, 9]
SMALL = dict(vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=64)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=256, n_positions=64, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0,
                                                                embd_pdrop=0, attn_pdrop=0, use_cache=False))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, use_cache=False))


def bert():
    return transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, hidden_dropout_prob=0, attention_probs_dropout_prob=0))


class Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, labels):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, labels=labels).loss


class Models:
    """PyTorch's modules and folders of their graphs, with a symbolic dimension seq."""

    def __init__(self, folder):
        self.folder, self.made = folder, {}

    def __call__(self, make):
        if make not in self.made:
            torch.manual_seed(0)
            model, folder = Loss(make().train()), self.folder / make.__name__
            folder.mkdir()
            ids = torch.randint(0, 256, (2, 24))
            shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("seq", min=2, max=64)}
            names = ("input_ids", "attention_mask", "labels")
            torch.onnx.export(model, (ids, torch.ones_like(ids), ids.clone()), folder / "model.onnx", dynamo=True, optimize=False,
                              external_data=True, input_names=names, output_names=["loss"],
                              dynamic_shapes={name: shape for name in names}, verbose=False)
            self.made[make] = (model, folder)
        return self.made[make]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def samples():
    """As a collator makes them: padded at the right, and nothing that is padding has a label."""
    ids = torch.randint(1, 256, (len(LENGTHS), SIZES[-1]), generator=torch.Generator().manual_seed(3))
    mask = (torch.arange(SIZES[-1])[None] < torch.tensor(LENGTHS)[:, None]).long()
    return {"input_ids": ids * mask, "attention_mask": mask, "labels": torch.where(mask == 1, ids, -100)}


def cut(samples, width):
    return {name: tensor[:, :width].contiguous() for name, tensor in samples.items()}


def sizes_of(samples_a_step, steps=STEPS):
    each = [max(LENGTHS[(step * samples_a_step + i) % len(LENGTHS)] for i in range(samples_a_step)) for step in range(steps)]
    return [next(size for size in SIZES if size >= longest) for longest in each]


class Compiler:
    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder

    def __call__(self, model, sizes, ranks=1, stage=0, accumulation=2, machine=(), **more):
        config = write_config(self.folder / "c.json", MICRO, accumulation, gradient_clipping=1.0,
                              zero_optimization={"stage": stage, "stage3_param_persistence_threshold": 100}, **more)
        plan = self.folder / f"{'-'.join(map(str, sizes))}.dsplan"
        self.tools("ds-opt", "compile", model, "--config", config, "--ranks", ranks, "--dim", "seq=" + ",".join(map(str, sizes)), "-o", plan, *machine)
        return plan


@pytest.fixture
def compiler(tools, tmp_path):
    return Compiler(tools, tmp_path)


def train(tools, plan, data, steps, *more):
    """Without what Tools.train compares with the report: traffic is of the last step, whatever its size."""
    metrics = plan.with_suffix(f".{os.urandom(4).hex()}.jsonl")
    tools("ds-run", plan, "--data", data, "--steps", steps, "--metrics", metrics, "--quiet", *more)
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [line for line in lines if "loss" in line], lines


def figures(lines):
    return [(line["loss"], line["grad_norm"]) for line in lines]


def same_weights(a, b):
    a, b = load_file(a), load_file(b)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("make, ranks, stage", [(gpt2, 1, 0), (llama, 1, 0), (bert, 1, 0), (gpt2, 2, 0), (llama, 2, 3), (bert, 2, 3), (gpt2, 2, 3)])
def test_a_run_is_that_of_plans_for_one_size_in_the_same_order(make, ranks, stage, models, samples, compiler, tools, tmp_path):
    """State goes from plan to plan through checkpoints, which thereby pass between plans for one size and for several."""
    _, model = models(make)
    plan, data = compiler(model, SIZES, ranks, stage), tmp_path / "data.safetensors"
    save_file(samples, data)
    expected = sizes_of(MICRO * 2 * ranks)
    lines, _ = train(tools, plan, data, STEPS, "--export", tmp_path / "mixed.safetensors")
    assert [line["length"] for line in lines] == expected and len(set(expected)) > 1

    alone, saved = [], tmp_path / "saved"
    for step, size in enumerate(expected):
        one = compiler(model, (size,), ranks, stage)
        save_file(cut(samples, size), tmp_path / f"{size}.safetensors")
        resumed = ("--resume", saved) if step > 0 else ()
        now, _ = train(tools, one, tmp_path / f"{size}.safetensors", step + 1, "--save", saved, "--export", tmp_path / "alone.safetensors", *resumed)
        alone += now
        assert "length" not in now[0]
    assert figures(lines) == figures(alone)
    assert same_weights(tmp_path / "mixed.safetensors", tmp_path / "alone.safetensors")


@pytest.mark.parametrize("make", [gpt2, llama, bert])
def test_losses_are_those_of_pytorch_with_the_same_padding(make, models, samples, compiler, tools, tmp_path):
    module, model = models(make)
    plan, data = compiler(model, SIZES), tmp_path / "data.safetensors"
    save_file(samples, data)
    lines, _ = train(tools, plan, data, STEPS, "--export", tmp_path / "weights.safetensors")

    trained = Loss(make().train())
    trained.load_state_dict(module.state_dict())
    optimizer, losses = torch.optim.AdamW(trained.parameters(), lr=1e-3, weight_decay=0.1), []
    for step, size in enumerate(sizes_of(2 * MICRO)):
        optimizer.zero_grad()
        parts = []
        for micro in range(2):
            first = (step * 2 + micro) * MICRO % len(LENGTHS)
            loss = trained(**{name: tensor[first:first + MICRO, :size].contiguous() for name, tensor in samples.items()}) / 2
            loss.backward()
            parts.append(loss.item())
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
        losses.append(sum(parts))
    assert [line["loss"] for line in lines] == pytest.approx(losses, rel=1e-5)
    after = load_file(tmp_path / "weights.safetensors")
    for name, tensor in trained.state_dict().items():
        if name in after:
            assert numpy.allclose(after[name], tensor, rtol=1e-3, atol=2e-5), name


def test_the_arena_is_the_largest_ones_and_state_lies_there_once(models, compiler, tools):
    """But for the constants of the other sizes and, of each, a rounding up."""
    _, model = models(gpt2)
    several = compiler(model, SIZES)
    plan, each = read_plan(several), [read_plan(compiler(model, (size,))) for size in SIZES]
    largest = max(one.roles[0].arenas[0].bytes for one in each)
    constants = sum(buffer.bytes + 64 for one in each for buffer in one.roles[0].buffers
                    if buffer.HasField("variable") and one.variables[buffer.variable].kind == 5)
    assert 0 <= plan.roles[0].arenas[0].bytes - largest <= constants + largest // 200
    assert not any(buffer.scope == 1 for length in plan.shorter for buffer in length.roles[0].buffers)
    assert [length.size for length in plan.shorter] + [plan.size] == list(SIZES) and plan.dimension == "seq"
    assert "seq 16, 32, 64" in tools("ds-opt", "report", several).stdout


def test_the_same_plan_twice_and_a_resumed_run(models, samples, compiler, tools, tmp_path):
    _, model = models(llama)
    plan, data = compiler(model, SIZES, 2, 3), tmp_path / "data.safetensors"
    first = plan.read_bytes()
    assert compiler(model, SIZES, 2, 3).read_bytes() == first
    save_file(samples, data)
    whole, _ = train(tools, plan, data, STEPS, "--shuffle", "--seed", 5, "--export", tmp_path / "whole.safetensors")
    begun, _ = train(tools, plan, data, 2, "--shuffle", "--seed", 5, "--save", tmp_path / "saved")
    resumed, _ = train(tools, plan, data, STEPS, "--resume", tmp_path / "saved", "--export", tmp_path / "resumed.safetensors")
    assert figures(begun + resumed) == figures(whole)
    assert [line["length"] for line in begun + resumed] == [line["length"] for line in whole]
    assert same_weights(tmp_path / "whole.safetensors", tmp_path / "resumed.safetensors")


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun")
def test_processes_take_the_same_size(models, samples, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan, data = compiler(model, SIZES, 2, 3), tmp_path / "data.safetensors"
    save_file(samples, data)
    together, _ = train(tools, plan, data, 3)
    tools("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", 2, FOLDERS["ds-run"] / "ds-run", plan, "--data", data, "--steps", 3,
          "--metrics", tmp_path / "m.jsonl", "--quiet")
    apart = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert figures([line for line in apart if "loss" in line]) == figures(together)


def test_lengths_come_from_a_column_and_narrow_data_is_padded(models, samples, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan = compiler(model, SIZES, accumulation=1)
    short = {name: tensor[4:8] for name, tensor in samples.items()}  # 30, 20, 17 and 5 tokens
    save_file(short, tmp_path / "wide.safetensors")
    save_file(cut(short, 30), tmp_path / "narrow.safetensors")
    lines, _ = train(tools, plan, tmp_path / "wide.safetensors", 2)
    assert [line["length"] for line in lines] == [32, 32]
    assert figures(train(tools, plan, tmp_path / "narrow.safetensors", 2)[0]) == figures(lines)
    lengths = torch.tensor([30, 20, 40, 5], dtype=torch.int32)
    save_file({**short, "lengths": lengths}, tmp_path / "column.safetensors")
    assert [line["length"] for line in train(tools, plan, tmp_path / "column.safetensors", 2)[0]] == [32, 64]


def test_evaluations_take_sizes_too(models, samples, compiler, tools, tmp_path):
    _, model = models(bert)
    plan = compiler(model, SIZES)
    expected = []
    for size, (first, last) in {16: (0, 4), 64: (8, 12)}.items():
        part = {name: tensor[first:last] for name, tensor in samples.items()}
        save_file(part, tmp_path / "part.safetensors")
        save_file(cut(part, size), tmp_path / "cut.safetensors")
        for one, data in ((plan, "part"), (compiler(model, (size,)), "cut")):
            metrics = tmp_path / "m.jsonl"
            tools("ds-run", one, "--data", tmp_path / f"{data}.safetensors", "--eval", "--metrics", metrics, "--quiet")
            expected.append(json.loads(metrics.read_text().splitlines()[0])["eval_loss"])
    assert expected[0] == expected[1] and expected[2] == expected[3]


def test_skipped_steps_checks_and_records_know_all_sizes(models, samples, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan, data = compiler(model, SIZES, 2, 3), tmp_path / "data.safetensors"
    save_file(samples, data)
    plain, _ = train(tools, plan, data, 3)
    checked, _ = train(tools, plan, data, 3, "--check-memory", "--check-numerics", "--on-nonfinite", "skip", "--trace", tmp_path / "t.json")
    assert figures(checked) == figures(plain)
    assert "forward" in (tmp_path / "t.json").read_text()


def test_verify_and_ds_audit_look_at_every_size(models, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan = compiler(model, SIZES[:2], accumulation=1)
    done = tools("ds-opt", "verify", plan, "--model", model, "--config", tmp_path / "c.json")
    assert "all of this holds for seq 16, 32" in done.stdout
    tools(sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", plan, "--orders", 1, "--model", model, "--config", tmp_path / "c.json")


def compiled_texts(plan, roles):
    return [plan.codes[command.kernel.code].text for role in roles for routine in role.routines for command in routine.commands
            if command.kernel.HasField("code")]


def test_kernels_of_a_gpu_are_each_sizes_own(models, compiler):
    _, model = models(gpt2)
    gpu = dict(accumulation=1, machine=("--machine", "h100x8"), bf16={"enabled": True})
    small, large, both = (read_plan(compiler(model, sizes, **gpu)) for sizes in (SIZES[:1], SIZES[1:2], SIZES[:2]))
    assert compiled_texts(both, both.roles) == compiled_texts(large, large.roles)
    assert compiled_texts(both, both.shorter[0].roles) == compiled_texts(small, small.roles)
    assert len(both.codes) == len({code.name for code in (*small.codes, *large.codes)}) > len(large.codes)


def tampered(plan, change, path, whole=False):
    """The plan's file with one thing changed, in what is said of its smallest size unless in the `whole`."""
    message = read_plan(plan)
    change(message if whole else message.shorter[0])
    body = message.SerializeToString(deterministic=True)
    path.write_bytes(b"DSPLAN\r\n" + struct.pack("<QII", len(body), crc32c(body), 0) + body)
    return path


def commands_of(length, kind, program="step"):
    role = length.roles[0]
    called = {call.routine for one in role.programs if one.name == program for call in one.calls}
    return [command for routine in sorted(called) for command in role.routines[routine].commands if command.WhichOneof("kind") == kind]


def drop_update(length):
    for routine in length.roles[0].routines:
        for command in routine.commands:
            if command.kernel.kernel == "adamw":
                routine.commands.remove(command)
                return


def read_elsewhere(length):
    kernels = [command.kernel for command in commands_of(length, "kernel") if command.kernel.kernel == "matmul"]
    kernels[0].operands[0].buffer, kernels[0].operands[1].buffer = kernels[0].operands[1].buffer, kernels[0].operands[0].buffer


def lie_over_state(length):
    for buffer in length.roles[0].buffers:
        buffer.offset = 0


@pytest.mark.parametrize("change, rules", [(drop_update, ("coverage",)), (read_elsewhere, ("meaning", "value", "race")),
                                           (lie_over_state, ("memory", "race", "value"))])
def test_a_defect_in_one_size_is_refused(change, rules, models, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan = tampered(compiler(model, SIZES[:2], accumulation=1), change, tmp_path / "bad.dsplan")
    sentence = tools.refused("ds-opt", "verify", plan)
    assert any(f"refused by the checker ({rule}): seq=16: " in sentence or "seq=16: " in sentence for rule in rules), sentence


def test_a_size_alone_says_nothing(models, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan = tampered(compiler(model, (16,)), lambda plan: setattr(plan, "size", 16), tmp_path / "bad.dsplan", whole=True)
    assert "dimension: it has a size, but no other" in tools.refused("ds-run", plan, "--data", "none.safetensors")


@pytest.mark.parametrize("change, words", [
    (lambda length: setattr(length, "size", 0), "sizes must ascend from 1"), (lambda length: setattr(length, "size", 32), "sizes must ascend"),
    (lambda length: length.inputs.pop(), "it has 2 inputs, but the plan has 3"), (lambda length: length.roles.pop(), "it has 0 roles"),
    (lambda length: setattr(length.inputs[0], "name", "x"), "is not input input_ids of the plan"),
    (lambda length: setattr(length.roles[0].buffers[0], "scope", 1), "what lives for good is the plan's"),
    (lambda length: setattr(length.roles[0], "name", "main"), "those are the plan's"),
    (lambda length: setattr(commands_of(length, "feed")[0].feed, "input", 9), "seq=16: ")])
def test_a_malformed_size_is_refused_by_the_reader(change, words, models, compiler, tools, tmp_path):
    _, model = models(gpt2)
    plan = tampered(compiler(model, SIZES[:2], accumulation=1), change, tmp_path / "bad.dsplan")
    assert words in tools.refused("ds-opt", "verify", plan)
    assert words in tools.refused("ds-run", plan, "--data", "none.safetensors")


@pytest.mark.parametrize("flags, words", [
    (["--dim", "length=16,32"], "no input of the model has a dimension of this name; there are 'batch', 'seq'"),
    (["--dim", "seq=32,16"], "--dim seq=32,16: sizes are to ascend, each of them once"),
    (["--dim", "seq=16,16"], "--dim seq=16,16: sizes are to ascend"), (["--dim", "seq=0,16"], "is not NAME=SIZE with a size of at least 1"),
    (["--dim", "seq=16,"], "is not NAME=SIZE"), (["--dim", "seq=16,32", "--dim", "seq=64"], "--dim seq is given twice"),
    (["--dim", "seq=16,32", "--dim", "batch=2,4"], "the micro-batch has one size in all steps"),
    (["--dim", "seq=16,32", "--dim", "other=2,4"], "dimension seq has several sizes, too"),
    (["--dim", "seq=16,32", "--emit", "dist"], "--emit prints one program, but --dim seq has several sizes"),
    (["--dim", "seq=16,32", "--ranks", 2, "--set", "deepstatic.pipeline.stages=2"], "deepstatic.pipeline.stages is 2, but --dim seq has"),
    (["--dim", "seq=16,32", "--set", "deepstatic.offload=auto"], 'deepstatic.offload is "auto", but --dim seq has')])
def test_sizes_that_make_no_plan_are_refused(flags, words, models, tools, tmp_path):
    _, model = models(gpt2)
    config = write_config(tmp_path / "c.json", MICRO)
    assert words in tools.refused("ds-opt", "compile", model, "--config", config, "-o", tmp_path / "p.dsplan", *flags)
    assert not (tmp_path / "p.dsplan").exists()


def test_import_and_bisect_take_one_size(models, samples, compiler, tools, tmp_path):
    _, model = models(gpt2)
    assert "which only a plan can have" in tools.refused("ds-opt", "import", model, "--dim", "batch=2", "--dim", "seq=16,32")
    plan = compiler(model, SIZES[:2])
    save_file(samples, tmp_path / "data.safetensors")
    assert "a plan for several sizes of seq" in tools.refused("ds-run", "--bisect", plan, plan, "--data", tmp_path / "data.safetensors")


@pytest.mark.parametrize("change, words", [
    (lambda data: data["attention_mask"][5].fill_(1), "sample 5 has seq 64, but the largest of the plan is 32; cut it"),
    (lambda data: data.update(lengths=torch.tensor([3] * 23 + [99])), "sample 23 has seq 99, but its tensors have 64"),
    (lambda data: data.update(lengths=torch.tensor([3] * 23)), "tensor lengths has shape [23], but says how long samples are, so it must be [24]"),
    (lambda data: data.update(lengths=torch.ones(24)), "tensor lengths is F32"),
    (lambda data: data.pop("attention_mask"), "has no tensor attention_mask")])
def test_data_that_does_not_fit_is_refused(change, words, models, samples, compiler, tools, tmp_path):
    _, model = models(gpt2)
    data = {name: tensor.clone() for name, tensor in samples.items()}
    data["attention_mask"][:, 32:] = 0
    change(data)
    save_file(data, tmp_path / "data.safetensors")
    assert words in tools.refused("ds-run", compiler(model, SIZES[:2]), "--data", tmp_path / "data.safetensors")
