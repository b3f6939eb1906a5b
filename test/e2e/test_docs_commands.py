"""Lines of the pages that begin with `$` run as they stand, in order, in one shell of a folder that has what the page presupposes.

A line is good if its code is 0; or, where the page shows an error under it, if it fails with that error. `echo $?` prints what the page shows. A line
that ends in `# needs ...` says to its reader what it takes beyond that, and is counted here instead of run. `<<'END'` takes the lines up to END.
"""

import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest
from conftest import FOLDERS, ON_GPU, REPOSITORY
from test_docs import tracked

pytestmark = pytest.mark.skipif(ON_GPU, reason="the pages compile for this machine's CPU")

GPT2 = """
python models/export.py gpt2 --size tiny --out gpt2
python models/prepare_data.py text /usr/share/common-licenses/GPL-3 --seq 128 --out data.safetensors
echo '{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' >ds_config.json
"""
SMALLER = """
python models/export.py gpt2 --size tiny --seq 16 --set n_embd=16 --set n_layer=1 --set n_head=1 --out gpt2
python models/prepare_data.py text /usr/share/common-licenses/GPL-3 --seq 16 --out text.safetensors
echo '{"train_micro_batch_size_per_gpu": 4, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' >ds_config.json
ds-opt compile gpt2 --config ds_config.json -o gpt2.dsplan
"""
LLAMA = """
python - <<'END'
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             max_position_embeddings=128)).to(torch.bfloat16).save_pretrained("llama-saved")
import pathlib
pathlib.Path("base-model").mkdir()
save_file({name.removeprefix("model."): value for name, value in load_file("llama-saved/model.safetensors").items()}, "base-model/model.safetensors")
END
python models/prepare_data.py text /usr/share/common-licenses/GPL-3 --seq 128 --out train.safetensors
echo '{"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' >ds_config.json
"""
LOGITS = """
python - <<'END'
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             max_position_embeddings=128)).save_pretrained("llama-saved")

class Losses(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 1)
    def forward(self, x):
        y = self.linear(x)
        return (y ** 2).mean(), y.abs().mean()
torch.onnx.export(Losses().train(), (torch.ones(4, 8),), "model.onnx", dynamo=True, optimize=False, opset_version=20, input_names=["x"],
                  output_names=["main", "auxiliary"], dynamic_shapes={"x": {0: torch.export.Dim("batch")}}, verbose=False)
torch.onnx.export(torch.nn.Linear(8, 10).train(), (torch.ones(4, 8),), "classifier.onnx", dynamo=True, optimize=False, opset_version=20, output_names=["logits"],
                  dynamic_shapes=[{0: torch.export.Dim("batch")}], verbose=False)
END
python models/prepare_data.py text /usr/share/common-licenses/GPL-3 --seq 128 --out train.safetensors
echo '{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' >ds_config.json
"""
# What a page presupposes, as lines of a shell.
PADDLE = """
python - <<'END'
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
constants = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array(numpy.ones(shape, numpy.float32)))
             for name, shape in (("fc_w", (3, 5)), ("fc_b", 5))]
x, y = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["?", 3]), helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
graph = helper.make_graph([*constants, helper.make_node("Gemm", ["x", "fc_w", "fc_b"], ["y"], name="fc")], "g", [x], [y])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "paddle.onnx")
END
"""
SIGNS = """
python - <<'END'
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file
random = numpy.random.default_rng(0)
weights = {"conv_w": (8, 1, 3, 3), "conv_b": (8,), "fc_w": (8, 4), "fc_b": (4,)}
nodes = [helper.make_node("Constant", [], [name], value=numpy_helper.from_array((random.standard_normal(shape) * 0.3).astype(numpy.float32)))
         for name, shape in weights.items()]
nodes += [helper.make_node("Conv", ["image", "conv_w", "conv_b"], ["c"], name="conv", pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c"], ["r"]),
          helper.make_node("GlobalMaxPool", ["r"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
          helper.make_node("Gemm", ["f", "fc_w", "fc_b"], ["z"], name="fc"), helper.make_node("Softmax", ["z"], ["class"], axis=1)]
image, kind = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["?", 1, 12, 12]), helper.make_tensor_value_info("class", TensorProto.FLOAT, None)
onnx.save(helper.make_model(helper.make_graph(nodes, "signs", [image], [kind]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "signs.onnx")
shapes = numpy.array([[[0, 1, 0]] * 3, [[0, 0, 0], [1, 1, 1], [0, 0, 0]], numpy.eye(3), numpy.eye(3)[::-1]])
labels, images = random.integers(0, 4, 1280), 0.3 * random.standard_normal((1280, 1, 12, 12))
for i, label in enumerate(labels):
    y, x = random.integers(0, 10, 2)
    images[i, 0, y:y + 3, x:x + 3] += 2 * shapes[label]
for name, some in (("signs", slice(1024)), ("unseen", slice(1024, None))):
    save_file({"image": images[some].astype(numpy.float32), "labels": labels[some]}, f"{name}.safetensors")
END
"""
SCENES = {
    "README.md": "",
    "models/README.md": "",
    "docs/any-onnx.md": SIGNS,
    "docs/attach-loss.md": LOGITS,
    "docs/audit.md": GPT2 + "ds-opt compile gpt2 --config ds_config.json --ranks 2 --set zero_optimization.stage=2 -o gpt2.dsplan",
    "docs/certificate.md": GPT2 + "ds-opt compile gpt2 --config ds_config.json -o gpt2.dsplan",
    "docs/checkpoints.md": SMALLER,
    "docs/coming-from-deepspeed.md": GPT2,
    "docs/faults.md": GPT2 + "ds-opt compile gpt2 --config ds_config.json -o p.dsplan; mv data.safetensors d.safetensors",
    "docs/gallery.md": "",
    "docs/hugging-face.md": LLAMA,
    "docs/lengths.md": "",
    "docs/loss.md": "head -c 3000 /usr/share/common-licenses/GPL-2 >a.txt; head -c 200 /usr/share/common-licenses/GPL-3 >b.txt; head -c 700 a.txt >c.txt",
    "docs/onnx.md": PADDLE,
    "docs/runs.md": SMALLER + """
ds-opt compile gpt2 --config ds_config.json --set optimizer.params.lr=1e30 --set gradient_clipping=0 -o llama.dsplan
cp text.safetensors d.safetensors; mkdir shards
python -c "
from safetensors.numpy import load_file, save_file
data = load_file('text.safetensors')
for i in range(3): save_file({name: values[4 * i:4 * i + 4].copy() for name, values in data.items()}, f'shards/{i}.safetensors')"
echo 'for i in range(3): print(f"shards/{i}.safetensors")' >make_samples.py
""",
    "docs/tour.md": "",
}
OF_OTHER_TESTS = {"docs/first-run.md"}  # test_first_run.py runs it, and looks at what comes out
OPTIMIZED = """
python - <<'END'
import torch
from transformers import AutoModelForCausalLM
from transformers.exporters import OnnxConfig, OnnxExporter
model = AutoModelForCausalLM.from_pretrained("llama-saved", dtype=torch.float32)
model.save_pretrained("llama-saved")
OnnxExporter().export(model, {"input_ids": torch.ones(2, 128, dtype=torch.long)}, config=OnnxConfig()).save_pretrained("exported")
END
echo '{"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "AdamW", "params": {"lr": 0.001}}}' >ds_config.json
"""
BETWEEN = {"docs/hugging-face.md": {3: OPTIMIZED}, "docs/runs.md": {1: "ds-opt compile gpt2 --config ds_config.json -o llama.dsplan"}}  # before the block of that number, from 0


class Line(NamedTuple):
    command: str
    shown: str  # under it on the page
    block: int

    @property
    def needs(self):
        found = re.search(r" # needs (.*)", self.command.splitlines()[0])
        return found and found[1]


def lines_of(text: str) -> list:
    lines = []
    for number, block in enumerate(b for b in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S) if re.search(r"^\$ ", b, re.M)):
        rest = block.splitlines()
        while rest:
            first = rest.pop(0)
            if not first.startswith("$ "):
                continue
            command = [first.removeprefix("$ ")]
            if end := re.search(r"<<'(\w+)'", first):
                while rest and command[-1] != end[1]:
                    command.append(rest.pop(0))
            shown = []
            while rest and not rest[0].startswith("$ "):
                shown.append(rest.pop(0))
            lines.append(Line("\n".join(command), "\n".join(shown), number))
    return lines


def beginning(sentence: str) -> str:
    """What two errors of a kind share: numbers and paths differ."""
    return re.sub(r"\d+", "0", sentence).removeprefix("error: ")[:30]


def wrong(line: Line, code: int, output: str) -> str:
    """What is not as the page says, or nothing."""
    if line.command.split("#")[0].strip() == "echo $?":
        return "" if output.strip() == line.shown.strip() else f"printed {output.strip()}, the page has {line.shown.strip()}"
    if not line.shown.startswith("error: "):
        return "" if code == 0 else f"ended with code {code}"
    said = [text for text in output.splitlines() if text.startswith("error: ")]
    if code == 0 or not said:
        return f"ended with code {code} and without the page's error"
    return "" if beginning(said[0]) == beginning(line.shown) else f"its error is not the page's {line.shown.splitlines()[0]}"


def script(lines, between, results) -> str:
    """Each line's output and code into files of its number in `results`, which is elsewhere: docs/faults.md fails writes below its folder. Braces
    keep a line in this shell."""
    text, block = "set +e\n", -1
    for number, line in enumerate(lines):
        if line.block != block:
            block = line.block
            text += f"{{ {between.get(block, ':')}\n}} >/dev/null 2>&1\n"
        text += f"{{ {line.command}\n}} >{results}/out{number} 2>&1\ncode=$?; echo $code >{results}/code{number}; (exit $code)\n"
    return text


@pytest.fixture(scope="module")
def environment():
    path = os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), os.path.dirname(sys.executable), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("page", sorted(SCENES))
def test_the_lines_of_a_page_run(page, environment, tmp_path, tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    for name in ("models", "tools", "scripts", "build", "docs", "runtime"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    scene = subprocess.run(["bash", "-e", "-c", SCENES[page]], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert scene.returncode == 0, scene.stderr
    lines = [line for line in lines_of((REPOSITORY / page).read_text()) if not line.needs]
    subprocess.run(["bash", "-c", script(lines, BETWEEN.get(page, {}), results)], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, timeout=900)
    found = []
    for number, line in enumerate(lines):
        output = (results / f"out{number}").read_text(errors="replace")
        if what := wrong(line, int((results / f"code{number}").read_text()), output):
            found.append(f"$ {line.command}\n{what}:\n{output[-800:]}")
    assert not found, "\n".join(found)


def test_every_page_is_tried_and_few_lines_need_more():
    """A page that gets its first `$` gets a scene; the lines that are not run are known, one by one."""
    pages = {page: lines_of((REPOSITORY / page).read_text()) for page in tracked() if page.endswith(".md")}
    untried = {page: [line for line in lines if not line.needs] for page, lines in pages.items() if page not in SCENES and page not in OF_OTHER_TESTS}
    assert not {page: lines for page, lines in untried.items() if lines}
    needs = {page: [line.needs for line in lines if line.needs] for page, lines in pages.items()}
    total, run = sum(map(len, pages.values())), sum(map(len, pages.values())) - sum(map(len, needs.values()))
    print(f"{run} of {total} lines run; the others need", {page: what for page, what in needs.items() if what})
    assert run >= 3 * (total - run), needs


def test_the_check_can_fail(tmp_path):
    page = "```\n$ false\n$ echo $?    # of the line before\n1\n$ cat <<'END'\n$ no command\nEND\nerror: a word of 3\n$ sleep 9  # needs nine seconds\n```\n"
    lines = lines_of(page)
    assert [line.command.split("\n")[0] for line in lines] == ["false", "echo $?    # of the line before", "cat <<'END'", "sleep 9  # needs nine seconds"]
    assert [bool(line.needs) for line in lines] == [False, False, False, True]
    subprocess.run(["bash", "-c", script(lines[:3], {}, tmp_path)], cwd=tmp_path, check=False)
    results = [(int((tmp_path / f"code{i}").read_text()), (tmp_path / f"out{i}").read_text()) for i in range(3)]
    assert results == [(1, ""), (0, "1\n"), (0, "$ no command\n")]
    assert [bool(wrong(line, *result)) for line, result in zip(lines, results)] == [True, False, True]
    assert not wrong(lines[2], 1, "error: a word of 77\n") and wrong(lines[2], 1, "error: another\n") and wrong(lines[1], 0, "2\n")
