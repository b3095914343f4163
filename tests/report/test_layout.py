"""Figures that can be read: one policy or eight, long labels, five arms or twenty-one."""

import numpy as np
import pytest
from matplotlib.text import Text

from spillover import figures
from tests.report.examples import (
    CHANGES,
    LABELS,
    all_figures,
    differences,
    graph,
    learned,
    made_up,
    steps,
    studies,
    study,
)
from tests.report.layout import faults

REGIONS = [f"R{chr(65 + k)}{chr(90 - k)}" for k in range(21)]  # three letters, as the regions of Italy have


@pytest.fixture(scope="module")
def drawn():
    return all_figures()


@pytest.mark.parametrize(
    "name", ["regret", "means", "ratio", "error", "example", "graph", "grid", "delay", "forest", "ratios"]
)
def test_no_text_overlaps_or_leaves_the_page(drawn, name) -> None:
    assert faults(drawn[name]) == []


def test_every_figure_can_be_read_on_a_phone(drawn) -> None:
    """400 pixels wide, nothing is written smaller than in seven points on five inches."""
    for name, figure in drawn.items():
        figure.canvas.draw()
        sizes = [t.get_fontsize() for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip()]
        assert min(sizes) * 400 / (72 * figure.get_figwidth()) >= 7.0, name


@pytest.mark.parametrize("count", [1, 2, 8])
def test_any_number_of_policies(count) -> None:
    some = list(LABELS)[:count]
    for ax in (
        figures.regret_figure(study(some)),
        figures.ratio_figure(study(some)),
        figures.regret_panels(studies(some))[0],
    ):
        figure = figures.figure_of(ax)
        assert faults(figure) == []
        assert len(figure.legends[0].get_texts()) >= count


def test_long_labels_make_the_figure_grow_and_leave_the_axes_their_room() -> None:
    records = [
        made_up(p, label=f"a very long label that says all about {name}, and more") for p, name in LABELS.items()
    ]
    ax = figures.regret_figure(records)
    assert faults(figures.figure_of(ax)) == []
    assert ax.get_window_extent().height > 250  # of the 420 pixels of a figure without legend


@pytest.mark.parametrize("n", [1, 5, 10, 21])
def test_any_number_of_arms(n) -> None:
    names = REGIONS if n == 21 else None
    truth = graph(n, min(38, n * (n - 1) // 3))
    found = learned(truth) if n > 1 else truth
    means, best = steps(n) if n > 4 else (steps(5)[0][:, :n], None)
    for ax in (
        figures.graph_pair(truth, found, names=names)[0],
        figures.means_figure(means, best=best, changes=CHANGES, names=names),
    ):
        assert faults(figures.figure_of(ax)) == []


def test_a_cyclic_graph_of_21_arms() -> None:
    rng = np.random.default_rng(1)
    cyclic = np.where(rng.random((21, 21)) < 0.07, rng.random((21, 21)), 0.0)
    assert faults(figures.figure_of(figures.graph_figure(cyclic, names=REGIONS))) == []


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 4), (10, 22)])
def test_any_grid(rows, columns) -> None:
    values = np.random.default_rng(0).random((rows, columns)) * 5000
    ax = figures.grid_figure(values, np.linspace(0.9, 0.999, rows), 10.0 ** -np.arange(columns))
    assert faults(figures.figure_of(ax)) == []
    narrow = figures.grid_figure(
        values, np.linspace(0.9, 0.999, rows), 10.0 ** -np.arange(columns), ax=figures.new_axes(5, 4)
    )
    assert sum(label.get_visible() for label in narrow.get_xticklabels()) <= 12


def test_a_forest_of_one_and_of_many() -> None:
    for some in (differences()[:1], differences() * 5):
        assert faults(figures.figure_of(figures.forest_figure(some, title="differences"))) == []


def test_the_check_sees_what_it_is_there_for() -> None:
    ax = figures.new_axes()
    ax.text(0.5, 0.5, "one")
    ax.text(0.5, 0.5, "two")
    figures.figure_of(ax).text(0.95, 0.2, "far too long for the page")
    assert any("overlap" in f for f in faults(figures.figure_of(ax)))
    assert any("leaves the page" in f for f in faults(figures.figure_of(ax)))
