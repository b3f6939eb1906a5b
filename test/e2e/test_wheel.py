"""The wheel in an environment of its own: `pip install`, the blocks of docs/python.md, commands, errors.

The wheel is made here, from the tools that are tested, by what `make package` calls; so it shows the package deepstatic, its layout and its
commands. That the programs of a release run on a bare machine is test_package.py's.
"""

import json
import re
import shutil
import subprocess
import sys

import pytest
from conftest import FOLDERS, ON_GPU, REPOSITORY

PAGE = REPOSITORY / "docs" / "python.md"
MAKE_TINY_LLAMA = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
LlamaForCausalLM(LlamaConfig(vocab_size=256, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                             max_position_embeddings=64, bos_token_id=None, eos_token_id=None)).save_pretrained("tiny-llama")
"""

pytestmark = pytest.mark.skipif(ON_GPU, reason="the wheel's ds-run is the one without a GPU")


class Environment:
    """A venv that has the wheel, and sees the packages of models/requirements.txt; of the sources and their PATH it has nothing."""

    def __init__(self, folder):
        self.folder = folder
        tree, wheels = folder / "tree", folder / "wheels"
        (tree / "bin").mkdir(parents=True)
        wheels.mkdir()
        for tool, where in FOLDERS.items():
            subprocess.run(["strip", "-o", tree / "bin" / tool, where / tool], check=True)
        shutil.copytree(REPOSITORY / "models", tree / "share" / "deepstatic" / "models", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([sys.executable, REPOSITORY / "scripts" / "make_wheel.py", tree, "0.0.1", wheels], check=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.python = folder / "venv" / "bin" / "python"
        subprocess.run([self.python, "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", *wheels.iterdir()], check=True)
        (site_of(self) / "requirements.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))

    def __call__(self, *command):
        # No offline cache, no module path, no tools of the build.
        environment = {"PATH": f"{self.folder / 'venv' / 'bin'}:/usr/bin:/bin", "HOME": str(self.folder), "OMP_NUM_THREADS": "1"}
        return subprocess.run([str(word) for word in command], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600)

    def run(self, *command):
        done = self(*command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("wheel"))


def blocks(page=PAGE):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_ten_lines_train_a_saved_llama_on_two_ranks(environment):
    """The first block, then that what transformers loaded is what was trained."""
    ten = blocks()[0]
    assert len([line for line in ten.splitlines() if line.strip()]) <= 10
    check = """
import deepstatic, sys
assert "site-packages" in deepstatic.__file__, deepstatic.__file__
assert plan.facts["ranks"] == 2 and plan.facts["world"]["data"] == 2
assert len(run.losses) == 100 and run.losses[-1] < run.losses[0] - 1, run
weights = run.weights()
for name, value in model.named_parameters():
    assert (weights[name] == value.detach().numpy()).all(), name
print(*sorted(weights))
"""
    (environment.folder / "ten.py").write_text(MAKE_TINY_LLAMA + ten + check)
    assert "model.embed_tokens.weight" in environment.run(environment.python, "ten.py")


def test_the_pages_run_as_they_stand(environment):
    """docs/python.md from its head to its end, then docs/coming-from-trainer.md."""
    shutil.rmtree(environment.folder / "trained", ignore_errors=True)
    trainer = blocks(REPOSITORY / "docs" / "coming-from-trainer.md")
    (environment.folder / "page.py").write_text(MAKE_TINY_LLAMA + "\n".join(blocks() + trainer))
    said = environment.run(environment.python, "page.py")
    assert "step 10  loss" in said and "zero_optimization.stage" in said
    assert "Run of 32 steps, loss" in said and (environment.folder / "out" / "model" / "config.json").exists()
    assert sorted(path.name for path in (environment.folder / "out").glob("global_step*")) == ["global_step20", "global_step32"]
    assert (environment.folder / "plan.html").read_text().startswith("<!DOCTYPE html>")
    assert (environment.folder / "engine-checkpoints" / "latest").read_text().strip() == "global_step10"


def test_the_commands_are_there(environment):
    assert environment.run("ds-opt", "--version").startswith("ds-opt ")
    assert "cpu" in environment.run("ds-run", "info")
    done = environment("ds-run", "none.dsplan", "--data", "x")
    assert done.returncode == 1 and done.stderr.startswith("error: plan none.dsplan: cannot be opened")


def test_it_says_what_it_is_and_needs(environment):
    """What pip shows; what is installed with it is what its extras name alone."""
    said = environment.run(environment.python, "-c", "import deepstatic, importlib.metadata as m, json; "
                           "print(json.dumps([deepstatic.__version__, m.version('deepstatic'), m.requires('deepstatic'), m.metadata('deepstatic')['Requires-Python']]))")
    version, installed, requires, python = json.loads(said)
    assert version == installed == "0.0.1" and python == ">=3.10"
    assert all("; extra == " in line for line in requires) and any(line.startswith("torch>=") and line.endswith('"export"') for line in requires)


def test_what_is_to_be_tried_is_there(environment):
    """The exporter and the maker of data are modules of the package, which errors name."""
    saved = environment.folder / "saved"
    saved.mkdir(exist_ok=True)
    (saved / "config.json").write_text('{"model_type": "llama"}')
    (environment.folder / "one.json").write_text('{"train_batch_size": 1, "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}')
    (environment.folder / "text.txt").write_text("A line of text.\n" * 9)
    tried = environment("ds-opt", "compile", "saved", "--config", "one.json").stderr.split("try: ")[1].split()
    assert tried == ["python", "-m", "deepstatic.export", "saved", "--out", "saved-onnx"]
    environment.run(environment.python, "-m", "deepstatic.export", "gpt2", "--size", "tiny", "--seq", "16", "--skip-gradient-check", "--out", "gpt2")
    environment.run("ds-opt", "compile", "gpt2", "--config", "one.json", "-o", "gpt2.dsplan")
    assert "`python -m deepstatic.prepare_data` makes data of text" in environment("ds-run", "gpt2.dsplan", "--data", "text.txt").stderr
    assert "usage: prepare_data.py" in environment.run(environment.python, "-m", "deepstatic.prepare_data", "--help")
    bare = environment(environment.python, "-S", "-c", f"import sys; sys.path.insert(0, {str(site_of(environment))!r}); import deepstatic; "
                       "deepstatic.programs.run_script('export', ('nothing',))")
    assert (bare.returncode, bare.stderr) == (1, "error: deepstatic.export needs nothing, which is not installed here\ntry: pip install nothing\n")


def site_of(environment):
    return next((environment.folder / "venv" / "lib").glob("python*/site-packages"))


def test_the_package_alone_needs_no_other(environment):
    """Importing it, and its commands, take the standard library only: a bare machine has no numpy."""
    environment.run(environment.python, "-S", "-c", f"import sys; sys.path.insert(0, {str(site_of(environment))!r}); import deepstatic; "
                    "assert 'numpy' not in sys.modules")
