"""test/data/deepspeed: what DeepSpeed's own code makes of 100 updates, as numbers and as the script that made them."""

import importlib.util
import json
import sys

from conftest import REPOSITORY

FOLDER = REPOSITORY / "test/data/deepspeed"
spec = importlib.util.spec_from_file_location("make_reference", FOLDER / "make_reference.py")
maker = importlib.util.module_from_spec(spec)
sys.modules["make_reference"] = maker
spec.loader.exec_module(maker)

SHAPES, SCHEDULES, UPDATES, LR = maker.SHAPES, maker.SCHEDULES, maker.UPDATES, maker.LR
first_values, gradients = maker.first_values, maker.gradients


def committed() -> dict:
    return json.loads((FOLDER / "reference.json").read_text())
