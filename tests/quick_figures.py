"""Pages without the pains of drawing: what files of figures look like has tests of its own."""

from weakref import WeakKeyDictionary

import pytest
from matplotlib.figure import Figure

from spillover.figures import style


@pytest.fixture(scope="module")
def quick_figures():
    """Each figure is drawn once, and coarsely, however often and in whatever format a page wants it."""
    drawn: WeakKeyDictionary[Figure, bytes] = WeakKeyDictionary()
    whole = style.figure_bytes

    def figure_bytes(figure: Figure, ending: str = "png", *, dpi: int = 150) -> bytes:
        if figure not in drawn:
            drawn[figure] = whole(figure, "png", dpi=20)
        return drawn[figure]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(style, "figure_bytes", figure_bytes)
        yield
