"""ds-run --save and --resume: a resumed run is the run that was never interrupted, bit by bit, on the same ranks; on others it loads
the same state."""

import json
import shutil

import pytest
from checkpoints import LAYOUTS, ONE, STEPS, digest_of, losses_of, manifest_of, name_of, runs, state_of  # noqa: F401
from conftest import REPOSITORY
from pipeline_trainer import Cut
from safetensors import safe_open

MODEL = "gpt2 tied"


def save(runs, model, cut, *options, **keywords):  # noqa: F811
    folder = runs.fresh("saved")
    return folder, runs.run(model, cut, "--save", folder, *options, **keywords)


@pytest.mark.parametrize("cut", LAYOUTS, ids=name_of)
def test_resumes_bit_by_bit(runs, cut):  # noqa: F811
    """Weights, losses and norms after it, and the whole state at the end; saving changes nothing."""
    plain = runs.run(MODEL, cut)
    folder, saved = save(runs, MODEL, cut, "--save-interval", 2)
    assert (saved.weights, saved.losses) == (plain.weights, plain.losses)
    assert sorted(path.name for path in folder.iterdir()) == ["global_step2", "global_step4", "global_step6", "latest"]
    assert (folder / "latest").read_text() == "global_step6\n"
    again = runs.fresh("again")
    resumed = runs.run(MODEL, cut, "--resume", folder, "--tag", "global_step2", "--save", again)
    assert resumed.weights == plain.weights
    assert resumed.losses == {step: plain.losses[step] for step in (3, 4, 5, 6)}
    assert digest_of(again / "global_step6") == digest_of(folder / "global_step6")
    assert manifest_of(again / "global_step6")["samples"] == manifest_of(folder / "global_step6")["samples"]


@pytest.mark.parametrize("model, cut", [
    ("gpt2 dropout", Cut(data=2, zero=3)), ("gpt2 dropout", Cut(stages=2, microbatches=2)), ("resnet", Cut(data=2, zero=1)),
    ("resnet", Cut(stages=2, microbatches=2)), ("llama", Cut(microbatches=4))], ids=str)
def test_resumes_dropout_shuffle_and_running_statistics(runs, model, cut):  # noqa: F811
    """Drawn by step, ordered by a seed that the checkpoint knows, and of each data-parallel rank its own statistics, which the
    evaluation shows."""
    options = ["--eval-data", runs.trainer.data(model)]
    begin = ["--shuffle", "--seed", 11]
    plain = runs.run(model, cut, *options, *begin, metrics=(one := runs.fresh("eval")), steps=5)
    folder, _ = save(runs, model, cut, *begin, "--save-interval", 3, steps=4)
    resumed = runs.run(model, cut, *options, "--resume", folder, "--tag", "global_step3", metrics=(other := runs.fresh("eval")), steps=5)
    assert (resumed.weights, resumed.losses) == (plain.weights, {step: losses_of(one)[step] for step in (4, 5)})
    assert evaluations(one) == evaluations(other) != []


def evaluations(metrics):
    return [line for line in map(json.loads, metrics.read_text().splitlines()) if "eval_loss" in line]


@pytest.mark.parametrize("cut", [Cut(data=2, zero=3), Cut(stages=2, microbatches=2)], ids=name_of)
def test_resumes_under_mpi(runs, cut):  # noqa: F811
    """Processes agree on a checkpoint, which is the same as threads make."""
    plain = runs.run(MODEL, cut)
    folder, saved = save(runs, MODEL, cut, "--save-interval", 3, mpi=True)
    threads, _ = save(runs, MODEL, cut, "--save-interval", 3)
    for name in ("global_step3", "global_step6"):
        assert manifest_of(folder / name)["files"] == manifest_of(threads / name)["files"]
    resumed = runs.run(MODEL, cut, "--resume", folder, "--tag", "global_step3", mpi=True)
    assert plain.weights == saved.weights == resumed.weights


SOURCE = Cut(data=4, zero=3)
TARGETS = [ONE, Cut(data=2, zero=3), Cut(data=3, zero=3), Cut(data=8, zero=3), Cut(data=2, zero=1), Cut(data=4, zero=2),
           Cut(stages=2, microbatches=2, data=2, zero=1), Cut(stages=2, microbatches=2, data=2, zero=2)]


@pytest.mark.parametrize("cut", TARGETS, ids=name_of)
def test_resumes_on_other_ranks(runs, cut):  # noqa: F811
    """The state that is loaded has the same SHA-256, and goes on with the losses of one rank that makes as many micro-batches."""
    folder, _ = save(runs, MODEL, SOURCE, "--save-interval", 3)
    laid_out = runs.fresh("laid")
    runs.run(MODEL, cut, "--resume", folder, "--tag", "global_step3", "--save", laid_out, steps=3)
    assert digest_of(laid_out / "global_step3") == digest_of(folder / "global_step3")
    assert len(list((laid_out / "global_step3").glob("rank-*"))) == cut.ranks
    one = Cut(microbatches=cut.microbatches * cut.data)
    ours = runs.run(MODEL, cut, "--resume", folder, "--tag", "global_step3")
    expected = runs.run(MODEL, one, "--resume", folder, "--tag", "global_step3")
    assert list(ours.losses) == list(expected.losses) == [4, 5, 6]
    for step in (4, 5, 6):
        assert ours.losses[step][0] == pytest.approx(expected.losses[step][0], rel=1e-5)


def test_a_resumed_layout_with_the_same_batch_goes_on_with_the_same_losses(runs):  # noqa: F811
    """4 ranks of 1 micro-batch, 2 of 2 and 1 of 4 are one training, whoever resumes whom."""
    folder, plain = save(runs, MODEL, SOURCE, "--save-interval", 3)
    for cut in (Cut(microbatches=4), Cut(microbatches=2, data=2, zero=2), Cut(stages=2, microbatches=2, data=2, zero=1)):
        resumed = runs.run(MODEL, cut, "--resume", folder, "--tag", "global_step3")
        for step in (4, 5, 6):
            assert resumed.losses[step][0] == pytest.approx(plain.losses[step][0], rel=1e-5)


def test_what_a_file_holds(runs):  # noqa: F811
    """Each element once, spread over the ranks; gradients and metrics not at all; the data's place."""
    folder, _ = save(runs, MODEL, Cut(data=2, zero=0), steps=2)
    checkpoint = folder / "global_step2"
    manifest = manifest_of(checkpoint)
    names = {variable["name"] for variable in manifest["variables"]}
    assert "optimizer::step" in names and not names & {"loss", "lr", "grad_norm"} and not any("gradient" in name for name in names)
    sizes = [file["bytes"] for file in manifest["files"]]
    assert max(sizes) < 1.2 * min(sizes)
    stored = 0
    for file in manifest["files"]:
        with safe_open(checkpoint / file["name"], "np") as tensors:
            stored += sum(tensors.get_tensor(name).nbytes for name in tensors.keys())
    assert stored == sum(map(len, state_of(checkpoint).values()))
    assert (manifest["step"], manifest["samples"], manifest["samples_per_step"]) == (2, 4, 2)
    axes = [{"name": name, "size": 2 if name == "data" else 1} for name in ("pipe", "data", "expert", "tensor")]
    assert manifest["layout"] == {"ranks": 2, "data_parallel": 2, "stages": 1, "zero": 0, "axes": axes}


def test_the_buffer_is_planned_and_asked_for(runs, tools):  # noqa: F811
    """`report` counts it while a checkpoint is written, and --save is refused at once where the machine has no room for it."""
    plan = runs.trainer.compile(MODEL, ONE, "--set", 'deepstatic.checkpoint.buffer="3MiB"')
    phases = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]["memory"]["host"]["phases"]
    assert phases["save"] - phases["load"] == 3 << 20
    vast = runs.trainer.compile(MODEL, ONE, "--set", 'deepstatic.checkpoint.buffer="1TiB"')
    train = ["ds-run", vast, "--data", runs.trainer.data(MODEL), "--steps", 1, "--quiet"]
    tools(*train)
    assert "need 109951" in tools.refused(*train, "--save", runs.fresh("saved"))


def test_a_step_may_wait_for_its_checkpoint(runs, tools):  # noqa: F811
    plan = runs.trainer.compile(MODEL, ONE, "--set", 'deepstatic.checkpoint.snapshot="blocking"')
    folder, metrics = runs.fresh("saved"), runs.fresh("metrics")
    tools("ds-run", plan, "--data", runs.trainer.data(MODEL), "--steps", STEPS, "--save", folder, "--save-interval", 1, "--metrics", metrics)
    assert losses_of(metrics) == runs.run(MODEL, ONE).losses
    assert len(list(folder.glob("global_step*"))) == STEPS


def test_keep(runs):  # noqa: F811
    """The newest stay; a run that goes back keeps its own, and not those of more steps that it leaves behind."""
    folder, _ = save(runs, MODEL, ONE, "--save-interval", 1, "--keep", 2)
    assert sorted(path.name for path in folder.glob("global*")) == ["global_step5", "global_step6"]
    runs.run(MODEL, ONE, "--resume", folder, "--tag", "global_step5", "--save", folder, "--save-interval", 1, "--keep", 1)
    assert [path.name for path in folder.glob("global*")] == ["global_step6"]
    later, _ = save(runs, MODEL, ONE, "--save-interval", 2)
    runs.run(MODEL, ONE, "--resume", later, "--tag", "global_step2", "--save", later, "--save-interval", 1, "--keep", 2, steps=3)
    assert sorted(path.name for path in later.glob("global*")) == ["global_step2", "global_step3"]
    assert (later / "latest").read_text() == "global_step3\n"


def test_metrics_append(runs):  # noqa: F811
    metrics = runs.fresh("metrics")
    folder, _ = save(runs, MODEL, ONE, steps=2, metrics=metrics)
    with open(metrics, "a") as file:
        file.write('{"step": 3, "lo')  # as when the machine goes down
    runs.run(MODEL, ONE, "--resume", folder, metrics=metrics, steps=4)
    lines = metrics.read_text().splitlines()
    assert lines[3] == '{"step": 3, "lo'
    assert [json.loads(line).get("step") for line in lines[:3] + lines[4:]] == [1, 2, None, 3, 4, None]


def test_a_first_run_and_a_second(runs):  # noqa: F811
    """One command line, again and again, until it is done."""
    folder = runs.fresh("job")
    missing = runs.run(MODEL, ONE, "--resume", folder, code=1)
    assert missing.errors == (f"error: --resume {folder} has no checkpoint (a folder global_stepN with a manifest.json); "
                              "--resume-if-present starts a first run\n")
    line = ["--save", folder, "--resume-if-present"]
    assert list(runs.run(MODEL, ONE, *line, steps=2).losses) == [1, 2]
    assert list(runs.run(MODEL, ONE, *line, steps=4).losses) == [3, 4]
    done = runs.run(MODEL, ONE, *line, steps=4)
    assert done.losses == {} and "has 4 steps done, and --steps 4 asks for no more" in done.errors


def test_latest_that_lags_behind(runs):  # noqa: F811
    """A run that is killed before it writes `latest`, or whose newest was removed by hand."""
    folder, _ = save(runs, MODEL, ONE, "--save-interval", 2)
    (folder / "latest").unlink()
    (folder / "global_step9.4711.part").mkdir()
    (folder / "global_step8").mkdir()  # without a manifest
    assert "global_step6 has 6 steps done" in runs.run(MODEL, ONE, "--resume", folder).errors
    (folder / "latest").write_text("global_step5\n")
    shutil.rmtree(folder / "global_step6")
    assert list(runs.run(MODEL, ONE, "--resume", folder).losses) == [5, 6]
    runs.run(MODEL, ONE, "--save", folder, steps=1)
    assert not (folder / "global_step9.4711.part").exists()


def test_evaluates_a_checkpoint(runs):  # noqa: F811
    folder, _ = save(runs, MODEL, ONE, "--eval-data", runs.trainer.data(MODEL), metrics=(one := runs.fresh("metrics")), steps=STEPS)
    metrics = runs.fresh("metrics")
    runs.trainer.tools("ds-run", runs.plan(MODEL, ONE), "--data", runs.trainer.data(MODEL), "--eval", "--resume", folder, "--metrics", metrics,
                       "--quiet")
    assert evaluations(metrics) == evaluations(one)


def test_set_changes_data_and_refuses_structure(runs):  # noqa: F811
    """What --set changes is in the manifest, stays in later runs of the plan, and equals a plan that was compiled so."""
    folder, _ = save(runs, MODEL, ONE, steps=2)
    flags = ["--set", "optimizer.params.lr=0.0003", "--set", "gradient_clipping=0.1"]
    later = runs.fresh("later")
    changed = runs.run(MODEL, ONE, "--resume", folder, *flags, "--save", later, "--save-interval", 2, steps=6)
    assert manifest_of(later / "global_step4")["set"] == [{"step": 2, "key": "optimizer.params.lr", "value": 0.0003},
                                                          {"step": 2, "key": "gradient_clipping", "value": 0.1}]
    assert runs.run(MODEL, ONE, "--resume", later, "--tag", "global_step4", steps=6).weights == changed.weights
    settings = {"gradient_clipping": 0.1, "optimizer": {"type": "AdamW", "params": {"lr": 0.0003, "weight_decay": 0.1}}}
    recompiled = runs.trainer.compile(MODEL, ONE, **settings)
    runs.plans[MODEL, "recompiled"] = recompiled
    assert runs.run(MODEL, "recompiled", "--resume", folder, steps=6).weights == changed.weights != runs.run(MODEL, ONE, steps=6).weights
    other = runs.run(MODEL, "recompiled", "--resume", later, "--tag", "global_step4", steps=6)
    assert "was made with --set gradient_clipping=0.1, which is not used, as this is another plan" in other.errors
    for flag, reason in (("zero_optimization.stage=3", "--set zero_optimization.stage is no value that a run can change; these are: optimizer"),
                         ("scheduler.params.total_num_steps=9", "has nothing to change: the plan does not use it"),
                         ("optimizer.params.lr=fast", "fast is no number"), ("gradient_clipping=0", "is not a number above 0"),
                         ("optimizer.params.lr", "has no value")):
        assert reason in runs.run(MODEL, ONE, "--resume", folder, "--set", flag, steps=4, code=1).errors


def test_a_checkpoint_of_format_1_resumes(tools, tmp_path):
    """An older ds-run wrote it, of two data-parallel ranks with statistics of their own. The same state in today's format goes on with the same bits."""
    old, plan = REPOSITORY / "test" / "data" / "checkpoint_format_1", tmp_path / "m.dsplan"
    tools("ds-opt", "compile", old / "model.onnx", "--attach-loss", "classification", "--batch-norm", "train", "--config", old / "config.json", "--ranks", 2,
          "-o", plan)

    def resumed(name, edit):
        folder = tmp_path / name
        shutil.copytree(old / "saved", folder)
        manifest = manifest_of(folder / "global_step2")
        edit(manifest)
        (folder / "global_step2" / "manifest.json").write_text(json.dumps(manifest))  # without the SHA-256 of its text
        tools("ds-run", plan, "-n", 2, "--data", old / "data.safetensors", "--steps", 4, "--resume", folder, "--save", tmp_path / f"{name} again", "--quiet")
        return [(tmp_path / f"{name} again" / "global_step4" / f"rank-0000{rank}.safetensors").read_bytes() for rank in range(2)]

    def as_newer(manifest, number):
        manifest["format"] = number
        manifest["layout"]["axes"] = [{"name": "data", "size": 2}]
        for variable in manifest["variables"]:
            if "other_data_ranks" in variable:
                variable["placement"] = [{"axis": "data", "how": "varies"}]
                pieces = [variable["pieces"], *variable.pop("other_data_ranks")]
                variable["pieces"] = [{"at": {"data": rank}, **piece} for rank in range(2) for piece in pieces[rank]]

    def of_rank_0_alone(manifest):
        for variable in manifest["variables"]:
            variable.pop("other_data_ranks", None)

    older = resumed("older", lambda manifest: manifest.pop("sha256"))
    for number in (2, 3):
        assert older == resumed(f"format {number}", lambda manifest: (manifest.pop("sha256"), as_newer(manifest, number)))
    assert older != resumed("alike", lambda manifest: (manifest.pop("sha256"), of_rank_0_alone(manifest)))
    tools("ds-run", plan, "-n", 2, "--data", old / "data.safetensors", "--steps", 4, "--resume", old / "saved", "--save", tmp_path / "again", "--quiet")
    assert older == [(tmp_path / "again" / "global_step4" / f"rank-0000{rank}.safetensors").read_bytes() for rank in range(2)]
    means = next(v for v in manifest_of(tmp_path / "again" / "global_step4")["variables"] if v["name"] == "norm.running_mean")
    assert means["placement"] == [{"axis": "data", "how": "varies"}] and [piece["at"] for piece in means["pieces"]] == [{"data": 0}, {"data": 1}]
