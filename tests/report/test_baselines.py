"""Figures look as they did: small pictures of all of them are kept in `baseline/`.

After a change that is meant, `python -m tests.report.test_baselines` draws them anew: look at each before it is kept.
"""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.testing.compare import compare_images

from spillover import figures
from tests.report.examples import all_figures, study

FOLDER = Path(__file__).parent / "baseline"
DRAWN_WITH = "3.11"  # other versions place texts otherwise by a pixel here and there
TOLERANCE = 5.0  # root mean square of 255: another machine's antialiasing, but not a missing line


def pictures() -> dict[str, bytes]:
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        return {name: figures.figure_bytes(figure, "png", dpi=36) for name, figure in all_figures().items()}


@pytest.fixture(scope="module")
def drawn():
    return pictures()


@pytest.mark.skipif(
    not matplotlib.__version__.startswith(DRAWN_WITH + "."),
    reason=f"the pictures are of Matplotlib {DRAWN_WITH}: run it with that one",
)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.png")), ids=lambda path: path.stem)
def test_it_looks_as_it_did(drawn, path, tmp_path) -> None:
    expected, actual = tmp_path / path.name, tmp_path / f"{path.stem}-now.png"
    expected.write_bytes(path.read_bytes())
    actual.write_bytes(drawn[path.stem])
    assert compare_images(str(expected), str(actual), TOLERANCE) is None


def test_every_figure_has_a_small_picture(drawn) -> None:
    kept = {path.stem: path.stat().st_size for path in FOLDER.glob("*.png")}
    assert kept.keys() == drawn.keys()
    assert max(kept.values()) < 50_000


def test_a_missing_line_is_noticed(tmp_path) -> None:
    ax = figures.regret_figure(study())
    for name in ("whole", "less"):
        (tmp_path / f"{name}.png").write_bytes(figures.figure_bytes(figures.figure_of(ax), "png", dpi=36))
        ax.lines[0].remove()
    assert compare_images(str(tmp_path / "whole.png"), str(tmp_path / "less.png"), TOLERANCE) is not None


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in pictures().items():
        (FOLDER / f"{name}.png").write_bytes(picture)
    print(f"{len(np.unique(list(FOLDER.glob('*.png'))))} pictures in {FOLDER}")
