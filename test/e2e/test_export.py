"""models/export.py as a user calls it, and the files that it and other exporters write."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import onnx
import onnxruntime
import pytest
import torch
import transformers

REPOSITORY = Path(__file__).resolve().parents[2]
EXPORTER = REPOSITORY / "models" / "export.py"
HAZARDS = Path(__file__).resolve().parent / "hazards"
sys.path.insert(0, str(EXPORTER.parent))

import export as exporter  # noqa: E402
from exporting import Refusal, selfcheck  # noqa: E402

ONE_LAYER = {
    "gpt2": ["--set=n_layer=1", "--set=n_embd=16", "--set=n_head=2", "--set=vocab_size=50"],
    "llama": ["--set=num_hidden_layers=1", "--set=hidden_size=16", "--set=intermediate_size=32", "--set=vocab_size=50"],
}
USER_MODULE = '''
import torch, torch.nn as nn, torch.nn.functional as F

class Net(nn.Module):
    """Tied head, frozen and unused parameters."""
    def __init__(self, smoothing, dropout, sdpa_dropout):
        super().__init__()
        self.embedding = nn.Embedding(40, 8)
        self.head = nn.Linear(8, 40, bias=False)
        self.head.weight = self.embedding.weight
        self.shift = nn.Parameter(torch.zeros(8), requires_grad=False)
        self.odd = nn.Parameter(torch.randn(8) * 0.1)
        self.unused = nn.Linear(3, 3)
        self.smoothing, self.dropout, self.sdpa_dropout = smoothing, dropout, sdpa_dropout

    def forward(self, tokens, targets):
        x = F.dropout(self.embedding(tokens) + self.shift + self.odd, self.dropout, self.training)
        heads = x.unsqueeze(1)
        x = x + F.scaled_dot_product_attention(heads, heads, heads, is_causal=True, dropout_p=self.sdpa_dropout).squeeze(1)
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten(), label_smoothing=self.smoothing)

def build(batch=2, smoothing=0.0, dropout=0.0, sdpa_dropout=0.0):
    tokens = torch.arange(batch * 6).reshape(batch, 6) % 40
    return Net(smoothing, dropout, sdpa_dropout), (tokens, tokens.clone())

class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3)
        self.norm, self.bare = nn.BatchNorm2d(4), nn.BatchNorm2d(4, affine=False)
        self.linear = nn.Linear(144, 10)

    def forward(self, x, y):
        return F.cross_entropy(self.linear(self.bare(self.norm(self.convolution(x)).relu()).flatten(1)), y)

def images():
    return Images(), {"x": torch.randn(4, 1, 8, 8), "y": torch.arange(4)}

class Wrong(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.linear, self.kind = nn.Linear(4, 4), kind

    def forward(self, x):
        y = self.linear(x)
        if self.kind == "batch": return y.reshape(2, 4).mean()
        if self.kind == "vector": return y.mean(1)
        if self.kind == "two": return y.mean(), y
        return y.mean() if y.sum() > 0 else -y.mean()  # a value decides

def wrong(kind):
    return Wrong(kind), torch.randn(2, 4)

def fails(): raise ValueError("no luck\\nsecond line")
def nothing(): return 3
'''


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """A folder with user_models.py as the current one."""
    (tmp_path / "user_models.py").write_text(USER_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "user_models", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def run(arguments, out) -> onnx.ModelProto:
    """Exports; the graph, its weights left in their file."""
    assert exporter.main([*arguments, f"--out={out}"]) == 0
    return onnx.load(out / "model.onnx", load_external_data=False)


def metadata(holder) -> dict:
    return {entry.key: entry.value for entry in holder.metadata_props}


def facts(proto) -> dict:
    """The deepstatic.* entries, parsed."""
    return {key.removeprefix("deepstatic."): json.loads(value) for key, value in metadata(proto).items()
            if key.startswith("deepstatic.")}


def weights(folder) -> dict:
    return {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(folder / "model.onnx").graph.initializer}


def refusal(capsys, arguments, out) -> str:
    """The one line that a refused export prints; nothing may be left behind."""
    before = sorted(os.listdir(out.parent))
    capsys.readouterr()  # what the test itself has printed
    assert exporter.main([*arguments, f"--out={out}"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert sorted(os.listdir(out.parent)) == before
    return lines[0]


# --- transformers' classes


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_file_holds_the_module(name, attention, tmp_path):
    proto = run([name, "--size=tiny", "--seq=8", "--seed=3", f"--attention={attention}", *ONE_LAYER[name]], tmp_path / "m")
    module = reference_module(name, attention)
    tied = {"transformer.wte.weight"} if name == "gpt2" else set()
    found = weights(tmp_path / "m")
    parameters = {key: value for key, value in module.named_parameters(remove_duplicate=False) if key not in tied}
    assert set(found) - {"model.rotary_emb.inv_freq"} == set(parameters)
    for key, value in parameters.items():
        assert found[key].tobytes() == value.detach().numpy().tobytes(), key
    assert [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input] == [["batch", 8]] * 2
    assert [v.name for v in proto.graph.input] == ["input_ids", "labels"] and [v.name for v in proto.graph.output] == ["loss"]
    session = onnxruntime.InferenceSession(tmp_path / "m" / "model.onnx")
    for batch in (1, 4):
        ids = torch.randint(50, (batch, 8))
        loss = session.run(None, {"input_ids": ids.numpy(), "labels": ids.numpy()})[0]
        assert loss == pytest.approx(module(input_ids=ids, labels=ids).loss.item(), rel=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_the_length_of_a_sample_stays_open(name, tmp_path):
    proto = run([name, "--size=tiny", "--seq=16", "--any-seq", "--seed=3", *ONE_LAYER[name]], tmp_path / "m")
    assert [[d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in proto.graph.input] == [["batch", "seq"]] * 2
    session, module = onnxruntime.InferenceSession(tmp_path / "m" / "model.onnx"), reference_module(name, "sdpa")
    for tokens in (5, 16):
        ids = torch.randint(50, (2, tokens))
        loss = session.run(None, {"input_ids": ids.numpy(), "labels": ids.numpy()})[0]
        assert loss == pytest.approx(module(input_ids=ids, labels=ids).loss.item(), rel=1e-5)


def reference_module(name, attention):
    """The tiny one-layer model of seed 3, built without the exporter's help."""
    torch.manual_seed(3)
    if name == "gpt2":
        config = transformers.GPT2Config(n_layer=1, n_embd=16, n_head=2, vocab_size=50, n_positions=128, resid_pdrop=0, embd_pdrop=0,
                                         attn_pdrop=0, attn_implementation=attention, bos_token_id=None, eos_token_id=None)
        return transformers.GPT2LMHeadModel(config).train()
    config = transformers.LlamaConfig(num_hidden_layers=1, hidden_size=16, intermediate_size=32, num_attention_heads=4,
                                      num_key_value_heads=2, vocab_size=50, max_position_embeddings=128,
                                      attn_implementation=attention, bos_token_id=None, eos_token_id=None)
    return transformers.LlamaForCausalLM(config).train()


def test_metadata_says_what_the_graph_cannot(tmp_path):
    proto = run(["gpt2", "--size=tiny", "--seq=8"], tmp_path / "m")
    said, found = facts(proto), weights(tmp_path / "m")
    assert said["model"] == {"name": "gpt2", "size": "tiny"}
    assert said["tokens"] == {"input_ids": "same", "labels": "same"}
    assert said["tied"] == [["transformer.wte.weight", "lm_head.weight"]]
    assert set(said["trainable"]) == set(said["init"]) == set(found)
    for name, rule in said["init"].items():
        values = found[name].astype(numpy.float64)
        if rule["rule"] in ("zeros", "ones"):
            assert (values == (rule["rule"] == "ones")).all(), name
        else:  # within 5 standard errors
            assert abs(values.mean() - rule["mean"]) < 5 * rule["std"] / values.size**0.5, name
            assert abs(values.std() - rule["std"]) < 5 * rule["std"] / (2 * values.size)**0.5, name
    # transformers scales the projections into the residual stream by 1 / sqrt(2 * layers)
    assert said["init"]["transformer.h.0.mlp.c_proj.weight"]["std"] == pytest.approx(0.02 / 8**0.5)
    kept = {key for node in proto.graph.node for key in metadata(node)}
    assert kept == {"pkg.torch.onnx.name_scopes", "pkg.torch.onnx.fx_node"}


def test_dropout_stays_in_training_mode(tmp_path, capsys):
    graph = run(["gpt2", "--size=tiny", "--seq=8", "--dropout=0.25", *ONE_LAYER["gpt2"]], tmp_path / "m").graph
    constants = {n.output[0]: onnx.numpy_helper.to_array(n.attribute[0].t) for n in graph.node
                 if n.op_type == "Constant" and n.attribute[0].name == "value"}
    dropouts = [node for node in graph.node if node.op_type == "Dropout"]
    assert len(dropouts) == 4  # embedding; attention, its output, the MLP's output
    for node in dropouts:
        assert constants[node.input[1]] == 0.25 and constants[node.input[2]]
    assert "relative difference" in capsys.readouterr().out


def test_without_weights_only_they_are_missing(tmp_path):
    arguments = ["llama", "--size=tiny", "--seq=8", *ONE_LAYER["llama"]]
    full, bare = run(arguments, tmp_path / "full"), run([*arguments, "--no-weights"], tmp_path / "bare")
    assert sorted(os.listdir(tmp_path / "bare")) == ["model.onnx"]
    operators = [[n.op_type for n in p.graph.node if n.op_type != "Identity"] for p in (full, bare)]
    assert operators[0] == operators[1]
    kinds = {v.name: metadata(v)["pkg.torch.export.graph_signature.InputSpec.kind"] for v in bare.graph.input}
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in bare.graph.input}
    values = weights(tmp_path / "full")
    frequencies = values.pop("model.rotary_emb.inv_freq")
    assert {name for name, kind in kinds.items() if kind == "PARAMETER"} == set(values)
    assert all(shapes[name] == list(value.shape) for name, value in values.items())
    assert [t.name for t in bare.graph.initializer] == ["model.rotary_emb.inv_freq"]
    assert onnx.numpy_helper.to_array(bare.graph.initializer[0]).tobytes() == frequencies.tobytes()
    assert facts(full) == facts(bare)


def test_weights_larger_than_half_of_the_memory_are_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "sysconf", lambda name: 4096 if name == "SC_PAGE_SIZE" else 5)  # 20 kB
    run(["llama", "--size=tiny", "--seq=8", *ONE_LAYER["llama"]], tmp_path / "m")
    assert sorted(os.listdir(tmp_path / "m")) == ["model.onnx"]
    assert "note: llama tiny needs" in capsys.readouterr().err


def test_saved_folder_keeps_its_weights_and_its_dropout(tmp_path, capsys):
    config = transformers.GPT2Config(n_layer=1, n_embd=16, n_head=2, n_positions=16, vocab_size=50, bos_token_id=0, eos_token_id=0)
    saved = transformers.GPT2LMHeadModel(config)
    saved.save_pretrained(tmp_path / "saved")
    graph = run([str(tmp_path / "saved"), "--seq=16"], tmp_path / "m").graph
    assert "dropout: resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0.1" in capsys.readouterr().out
    assert len([node for node in graph.node if node.op_type == "Dropout"]) == 4
    graph = run([str(tmp_path / "saved"), "--seq=16", "--dropout=0"], tmp_path / "m").graph
    assert weights(tmp_path / "m")["lm_head.weight"].tobytes() == saved.lm_head.weight.detach().numpy().tobytes()
    assert not [node for node in graph.node if node.op_type == "Dropout"]


def test_same_command_writes_the_same_bytes(tmp_path):
    for seed in ("1", "2"):
        subprocess.run([sys.executable, EXPORTER, "gpt2", "--size=tiny", "--seq=8", *ONE_LAYER["gpt2"], "--out", tmp_path / seed],
                       check=True, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.DEVNULL)
    for name in ("model.onnx", "model.onnx.data"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    text = (tmp_path / "1" / "model.onnx").read_bytes()
    assert b"site-packages" not in text and str(tmp_path).encode() not in text


# --- a user's own module


def test_user_module(user_module, capsys):
    proto = run(["user_models:build", "--set=dropout=0.1", "--tokens=tokens=same", "--tokens=targets=next"], user_module / "m")
    said = facts(proto)
    assert [v.name for v in proto.graph.input] == ["tokens", "targets"]
    assert said["tied"] == [["embedding.weight", "head.weight"]]
    assert said["tokens"] == {"tokens": "same", "targets": "next"}
    assert set(weights(user_module / "m")) == {"head.weight", "shift", "odd"}  # `unused` is dropped
    assert set(said["trainable"]) == {"head.weight", "odd"}
    assert said["init"]["head.weight"] == {"rule": "normal", "mean": 0, "std": 1} and said["init"]["shift"] == {"rule": "zeros"}
    assert "relative difference" in capsys.readouterr().out


def test_batch_norm_is_exported_in_training_mode(user_module, capsys):
    graph = run(["user_models:images"], user_module / "m").graph
    norms = [node for node in graph.node if node.op_type == "BatchNormalization"]
    assert [attribute.i for node in norms for attribute in node.attribute if attribute.name == "training_mode"] == [1, 1]
    assert "relative difference" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, says", [
    (["user_models:build", "--set=sdpa_dropout=0.1"], "exported as a no-op"),
    (["user_models:build", "--set=smoothing=0.1"], "label_smoothing of 0.1"),
    (["user_models:build", "--set=batch=1"], "give one size for all, 2 or more"),
    (["user_models:build", "--no-weights"], "parameter odd is not drawn by one torch.nn.init function"),
    (["user_models:build", "--tokens=nothing=same"], "expected one of tokens, targets = same or next"),
    (["user_models:wrong", "--set=kind=batch"], "instead of the symbol 'batch'"),
    (["user_models:wrong", "--set=kind=vector"], "a floating-point scalar"),
    (["user_models:wrong", "--set=kind=two"], "forward must return one value, the loss"),
    (["user_models:wrong", "--set=kind=flow"], "depends on the values of a tensor"),
    (["user_models:fails"], "raised ValueError: no luck"),
    (["user_models:nothing"], "must return (module, example_inputs), not int"),
    (["user_models:missing"], "has no function 'missing'"),
    (["no_such_models:build"], "cannot import no_such_models"),
])
def test_user_module_is_refused(arguments, says, user_module, capsys):
    assert says in refusal(capsys, arguments, user_module / "m")


# --- refusals


@pytest.mark.parametrize("arguments, says", [
    (["resnet50", "--size=18"], "sizes: tiny, 50"),
    (["resnet50", "--size=tiny", "--set=layers=3"], "unexpected keyword argument 'layers'"),
    (["vit", "--size=tiny", "--set=patch=4"], "did you mean 'patch_size'?"),
    (["nonsense"], "no folder of a saved model and no module:function"),
    (["gpt2", "--size=huge"], "sizes: tiny, small"),
    (["gpt2", "--size=tiny", "--set=n_heads=2"], "did you mean 'n_head'?"),
    (["gpt2", "--size=tiny", "--set=n_head=5"], "must be divisible by"),
    (["gpt2", "--size=tiny", "--set=n_layer=few"], "expected int, got str"),
    (["gpt2", "--size=tiny", "--dropout=0.1", "--attention=sdpa"], "give --attention eager"),
    (["gpt2", "--size=tiny", "--set=n_positions=16", "--seq=17"], "exceeds the model's n_positions of 16"),
    (["."], "holds no readable config.json"),
])
def test_refused(arguments, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert says in refusal(capsys, arguments, tmp_path / "m")


@pytest.mark.parametrize("arguments", [
    ["gpt2"], ["gpt2", "--out=m", "--dropout=1"], ["gpt2", "--out=m", "--set=key"], ["gpt2", "--out=m", "--bogus"],
    ["gpt2", "--out=m", "--tokens=labels=next"], ["a.b:c", "--out=m", "--seq=3"], [".", "--out=m", "--size=tiny"],
    ["vit", "--out=m", "--seq=3"], ["vit", "--out=m", "--any-seq"], ["gpt2", "--out=m", "--any-seq", "--packed"], ["a.b:c", "--out=m", "--any-seq"],
    ["resnet50", "--out=m", "--dropout=0.1"],
])
def test_wrong_usage_is_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as exit:
        exporter.main(arguments)
    error = capsys.readouterr().err
    assert exit.value.code == 2 and error.startswith("error: ") and error.count("\n") == 1


def test_unfinished_saved_models_are_refused(tmp_path, capsys):
    config = transformers.GPT2Config(n_layer=1, n_embd=16, n_head=2, n_positions=16, vocab_size=50, bos_token_id=0, eos_token_id=0)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "saved")
    config.n_layer = 2
    config.save_pretrained(tmp_path / "saved")
    assert "has no weights for transformer.h.1" in refusal(capsys, [str(tmp_path / "saved"), "--seq=8"], tmp_path / "m")
    (tmp_path / "saved" / "model.safetensors").write_bytes(b"junk")
    assert "header" in refusal(capsys, [str(tmp_path / "saved"), "--seq=8"], tmp_path / "m")
    transformers.T5Config().save_pretrained(tmp_path / "saved")
    assert "transformers has no class '' (architectures); save the model with save_pretrained" in refusal(capsys, [str(tmp_path / "saved")], tmp_path / "m")


def test_failed_export_leaves_the_previous_one(tmp_path, monkeypatch, capsys):
    run(["gpt2", "--size=tiny", "--seq=8", *ONE_LAYER["gpt2"]], tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    monkeypatch.setattr(selfcheck, "_torch_loss", lambda model, inputs: 1.0)
    assert "the exported file computes loss" in refusal(capsys, ["gpt2", "--size=tiny", "--seq=8", *ONE_LAYER["gpt2"]], tmp_path / "m")
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


# --- files of other exporters, which the importer's tests read


def hazard(name):
    return onnx.load(HAZARDS / name / "model.onnx", load_external_data=False).graph


def test_hazard_files_are_small_and_name_no_machine():
    for folder in (path for path in HAZARDS.iterdir() if (path / "model.onnx").exists()):
        content = [path.read_bytes() for path in folder.iterdir()]
        assert sum(map(len, content)) < 100 * 1024, folder.name
        assert not any(word in text for text in content for word in (b"stack_trace", b"site-packages", b'File "', b"/usr/", b"/tmp/"))


def test_hazard_files_show_their_hazard():
    good = {t.name for t in hazard("good-gpt2").initializer}
    assert len(good - {t.name for t in hazard("optimized").initializer}) == 9
    assert any(t.name.startswith("onnx::MatMul_") for t in hazard("torchscript-folded").initializer)
    lost = [n for n in hazard("attention-dropout-lost").node if n.op_type == "Dropout" and len(n.input) == 2]
    assert len(lost) == 1 and ", 0.1), kwargs" in metadata(lost[0])["pkg.torch.onnx.fx_node"]
    assert "None, 1, -100, 0.1)" in metadata(hazard("label-smoothing-lost").node[-1])["pkg.torch.onnx.fx_node"]
    assert hazard("batch-fixed-at-1").input[0].type.tensor_type.shape.dim[0].dim_value == 1


@pytest.mark.parametrize("name", ["optimized", "attention-dropout-lost", "label-smoothing-lost"])
def test_exporter_refuses_what_it_lost(name):
    """Our own checks see in these files what the importer must see."""
    graph = hazard(name)
    if name == "optimized":
        assert "transformer.h.0.ln_2.weight" not in selfcheck.parameter_names(graph)
    else:
        with pytest.raises(Refusal):
            selfcheck.check_nothing_lost(graph)
