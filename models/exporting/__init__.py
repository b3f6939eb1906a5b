"""Turns PyTorch modules into ONNX training graphs that the importer accepts.

arguments     what the command lines share
sizes         published model sizes and their transformers configs
sources       a name, a saved folder or a user's function -> a module and example inputs
adapters      low-rank adapters (LoRA)
mixture       experts without dispatch that depends on data
initializers  how each parameter is drawn; modules without weights
graph         module -> model.onnx and model.onnx.data, with metadata
selfcheck     what must hold of the files before they are handed out
gradients     whether the graph's derivative is the module's
staging       all files or none
"""

from pathlib import Path


class Refusal(Exception):
    """One sentence: the thing, the rule, the values, what would work. Ends the program with exit code 1."""

    def __init__(self, sentence: str, try_line: str = ""):
        super().__init__(sentence)
        self.try_line = try_line


def command(script: str) -> str:
    """How a user calls models/SCRIPT.py: as a module of the wheel, by its path in an unpacked tarball, in a checkout by its name from the root."""
    models = Path(__file__).resolve().parents[1]
    if models.parts[-3:-1] != ("share", "deepstatic"):
        return f"python models/{script}.py"
    return f"python -m deepstatic.{script}" if (models.parents[2] / "programs.py").exists() else f"python {models / script}.py"


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, and the next where the first only announces it; or its type's name."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
