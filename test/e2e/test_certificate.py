"""`ds-opt verify --model --config` derives again what a plan takes from its sources; `--certificate` and `ds-run --certify`.

Each edit below is made in the plan and in its reference program alike, so that the checker, which compares the two, accepts
it: only the sources can tell.
"""

import hashlib
import json
import re
import resource
import shutil
import struct

import pytest
from conftest import REPOSITORY, write_config
from plan_files import read_plan, write_plan


@pytest.fixture(scope="module")
def sources(tools, exported, tmp_path_factory):
    """(plan, model, configuration) of tiny GPT-2 on two ranks, with a schedule."""
    folder = tmp_path_factory.mktemp("sources")
    model = exported("gpt2", "--size=tiny", "--seq=8")
    config = write_config(folder / "config.json", 2, 4, gradient_clipping=0.5, zero_optimization={"stage": 1}, scheduler={
        "type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10, "warmup_max_lr": 0.01}})
    plan = folder / "gpt2.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "--set", "optimizer.params.lr=0.02", "-o", plan)
    return plan, model, config


def claims_of(text):
    verdict = json.loads(text)
    assert verdict["verdict"] == "proven"
    return {claim["id"]: claim for claim in verdict["claims"]}


def test_verify_says_what_each_claim_rests_on(tools, sources):
    plan, model, config = sources
    alone = claims_of(tools("ds-opt", "verify", plan, "--format", "json").stdout)
    assert {claim["rests_on"] for claim in alone.values()} == {"the plan"}
    done = tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--format", "json")
    claims = claims_of(done.stdout)
    assert {name for name, claim in claims.items() if claim["rests_on"] == "the model"} == {
        "model", "weight_headers", "parameters", "first_values", "inputs"}
    assert {name for name, claim in claims.items() if claim["rests_on"] == "the configuration"} == {
        "configuration", "batch", "optimizer", "update_program", "clipping", "scale", "learning_rate", "momentum", "precision",
        "reductions", "updates", "buckets"}
    assert [one["id"] for one in json.loads(done.stdout)["trusted"]] == ["graph", "kernels"]
    text = tools("ds-opt", "verify", plan).stdout
    assert "relative to the reference program that the plan carries" in text and "(compared by --model)" in text


@pytest.mark.parametrize("name, options", [("llama", ("--size=tiny", "--seq=8")), ("bert", ("--size=tiny", "--seq=8")),
                                           ("resnet50", ("--size=tiny",)), ("vit", ("--size=tiny",))])
def test_plans_of_other_models_follow_from_their_sources(tools, exported, name, options, tmp_path):
    model = exported(name, *options)
    config = write_config(tmp_path / "config.json", 2, 2, bf16={"enabled": name == "llama"})
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "-o", tmp_path / "plan")
    tools("ds-opt", "verify", tmp_path / "plan", "--model", model, "--config", config)


def reference_ops(plan, name):
    return [op for op in plan.reference.ops if op.op == f"train.{name}"]


def set_everywhere(plan, kernel, attribute, value):
    """In the reference program and in every command."""
    found = 0
    commands = [command.kernel for role in plan.roles for routine in role.routines for command in routine.commands
                if command.kernel.kernel == kernel]
    for holder in (*reference_ops(plan, kernel), *commands):
        for one in holder.attributes:
            if one.name == attribute:
                one.number, found = value, found + 1
    assert found > 1


def parameters(plan):
    return [variable for variable in plan.variables if variable.kind == 1]


def exchange_names(plan):
    first, second = [one for one in parameters(plan) if one.name.endswith(("attn.c_proj.bias", "mlp.c_proj.bias"))][:2]
    first.name, second.name = second.name, first.name


def exchange_first_values(plan):
    first, second = [one for one in parameters(plan) if one.name.endswith("ln_1.weight") or one.name.endswith("ln_1.bias")][:2]
    source = type(first.source)()
    source.CopyFrom(first.source)
    first.source.CopyFrom(second.source)
    second.source.CopyFrom(source)


def next_token(plan):
    next(one for one in plan.inputs if one.name == "labels").tokens = "next"


def scale_twice(plan):
    """1 / (4 * 2) becomes 1 / 4, in the reference program, constants and kernels."""
    for attribute in (*(one for op in plan.reference.ops for one in op.attributes),
                      *(one for role in plan.roles for routine in role.routines for command in routine.commands
                        for one in command.kernel.attributes)):
        if attribute.number == 0.125:
            attribute.number = 0.25
        if attribute.WhichOneof("value") == "numbers":
            attribute.numbers.values[:] = [0.25 if value == 0.125 else value for value in attribute.numbers.values]
    for variable in plan.variables:
        if variable.source.literal == struct.pack("<f", 0.125):
            variable.source.literal = struct.pack("<f", 0.25)
        if variable.source.fill == 0.125:
            variable.source.fill = 0.25


def forget_a_tie(plan):
    next(one for one in parameters(plan) if one.aliases).ClearField("aliases")


EDITS = {
    "beta2": (lambda plan: set_everywhere(plan, "adamw", "beta2", 0.99), r"beta2 of .* is 0\.99 in the plan, but 0\.999"),
    "weight decay": (lambda plan: set_everywhere(plan, "adamw", "weight_decay", 0.2), "weight_decay of "),
    "clip": (lambda plan: set_everywhere(plan, "clip_factor", "max_norm", 5), r"gradient_clipping is 5 in the plan, but 0\.5"),
    "learning rate": (lambda plan: set_everywhere(plan, "learning_rate", "warmup_max_lr", 0.1), "the learning rate of update "),
    "scale": (scale_twice, "the scale of gradients is "),
    "names": (exchange_names, r"\.c_proj\.bias"),
    "first values": (exchange_first_values, "the first value of .*ln_1"),
    "tokens": (next_token, 'the "next" token by the plan, of the "same" by the model'),
    "ties": (forget_a_tie, "other names"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_plan_and_reference_alike_is_seen_by_the_sources(tools, sources, tmp_path, name):
    path, model, config = sources
    edit, expected = EDITS[name]
    plan = read_plan(path)
    edit(plan)
    broken = write_plan(path.with_name(f"{name.replace(' ', '-')}.dsplan"), plan)
    sentence = tools.refused("ds-opt", "verify", broken, "--model", model, "--config", config)
    assert re.search(expected, sentence), sentence


def test_sources_that_are_not_the_plans_are_refused(tools, sources, exported, tmp_path):
    plan, model, config = sources
    other = write_config(tmp_path / "other.json", 2, 2)
    assert "is not the configuration that the plan was made from" in tools.refused("ds-opt", "verify", plan, "--config", other)
    assert "is not the model that the plan was made from" in tools.refused(
        "ds-opt", "verify", plan, "--model", exported("llama", "--size=tiny", "--seq=8"))
    assert "cannot be read" in tools.refused("ds-opt", "verify", plan, "--config", tmp_path / "none.json")
    stripped = read_plan(plan)
    stripped.ClearField("sources")
    old = write_plan(plan.with_name("old.dsplan"), stripped)
    assert "does not say which configuration" in tools.refused("ds-opt", "verify", old, "--config", config)


def test_a_certificate_is_of_one_plan_and_takes_what_runs_measure(tools, sources, text_data, tmp_path):
    plan, model, config = sources
    certificate = tmp_path / "certificate.json"
    tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--certificate", certificate, "--quiet")
    issued = json.loads(certificate.read_text())
    assert issued["measured"] == [] and issued["verdict"] == "proven" and issued["numerics"]
    run = ("ds-run", plan, "--data", text_data(8), "--steps", 12, "--certify", certificate)
    noted = [tools(*run).stderr for _ in range(2)]
    lines = {line for text in noted for line in text.splitlines() if "certificate" in line}
    assert len(lines) == 1 and issued["plan"]["sha256"] in lines.pop(), noted  # what is appended does not change its hash
    measured = json.loads(certificate.read_text())["measured"]
    # Which pages the kernel has in memory depends on who ran which piece, and on where it had huge pages.
    touched = [run.pop("device_touched_bytes") for run in measured]
    assert len(measured) == 2 and measured[0] == measured[1]
    assert all(0 < count <= measured[0]["device_bytes"] + resource.getpagesize() for count in touched)
    assert measured[0]["run"]["seed"] == 0 and measured[0]["run"]["weights"] == {} and measured[0]["run"]["resumed"] == ""
    assert [one["bytes"] for one in measured[0]["run"]["data"]] == [text_data(8).stat().st_size]
    assert measured[0]["steps"] == 12 and len(measured[0]["losses"]) == 10
    planned = json.loads(tools("ds-opt", "report", plan, "--format", "json").stdout)["ranks_detail"][0]
    assert measured[0]["device_bytes"] == planned["memory"]["device"]["arena_bytes"]
    assert measured[0]["wire_bytes_per_step"]["all_reduce"] == planned["wire_bytes_per_step"]["all_reduce"]

    edited = shutil.copy(plan, plan.with_name("edited.dsplan"))
    message = read_plan(edited)
    message.model = "another"
    write_plan(edited, message)
    assert "is the certificate of another plan" in tools.refused("ds-run", edited, "--data", text_data(8), "--certify", certificate)
    for text, expected in ((b"{}", "is no certificate"), (b"\xff\x00", "is no certificate"),
                           (b'{"format": "deepstatic certificate", "version": 2}', "newer version"),
                           (b'{"format": "deepstatic certificate", "version": 1}', "damaged")):
        (tmp_path / "bad.json").write_bytes(text)
        assert expected in tools.refused("ds-run", plan, "--data", text_data(8), "--certify", tmp_path / "bad.json")


def test_a_certified_run_is_of_the_plans_settings_and_says_with_what_it_was_run(tools, sources, text_data, tmp_path):
    plan, model, config = sources
    certificate, saved = tmp_path / "certificate.json", tmp_path / "saved"
    tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--certificate", certificate, "--quiet")
    run = ("ds-run", plan, "--data", text_data(8), "--certify", certificate, "--quiet")
    refused = tools.refused(*run, "--steps", 1, "--set", "gradient_clipping=1000")
    assert "gradient_clipping of this run is another one by --set; compile with --set" in refused
    tools(*run, "--steps", 1, "--seed", 7, "--save", saved, "--export", tmp_path / "w.safetensors")
    tools(*run, "--steps", 2, "--resume", saved)
    tools(*run, "--steps", 1, "--weights", tmp_path / "w.safetensors")
    fresh, resumed, given = [one["run"] for one in json.loads(certificate.read_text())["measured"]]
    assert fresh["seed"] == resumed["seed"] == 7 and fresh["resumed"] == "" and resumed["resumed"].startswith(str(saved))
    assert given["weights"] == {"w.safetensors": hashlib.sha256((tmp_path / "w.safetensors").read_bytes()).hexdigest()}
    tools("ds-run", plan, "--data", text_data(8), "--steps", 2, "--resume", saved, "--set", "gradient_clipping=1000", "--save", saved, "--quiet")
    assert "gradient_clipping of this run" in tools.refused(*run, "--steps", 3, "--resume", saved)  # --set is kept by checkpoints


def test_weights_are_the_models_unless_others_are_asked_for(tools, sources, text_data, tmp_path):
    """A plan whose weights come from another safetensors file, with that file's header and checksums."""
    plan, model, config = sources
    weights = tmp_path / "w.safetensors"
    tools("ds-run", plan, "--data", text_data(8), "--steps", 1, "--export", weights, "--quiet")
    given = tmp_path / "given.dsplan"
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "--weights", weights, "-o", given)
    verify = ("ds-opt", "verify", given, "--model", model, "--config", config)
    assert "the model has its elements, the plan takes them from" in tools.refused(*verify)
    tools(*verify, "--weights", weights)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(exported_again(weights), tmp_path / "elsewhere" / "w.safetensors")
    assert "not from --weights" in tools.refused(*verify, "--weights", tmp_path / "elsewhere")


def exported_again(weights):
    """The same tensors with other bytes."""
    changed = weights.with_name("changed.safetensors")
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    changed.write_bytes(content)
    return changed


def test_a_refused_plan_gets_no_certificate(tools, sources, tmp_path):
    plan = read_plan(sources[0])
    for routine in plan.roles[0].routines:
        for command in routine.commands:
            if command.HasField("feed"):
                command.ClearField("waits")
    broken = write_plan(sources[0].with_name("race.dsplan"), plan)
    done = tools("ds-opt", "verify", broken, "--certificate", tmp_path / "none.json", "--format", "json", code=1)
    verdict = json.loads(done.stdout)
    assert verdict["verdict"] == "refused" and verdict["rule"] == "race" and verdict["place"].startswith("program ")
    assert not (tmp_path / "none.json").exists()


@pytest.mark.parametrize("settings, says, claims", [
    ({"zero_optimization": {"stage": 1}}, "reassociated", "sums over ranks what is a sum of micro-batches 0 and 1 already"),
    ({"zero_optimization": {"stage": 2}}, "bit-equal", None),
    ({"deepstatic": {"pipeline": {"stages": 2}}}, "reassociated", "of micro-batch 0 were added apart"),  # wte is in both stages
    ({"zero_optimization": {"stage": 2}, "communication_data_type": "bf16"}, "lossy", "is refused by the checker"),
])
def test_a_plan_says_no_more_of_its_bits_than_its_sums_do(tools, tmp_path, settings, says, claims):
    model, config = REPOSITORY / "test" / "e2e" / "hazards" / "good-gpt2", write_config(tmp_path / "c.json", 1, 2, **settings)
    tools("ds-opt", "compile", model, "--config", config, "--ranks", 2, "-o", tmp_path / "p.dsplan")
    plan = read_plan(tmp_path / "p.dsplan")
    assert plan.numerics == says
    plan.numerics = "bit-equal"
    done = tools("ds-opt", "verify", write_plan(tmp_path / "more.dsplan", plan), code=1 if claims else 0)
    assert claims is None or claims in done.stderr, done.stderr


def test_every_rule_and_claim_is_explained(tools, sources):
    """Rules are those that the checker's sources name."""
    plan, model, config = sources
    text = "".join(path.read_text() for path in sorted((REPOSITORY / "compiler/check").glob("*.cpp")))
    rules = set(re.findall(r'Refusal\{"(\w+)"', text)) | set(re.findall(r'refuse\("(\w+)"', text))
    assert {"progress", "race", "value", "coverage", "meaning", "numerics", "memory"} <= rules
    claims = claims_of(tools("ds-opt", "verify", plan, "--model", model, "--config", config, "--format", "json").stdout)
    for name in rules | set(claims):
        assert tools("ds-opt", "explain", name).stdout.startswith(f"{name}\n"), name
    assert "begins with \"plan FILE:\"" in tools("ds-opt", "explain", "plan").stdout
    assert "it explains progress, race" in tools.refused("ds-opt", "explain", "nothing")


def test_a_key_that_an_error_names_is_explained(tools, tmp_path):
    config = write_config(tmp_path / "ds_config.json", 1, zero_optimization={"stage": 7})
    refused = tools.refused("ds-opt", "compile", REPOSITORY / "test/e2e/hazards/good-gpt2", "--config", config, "-o", tmp_path / "no.dsplan")
    key = re.search(r": (\S+) is 7", refused)[1]
    said = tools("ds-opt", "explain", key).stdout
    assert said.startswith(key) and "[0, 1, 2, 3]" in said and "honoured" in said
