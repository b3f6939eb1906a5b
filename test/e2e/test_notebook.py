"""models/notebooks: each notebook's cells run in a Jupyter kernel, and show what they should.

DS_KEEP_NOTEBOOKS=FOLDER keeps the notebooks as they were executed, to look at.
"""

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import FOLDERS, ON_GPU, REPOSITORY
from nbclient import NotebookClient

pytestmark = pytest.mark.skipif(ON_GPU, reason="the notebooks compile for this machine's CPU")
NOTEBOOKS = REPOSITORY / "models" / "notebooks"


@pytest.fixture
def executed(tmp_path, monkeypatch):
    """execute(name) -> the notebook with its outputs; a cell that raises fails the test with its traceback."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(FOLDERS["ds-opt"]), str(FOLDERS["ds-run"]), str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "python"))

    def execute(name):
        notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
        if kept := os.environ.get("DS_KEEP_NOTEBOOKS"):
            nbformat.write(notebook, Path(kept) / name)
        return notebook
    return execute


def output_of(notebook, source: str, kind: str) -> str:
    """What the cell that has this line shows."""
    cell = next(cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source.splitlines())
    return "".join(output.data.get(kind, "") if "data" in output else output.get("text", "") for output in cell.outputs)


def test_the_run_of_the_notebook(executed):
    notebook = executed("a-run.ipynb")
    page = output_of(notebook, "plan.report()", "text/html")
    assert page.startswith("<iframe") and "&lt;svg" in page
    assert output_of(notebook, "plan.verify()", "text/plain").startswith("proven")
    curve = output_of(notebook, "run", "text/html")
    assert len(re.search(r'points="([^"]*)"', curve)[1].split()) == 100
    first, last = re.search(r"loss ([\d.]+) to ([\d.]+)", curve).groups()
    assert float(last) < float(first) - 1
    assert "This License" in output_of(notebook, "prompt = list(b\"This License \")", "text/plain")


def test_notebooks_are_kept_without_outputs():
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code"), path
