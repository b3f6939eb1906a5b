"""Weights apart from the model file: safetensors, one file or several with an index, and files that are not whole."""

import json
import shutil

import numpy
import onnx
import pytest
from conftest import write_config
from safetensors.numpy import load_file, save_file

SEQ, MICRO = 8, 2
OPTIONS = ["--size", "tiny", "--seq", SEQ, "--set", "n_layer=1"]
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def model(tools, exported, tmp_path_factory):
    """(export with weights, export without, the weights, config, data, losses of the first)"""
    full, bare = exported("gpt2", *OPTIONS), exported("gpt2", *OPTIONS, "--no-weights")
    place = tmp_path_factory.mktemp("weights")
    tokens = numpy.random.default_rng(0).integers(0, 256, (4 * MICRO, SEQ))
    save_file({"input_ids": tokens, "labels": tokens}, place / "data.safetensors")
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(full / "model.onnx").graph.initializer}
    config = write_config(place / "c.json", MICRO)
    tools("ds-opt", "compile", full, "--config", config, "-o", place / "full.dsplan")
    lines, _ = tools.train(place / "full.dsplan", place / "data.safetensors", 3)
    return full, bare, weights, config, place / "data.safetensors", [line["loss"] for line in lines]


def write_shards(folder, weights, count=3):
    """As save_pretrained does: model-0000k-of-0000n.safetensors and their index."""
    folder.mkdir()
    where = {}
    for i in range(count):
        name = f"model-{i + 1:05}-of-{count:05}.safetensors"
        part = {key: weights[key] for key in sorted(weights)[i::count]}
        save_file(part, folder / name)
        where |= dict.fromkeys(part, name)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": where}))
    return folder


def losses(tools, plan, data, *options):
    return [line["loss"] for line in tools.train(plan, data, 3, *options)[0]]


@pytest.mark.parametrize("how", ["file", "index", "folder"])
def test_compiling_with_weights(how, model, tools, tmp_path):
    """A file without weights, compiled with those of a safetensors file, trains as the file that holds them."""
    _, bare, weights, config, data, expected = model
    shards = write_shards(tmp_path / "shards", weights)
    save_file(weights, tmp_path / "all.safetensors")
    given = {"file": tmp_path / "all.safetensors", "index": shards / INDEX, "folder": shards}[how]
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", bare, "--config", config, "--weights", given, "-o", plan)
    assert losses(tools, plan, data) == expected


@pytest.mark.parametrize("how", ["file", "index", "folder"])
def test_running_with_weights(how, model, tools, tmp_path):
    _, bare, weights, config, data, expected = model
    shards = write_shards(tmp_path / "shards", weights)
    save_file(weights, tmp_path / "all.safetensors")
    given = {"file": tmp_path / "all.safetensors", "index": shards / INDEX, "folder": shards}[how]
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", bare, "--config", config, "-o", plan)
    assert losses(tools, plan, data, "--weights", given) == expected


def test_rules_draw_what_is_left_out(model, tools, tmp_path):
    """Without weights, ds-run draws them by the exporter's rules, from its seed."""
    _, bare, weights, config, data, _ = model
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", bare, "--config", config, "--set", "optimizer.params.lr=0", "-o", plan)
    drawn = []
    for seed in (1, 2):
        tools.train(plan, data, 1, "--seed", seed, "--export", tmp_path / "w.safetensors")
        drawn.append(load_file(tmp_path / "w.safetensors"))
    for name, value in drawn[0].items():
        other = weights[name].astype(float)
        if other.std() == 0:  # zeros, ones
            assert numpy.array_equal(value, weights[name]), name
        else:
            assert not numpy.array_equal(value, drawn[1][name]), name
            assert value.std() == pytest.approx(other.std(), rel=0.2), name


def test_undefined_names_are_looked_up(model, tools, tmp_path):
    """torch's export_params=False: initializers are neither there nor inputs, their names and shapes are the other file's."""
    full, _, weights, config, data, expected = model
    proto = onnx.load(full / "model.onnx")
    kept = [t for t in proto.graph.initializer if "." not in t.name]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    onnx.save(proto, tmp_path / "m.onnx")
    shards = write_shards(tmp_path / "shards", weights)
    tools("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "--weights", shards, "-o", tmp_path / "m.dsplan")
    assert losses(tools, tmp_path / "m.dsplan", data) == expected
    message = tools.refused("ds-opt", "compile", tmp_path / "m.onnx", "--config", config, "-o", tmp_path / "n.dsplan")
    assert "no input, initializer or node defines" in message and "--weights" in message


def test_missing_shard(model, tools, tmp_path):
    _, bare, weights, config, data, _ = model
    shards = write_shards(tmp_path / "shards", weights)
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", bare, "--config", config, "-o", plan)
    lost = "model-00002-of-00003.safetensors"
    (shards / lost).unlink()
    message = tools.refused("ds-opt", "compile", bare, "--config", config, "--weights", shards / INDEX, "-o", tmp_path / "n.dsplan")
    assert f"{INDEX}' names '{lost}', which is not beside it" in message and "all of its 3 files" in message
    message = tools.refused("ds-run", plan, "--data", data, "--weights", shards)
    assert lost in message and "needs all of its files" in message


@pytest.mark.parametrize("content, words", [
    ("[]", ["no \"weight_map\""]), ("{", ["index.json"]), ('{"weight_map": {"a": "../a.safetensors"}}', ["'../a.safetensors'", "no file's name"]),
    ('{"weight_map": {"a": 3}}', ["'a'", "no file's name"]),
    ('{"weight_map": {"a": "model-00001-of-00003.safetensors"}}', ["tensor 'a'", "does not"]),
])
def test_bad_index(content, words, model, tools, tmp_path):
    _, bare, weights, config, _, _ = model
    shards = write_shards(tmp_path / "shards", weights)
    (shards / INDEX).write_text(content)
    message = tools.refused("ds-opt", "compile", bare, "--config", config, "--weights", shards, "-o", tmp_path / "m.dsplan")
    assert all(word in message for word in words), message


def test_folder_without_weights(model, tools, tmp_path):
    _, bare, _, config, _, _ = model
    (tmp_path / "empty").mkdir()
    message = tools.refused("ds-opt", "compile", bare, "--config", config, "--weights", tmp_path / "empty", "-o", tmp_path / "m.dsplan")
    assert "empty" in message and "model.safetensors" in message


def test_nan_in_weights(model, tools, tmp_path):
    """Named with its element, from the file of --weights as from the model's own."""
    full, bare, weights, config, data, _ = model
    bad = {name: value.copy() for name, value in weights.items()}
    name = "transformer.h.0.mlp.c_fc.weight"
    bad[name].flat[77] = numpy.nan
    save_file(bad, tmp_path / "bad.safetensors")
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", full, "--config", config, "-o", plan)
    message = tools.refused("ds-run", plan, "--data", data, "--weights", tmp_path / "bad.safetensors")
    assert f"parameter {name} is NaN at element 77" in message and "--weights" in message
    folder = shutil.copytree(full, tmp_path / "model")
    proto = onnx.load(folder / "model.onnx")
    for tensor in proto.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(onnx.numpy_helper.from_array(bad[name], name))
    onnx.save(proto, folder / "model.onnx")
    tools("ds-opt", "compile", folder, "--config", config, "-o", plan)
    assert f"parameter {name} is NaN at element 77" in tools.refused("ds-run", plan, "--data", data)


def test_one_output_of_several(model, tools, tmp_path):
    """The only float scalar is the loss, or the one of that name; where none has it, --loss names one."""
    full, _, _, config, data, expected = model
    folder = shutil.copytree(full, tmp_path / "model")
    proto = onnx.load(folder / "model.onnx", load_external_data=False)
    logits = next(n for n in proto.graph.node if n.op_type == "SoftmaxCrossEntropyLoss").input[0]
    proto.graph.output.insert(0, onnx.helper.make_tensor_value_info(logits, 1, None))
    onnx.save(proto, folder / "model.onnx")
    plan = tmp_path / "m.dsplan"
    tools("ds-opt", "compile", folder, "--config", config, "-o", plan)
    assert losses(tools, plan, data) == expected
    proto.graph.node.append(onnx.helper.make_node("Mul", ["loss", "loss"], ["square"]))
    proto.graph.output.append(onnx.helper.make_tensor_value_info("square", 1, []))
    onnx.save(proto, folder / "model.onnx")
    tools("ds-opt", "compile", folder, "--config", config, "-o", plan)
    assert losses(tools, plan, data) == expected
    proto.graph.node.append(onnx.helper.make_node("Identity", ["loss"], ["mean"]))
    next(output for output in proto.graph.output if output.name == "loss").name = "mean"
    onnx.save(proto, folder / "model.onnx")
    message = tools.refused("ds-opt", "compile", folder, "--config", config, "-o", plan)
    assert "2 float outputs of rank 0" in message and "--loss NAME" in message
    tools("ds-opt", "compile", folder, "--config", config, "--loss", "mean", "-o", plan)
    assert losses(tools, plan, data) == expected
    tools("ds-opt", "compile", folder, "--config", config, "--loss", "square", "-o", plan)
    assert losses(tools, plan, data)[0] == pytest.approx(expected[0]**2, rel=1e-6)
    assert "'lost' is no output" in tools.refused("ds-opt", "compile", folder, "--config", config, "--loss", "lost", "-o", plan)
