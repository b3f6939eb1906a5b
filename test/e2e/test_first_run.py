"""docs/first-run.md: its commands run as they stand, the losses are PyTorch's, and transformers generates from what comes out.

DS_UPDATE_DOCS=1 draws the page's picture, docs/first-run.svg.
"""

import json
import os
import re
import subprocess
import sys

import pytest
import torch
import transformers
from conftest import FOLDERS, REPOSITORY
from safetensors.torch import load_file
from torch_reference import train

PAGE = REPOSITORY / "docs" / "first-run.md"
PICTURE = PAGE.with_suffix(".svg")
STEPS, RESUMED = 300, 150


class Story:
    """Everything that the page makes, in one folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "models").symlink_to(REPOSITORY / "models")
        commands = []
        for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
            if kind == "python":
                (folder / re.match(r'"""(\w+\.py)', block)[1]).write_text(block)
            elif kind == "json":
                (folder / "ds_config.json").write_text(block)
            else:
                commands += [line.removeprefix("$ ") for line in block.splitlines()]
        path = os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), os.path.dirname(sys.executable), os.environ["PATH"]])
        self.output = subprocess.run(["bash", "-c", "set -em\n" + "\n".join(commands)], cwd=folder, capture_output=True, text=True,
                                     env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"}, timeout=600)
        assert self.output.returncode == 0, self.output.stderr

    def losses(self):
        """The later line of a step counts."""
        lines = [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]
        steps = [line["step"] for line in lines if "loss" in line]
        assert steps.count(RESUMED + 1) >= 1 and steps[-1] == STEPS and max(steps) == STEPS
        of = {line["step"]: line["loss"] for line in lines if "loss" in line}
        return [of[step] for step in range(1, STEPS + 1)]


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    return Story(tmp_path_factory.mktemp("story"))


def pytorch_losses(folder):
    config = json.loads((folder / "ds_config.json").read_text())
    config["gradient_accumulation_steps"] = config["train_batch_size"]
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "saved").train()
    samples = load_file(folder / "train.safetensors")
    rows = torch.arange(STEPS * config["train_batch_size"]) % len(samples["input_ids"])
    return train(model, {name: value[rows] for name, value in samples.items()}, config, STEPS).losses


def picture(ours, theirs):
    """Two lines over the steps, 640 x 320."""
    top = max(ours + theirs)

    def line(values, colour, width):
        points = " ".join(f"{50 + 570 * i / (len(values) - 1):.1f},{280 - 250 * value / top:.1f}" for i, value in enumerate(values))
        return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'
    resumed = 50 + 570 * RESUMED / STEPS
    marks = "".join(f'<text x="42" y="{284 - 250 * value / top:.0f}" text-anchor="end">{value}</text>' for value in range(int(top) + 1))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 320" font-family="sans-serif" font-size="12">
<rect width="640" height="320" fill="white"/><path d="M50 20V280H620" fill="none" stroke="black"/>
{marks}<text x="620" y="298" text-anchor="end">{STEPS} steps</text><text x="58" y="24">loss</text>
<path d="M{resumed} 30V280" stroke="#999" stroke-dasharray="4"/><text x="{resumed + 6}" y="40">killed on 2 ranks, resumed on 4</text>
{line(theirs, "#e0a030", 4)}
{line(ours, "#1f4e8c", 1.2)}
<text x="400" y="70" fill="#1f4e8c">ds-run</text><text x="460" y="70" fill="#b07818">PyTorch</text>
</svg>
"""


def test_the_losses_are_pytorchs(story):
    """Rounding grows with the steps; the two curves stay one."""
    ours, theirs = story.losses(), pytorch_losses(story.folder)
    if os.environ.get("DS_UPDATE_DOCS") == "1":
        PICTURE.write_text(picture(ours, theirs))
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours[:50] == pytest.approx(theirs[:50], rel=1e-3)
    assert ours == pytest.approx(theirs, rel=2e-2)
    assert ours[-1] < ours[0] / 2
    assert PICTURE.exists()


def test_the_run_was_killed_and_resumed(story):
    assert (story.folder / "run/latest").read_text().strip() == f"global_step{STEPS}"
    manifest = json.loads((story.folder / f"run/global_step{STEPS}/manifest.json").read_text())
    assert len(manifest["files"]) == 4


def test_transformers_generates_from_it(story):
    saved, trained = (transformers.AutoModelForCausalLM.from_pretrained(story.folder / name) for name in ("saved", "trained"))
    assert not torch.equal(saved.lm_head.weight, trained.lm_head.weight)
    text = story.output.stdout.splitlines()[-1]
    assert "GNU GENERAL PUBLIC" in story.output.stdout and len(text) > len("GNU GENERAL PUBLIC")
