# SPDX-License-Identifier: Apache-2.0
"""A program of the gallery as a notebook: its cells run, and operators, plans and solves show themselves."""

import os
import pathlib
import re

import pytest

import palimpsest as ps

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
pytestmark = pytest.mark.extras

PROGRAM = pathlib.Path(__file__).resolve().parents[3] / "examples/python/03_sense_on_a_budget.py"
SHOWN = ["A", "A.N", "whole", "cut", "ps.asarray(b)"]


def notebook():
    """The cells of the program, and one for each object that is shown."""
    cells = [part for part in re.split(r"^# %%.*$", PROGRAM.read_text(), flags=re.MULTILINE) if part.strip()]
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code.strip()) for code in [*cells, *SHOWN]])


@pytest.mark.filterwarnings("ignore")  # warnings of the packages that run notebooks
def test_a_program_runs_as_a_notebook(tmp_path, monkeypatch):
    if not PROGRAM.is_file():
        pytest.skip("an installed package")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(pathlib.Path(ps.__file__).parents[1]), str(PROGRAM.parent)]))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    run = notebook()
    nbclient.NotebookClient(run, timeout=120, kernel_name="python3",
                            resources={"metadata": {"path": str(tmp_path)}}).execute()
    if folder := os.environ.get("PALIMPSEST_KEEP_NOTEBOOK"):
        nbformat.write(run, pathlib.Path(folder) / "sense_on_a_budget.ipynb")
    for name, cell in zip(SHOWN, run.cells[-len(SHOWN):]):
        (output,) = cell.outputs
        form = output["data"]["text/html"]
        assert len(form) <= 50_000, name
    operator, normal, whole = (cell.outputs[0]["data"]["text/html"] for cell in run.cells[-len(SHOWN):][:3])
    assert "Fft" in operator and "Diagonal" in operator and "<svg" in whole and normal != operator
    texts = [output["text"] for cell in run.cells for output in cell.outputs if output.output_type == "stream"]
    assert any("smallest budget" in text for text in texts)
    assert any("image/png" in output.get("data", {}) for cell in run.cells for output in cell.outputs)
