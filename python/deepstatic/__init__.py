"""DeepStatic from Python: compile a training run, look at it, run it. Wraps ds-opt and ds-run; see docs/python.md.

    plan = deepstatic.compile("saved-llama", "ds_config.json", ranks=2)
    plan.report()
    run = plan.run("train.safetensors", steps=100)
    run.losses, run.weights()

The package also brings the programs, as the commands ds-opt and ds-run: FOLDER holds what the tarball holds, bin, lib and share.
"""

from .engine import Engine, initialize
from .errors import DeepStaticError
from .plan import Plan, Report, Verdict, compile
from .programs import FOLDER, ds_opt, ds_run, version
from .running import Run
from .training import train

__version__ = version()
__all__ = ["DeepStaticError", "Engine", "FOLDER", "Plan", "Report", "Run", "Verdict", "compile", "ds_opt", "ds_run", "initialize", "train"]
