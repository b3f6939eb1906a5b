"""What PyTorch does to gradients (gradient_modules.py): the graph's are the module's, or the export is refused by name."""

import os
import sys

import gradient_modules
import numpy
import pytest
import torch
from conftest import BINARIES, REPOSITORY, write_config
from safetensors.torch import load_file, save_file
from torch_reference import initializers

sys.path.insert(0, str(REPOSITORY / "models"))
import export as exporter  # noqa: E402

FEW = ["detach: straight through", "detach: DoRA", "std at 0", "norm 3 at 0", "atan2 at 0", "clamp", "hardswish", "max of a row, equal ones",
       "nn.MultiheadAttention", "EMA", "attention, the least number", "in place, by masks", "a sparse embedding"]
FEW_REFUSED = ["no_grad", "Function", "hook on a parameter", "a counter of 16 bits", "a weight changed",
               "hook that clips a parameter's", "gradients by frequency", "ties", "an operator that ONNX lacks"]
ALL = os.environ.get("DS_TEST_SCOPE") == "all"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch):
    """The tools that are tested."""
    monkeypatch.setenv("PATH", f"{BINARIES}{os.pathsep}{os.environ['PATH']}")


def of_module(name):
    """Name -> PyTorch's gradient; the module that export.py saw, and its inputs."""
    torch.manual_seed(0)
    module, inputs = gradient_modules.build(name)
    module.train()(**inputs).backward()
    return {key: torch.zeros_like(p) if p.grad is None else p.grad.to_dense() for key, p in module.named_parameters() if p.requires_grad}, inputs


@pytest.mark.parametrize("name", [name for name in gradient_modules.RIGHT if ALL or name in FEW])
def test_is_the_modules(name, tools, tmp_path):
    folder, plan, data, after = (tmp_path / part for part in ("model", "m.dsplan", "data.safetensors", "after.safetensors"))
    assert exporter.main(["gradient_modules:build", f'--set=name="{name}"', f"--out={folder}"]) == 0
    expected, inputs = of_module(name)
    config = write_config(tmp_path / "config.json", len(inputs["y"]), optimizer={"type": "SGD", "params": {"lr": 1.0}})
    tools("ds-opt", "compile", folder, "--config", config, "-o", plan)
    save_file(inputs, data)
    metrics, _ = tools.train(plan, data, 1, "--export", after)
    before, left = initializers(folder), load_file(after)
    largest = max(float(value.abs().max()) for value in expected.values())
    for key, value in expected.items():
        found = before[key] - left[key] if key in left else torch.zeros_like(value)
        numpy.testing.assert_allclose(found, value, rtol=0, atol=1e-6 * float(value.abs().max()) + 1e-12 * largest, err_msg=key)
    norm = sum(float((value ** 2).sum()) for value in expected.values()) ** 0.5
    numpy.testing.assert_allclose(metrics[0]["grad_norm"], norm, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in gradient_modules.REFUSED if ALL or name in FEW_REFUSED])
def test_is_refused_by_name(name, tmp_path, capsys):
    assert exporter.main(["gradient_modules:build", f'--set=name="{name}"', f"--out={tmp_path / 'model'}"]) == 1
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("error: ") and gradient_modules.REFUSED[name][2] in said, said
    assert not (tmp_path / "model").exists()


def test_what_is_not_compared_is_said(tmp_path, capsys, monkeypatch):
    """By a flag, and where the tools are not found."""
    arguments = ["gradient_modules:build", '--set=name="Function"', f"--out={tmp_path / 'model'}"]
    assert exporter.main([*arguments, "--skip-gradient-check"]) == 0
    assert "note: gradients not compared with PyTorch's: --skip-gradient-check; what detach, torch.no_grad" in capsys.readouterr().err
    monkeypatch.setattr("exporting.gradients.shutil.which", lambda program: None)
    monkeypatch.setattr("exporting.gradients.os.path.exists", lambda path: False)
    assert exporter.main(arguments) == 0
    assert "note: gradients not compared with PyTorch's: ds-opt is neither beside" in capsys.readouterr().err


def test_a_foreign_file_is_noted_once(tools, tmp_path):
    torch.manual_seed(0)
    module, inputs = gradient_modules.build("clone")
    batch = torch.export.Dim("batch", min=2)
    torch.onnx.export(module, (), tmp_path / "m.onnx", kwargs=inputs, dynamo=True, optimize=False, verbose=False, opset_version=20,
                      dynamic_shapes={name: {0: batch} for name in inputs})
    said = tools("ds-opt", "import", tmp_path / "m.onnx", "--dim", "batch=4").stderr
    assert said.count("a file does not say what torch.no_grad") == 1, said
