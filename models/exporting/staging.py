"""All files or none: written beside the destination, then renamed."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from . import Refusal

# The graph names the data file, so it goes last: a reader never sees a graph beside another export's weights.
FILES = ("model.onnx.data", "model.onnx")


@contextlib.contextmanager
def staged(folder: Path):
    """Yields an empty folder beside `folder`; on success its files become those of `folder`, else nothing stays."""
    if folder.exists() and not folder.is_dir():
        raise Refusal(f"--out {folder} is a file; give a folder")
    made = [parent for parent in folder.absolute().parents if not parent.exists()]
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.absolute().parent))
    except OSError as error:
        raise Refusal(f"--out {folder}: cannot write there ({error.strerror})") from error
    try:
        yield stage
        _move(stage, folder)
        made = []
    except OSError as error:
        raise Refusal(f"--out {folder}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in made:  # created here, deepest first; empty unless someone else has used it since
            with contextlib.suppress(OSError):
                parent.rmdir()


def _move(stage: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").unlink(missing_ok=True)
    for name in FILES:
        if (stage / name).exists():
            os.replace(stage / name, folder / name)
        else:
            (folder / name).unlink(missing_ok=True)
