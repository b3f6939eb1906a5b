"""What `ds-opt compile` must refuse: one sentence that names the thing and says what would work, and nothing left behind."""

import random
import shutil
import subprocess
from pathlib import Path

import numpy
import onnx
import pytest
from conftest import FOLDERS, write_config
from onnx import TensorProto, helper, numpy_helper
from onnx_models import Graph
from plan_files import read_plan

HAZARDS = Path(__file__).resolve().parent / "hazards"
MUTATIONS = 100  # of each kind and model


@pytest.fixture
def config(tmp_path):
    return write_config(tmp_path / "ds_config.json", micro=2)


@pytest.fixture
def refusal(tools, config, tmp_path):
    """refusal(model, *options) -> the sentence; checks that no file, whole or half, is left."""
    def refuse(model, *options, config=config, code=1):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        message = tools.refused("ds-opt", "compile", model, "--config", config, "-o", out / "m.dsplan", *options, code=code)
        assert not list(out.iterdir())
        assert "\n" not in message and message.isprintable()
        return message
    return refuse


def small(**more):
    """A graph with one parameter, and its value."""
    graph = Graph(**more)
    return graph, graph.parameter("layer.weight", numpy.arange(1.0, 7.0).reshape(2, 3))


def finished(graph, value, folder) -> Path:
    graph.terms.append(graph.sum(value))
    return graph.write(folder)


def edited(folder, change, source="good-gpt2") -> Path:
    """A copy of a good model after change(proto)."""
    target = folder / "model"
    shutil.copytree(HAZARDS / source, target)
    proto = onnx.load(target / "model.onnx", load_external_data=False)
    change(proto)
    (target / "model.onnx").write_bytes(proto.SerializeToString())
    return target


def says(message, *parts):
    for part in parts:
        assert part in message, message


# --- what exporters lose


@pytest.mark.parametrize("folder, more, parts", [
    ("attention-dropout-lost", "dropout-mode", ["node_Dropout", "attention dropout of ratio 0.1", 'attn_implementation="eager"', "--dropout="]),
    ("batch-fixed-at-1", "fixed-batch", ["'input_ids'", "fixed at 1", "micro-batch is 2", "dynamic_shapes"]),
    ("batch-norm-lost", "batch-norm-mode",
     ["'node__native_batch_norm_legit_functional__", "BatchNormalization", "inference mode", "--batch-norm=as-written|train"]),
    ("label-smoothing-lost", "label-smoothing", ["node_cross_entropy_loss", "label_smoothing=0.1", "label_smoothing=0"]),
    ("optimized", "optimized-export", ["10 of 17 parameters", "'transformer.wte.weight'", "optimize=False"]),
])
def test_hazards(folder, more, parts, refusal, tools):
    says(refusal(HAZARDS / folder), f"; ds-opt explain {more} says more", *parts)
    assert tools("ds-opt", "explain", more).stdout.startswith(f"{more}\n")


@pytest.mark.parametrize("folder", ["good-gpt2", "good-llama", "torchscript-gpt2", "torchscript-llama"])
def test_good_files_compile(folder, tools, config, tmp_path):
    tools("ds-opt", "compile", HAZARDS / folder, "--config", config, "-o", tmp_path / "m.dsplan")


def test_folded_weights_train_as_they_stand(tools, config, tmp_path):
    said = tools("ds-opt", "compile", HAZARDS / "torchscript-folded", "--config", config, "-o", tmp_path / "m.dsplan").stderr
    assert "weights have lost their names" in said and "ds-opt explain folded-constants says more" in said
    assert tools("ds-opt", "explain", "folded-constants").stdout.startswith("folded-constants\n")


@pytest.mark.parametrize("mode", ["as-written", "force", "off"])
def test_lost_dropout_by_choice(mode, tools, config, tmp_path):
    tools("ds-opt", "compile", HAZARDS / "attention-dropout-lost", "--config", config, "--dropout", mode, "-o", tmp_path / "m.dsplan")


@pytest.mark.parametrize("mode", ["as-written", "train"])
def test_lost_batch_norm_by_choice(mode, tools, config, tmp_path):
    arguments = ["ds-opt", "compile", HAZARDS / "batch-norm-lost", "--config", config, "--batch-norm", mode]
    assert ("train.batch_norm" in tools(*arguments, "--emit", "train").stdout) == (mode == "train")
    tools(*arguments, "-o", tmp_path / "m.dsplan")


# --- damaged files


def damage(kind, data, generator) -> bytes:
    data = bytearray(data)
    if kind == "truncated":
        return bytes(data[:generator.randrange(len(data))])
    if kind == "bits":
        for _ in range(generator.choice([1, 1, 2, 8])):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    else:  # a run of bytes taken out or doubled
        at, length = generator.randrange(len(data)), generator.randrange(1, 64)
        data[at:at + length] = data[at:at + length] * generator.choice([0, 2])
    return bytes(data)


@pytest.mark.parametrize("kind", ["truncated", "bits", "bytes"])
@pytest.mark.parametrize("source", ["good-gpt2", "small"])
def test_damaged_model(kind, source, config, tmp_path):
    """Refused in one line or, where the damage hit a name or a number, compiled; never a crash."""
    folder, out = tmp_path / "model", tmp_path / "out"
    out.mkdir()
    if source == "small":
        folder.mkdir()
        graph, weight = small()
        finished(graph, graph.op("Gather", graph.op("Pad", weight, graph.ints(0, 1, 0, 0)), graph.ints(1, 0)), folder)
    else:
        shutil.copytree(HAZARDS / source, folder)
    whole = (folder / "model.onnx").read_bytes()
    generator = random.Random(f"{kind} {source}")
    refused = 0
    for number in range(MUTATIONS):
        (folder / "model.onnx").write_bytes(damage(kind, whole, generator))
        done = subprocess.run([FOLDERS["ds-opt"] / "ds-opt", "compile", folder, "--config", config, "-o", out / "m.dsplan"],
                              capture_output=True, text=True, errors="replace", timeout=60)
        assert done.returncode in (0, 1), (number, done.returncode, done.stderr[-2000:])
        if done.returncode == 0:
            (out / "m.dsplan").unlink()
        else:
            refused += 1
            lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
            assert [line.startswith("error: ") for line in lines] == [True], (number, done.stderr)
        assert not list(out.iterdir()), number
    assert refused > MUTATIONS / (20 if kind == "bits" else 2)


@pytest.mark.parametrize("content", [b"", b"\x08", b"not a model", b"PK\x03\x04" + bytes(100)], ids=["empty", "cut", "text", "zip"])
def test_no_model(content, refusal, tmp_path):
    (tmp_path / "model.onnx").write_bytes(content)
    says(refusal(tmp_path / "model.onnx"), "model.onnx")


def test_no_file(refusal, tmp_path):
    says(refusal(tmp_path / "missing.onnx"), "missing.onnx", "No such file")
    says(refusal(tmp_path), "no .onnx files")


# --- external data


def moved(**entries):
    """Changes entries of the first external tensor."""
    def change(proto):
        tensor = next(t for t in proto.graph.initializer if t.data_location == TensorProto.EXTERNAL)
        for entry in tensor.external_data:
            entry.value = str(entries.get(entry.key, entry.value))
    return change


@pytest.mark.parametrize("entries, parts", [
    ({"location": "../secret.data"}, ["'../secret.data'", "leaves the model's folder"]),
    ({"location": "a/../../b"}, ["'a/../../b'", "leaves the model's folder"]),
    ({"location": "/etc/passwd"}, ["'/etc/passwd'", "absolute"]),
    ({"location": ""}, ["location", "empty"]),
    ({"location": "."}, ["not a regular file"]),
    ({"location": "other.data"}, ["'other.data'", "No such file"]),
    ({"offset": 10**6}, ["model.onnx.data", "1000000", "has only 15488"]),
    ({"offset": 2**64 - 1}, ["model.onnx.data", "has only 15488"]),
    ({"offset": -1}, ["'-1'", "decimal"]),
    ({"offset": "0x10"}, ["'0x10'", "decimal"]),
    ({"offset": 10**30}, [f"'{10**30}'", "decimal"]),
    ({"length": 4}, ["has 4 bytes", "needs"]),
    ({"length": 10**9}, ["1000000000", "has only 15488"]),
], ids=lambda value: ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "")
def test_external_data(entries, parts, refusal, tmp_path):
    says(refusal(edited(tmp_path, moved(**entries))), *parts)


def test_external_data_missing(refusal, tmp_path):
    model = edited(tmp_path, lambda proto: None)
    (model / "model.onnx.data").unlink()
    says(refusal(model), "'model.onnx.data'", "No such file")


def test_external_data_too_short(refusal, tmp_path):
    model = edited(tmp_path, lambda proto: None)
    data = (model / "model.onnx.data").read_bytes()
    (model / "model.onnx.data").write_bytes(data[:-1])
    says(refusal(model), "initializer '", "'model.onnx.data'", "has only 15487")


@pytest.mark.parametrize("kind", ["file", "folder", "dangling"])
def test_external_data_by_symbolic_link(kind, refusal, tmp_path):
    location = "model.onnx.data" if kind != "folder" else "link/model.onnx.data"
    model = edited(tmp_path, moved(location=location))
    outside = tmp_path / "outside"
    outside.mkdir()
    (model / "model.onnx.data").rename(outside / "model.onnx.data")
    if kind == "folder":
        (model / "link").symlink_to(outside)
    else:
        (model / "model.onnx.data").symlink_to(outside / ("model.onnx.data" if kind == "file" else "nothing"))
    says(refusal(model), f"'{location}'", "symbolic link")


def test_external_data_is_a_pipe(refusal, tmp_path):
    import os
    model = edited(tmp_path, lambda proto: None)
    (model / "model.onnx.data").unlink()
    os.mkfifo(model / "model.onnx.data")
    says(refusal(model), "'model.onnx.data'", "not a regular file")


# --- what the graph asks for


def test_unknown_operator(refusal, tmp_path):
    graph, weight = small()
    says(refusal(finished(graph, graph.op("Det", graph.op("MatMul", weight, graph.op("Transpose", weight))), tmp_path)),
         "'node_2'", "Det", "opset 20", "not supported")


def test_unknown_domain(refusal, tmp_path):
    graph, weight = small()
    says(refusal(finished(graph, graph.op("FastGelu", weight, domain="com.microsoft"), tmp_path)),
         "'node_0'", "FastGelu", "com.microsoft", "default operators")


@pytest.mark.parametrize("opset, parts", [(99, ["'node_0'", "Tanh", "opset 99", "20"]), (None, ["opset"])])
def test_opset(opset, parts, refusal, tmp_path):
    graph, weight = small()
    model = finished(graph, graph.op("Tanh", weight), tmp_path)
    proto = onnx.load(model)
    del proto.opset_import[:]
    if opset:
        proto.opset_import.append(helper.make_opsetid("", opset))
    model.write_bytes(proto.SerializeToString())
    says(refusal(model), *parts)


def test_operator_younger_than_the_opset(refusal, tmp_path):
    graph, weight = small(opset=17)
    says(refusal(finished(graph, graph.op("Gelu", weight), tmp_path)), "'node_0'", "Gelu", "opset 17", "opset_version=20")


@pytest.mark.parametrize("dtype", ["FLOAT16", "BFLOAT16", "FLOAT8E4M3FN", "INT4", "COMPLEX64", "STRING"])
def test_parameter_of_another_type(dtype, refusal, tmp_path):
    graph, weight = small()
    model = finished(graph, graph.op("Cast", weight, to=TensorProto.DOUBLE), tmp_path)
    proto = onnx.load(model)
    number = getattr(TensorProto, dtype)
    tensor = TensorProto(name="layer.weight", dims=[2, 3], data_type=number)
    if dtype == "STRING":
        tensor.string_data.extend([b"1"] * 6)
    elif dtype == "COMPLEX64":
        tensor.float_data.extend([1.0] * 12)
    else:
        tensor.int32_data.extend([1] * 6)
    proto.graph.initializer[0].CopyFrom(tensor)
    model.write_bytes(proto.SerializeToString())
    says(refusal(model), "'layer.weight'", {"FLOAT8E4M3FN": "float8", "INT4": "int4"}.get(dtype, dtype.lower()), "float32 and float64")


def test_input_of_another_type(refusal, tmp_path):
    graph, weight = small()
    bytes_ = graph.input("bytes", numpy.zeros((2, 1), numpy.uint8))
    wide = graph.op("Cast", bytes_, to=TensorProto.DOUBLE)
    model = finished(graph, graph.op("Mul", weight, graph.op("ReduceSum", wide, keepdims=0)), tmp_path)
    says(refusal(model), "input 'bytes'", "uint8", "float32")


def test_cast_to_another_type(refusal, tmp_path):
    graph, weight = small()
    cast = graph.op("Cast", graph.op("Cast", weight, to=TensorProto.UINT8), to=TensorProto.DOUBLE)
    says(refusal(finished(graph, cast, tmp_path)), "'node_0'", "Cast", "uint8", "float32")


def branch(name, value):
    node = helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.array(value)))
    return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [])])


def test_control_flow(refusal, tmp_path):
    graph, weight = small()
    positive = graph.op("Greater", graph.op("ReduceSum", "x", keepdims=0), graph.constant(0.0))
    chosen = graph.op("If", positive, then_branch=branch("yes", 1.0), else_branch=branch("no", 2.0))
    says(refusal(finished(graph, graph.op("Mul", weight, chosen), tmp_path)), "'node_2'", "If", "control flow", "static")


def test_shapes_that_do_not_fit(refusal, tmp_path):
    graph, weight = small()
    says(refusal(finished(graph, graph.op("Add", weight, graph.constant(numpy.ones(4))), tmp_path)),
         "'node_0'", "Add", "[2, 3]", "[4]", "do not broadcast")


def test_products_that_do_not_fit(refusal, tmp_path):
    graph, weight = small()
    says(refusal(finished(graph, graph.op("MatMul", weight, weight), tmp_path)), "'node_0'", "MatMul", "3", "2")


@pytest.mark.parametrize("kind, attributes, parts", [
    ("Softmax", {"axis": 2}, ["axis 2", "rank 2"]),
    ("ReduceSum", {"axes": (-3,)}, ["axis -3", "rank 2"]),
    ("Concat", {"axis": 5}, ["axis 5", "rank 2"]),
    ("Transpose", {"perm": [0, 0]}, ["perm [0, 0]"]),
    ("Reshape", {"shape": (7,)}, ["[2, 3]", "[7]"]),
    ("Gather", {"indices": (3, 0)}, ["index 3", "size 2"]),
    ("Expand", {"shape": (2**40, 2**30, 3)}, ["impossible shape"]),
    ("Tile", {"repeats": (2**62, 8)}, ["impossible"]),
])
def test_impossible_nodes(kind, attributes, parts, refusal, tmp_path):
    graph, weight = small()
    lists = [graph.ints(*attributes.pop(name)) for name in list(attributes) if isinstance(attributes[name], tuple)]
    says(refusal(finished(graph, graph.op(kind, weight, *lists, **attributes), tmp_path)), "'node_0'", kind, *parts)


def broken(change):
    """A good small model after change(graph proto)."""
    def write(folder):
        graph, weight = small()
        model = finished(graph, graph.op("Exp", graph.op("Tanh", weight)), folder)
        proto = onnx.load(model)
        change(proto.graph)
        model.write_bytes(proto.SerializeToString())
        return model
    return write


def reverse_nodes(graph):
    nodes = list(graph.node)[::-1]
    del graph.node[:]
    graph.node.extend(nodes)


def rename_input(graph):
    graph.node[0].input[0] = "nowhere"


def double_output(graph):
    graph.node[1].output[0] = graph.node[0].output[0]


def cycle(graph):
    graph.node[0].input[0] = graph.node[1].output[0]


def no_output(graph):
    del graph.output[:]


def lost_output(graph):
    graph.output[0].name = "gone"


def double_weight(graph):
    graph.initializer.append(graph.initializer[0])


def negative_dim(graph):
    graph.initializer[0].dims[0] = -2


def huge_dims(graph):
    graph.initializer[0].dims[:] = [2**40, 2**40]


def two_fields(graph):
    graph.initializer[0].double_data.extend([1.0] * 6)


def few_bytes(graph):
    graph.initializer[0].raw_data = graph.initializer[0].raw_data[:-3]


@pytest.mark.parametrize("change, parts", [
    (reverse_nodes, ["sorted"]), (rename_input, ["'node_0'", "'nowhere'"]), (double_output, ["'node_1'", "already made"]),
    (cycle, ["'node_0'", "sorted"]), (no_output, ["no output", "loss"]), (lost_output, ["'gone'"]),
    (double_weight, ["'layer.weight'", "twice"]), (negative_dim, ["'layer.weight'", "-2"]), (huge_dims, ["'layer.weight'", "impossible shape"]),
    (two_fields, ["'layer.weight'", "more than one field"]), (few_bytes, ["'layer.weight'", "45", "48"]),
], ids=lambda value: value.__name__ if callable(value) else "")
def test_broken_structure(change, parts, refusal, tmp_path):
    says(refusal(broken(change)(tmp_path)), *parts)


# --- dimensions, loss, parameters


def with_dims(*dims):
    def write(folder):
        graph, weight = small()
        graph.input("y", numpy.zeros((2, 3)))
        model = finished(graph, graph.op("Mul", weight, graph.op("ReduceSum", "y", keepdims=0)), folder)
        proto = onnx.load(model)
        shape = next(value for value in proto.graph.input if value.name == "y").type.tensor_type.shape
        del shape.dim[:]
        for dim in dims:
            shape.dim.add(**({} if dim is None else {"dim_param": dim} if isinstance(dim, str) else {"dim_value": dim}))
        model.write_bytes(proto.SerializeToString())
        return model
    return write


@pytest.mark.parametrize("dims, options, parts", [
    (("batch", "seq"), [], ["'y'", "'seq'", "--dim seq="]),
    (("batch", None), [], ["'y'", "'y_1'", "--dim y_1=N"]),
    (("batch", "seq + huge"), ["--dim", "seq=4"], ["'y'", "huge", "--dim huge="]),
    (("batch", "seq"), ["--dim", "seqq=4"], ["seqq", "'seq'"]),
    (("batch", "seq - 5"), ["--dim", "seq=4"], ["'y'", "seq - 5"]),
    (("batch", "seq %% 2"), ["--dim", "seq=4"], ["'y'", "seq %% 2"]),
    (("batch", 3), ["--dim", "seq=4"], ["--dim seq", "'batch'"]),
    (("batch", 3), ["--dim", "batch=3"], ["batch", "3", "2"]),
    (("batch", "seq"), ["--dim", "seq=0"], ["--dim seq=0", "at least 1"]),
    (("batch", "seq"), ["--dim", "seq=four"], ["--dim seq=four", "NAME=SIZE"]),
    (("batch", "seq"), ["--dim", "seq"], ["--dim seq", "NAME=SIZE"]),
    ((5, 3), [], ["'y'", "fixed at 5", "2", "dynamic_shapes"]),
], ids=str)
def test_dimensions(dims, options, parts, refusal, tmp_path):
    says(refusal(with_dims(*dims)(tmp_path), *options), *parts)


def test_two_losses(refusal, tools, config, tmp_path):
    def second_loss(graph):
        graph.output.append(helper.make_tensor_value_info("total", TensorProto.DOUBLE, []))
    model = broken(second_loss)(tmp_path)
    says(refusal(model, "--loss", "los"), "--loss 'los'", "'loss'", "'total'")
    plans = [tmp_path / "named.dsplan", tmp_path / "asked.dsplan"]  # without --loss, the one that is called so
    for plan, flags in zip(plans, ([], ["--loss", "loss"])):
        tools("ds-opt", "compile", model, "--config", config, *flags, "-o", plan)
    named, asked = map(read_plan, plans)
    assert list(asked.sources.flags) == ["--loss=loss"]
    asked.sources.ClearField("flags")
    assert named == asked


def test_loss_that_is_no_scalar(refusal, tmp_path):
    def vector(graph):
        graph.output[0].name = graph.node[0].output[0]
        graph.output[0].type.tensor_type.shape.dim.add(dim_value=2)
        graph.output[0].type.tensor_type.shape.dim.add(dim_value=3)
    says(refusal(broken(vector)(tmp_path)), "loss", "[2, 3]", "scalar")


def test_loss_without_a_parameter(refusal, tmp_path):
    model = broken(lambda graph: None)(tmp_path)
    says(refusal(model, "--frozen", ".*"), "no trainable parameter", "--trainable")
    says(refusal(model, "--trainable", "nothing"), "--trainable 'nothing'", "matches no")
    says(refusal(model, "--frozen", "("), "--frozen '('", "no regular expression")


def test_no_float_weight(refusal, tmp_path):
    says(refusal(Graph().write(tmp_path)), "no trainable parameter", "--trainable")


# --- configuration and command line


@pytest.fixture
def model(tmp_path):
    return broken(lambda graph: None)(tmp_path)


@pytest.mark.parametrize("settings, parts", [
    ('{"train_micro_batch_size_per_gpu": 2, "gradient_cliping": 1}', ["gradient_cliping", "gradient_clipping"]),
    ('{"train_micro_batch_size_per_gpu": 2, "zero_optimisation": {"stage": 1}}', ["zero_optimisation", "zero_optimization"]),
    ('{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamX"}}', ["optimizer.type", "AdamX", "AdamW"]),
    ('{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lrr": 1}}}', ["lrr", "lr"]),
    ('{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": "fast"}}}',
     ["optimizer.params.lr", "fast"]),
    ('{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 3, "train_batch_size": 8}',
     ["train_batch_size", "2", "3", "6"]),
    ('{"optimizer": {"type": "AdamW"}}', ["train_batch_size", "train_micro_batch_size_per_gpu"]),
    ('{"train_micro_batch_size_per_gpu": 0, "optimizer": {"type": "AdamW"}}', ["train_micro_batch_size_per_gpu", "0"]),
    ('{"train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true}, "bf16": {"enabled": true}}', ["fp16", "bf16"]),
    ('{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 4}}', ["zero_optimization.stage", "4"]),
    ('{"train_micro_batch_size_per_gpu": ', ["ds_config.json"]),
    ('[]', ["ds_config.json"]),
    ('', ["ds_config.json"]),
], ids=str)
def test_configuration(settings, parts, model, refusal, config):
    config.write_text(settings)
    says(refusal(model), *parts)


def test_no_configuration(model, refusal, tmp_path):
    says(refusal(model, config=tmp_path / "nothing.json"), "nothing.json", "cannot be read", "ds_config.json")


@pytest.mark.parametrize("options, parts", [
    (["--ranks", "0"], ["ranks", "0"]),
    (["--ranks", "-1"], ["ranks", "-1"]),
    (["--machine", "v100-32gx16"], ["v100-32gx16", "sm_70", "sm_80", "a100-80gx8"]),
    (["--machine", "nothing"], ["nothing", "cpu"]),
    (["--set", "gradient_cliping=1"], ["gradient_cliping", "gradient_clipping"]),
    (["--set", "zero_optimization.stage=5"], ["zero_optimization.stage", "5"]),
    (["--set", "novalue"], ["novalue"]),
    (["--device-memory", "100"], ["of device memory", "100 B", "zero_optimization.stage"]),
    (["--device-memory", "much"], ["--device-memory", "much"]),
    (["--emit", "nothing"], ["--emit nothing", "train"]),
    (["--weights", "nothing.safetensors"], ["nothing.safetensors", "No such file"]),
], ids=" ".join)
def test_options(options, parts, model, refusal):
    says(refusal(model, *options), *parts)


@pytest.mark.parametrize("options", [["--rank", "1x"], ["--nonsense"], ["--dropout", "some"], ["--ranks", "two"]], ids=" ".join)
def test_usage(options, model, refusal):
    says(refusal(model, *options, code=2), "ds-opt compile --help")


@pytest.mark.parametrize("output", ["missing/m.dsplan", ".", "ds_config.json/m.dsplan"])
def test_output_that_cannot_be_written(output, model, tools, config, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    says(tools.refused("ds-opt", "compile", model, "--config", config, "-o", tmp_path / output), str(tmp_path / output).rstrip("/."))
    assert sorted(tmp_path.rglob("*")) == before


def test_full_disk(model, tools, config):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    says(tools.refused("ds-opt", "compile", model, "--config", config, "-o", "/dev/full/m.dsplan"), "/dev/full/m.dsplan")
    assert Path("/dev/full").is_char_device()


def test_a_refused_compile_keeps_the_former_plan(model, tools, config, tmp_path):
    (tmp_path / "m.dsplan").write_bytes(b"former")
    tools.refused("ds-opt", "compile", model, "--config", config, "--ranks", 0, "-o", tmp_path / "m.dsplan")
    assert (tmp_path / "m.dsplan").read_bytes() == b"former"
