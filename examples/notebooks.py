"""Run the notebooks of this folder, and keep their outputs in them, as a reader sees them.

python examples/notebooks.py           # after a change of what is shown
python examples/notebooks.py --check   # only say which notebooks would show something else; pictures are not compared
"""

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
PATIENCE = 600  # seconds for one cell: the first one may compile kernels
PICTURES = "image/png"


def executed(notebook: Any) -> Any:
    """A notebook with fresh outputs; nothing in it depends on when and where it was run."""
    fresh = nbformat.v4.new_notebook(cells=[cleared(cell, k) for k, cell in enumerate(notebook.cells)])
    NotebookClient(fresh, timeout=PATIENCE, kernel_name="python3", record_timing=False).execute()
    fresh.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return fresh


def cleared(cell: Any, place: int) -> Any:
    """A cell without outputs, named by its place."""
    made = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
    return made(cell.source, id=f"cell-{place + 1}")


def shown(notebook: Any) -> list[Any]:
    """List what a reader sees; of pictures, only that there is one: their bytes depend on the fonts' versions."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [
        {kind: "a picture" if kind == PICTURES else text for kind, text in output.get("data", output).items()}
        for output in outputs
    ]


def main(check: bool) -> int:
    stale = []
    for path in sorted(HERE.glob("*.ipynb")):
        before = nbformat.read(path, as_version=4)
        after = executed(before)
        if shown(after) != shown(before):
            stale.append(path.name)
        if not check:
            nbformat.write(after, path)
    print("\n".join(stale) or "all notebooks are as their cells show")
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
