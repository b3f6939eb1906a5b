"""DeepStatic's programs, as a Python package brings them; FOLDER holds what the tarball holds: bin, lib, share."""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def _become(program):
    path = str(FOLDER / "bin" / program)
    os.execv(path, [path, *sys.argv[1:]])


def ds_opt():
    _become("ds-opt")


def ds_run():
    _become("ds-run")
