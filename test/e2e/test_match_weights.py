"""Models that torch.onnx.export's optimizer rewrote (optimize=True, its default): with --weights FOLDER parameters are found by their values."""

import subprocess
import sys

import numpy
import onnx
import pytest
import torch
import transformers
from conftest import FOLDERS, write_config
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file, save_file

VOCABULARY, TOKENS = 64, 16
SETTINGS = dict(vocab_size=VOCABULARY, use_cache=False, bos_token_id=1, eos_token_id=2, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                num_attention_heads=4, max_position_embeddings=TOKENS)


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **SETTINGS))


def tied_gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=TOKENS, use_cache=False,
                                                                attn_pdrop=0, embd_pdrop=0, resid_pdrop=0, bos_token_id=1, eos_token_id=2))


def neox():
    return transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**SETTINGS))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """exported(build) -> folder with saved/, plain/ and optimized/, of a fresh model: all its norm scales are ones, its biases zeros."""
    folders = {}

    def export(build):
        if build not in folders:
            folder = folders[build] = tmp_path_factory.mktemp(build.__name__)
            torch.manual_seed(0)
            module = build().train()
            module.save_pretrained(folder / "saved")
            for name, optimize in (("plain", False), ("optimized", True)):
                (folder / name).mkdir()
                torch.onnx.export(module, (), folder / name / "model.onnx", kwargs={"input_ids": torch.randint(0, VOCABULARY, (2, TOKENS))},
                                  dynamo=True, optimize=optimize, external_data=True, dynamic_shapes={"input_ids": {0: torch.export.Dim("batch")}},
                                  output_names=["logits"], verbose=False)
        return folders[build]
    return export


@pytest.mark.parametrize("build,merged", [(llama, 4), (tied_gpt2, 8)])
def test_an_optimized_model_trains_as_the_one_that_was_not(exported, tools, tmp_path, build, merged):
    """Merged norm scales are one parameter each again, transposed weights have PyTorch's layout, biases of zeros are there."""
    folder = exported(build)
    initializers = {tensor.name for tensor in onnx.load(folder / "optimized" / "model.onnx", load_external_data=False).graph.initializer}
    config = write_config(tmp_path / "c.json", 2)
    ids = torch.randint(0, VOCABULARY, (8, TOKENS), generator=torch.Generator().manual_seed(2))
    save_file({"input_ids": ids, "labels": ids.clone()}, tmp_path / "data.safetensors")
    after, losses = {}, {}
    for name in ("plain", "optimized"):
        plan, out = tmp_path / f"{name}.dsplan", tmp_path / f"{name}.safetensors"
        done = tools("ds-opt", "compile", folder / name, "--config", config, "--attach-loss", "causal-lm", "--weights", folder / "saved", "-o", plan)
        assert ("were found in" in done.stderr) == (name == "optimized")
        tools("ds-opt", "verify", plan, "--model", folder / name, "--config", config, "--weights", folder / "saved")
        lines, _ = tools.train(plan, tmp_path / "data.safetensors", 4, "--threads", 1, "--export", out)
        losses[name], after[name] = [line["loss"] for line in lines], load_file(out)
    saved = load_file(folder / "saved" / "model.safetensors")
    assert set(after["optimized"]) == set(saved) and len(set(saved) - initializers) >= merged  # the file has lost that many names
    numpy.testing.assert_allclose(losses["optimized"], losses["plain"], rtol=1e-6)
    plain = {"transformer.wte.weight" if name == "lm_head.weight" and name not in saved else name: value for name, value in after["plain"].items()}
    for name, value in after["optimized"].items():
        rounding = "attn.c_attn.bias" in name  # a third of it has no true gradient, and Adam walks
        assert value.shape == saved[name].shape and (value - plain[name]).abs().max() < (5e-3 if rounding else 1e-5), name
    scales = [value for name, value in after["optimized"].items() if "norm" in name or "ln_" in name and name.endswith("weight")]
    assert len({value.numpy().tobytes() for value in scales}) == len(scales)


@pytest.mark.parametrize("build,change", [(llama, "base model"), (tied_gpt2, "base model"), (llama, "wrapped")])
def test_names_of_the_weights_may_differ_by_a_prefix(exported, tools, tmp_path, build, change):
    """Fresh norm scales are all ones, so that values alone could not tell them apart."""
    folder, config = exported(build), write_config(tmp_path / "c.json", 2)
    prefix = "model." if build == llama else "transformer."
    weights = load_file(folder / "saved" / "model.safetensors")
    save_file({name.removeprefix(prefix) if change == "base model" else "module." + name: value for name, value in weights.items()},
              tmp_path / "model.safetensors")
    common = ("ds-opt", "compile", folder / "optimized", "--config", config, "--attach-loss", "causal-lm")
    tools(*common, "--weights", folder / "saved", "-o", tmp_path / "a.dsplan")
    done = tools(*common, "--weights", tmp_path / "model.safetensors", "-o", tmp_path / "b.dsplan")
    wanted = f'lack the model\'s "{prefix}"' if change == "base model" else 'begin with "module.", the model\'s do not'
    assert f"; names in {tmp_path / 'model.safetensors'} {wanted}" in done.stderr, done.stderr
    ids = torch.randint(0, VOCABULARY, (4, TOKENS), generator=torch.Generator().manual_seed(2))
    save_file({"input_ids": ids, "labels": ids.clone()}, tmp_path / "data.safetensors")
    for name in "ab":
        tools.train(tmp_path / f"{name}.dsplan", tmp_path / "data.safetensors", 2, "--threads", 1, "--export", tmp_path / f"{name}.safetensors")
    a, b = load_file(tmp_path / "a.safetensors"), load_file(tmp_path / "b.safetensors")
    assert set(a) == set(b) == set(weights) and all(torch.equal(a[name], b[name]) for name in a)


def test_without_weights_it_is_refused_with_both_ways_out(exported, tools, tmp_path):
    sentence = tools.refused("ds-opt", "compile", exported(llama) / "optimized", "--config", write_config(tmp_path / "c.json", 2))
    assert "the exporter optimized this model" in sentence and "optimize=False" in sentence and "--weights FOLDER" in sentence


def test_weights_of_another_model_are_refused_by_name(exported, tools, tmp_path):
    weights = load_file(exported(llama) / "saved" / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][3, 4] += 1e-3
    save_file(weights, tmp_path / "other.safetensors")
    sentence = tools.refused("ds-opt", "compile", exported(llama) / "optimized", "--config", write_config(tmp_path / "c.json", 2), "--weights",
                             tmp_path / "other.safetensors")
    assert "1 of 21 parameters are not in it with the values of" in sentence and "'model.layers.1.mlp.up_proj.weight'" in sentence
    assert "give the weights that this very model was exported with, or export with optimize=False" in sentence


def test_nodes_that_equal_parameters_made_one_are_refused(exported, tools, tmp_path):
    """GPT-NeoX norms one value twice; with equal scales the optimizer keeps one of the two nodes."""
    folder = exported(neox)
    sentence = tools.refused("ds-opt", "compile", folder / "optimized", "--config", write_config(tmp_path / "c.json", 2), "--weights", folder / "saved")
    assert "post_attention_layernorm" in sentence and "has the same values, and may stand for both" in sentence


def folded_file(path, names):
    """What TorchScript's constant folding leaves: a transposed weight under the name of a value."""
    w = numpy.random.default_rng(0).normal(size=(3, 5)).astype(numpy.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["logits"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)], [numpy_helper.from_array(w, "onnx::MatMul_7")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path / "m.onnx")
    save_file({name: torch.from_numpy(w.T.copy()) for name in names}, path / "w.safetensors")
    return "ds-opt", "compile", path / "m.onnx", "--config", write_config(path / "c.json", 2), "--attach-loss", "classification"


def test_a_folded_weight_is_found_by_its_values_alone(tools, tmp_path):
    command = folded_file(tmp_path, ["head.weight"])
    assert "--weights FOLDER gives those their names" in tools(*command, "-o", tmp_path / "m.dsplan").stderr
    tools(*command, "--weights", tmp_path / "w.safetensors", "-o", tmp_path / "m.dsplan")
    save_file({"x": torch.randn(4, 3), "labels": torch.randint(0, 5, (4,))}, tmp_path / "data.safetensors")
    tools.train(tmp_path / "m.dsplan", tmp_path / "data.safetensors", 2, "--export", tmp_path / "after.safetensors")
    assert {name: list(value.shape) for name, value in load_file(tmp_path / "after.safetensors").items()} == {"head.weight": [5, 3]}


def test_a_weight_that_several_were_folded_into_is_not_frozen(tools, tmp_path):
    """As a batch normalization in a convolution, whose bias alone is in the file with its values."""
    command = folded_file(tmp_path, ["head.weight"])
    proto = onnx.load(tmp_path / "m.onnx")
    proto.graph.node[0].input[0] = "h"
    proto.graph.node.insert(0, helper.make_node("MatMul", ["x", "onnx::Conv_9"], ["h"]))
    proto.graph.initializer.append(numpy_helper.from_array(numpy.full((3, 3), 0.5, numpy.float32), "onnx::Conv_9"))
    onnx.save(proto, tmp_path / "m.onnx")
    said = tools(*command, "--weights", tmp_path / "w.safetensors", "-o", tmp_path / "m.dsplan").stderr
    assert "1 weights have lost their names, since the exporter folded constants into them, and train as they stand: 'onnx::Conv_9'" in said


WIDE = 512  # a weight of 1 MiB


def peak_bytes(folder, count):
    """Of ds-opt import, for a file of `count` weights that were transposed and renamed."""
    folder.mkdir()
    generator = numpy.random.default_rng(0)
    weights = [generator.normal(size=(WIDE, WIDE)).astype(numpy.float32) for _ in range(count)]
    nodes = [helper.make_node("MatMul", [f"x{i}", f"onnx::MatMul_{i}"], [f"x{i + 1}"]) for i in range(count)]
    nodes.append(helper.make_node("ReduceMean", [f"x{count}"], ["loss"], keepdims=0))
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [2, WIDE])],
                              [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])],
                              [numpy_helper.from_array(w, f"onnx::MatMul_{i}") for i, w in enumerate(weights)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx",
              save_as_external_data=True, location="m.data")
    save_file({f"layer.{i}.weight": torch.from_numpy(w.T.copy()) for i, w in enumerate(weights)}, folder / "w.safetensors")
    command = [FOLDERS["ds-opt"] / "ds-opt", "import", folder / "m.onnx", "--weights", folder / "w.safetensors", "-o", folder / "out.mlir"]
    # A child's peak counts that of the process it was forked from, so a small one starts it.
    measure = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-S", "-c", measure, *map(str, command)], capture_output=True, text=True, timeout=300, check=True)
    assert (folder / "out.mlir").read_text().count("train.variable") == count
    return int(done.stdout) * 1024


def test_matching_holds_no_more_than_the_largest_weights(tmp_path):
    """30 MiB of weights, and as many in the model, beside 3 of each."""
    assert peak_bytes(tmp_path / "many", 30) - peak_bytes(tmp_path / "few", 3) < 8 * 4 * WIDE * WIDE


def test_values_that_two_tensors_have_are_refused_by_name(tools, tmp_path):
    sentence = tools.refused(*folded_file(tmp_path, ["a.weight", "b.weight"]), "--weights", tmp_path / "w.safetensors")
    assert "reads 'onnx::MatMul_7', whose values 2 tensors of" in sentence and "'a.weight', 'b.weight'" in sentence
