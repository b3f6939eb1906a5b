"""The package deepstatic, from the sources: plans, runs, the engine's loop, Trainer's arguments, data. test_wheel.py has it from the wheel."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import torch
import transformers
from conftest import FOLDERS, ON_GPU, REPOSITORY
from safetensors.numpy import load_file, save_file

sys.path.insert(0, str(REPOSITORY / "python"))
import deepstatic  # noqa: E402
from deepstatic import data as data_module  # noqa: E402

pytestmark = pytest.mark.skipif(ON_GPU, reason="compiles for this machine's CPU")
LENGTH, SAMPLES = 16, 32
CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.01}}}


@pytest.fixture(scope="module", autouse=True)
def tools_on_path():
    before = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), before])
    yield
    os.environ["PATH"] = before


def tiny_llama(dropout=0.0):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=128, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attention_dropout=dropout))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "llama"  # the name of a model that export.py knows
    tiny_llama().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def samples():
    ids = numpy.random.default_rng(0).integers(0, 128, (SAMPLES, LENGTH))
    return {"input_ids": ids, "labels": ids.copy()}


@pytest.fixture(scope="module")
def plan(saved, samples):
    return deepstatic.compile(saved, CONFIG, example_batch=samples, ranks=2)


def refused(call) -> str:
    with pytest.raises(deepstatic.DeepStaticError) as caught:
        call()
    return str(caught.value)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x, targets):
        return torch.nn.functional.cross_entropy(self.linear(x), targets)


def batches(samples, count, size):
    """`count` batches, going round the samples."""
    for i in range(count):
        rows = numpy.arange(i * size, (i + 1) * size) % SAMPLES
        yield {name: values[rows] for name, values in samples.items()}


# --- plans and runs


def test_the_engines_loop_is_the_run_over_the_same_samples(plan, samples, tmp_path):
    """Losses, metrics and weights bit by bit, over data that is gone round, with the process ended and begun again in between."""
    run = plan.run(samples, 9, quiet=True)
    expected = run.weights()
    losses = []
    with deepstatic.initialize(model=plan) as engine:
        assert (engine.train_batch_size(), engine.samples_per_call, engine.gradient_accumulation_steps(), engine.dp_world_size) == (8, 4, 2, 2)
        for i, batch in enumerate(batches(samples, 12, 4)):
            loss = engine(batch)
            assert engine.is_gradient_accumulation_boundary() == (i % 2 == 1)
            engine.backward(loss)
            engine.step()
            losses.append(loss)
        engine.save_checkpoint(tmp_path / "six", client_state={"epoch": 1, "seen": ["a", 0.5]})
        for batch in list(batches(samples, 16, 4))[12:]:
            engine.backward(engine(**batch))
            engine.step()
        rest = list(batches(samples, 18, 4))[16:]
        assert engine.train_batch(iter(rest)) == run.losses[8]
        got = engine.weights()
        assert [line["loss"] for line in engine.metrics] == run.losses
        assert [line["grad_norm"] for line in engine.metrics] == [line["grad_norm"] for line in run.metrics]
    assert [loss.item() for loss in losses] == [run.losses[i // 2] for i in range(12)]
    assert got.keys() == expected.keys() and all((got[name] == expected[name]).all() for name in expected)
    resumed = plan.run(samples, 9, resume=tmp_path / "six", quiet=True)
    assert resumed.losses == run.losses[6:]
    with deepstatic.initialize(model=plan) as engine:
        assert engine.load_checkpoint(tmp_path / "six") == (str(tmp_path / "six"), {"epoch": 1, "seen": ["a", 0.5]})
        assert engine.load_checkpoint(tmp_path / "six", "global_step6")[1] == engine.load_checkpoint(tmp_path / "six" / "global_step6")[1] == {"epoch": 1, "seen": ["a", 0.5]}
        assert (engine.global_steps, engine.global_samples) == (6, 48)
        assert engine.train_batch(batches(samples, 14, 4)) != run.losses[6]  # the first samples again, with the weights of six steps
        assert engine.global_steps == 7


def test_what_one_static_step_cannot_keep_is_refused(plan, samples):
    first, second = batches(samples, 2, 4)
    with deepstatic.initialize(model=plan) as engine:
        loss = engine(first)
        assert "cannot be changed between forward and backward" in refused(lambda: engine.backward(loss * 0.5))
        assert "known after engine.step()" in refused(loss.item)
        assert "call engine.backward(loss)" in refused(loss.backward)
        assert "has had no engine.backward(loss)" in refused(lambda: engine(second))
        assert "comes after engine.backward" in refused(engine.step)
        engine.backward(loss)
        assert "takes the loss that the last engine(batch) gave" in refused(lambda: engine.backward(loss))
        assert "has had no engine.step()" in refused(lambda: engine(second))
        engine.step()
        assert "a step is half done" in refused(engine.weights)
        assert "has 3 samples, and a call takes 4" in refused(lambda: engine({name: value[:3] for name, value in second.items()}))
        assert "an engine trains" in refused(engine.eval)
        engine.backward(engine({"input_ids": second["input_ids"], "labels": second["labels"] + 1000}))
        assert "values there must be from 0 to 127" in refused(engine.step)
        engine.backward(engine(first))
        assert "the engine ended with an error" in refused(lambda: [engine.step(), engine.backward(engine(second)), engine.step()])


def test_what_deepspeed_scripts_also_write_is_refused_at_once(plan, samples, tmp_path):
    with deepstatic.initialize(model=plan) as engine:
        def unpack():
            ours, optimizer, loader, schedule = engine
        assert "gives the engine alone, not a tuple" in refused(unpack)
        assert "no-such is no folder" in refused(lambda: engine.load_checkpoint(tmp_path / "no-such"))
        for state in ({1: 2}, {"seen": (1, 2)}, {"of": engine}, [1]):
            assert "client_state is kept as JSON" in refused(lambda: engine.save_checkpoint(tmp_path / "c", client_state=state))
        with pytest.raises(AttributeError, match="the engine has no module: .* engine.weights"):
            engine.module.state_dict()
        assert not hasattr(engine, "nothing")
        engine.backward(engine(next(batches(samples, 1, 4))))
        engine.step()  # it goes on
    assert "initialize takes no training_data: batches are given by engine(batch)" in refused(
        lambda: deepstatic.initialize(model=plan, training_data=samples))


def test_a_model_of_peft_is_refused_with_what_works(samples):
    model = tiny_llama()
    model.peft_config = {"default": None}  # as peft's own have it
    assert "saves its adapter alone" in refused(lambda: deepstatic.compile(model, CONFIG, example_batch=samples))


def test_adapters_are_a_flag_and_come_back_merged(saved, samples, tmp_path):
    run = deepstatic.compile(saved, CONFIG, example_batch=samples, flags=["--lora", "4", "--lora-targets", "q_proj"]).run(samples, steps=2)
    assert sum(name.endswith(".lora_A") for name in run.weights()) == 2
    trained, before = transformers.AutoModelForCausalLM.from_pretrained(run.save_pretrained(tmp_path / "trained")).state_dict(), tiny_llama().state_dict()
    assert {name for name, value in before.items() if not torch.equal(value, trained[name])} == {f"model.layers.{i}.self_attn.q_proj.weight" for i in (0, 1)}


def test_a_module_of_a_notebook_is_trained_and_stays_as_it_was(samples):
    """Its class is in no file that could be imported; losses are PyTorch's."""
    torch.manual_seed(1)
    module, x, targets = Net(), torch.randn(16, 8), torch.randint(4, (16,))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    config = {"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 0, "optimizer": {"type": "SGD", "params": {"lr": 0.5}}}
    with deepstatic.initialize(model=module, config=config) as engine:
        ours = [engine.train_batch(iter([{"x": x[i:i + 4], "targets": targets[i:i + 4]}])) for i in range(0, 16, 4)]
    assert all((module.state_dict()[name] == value).all() for name, value in before.items())
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    for i, loss in enumerate(ours):
        theirs = module(x[4 * i:4 * i + 4], targets[4 * i:4 * i + 4])
        assert loss == pytest.approx(theirs.item(), rel=1e-6)
        optimizer.zero_grad(), theirs.backward(), optimizer.step()


def test_report_check_verify_save(plan, saved, samples, tmp_path):
    report = plan.report()
    assert "ranks     2 = 1 pipe x 2 data x 1 tensor" in str(report) and report.facts["ranks"] == 2
    assert "<iframe" in report._repr_html_() and "&lt;svg" in report._repr_html_()
    assert plan.check()["verdict"] == "fits" and plan.verify()
    kept = deepstatic.Plan(plan.save(tmp_path / "kept"))
    run, again = plan.run(samples, 2, quiet=True), kept.run(samples, 2, quiet=True)
    assert run.losses == again.losses and "polyline" in run._repr_html_()
    assert "opened without them" in refused(kept.check)
    assert deepstatic.compile(saved, CONFIG, example_batch=samples, gradient_clipping=0.25, zero_optimization={"stage": 2}).facts["model"] == "llama"


def test_an_evaluation_and_a_run_that_is_stopped(plan, samples, tmp_path):
    run = plan.run(samples, 4, save=tmp_path / "saved", quiet=True)
    evaluated = plan.run(samples, eval=True, resume=tmp_path / "saved", quiet=True)
    assert len(evaluated.evaluations) == 1 and not evaluated.losses
    stopped = plan.run(samples, 10 ** 9, max_time=1, save=tmp_path / "stopped", quiet=True)
    assert stopped.stopped and stopped.losses[:4] == run.losses and stopped.weights().keys() == run.weights().keys()


def test_dropout_is_what_the_saved_configuration_says(samples, tmp_path):
    tiny_llama(dropout=0.5).save_pretrained(tmp_path / "dropping")
    losses = [deepstatic.compile(tmp_path / "dropping", CONFIG, example_batch=samples).run(samples, 1, seed=seed, quiet=True).losses for seed in (1, 2)]
    assert losses[0] != losses[1]


# --- the last word


def test_what_is_frozen_or_exchanged_in_a_model_of_transformers_stays_so(samples):
    model = tiny_llama()
    model.model.embed_tokens.requires_grad_(False)
    model.model.layers[0].mlp.act_fn = torch.nn.Tanh()
    plan = deepstatic.compile(model, CONFIG, example_batch=samples)
    run = plan.run(samples, 1, quiet=True, threads=1)
    inputs = {name: torch.as_tensor(value[:4]) for name, value in samples.items()}
    assert run.losses[0] == pytest.approx(model(**inputs).loss.item(), rel=1e-5)
    weights, before = run.weights(), model.state_dict()
    moved = {name for name in weights if not numpy.array_equal(weights[name], before[name].numpy())}
    assert moved == {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def test_a_hook_on_a_model_of_transformers_is_seen(samples):
    model = tiny_llama()
    model.lm_head.weight.register_hook(lambda gradient: 2 * gradient)
    assert "a hook on lm_head.weight" in refused(lambda: deepstatic.compile(model, CONFIG, example_batch=samples))


def test_the_trained_model_is_of_the_last_step(saved, samples, tmp_path):
    """A second run into the same folder replaces out/model, resumed or not."""
    def model():
        return {name: value.detach().numpy() for name, value in transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model").named_parameters()}
    common = dict(save_strategy="steps", save_steps=2)
    for more in (dict(max_steps=2), dict(max_steps=4, resume_from_checkpoint=True), dict(max_steps=2, learning_rate=0.1)):
        run = deepstatic.train(model=saved, dataset=samples, args=arguments(tmp_path, **common, **more))
        weights = run.weights()
        assert all((weights[name] == value).all() for name, value in model().items()), more


def test_a_python_that_is_killed_takes_its_run_with_it(plan, samples, tmp_path):
    plan_file = plan.path
    save_file(samples, tmp_path / "d.safetensors")
    script = (f"import sys; sys.path.insert(0, {str(REPOSITORY / 'python')!r}); import deepstatic\n"
              f"deepstatic.Plan({str(plan_file)!r}).run({str(tmp_path / 'd.safetensors')!r}, 10 ** 9, metrics={str(tmp_path / 'm.jsonl')!r})")
    child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    until(lambda: (tmp_path / "m.jsonl").exists() and (tmp_path / "m.jsonl").stat().st_size > 0)
    child.kill()
    child.wait()

    def running():
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if str(tmp_path).encode() in (folder / "cmdline").read_bytes():
                    return True
            except OSError:
                pass  # it has just ended
        return False
    until(lambda: not running())


def until(condition) -> None:
    """Waits; the test's own limit ends it otherwise."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that within five minutes")


# --- data


def test_data_comes_from_arrays_files_and_folders(plan, samples, tmp_path):
    """All of them give the run that the arrays give."""
    import pyarrow
    import pyarrow.parquet
    expected = plan.run(samples, 4, quiet=True).losses
    save_file(samples, tmp_path / "d.safetensors")
    table = pyarrow.table({name: pyarrow.array(list(values)) for name, values in samples.items()} | {"text": ["words"] * SAMPLES})
    (tmp_path / "parquet").mkdir()
    pyarrow.parquet.write_table(table.slice(0, 20), tmp_path / "parquet" / "a.parquet")
    pyarrow.parquet.write_table(table.slice(20), tmp_path / "parquet" / "b.parquet")
    (tmp_path / "arrow").mkdir()
    with pyarrow.OSFile(str(tmp_path / "arrow" / "data-00000-of-00001.arrow"), "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)  # as Dataset.save_to_disk does
    (tmp_path / "arrow" / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    rows = [{name: torch.tensor(values[i]) for name, values in samples.items()} for i in range(SAMPLES)]
    parts = [str(tmp_path / "parquet" / name) for name in ("a.parquet", "b.parquet")]
    for given in (tmp_path / "d.safetensors", [tmp_path / "d.safetensors"], tmp_path / "parquet", parts, str(tmp_path / "arrow"), table, rows):
        assert plan.run(given, 4, quiet=True).losses == expected, given


def test_data_that_does_not_fit_is_refused(plan, samples, tmp_path):
    import pyarrow
    import pyarrow.parquet
    (tmp_path / "ragged").mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"input_ids": [[1, 2], [3]]}), tmp_path / "ragged" / "a.parquet")
    assert "column input_ids has rows of 1 and of 2 values" in refused(lambda: plan.run(tmp_path / "ragged"))
    (tmp_path / "empty").mkdir()
    assert "holds no .arrow and no .parquet file" in refused(lambda: plan.run(tmp_path / "empty"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.arrow").write_bytes(b"no arrow")
    assert "a.arrow cannot be read" in refused(lambda: plan.run(tmp_path / "broken"))
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert "holds the splits train, test; give one of them" in refused(lambda: plan.run(tmp_path / "splits"))
    assert "column labels has rows of 1 and of 2 values; a plan has one length" in refused(
        lambda: plan.run({"input_ids": samples["input_ids"], "labels": [[1, 2], [3]]}))
    assert "column text has str values" in refused(lambda: plan.run({**samples, "text": ["a"] * SAMPLES}))
    assert "sample 1 has input_ids, and sample 0 has input_ids, labels" in refused(
        lambda: plan.run([{"input_ids": [1], "labels": [1]}, {"input_ids": [1]}]))
    assert "x.parquet cannot be read" in refused(lambda: data_module.columns_of("x.parquet"))
    assert "x.csv is no arrow or parquet file and no folder of them" in refused(lambda: data_module.columns_of("x.csv"))
    assert refused(lambda: plan.run({"input_ids": samples["input_ids"]})).startswith("the data has no tensor labels, which the plan reads")
    assert "not int" in refused(lambda: plan.run(3))
    assert "the data has no sample" in refused(lambda: plan.run([])) and "the data has no sample" in refused(lambda: plan.run({}))
    assert "column labels has what is no number" in refused(lambda: plan.run({**samples, "labels": None}))
    with deepstatic.initialize(model=plan) as engine:
        for call in (engine, lambda: engine(samples["input_ids"]), lambda: engine(samples, samples)):
            assert "a batch has its inputs by name" in refused(call)


def test_a_configuration_holds_what_json_has(saved, samples):
    numbers = {**CONFIG, "train_micro_batch_size_per_gpu": numpy.int64(2), "gradient_clipping": torch.tensor(0.5)}
    made = deepstatic.compile(saved, numbers, example_batch=samples, zero_optimization={"stage": numpy.int32(1)})
    assert made.facts["training"]["micro_batch_size"] == 2
    assert "the configuration holds <object" in refused(lambda: deepstatic.compile(saved, {"seed": object()}, example_batch=samples))
    assert "not int" in refused(lambda: deepstatic.compile(saved, 3, example_batch=samples))


def test_what_is_not_installed_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"")
    assert "needs the Python package pyarrow, which is not installed here" in refused(lambda: data_module.columns_of(tmp_path))


# --- Trainer's arguments


def arguments(folder, **more):
    return transformers.TrainingArguments(**{
        **dict(output_dir=folder, per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=10, learning_rate=0.01, weight_decay=0.1,
               train_sampling_strategy="sequential", save_strategy="no", logging_steps=1, disable_tqdm=True, use_cpu=True), **more})


@pytest.mark.parametrize("schedule", [
    {}, {"warmup_steps": 4, "max_grad_norm": 0.3}, {"lr_scheduler_type": "constant_with_warmup", "warmup_steps": 3, "weight_decay": 0.0},
    {"lr_scheduler_type": "constant", "adam_beta2": 0.95}])
def test_training_arguments_give_trainers_run(saved, samples, tmp_path, schedule):
    """transformers.Trainer itself, over the same samples: rates to rounding, losses and weights within 1e-4 after ten steps."""
    run = deepstatic.train(model=saved, dataset=samples, args=arguments(tmp_path / "ours", **schedule))
    rows = [{name: torch.tensor(values[i]) for name, values in samples.items()} for i in range(SAMPLES)]
    trainer = transformers.Trainer(model=transformers.AutoModelForCausalLM.from_pretrained(saved), args=arguments(tmp_path / "theirs", **schedule),
                                   train_dataset=rows)
    trainer.train()
    theirs = [line for line in trainer.state.log_history if "loss" in line]
    assert [line["lr"] for line in run.metrics] == pytest.approx([line["learning_rate"] for line in theirs], rel=1e-9, abs=1e-15)
    assert run.losses == pytest.approx([line["loss"] for line in theirs], rel=1e-4)
    weights = run.weights()
    for name, value in transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours" / "model").named_parameters():
        assert (weights[name] == value.detach().numpy()).all()
        assert numpy.abs(weights[name] - trainer.model.get_parameter(name).detach().numpy()).max() < 1e-4


def test_training_arguments_on_two_ranks_save_and_resume(saved, samples, tmp_path):
    """Half the batch on each of two ranks is the batch; a checkpoint every 4 steps, of which one stays, and the run goes on from it."""
    once = deepstatic.train(model=saved, dataset=samples, args=arguments(tmp_path / "one"))
    two = dict(per_device_train_batch_size=2, save_strategy="steps", save_steps=4, save_total_limit=1)
    deepstatic.train(model=saved, dataset=samples, args=arguments(tmp_path / "two", **two, max_steps=10), ranks=2, config={"zero_optimization": {"stage": 3}})
    ours = load_file(tmp_path / "two" / "model.safetensors")
    for name, value in once.weights().items():
        assert numpy.abs(ours[name] - value).max() < 1e-4, name
    assert [path.name for path in tmp_path.joinpath("two").glob("global_step*")] == ["global_step10"]


def test_a_dataset_of_text_is_refused(saved, tmp_path):
    import pyarrow
    table = pyarrow.table({"text": ["words"] * 4})
    assert "has no column of numbers" in refused(lambda: deepstatic.train(model=saved, dataset=table, args=arguments(tmp_path / "out")))
    assert "nothing is fetched" in refused(lambda: deepstatic.compile("meta-llama/no-such", CONFIG))


def test_an_uncaught_error_shows_what_to_try():
    assert str(deepstatic.DeepStaticError("it is so", "ds-opt check")) == "it is so\n  try: ds-opt check"


@pytest.mark.parametrize("changed, sentence", [
    ({"label_smoothing_factor": 0.1}, "TrainingArguments.label_smoothing_factor is 0.1, which deepstatic.train cannot honour; leave it at 0.0"),
    ({"neftune_noise_alpha": 5}, "TrainingArguments.neftune_noise_alpha is 5"),
    ({"lr_scheduler_type": "polynomial"}, "TrainingArguments.lr_scheduler_type is 'polynomial'"),
    ({"optim": "adafactor"}, "TrainingArguments.optim is 'adafactor'"),
    ({"save_strategy": "epoch"}, "TrainingArguments.save_strategy is 'epoch'"),
    ({"data_seed": 3}, "TrainingArguments.data_seed is 3"),
    ({"eval_strategy": "steps", "eval_steps": 2}, "there is no eval_dataset")])
def test_an_argument_that_cannot_be_honoured_is_refused_by_name(saved, samples, tmp_path, changed, sentence):
    assert sentence in refused(lambda: deepstatic.train(model=saved, dataset=samples, args=arguments(tmp_path / "out", **changed)))


def test_every_training_argument_has_an_answer():
    """A new version of transformers may have a new one: it is then refused, unless it is listed."""
    import dataclasses

    from deepstatic.training import HONOURED, WITHOUT_EFFECT
    names = {field.name for field in dataclasses.fields(transformers.TrainingArguments)}
    assert not HONOURED & WITHOUT_EFFECT and HONOURED | WITHOUT_EFFECT <= names


# --- errors


def test_errors_are_the_programs_own(plan, saved, samples, tmp_path):
    with pytest.raises(deepstatic.DeepStaticError, match="zero_optimization.stag is 1; no such key; the nearest is zero_optimization.stage") as caught:
        deepstatic.compile(saved, {**CONFIG, "zero_optimization": {"stag": 1}}, example_batch=samples)
    assert caught.value.code == 1
    assert "nowhere is neither a folder nor an .onnx file" in refused(lambda: deepstatic.compile(tmp_path / "nowhere", CONFIG))
    assert "needs example_batch" in refused(lambda: deepstatic.compile(Net(), CONFIG))
    assert "not int" in refused(lambda: deepstatic.compile(3, CONFIG))
    assert "--savee" in refused(lambda: plan.run(samples, 3, savee=tmp_path))
    assert "save makes no sense for an engine" in refused(lambda: deepstatic.initialize(model=plan, save=tmp_path))


def test_an_interrupt_ends_a_run_after_its_step_and_saves(plan, samples, tmp_path):
    """Ctrl-C reaches the Python that waits; ds-run saves, and then KeyboardInterrupt comes."""
    kept = plan.save(tmp_path / "kept")
    save_file(samples, tmp_path / "d.safetensors")
    # Who starts tests in the background may have them ignore SIGINT; Python takes that over.
    program = (f"import deepstatic, signal\nsignal.signal(2, signal.default_int_handler)\ntry:\n  deepstatic.Plan({str(kept)!r}).run({str(tmp_path / 'd.safetensors')!r}, 10**9, save={str(tmp_path / 'saved')!r}, "
               "verbose=True)\nexcept KeyboardInterrupt: print('interrupted')")
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PYTHONPATH": str(REPOSITORY / "python")})
    for line in process.stderr:
        if line.startswith("step 3/"):
            process.send_signal(2)
            break
    said, errors = process.communicate(timeout=120)
    assert said == "interrupted\n", errors
    assert (tmp_path / "saved" / "latest").read_text().startswith("global_step")
