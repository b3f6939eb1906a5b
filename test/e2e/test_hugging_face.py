"""From a Hugging Face folder to a Hugging Face folder, and weights in half precision or under other names."""

import json
import shutil
import sys

import numpy
import pytest
import torch
import transformers
from conftest import REPOSITORY, write_config
from safetensors import safe_open
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

SEQ, STEPS = 32, 3
MODELS = {
    "gpt2": (transformers.GPT2Config, {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 0, "eos_token_id": 0}),
    "llama": (transformers.LlamaConfig, {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                                         "num_key_value_heads": 2, "max_position_embeddings": 64}),
    "moe": (transformers.MixtralConfig, {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                                         "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "max_position_embeddings": 64}),
}
INDEX = "model.safetensors.index.json"
AUTO = transformers.AutoModelForCausalLM


def saved(place, name, dtype=torch.float32, **options):
    """The folder of a tiny model by save_pretrained, with a file of a tokenizer beside it."""
    config, settings = MODELS[name]
    torch.manual_seed(0)
    model = AUTO.from_config(config(vocab_size=256, **settings)).to(dtype)
    model.save_pretrained(place / name, **options)
    (place / name / "tokenizer_config.json").write_text('{"model_max_length": 64}')
    return place / name


@pytest.fixture(scope="module")
def gpt2(tools, tmp_path_factory):
    """(folder of the model, plan without weights, data)"""
    place = tmp_path_factory.mktemp("gpt2")
    folder = saved(place, "gpt2")
    tools("export.py", folder, "--seq", SEQ, "--dropout", 0, "--no-weights", "--out", place / "bare")
    tokens = numpy.random.default_rng(0).integers(0, 256, (8, SEQ))
    save_file({"input_ids": torch.tensor(tokens), "labels": torch.tensor(tokens)}, place / "data.safetensors")
    tools("ds-opt", "compile", place / "bare", "--config", write_config(place / "c.json", 2), "-o", place / "m.dsplan")
    return folder, place / "m.dsplan", place / "data.safetensors"


def losses(tools, plan, data, *options):
    return [line["loss"] for line in tools.train(plan, data, STEPS, *options)[0]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_weights_are_widened(dtype, gpt2, tools, tmp_path):
    """By ds-run and by ds-opt: as the same numbers in float32, bit for bit."""
    folder, plan, data = gpt2
    half = {name: value.to(dtype) for name, value in load_file(folder / "model.safetensors").items()}
    save_file(half, tmp_path / "model.safetensors")
    save_file({name: value.float() for name, value in half.items()}, tmp_path / "wide.safetensors")
    expected = losses(tools, plan, data, "--weights", tmp_path / "wide.safetensors")
    name = str(dtype).removeprefix("torch.")
    run = tools("ds-run", plan, "--data", data, "--steps", 1, "--weights", tmp_path / "model.safetensors")
    assert f"28 of 28 parameters are {name} in {tmp_path / 'model.safetensors'} and were widened to float32" in run.stderr
    assert losses(tools, plan, data, "--weights", tmp_path / "model.safetensors") == expected
    compiled = tools("ds-opt", "compile", plan.parent / "bare", "--config", plan.parent / "c.json", "--weights", tmp_path / "model.safetensors",
                     "-o", tmp_path / "half.dsplan")
    assert f"28 of 28 parameters are {name} in" in compiled.stderr
    assert losses(tools, tmp_path / "half.dsplan", data) == expected
    tools("ds-opt", "verify", tmp_path / "half.dsplan", "--model", plan.parent / "bare", "--config", plan.parent / "c.json")


def test_weights_are_not_narrowed(gpt2, tools, tmp_path):
    folder, plan, data = gpt2
    save_file({name: value.double() for name, value in load_file(folder / "model.safetensors").items()}, tmp_path / "w.safetensors")
    for message in (tools.refused("ds-run", plan, "--data", data, "--weights", tmp_path / "w.safetensors"),
                    tools.refused("ds-opt", "compile", plan.parent / "bare", "--config", plan.parent / "c.json", "--weights",
                                  tmp_path / "w.safetensors", "-o", tmp_path / "n.dsplan")):
        assert "F64" in message and "weights of float64 are not rounded" in message


@pytest.mark.parametrize("change", ["base model", "wrapped"])
def test_names_that_differ_by_a_prefix(change, gpt2, tools, tmp_path):
    folder, plan, data = gpt2
    weights = load_file(folder / "model.safetensors")
    renamed = {name.removeprefix("transformer.") if change == "base model" else "module." + name: value for name, value in weights.items()}
    save_file(renamed, tmp_path / "model.safetensors")
    expected = losses(tools, plan, data, "--weights", folder)
    assert losses(tools, plan, data, "--weights", tmp_path) == expected
    compiled = tools("ds-opt", "compile", plan.parent / "bare", "--config", plan.parent / "c.json", "--weights", tmp_path, "-o",
                     tmp_path / "m.dsplan")
    assert "names in" in compiled.stderr and ("transformer." if change == "base model" else "module.") in compiled.stderr
    assert losses(tools, tmp_path / "m.dsplan", data) == expected


def test_weights_that_match_nothing_train_nothing(gpt2, tools, tmp_path):
    folder, plan, data = gpt2
    weights = load_file(folder / "model.safetensors")
    save_file({f"x_{name}": value for name, value in weights.items()}, tmp_path / "model.safetensors")
    message = tools.refused("ds-run", plan, "--data", data, "--weights", tmp_path)
    assert "lacks 28 of the plan's 28 parameters" in message and "x_transformer" in message
    del weights["transformer.wpe.weight"]
    save_file(weights, tmp_path / "model.safetensors")
    message = tools.refused("ds-run", plan, "--data", data, "--weights", tmp_path)
    assert "lacks 1 of the plan's 28 parameters: transformer.wpe.weight" in message
    message = tools.refused("ds-opt", "compile", plan.parent / "bare", "--config", plan.parent / "c.json", "--weights", tmp_path, "-o",
                            tmp_path / "n.dsplan")
    assert "'transformer.wpe.weight' is neither in the model nor in the file that --weights names" in message


def test_a_folder_without_a_graph(gpt2, tools, tmp_path):
    folder, plan, _ = gpt2
    done = tools("ds-opt", "compile", folder, "--config", plan.parent / "c.json", "-o", tmp_path / "n.dsplan", code=1)
    assert f"'{folder}' is a saved model without a graph" in done.stderr
    assert f"try: python models/export.py {folder} --out {folder}-onnx\n" in done.stderr


def test_half_graphs_are_not_exported(tools, tmp_path):
    done = tools("export.py", "gpt2", "--size", "tiny", "--dtype", "bfloat16", "--out", tmp_path / "m", code=1)
    assert "graphs have float32 weights" in done.stderr and '"bf16": {"enabled": true}' in done.stderr
    assert f"try: python models/export.py gpt2 --out {tmp_path / 'm'}\n" in done.stderr
    assert not (tmp_path / "m").exists()


def by_hand(folder, weights):
    """The model of a folder with other weights; -> in float32, ready to run."""
    model = AUTO.from_pretrained(folder, dtype=torch.float32)
    assert not model.load_state_dict(weights, strict=False).unexpected_keys
    model.tie_weights()
    return model.eval()


@pytest.mark.parametrize("name, dtype, shards", [("gpt2", torch.float32, {}), ("llama", torch.bfloat16, {"max_shard_size": "20KB"}),
                                                 ("moe", torch.float16, {})])
def test_trained_models_load_in_transformers(name, dtype, shards, tools, tmp_path):
    """Saved, exported, trained on 2 ranks by ZeRO-3, exported like the folder: transformers computes and generates what it does with the
    weights set by hand, and its loss is ds-run's."""
    folder = saved(tmp_path, name, dtype, **shards)
    # Experts are apart in the folder, so export.py takes them along; the others' weights come straight from it.
    weights = [] if name == "moe" else ["--weights", folder]
    tools("export.py", folder, "--seq", SEQ, "--dropout", 0, *(["--no-weights"] if weights else []), "--out", tmp_path / "onnx")
    tokens = torch.tensor(numpy.random.default_rng(0).integers(0, 256, (4, SEQ)))
    save_file({"input_ids": tokens, "labels": tokens.clone()}, tmp_path / "data.safetensors")
    config = write_config(tmp_path / "c.json", 2, optimizer={"type": "AdamW", "params": {"lr": 1e-2}}, zero_optimization={"stage": 3})
    tools("ds-opt", "compile", tmp_path / "onnx", "--config", config, "--ranks", 2, *weights, "-o", tmp_path / "m.dsplan")
    steps, _ = tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", STEPS, "--save", tmp_path / "run",
                           "--export", tmp_path / "w.safetensors")
    untrained = AUTO.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        before = untrained(tokens, labels=tokens)
    assert steps[0]["loss"] == pytest.approx(before.loss.item(), rel=1e-5)

    tools("ds-run", "export", tmp_path / "run", "-o", tmp_path / "again.safetensors")
    ours = load_file(tmp_path / "w.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "w.safetensors").read_bytes()

    done = tools("ds-run", "export", tmp_path / "run", "--hf", tmp_path / "out", "--like", folder)
    assert f"wrote {tmp_path / 'out'}: {len(ours)} tensors" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in folder.iterdir())
    for path in folder.glob("*.json"):  # configuration, tokenizer, and the index, which names each tensor's shard
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()
    assert len(list(folder.glob("*.safetensors"))) == (4 if shards else 1) and (folder / INDEX).exists() == bool(shards)
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as old, safe_open(tmp_path / "out" / path.name, "pt") as new:
            assert old.metadata() == new.metadata() == {"format": "pt"}
            assert {k: (old.get_slice(k).get_dtype(), old.get_slice(k).get_shape()) for k in old.keys()} \
                == {k: (new.get_slice(k).get_dtype(), new.get_slice(k).get_shape()) for k in new.keys()}

    loaded = AUTO.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    expected = by_hand(folder, {key: value.to(dtype).float() for key, value in ours.items()})
    with torch.no_grad():
        logits = loaded(tokens).logits
        assert (logits - expected(tokens).logits).abs().max() <= 1e-5
        assert (logits - before.logits).abs().max() > 0.1  # it was trained
        loss = loaded(tokens, labels=tokens).loss.item()
    prompt = tokens[:1, :8]
    generated = [model.generate(prompt, min_new_tokens=50, max_new_tokens=50, do_sample=False, pad_token_id=0) for model in (loaded, expected)]
    assert generated[0].shape[1] == 58 and torch.equal(*generated)

    rounded = {key: value.to(dtype).float() for key, value in ours.items()}
    save_file(rounded, tmp_path / "rounded.safetensors")
    lines = tmp_path / "eval.jsonl"
    tools("ds-run", tmp_path / "m.dsplan", "--data", tmp_path / "data.safetensors", "--eval", "--weights", tmp_path / "rounded.safetensors",
          "--metrics", lines, "--quiet")
    evaluated = [json.loads(line)["eval_loss"] for line in lines.read_text().splitlines() if "eval_loss" in line]
    assert evaluated == [pytest.approx(loss, rel=1e-5)]


def test_a_class_that_got_new_names_goes_back(tools, tmp_path):
    """ViT's parameters have other names than its files: weights come from them, and go back."""
    torch.manual_seed(0)
    model = transformers.ViTForImageClassification(transformers.ViTConfig(hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                                                          num_attention_heads=2, image_size=16, patch_size=8))
    model.save_pretrained(tmp_path / "vit")
    names = load_file(tmp_path / "vit" / "model.safetensors").keys()
    assert "vit.encoder.layer.0.attention.attention.key.weight" in names and "vit.layers.0.attention.k_proj.weight" in dict(model.named_parameters())
    assert exporter.main([str(tmp_path / "vit"), "--no-weights", "--out", str(tmp_path / "onnx")]) == 0
    tools("ds-opt", "compile", tmp_path / "onnx", "--config", write_config(tmp_path / "c.json", 2), "--weights", tmp_path / "vit",
          "-o", tmp_path / "m.dsplan")
    save_file({"pixel_values": torch.randn(2, 3, 16, 16), "labels": torch.tensor([0, 1])}, tmp_path / "data.safetensors")
    for steps, out in ((0, "before"), (1, "after")):
        tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", steps, "--export", tmp_path / f"{out}.safetensors")
        tools("ds-run", "export", tmp_path / f"{out}.safetensors", "--hf", tmp_path / out, "--like", tmp_path / "vit")
        loaded, info = transformers.ViTForImageClassification.from_pretrained(tmp_path / out, output_loading_info=True)
        assert not info["missing_keys"] and not info["unexpected_keys"] and load_file(tmp_path / out / "model.safetensors").keys() == names
        ours = load_file(tmp_path / f"{out}.safetensors")
        assert all(torch.equal(value, ours[name]) for name, value in loaded.state_dict().items())
        assert all(torch.equal(value, ours[name]) == (out == "before") for name, value in model.state_dict().items() if "k_proj.bias" not in name)


def test_export_refusals(gpt2, tools, tmp_path):
    folder, plan, data = gpt2
    tools("ds-run", plan, "--data", data, "--steps", 1, "--weights", folder, "--export", tmp_path / "w.safetensors", "--quiet")
    llama = saved(tmp_path, "llama")
    message = tools.refused("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "out", "--like", llama)
    # lm_head.weight is another name of the tied one.
    assert f"--like {llama} has no place for 27 of the 28 tensors" in message and not (tmp_path / "out").exists()
    tools("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "out", "--like", folder)
    message = tools.refused("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "out", "--like", folder)
    assert "is there already" in message
    (tmp_path / "empty").mkdir()
    assert "has no config.json" in tools.refused("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "o", "--like", tmp_path / "empty")
    assert "holds no checkpoint" in tools.refused("ds-run", "export", tmp_path / "empty", "-o", tmp_path / "f.safetensors")
    assert "needs -o FILE, --hf" in tools.refused("ds-run", "export", tmp_path / "empty", code=2)


def test_export_follows_the_folder(gpt2, tools, tmp_path):
    """A tied weight under both names, float16, tensors that the training does not know, files beside; nothing else of the folder."""
    folder, plan, data = gpt2
    tools("ds-run", plan, "--data", data, "--steps", 1, "--weights", folder, "--export", tmp_path / "w.safetensors", "--quiet")
    ours = load_file(tmp_path / "w.safetensors")
    like, mask = tmp_path / "like", torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
    like.mkdir()
    tied = ours["transformer.wte.weight"] = ours.pop("lm_head.weight")
    other = {name.removeprefix("transformer."): torch.zeros_like(value).half() for name, value in ours.items()}
    assert "wte.weight" in other
    save_file(other | {"lm_head.weight": torch.zeros_like(tied).half(), "h.0.attn.bias": mask}, like / "model.safetensors")
    for name in ("config.json", "vocab.json", "merges.txt", "tokenizer.model", "chat_template.jinja"):
        (like / name).write_text(f"{{}} {name}")
    (like / "optimizer.pt").write_text("not a weight of the model")
    (tmp_path / "out").mkdir()  # an empty one is as none
    done = tools("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "out", "--like", like)
    assert f"tensors that are no part of the run are as they were in {like}: h.0.attn.bias\n" in done.stderr
    assert f'names in {like} lack the model\'s "transformer."' in done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in like.iterdir()} - {"optimizer.pt"}
    written = load_file(tmp_path / "out" / "model.safetensors")
    assert torch.equal(written.pop("h.0.attn.bias"), mask) and torch.equal(written.pop("lm_head.weight"), tied.half())
    assert written.keys() == other.keys()
    assert all(torch.equal(written[name], ours["transformer." + name].half()) for name in written)

    save_file(ours | {"transformer.ln_f.bias": torch.full_like(ours["transformer.ln_f.bias"], 70000.0)}, tmp_path / "large.safetensors")
    message = tools.refused("ds-run", "export", tmp_path / "large.safetensors", "--hf", tmp_path / "no", "--like", like)
    assert "ln_f.bias has a value in" in message and "too large for F16" in message
    assert not (tmp_path / "no").exists() and not (tmp_path / "no.part").exists()


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def misshape(path):
    weights = load_file(path)
    weights["transformer.ln_f.bias"] = torch.zeros(31)
    save_file(weights, path)


@pytest.mark.parametrize("damage, word", [
    (cut, "model.safetensors"), (misshape, "ln_f.bias"), (lambda path: path.write_text("{}"), "model.safetensors"),
    (lambda path: path.unlink(), "safetensors")], ids=["cut", "misshaped", "no safetensors", "missing"])
def test_damaged_folders(damage, word, gpt2, tools, tmp_path):
    """As weights of either tool, and as what an export is like: one sentence each, and no file is left."""
    folder, plan, data = gpt2
    tools("ds-run", plan, "--data", data, "--steps", 0, "--weights", folder, "--export", tmp_path / "w.safetensors", "--quiet")
    bad = shutil.copytree(folder, tmp_path / "bad")
    damage(bad / "model.safetensors")
    for message in (tools.refused("ds-run", plan, "--data", data, "--weights", bad),
                    tools.refused("ds-opt", "compile", plan.parent / "bare", "--config", plan.parent / "c.json", "--weights", bad,
                                  "-o", tmp_path / "n.dsplan"),
                    tools.refused("ds-run", "export", tmp_path / "w.safetensors", "--hf", tmp_path / "out", "--like", bad)):
        assert f"{tmp_path.name}/bad" in message and word in message, message  # ds-opt names it from the plan's folder
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "w.safetensors"]


def test_experts_apart_are_no_weights(tools, tmp_path):
    folder = saved(tmp_path, "moe")
    tools("export.py", folder, "--seq", SEQ, "--no-weights", "--out", tmp_path / "bare")
    message = tools.refused("ds-opt", "compile", tmp_path / "bare", "--config", write_config(tmp_path / "c.json", 2), "--weights", folder,
                            "-o", tmp_path / "m.dsplan")
    assert "experts.gate_up_proj" in message and "neither in the model nor in the file that --weights names" in message
    assert "which models/export.py joins where it is not given --no-weights" in message


def test_checkpoints_are_listed_and_verified(gpt2, tools, tmp_path):
    folder, plan, data = gpt2
    tools("ds-run", plan, "--data", data, "--steps", 2, "--weights", folder, "--save", tmp_path / "run", "--save-interval", 1, "--quiet")
    listed = tools("ds-run", "checkpoint", "ls", tmp_path / "run").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:3]] == ["1", "2"] and all(line.endswith("whole") for line in listed[1:3])
    assert listed[-1] == "latest: global_step2"
    assert tools("ds-run", "checkpoint", "verify", tmp_path / "run").stdout.count(": ok\n") == 2
    shard = tmp_path / "run" / "global_step1" / "rank-00000.safetensors"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    expected = json.loads((shard.parent / "manifest.json").read_text())["files"][0]["sha256"]
    for command in (["checkpoint", "verify", tmp_path / "run"], ["export", shard.parent, "-o", tmp_path / "w.safetensors"]):
        message = tools.refused("ds-run", *command)
        assert f"{shard} is damaged: its SHA-256 is" in message and f"its manifest says {expected}" in message
    assert not (tmp_path / "w.safetensors").exists()
