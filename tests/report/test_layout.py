"""Figures that can be read: one policy or eight, long labels, five arms or twenty-one."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from spillover import figures
from spillover.figures import figure_bytes
from spillover.figures.decision import (
    FEW_EDGES,
    MOST_ARMS,
    MOST_EDGES,
    MOST_SOURCES,
    RUNNERS_UP,
    decision_figure,
    drawn_flows,
    graph_arms,
    strongest_flows,
)
from spillover.figures.flows import (
    BENDS,
    Line,
    Page,
    best_bend,
    circles,
    corners_of,
    curves,
    places,
    quadratic,
    too_near,
)
from spillover.figures.style import row_names, short_names, shorten
from spillover.reasons import reasons
from tests.reasons.examples import made_up as explained
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
from tests.sampling import every

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


# --- Arrows keep clear of circles that they do not touch, with the gentlest bend that does --------------------------


FRAME = Bbox.from_extents(-100, -200, 500, 200)


def page(*circles, names=(), frame=FRAME):
    """Arms 0 and 1 stand 400 pixels apart; the others at (x, y) with a radius."""
    x, y, radii = np.array([(0, 0, 15), (400, 0, 15), *circles], float).T
    return Page(np.column_stack([x, y]), radii, names, frame)


def test_a_bend_that_is_clear_stays():
    assert best_bend((0, 1), 0.14, 2.0, page()) == 0.14
    assert best_bend((0, 1), 0.14, 2.0, page((200, 100, 20))) == 0.14


@pytest.mark.parametrize("first", [0.0, 0.14, -0.2])
@pytest.mark.parametrize("below", [0.0, 12.0, -12.0, 30.0])
def test_the_gentlest_that_is_clear_is_taken(first, below):
    here = page((200, -below, 20))
    rad = best_bend((0, 1), first, 4.0, here)
    near = too_near(curves(here, (0, 1), np.array([rad, *BENDS, *np.negative(BENDS), first])), (0, 1), 4.0, here)
    clear = [abs(other) for other, by in zip((*BENDS, *np.negative(BENDS)), near[1:-1], strict=True) if by == 0]
    assert near[0] == 0
    assert rad == first if near[-1] == 0 else abs(rad) == min(clear)


def test_if_none_is_clear_it_touches_least():
    wall = [(200, y, 20) for y in (-180, -140, -100, -60, -20, 22, 60, 100, 140, 180)]
    rad = best_bend((0, 1), 0.2, 2.0, page(*wall))
    every = np.array([0.2, *BENDS, *np.negative(BENDS)])
    near = too_near(curves(page(*wall), (0, 1), every), (0, 1), 2.0, page(*wall))
    assert near.min() > 0
    assert near[every == rad].min() == near.min()


def test_it_stays_in_the_frame():
    high = best_bend((0, 1), 0.0, 2.0, page((200, 5, 20)))
    assert high > 0  # below
    floor = Bbox.from_extents(-100, -25, 500, 200)
    assert best_bend((0, 1), 0.0, 2.0, page((200, 5, 20), frame=floor)) < 0


def test_it_goes_around_names_and_strong_arrows_if_that_is_easy():
    name = Bbox.from_extents(170, -6, 230, 6)
    assert abs(best_bend((0, 1), 0.0, 2.0, page(names=[name]))) == 0.07
    over = Line((2, 3), np.column_stack([np.linspace(0, 400, 41), np.zeros(41)]), 4.0)
    assert abs(best_bend((0, 1), 0.0, 2.0, page(), [over])) == 0.07


def test_arrows_there_and_back_keep_to_their_sides():
    here = page((200, -14, 20))  # below is the longer way around
    assert best_bend((0, 1), 0.14, 2.0, here) < 0
    assert best_bend((0, 1), 0.14, 2.0, here, one_side=True) > 0.14


def test_the_curves_are_those_that_are_drawn():
    here = page()
    (curve,) = curves(here, (0, 1), np.array([0.3]))
    start, end = here.centres[:2].tolist()
    arrow = FancyArrowPatch(start, end, connectionstyle="arc3,rad=0.3", arrowstyle="-", shrinkA=0, shrinkB=0)
    a, control, b = np.asarray(arrow.get_path().vertices)[:3]
    np.testing.assert_allclose(curve[20], (a + 2 * control + b) / 4, atol=1e-9)


# --- The picture of a decision can be read, whatever the number of arms, and says what it leaves out ----------------


def decision(n, density, budget, *, names=None, acyclic=True, signed=False, unknown=0, size=0.5):
    """A made-up one; the best by score are chosen."""
    rng = np.random.default_rng(n)
    A = rng.uniform(-size if signed else 0.0, size, (n, n)) * (rng.random((n, n)) < density)
    A = np.triu(A, 1) if acyclic else A * (1 - np.eye(n))
    A = A if acyclic else A / max(1.0, np.abs(A).sum(axis=1).max() / 0.9)
    mean = np.where(np.arange(n) < unknown, np.nan, rng.uniform(0, 1, n))
    index = np.where(np.isnan(mean), np.inf, mean + rng.exponential(0.15, n))
    score = np.linalg.inv(np.eye(n) - A).sum(axis=0) * index
    chosen = np.zeros(n, bool)
    chosen[np.argsort(-score)[:budget]] = True
    return reasons(explained(A, mean, chosen, index=index), arms=names)


LONG = [f"campaign number {k} in the north-western region of the country" for k in range(100)]
CASES = {
    "one": decision(1, 0, 1),
    "five": decision(5, 0.6, 2),
    "five-long-names": decision(5, 0.6, 2, names=LONG[:5]),
    "five-cyclic": decision(5, 0.5, 2, acyclic=False),
    "five-signed": decision(5, 0.6, 2, signed=True, unknown=2),
    "no-edges": decision(6, 0, 2),
    "21": decision(21, 0.12, 5),
    "21-dense": decision(21, 1.0, 5, size=0.15, names=LONG[:21]),
    "21-cyclic": decision(21, 0.2, 5, acyclic=False),
    "100": decision(100, 0.03, 10),
    "100-dense": decision(100, 1.0, 30, size=0.03, names=LONG),
}


@pytest.mark.parametrize("name", every(4, CASES))
def test_it_can_be_read(name):
    found = CASES[name]
    figure = decision_figure(found)
    assert faults(figure) == []
    graph, bars = figure.axes
    shown = min(len(found.arms), MOST_ARMS)
    assert len(bars.get_yticklabels()) == shown
    arrows = [patch for patch in graph.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) <= MOST_EDGES
    left_out = len(found.arms) > shown or len(arrows) < (found.adjacency != 0).sum()
    assert graph.get_xlabel().startswith("Shown: ") == left_out
    assert f"{shown} of {len(found.arms)} arms" in bars.get_title() or len(found.arms) == shown


def test_the_bars_add_up_to_the_scores():
    found = CASES["five"]
    bars = decision_figure(found).axes[1]
    widths = np.array([[patch.get_width() for patch in group] for group in bars.containers])
    np.testing.assert_allclose(widths.sum(axis=0), [arm.score for arm in found.ranked()])
    (cut,) = [line for line in bars.lines if line.get_label() == "chosen arms above"]
    assert np.asarray(cut.get_ydata())[0] == 1.5


def test_the_bars_split_effects_as_the_text_does():
    """What comes back to an arm around a cycle is an effect on itself."""
    told = explained(np.array([[0, -0.5], [-0.4, 0]]), np.array([2.0, 1.0]), np.array([True, False]))
    effects = np.linalg.inv(np.eye(2) - told.adjacency) * told.mean
    found = reasons(replace(told, effects=effects), arms=["tea", "coffee"])
    bars = decision_figure(found).axes[1]
    itself, others = ([patch.get_width() for patch in group] for group in bars.containers[:2])
    np.testing.assert_allclose(itself, np.diag(effects))
    np.testing.assert_allclose(others, effects.sum(axis=0) - np.diag(effects))


def test_arrows_are_as_wide_as_the_flows():
    found = CASES["21"]
    arrows = [patch for patch in decision_figure(found).axes[0].patches if isinstance(patch, FancyArrowPatch)]
    amounts = [abs(flow.amount) for flow in strongest_flows(found)]
    assert amounts == sorted(amounts, reverse=True)
    widths = np.array([arrow.get_linewidth() for arrow in arrows])
    np.testing.assert_allclose(widths, 0.7 + 4.3 * np.array(amounts) / amounts[0])


def test_negligible_amounts_are_not_written():
    """The flow decreases along a chain."""
    found = reasons(explained(np.diag([0.3, 0.3, 0.02, 0.3, 0.02, 0.3], k=-1), np.ones(7), np.arange(7) == 0))
    amounts = [flow.amount for flow in strongest_flows(found)]
    np.testing.assert_allclose(amounts, [0.3, 0.09, 0.0018, 0.00054, 0, 0])
    graph = decision_figure(found).axes[0]
    assert {text.get_text() for text in graph.texts if text.get_text()[0] == "0"} == {"0.3", "0.09"}
    arrows = [patch for patch in graph.patches if isinstance(patch, FancyArrowPatch)]
    assert [to_hex(arrow.get_edgecolor()) for arrow in arrows].count(to_hex("0.75")) == 2


def test_edges_that_nothing_passes_along_are_drawn_if_they_are_few():
    n = MOST_ARMS
    few, many = np.eye(n, k=1), np.triu(np.ones((n, n)), 1)
    for A, grey in ((few, n - 1), (many, FEW_EDGES)):
        found = reasons(explained(0.01 * A, np.ones(n), np.zeros(n)))
        assert len(drawn_flows(found, strongest_flows(found), graph_arms(found))) == grey
    found = reasons(explained(0.01 * many, np.ones(n), np.arange(n) >= n - 5))
    drawn = drawn_flows(found, strongest_flows(found), graph_arms(found))
    assert len(drawn) == MOST_EDGES
    assert all(flow.amount for flow in drawn)
    assert {flow.cause for flow in drawn} >= set(range(n - 5, n))


def test_an_arm_with_edges_does_not_stand_alone():
    found = CROWDED["12-cyclic"]
    drawn = drawn_flows(found, strongest_flows(found), graph_arms(found))
    assert sum(flow.amount != 0 for flow in drawn) > FEW_EDGES
    assert len(drawn) < (found.adjacency != 0).sum()  # of those that nothing passes along not all
    assert {end for flow in drawn for end in (flow.cause, flow.effect)} == set(range(12))


def test_without_cycles_all_arrows_go_to_the_right():
    A = np.triu(np.random.default_rng(4).random((12, 12)) < 0.3, 1).astype(float)
    where = places(range(12), A)
    assert all(where[i][0] > where[j][0] for i, j in np.argwhere(A))
    assert len(set(where.values())) == 12
    ring = places(range(3), np.roll(np.eye(3), 1, axis=0))
    assert len(set(ring.values())) == 3


def test_an_unknown_graph_is_reported_as_unknown():
    found = reasons(explained(np.full((3, 3), np.nan), [0.5, 0.4, 0.3], [1, 0, 0], weights=[1.5, 1, 1]))
    graph = decision_figure(found).axes[0]
    assert graph.get_xlabel() == "The paths of the spill-over are not known."
    assert not [patch for patch in graph.patches if isinstance(patch, FancyArrowPatch)]


def test_names_stay_apart():
    assert shorten("Friuli Venezia Giulia", 12) == "Friul…Giulia"
    names = row_names([f"the same beginning, number {k}, and the same end of it all" for k in range(20)])
    assert len(set(names)) == 20


def test_names_are_shortened_where_they_do_not_differ():
    for k, (text, name) in enumerate(zip(short_names(LONG, 26), LONG, strict=True)):
        assert len(text) <= 26 + len(" (100)")
        assert f"number {k} " in text or text == name
        assert "(" not in text


@pytest.mark.parametrize("budget", every(2, [3, 20, 22, 24, 30]))
def test_chosen_arms_come_first_and_what_is_left_out_is_told(budget):
    found = decision(100, 0.03, budget)
    bars = decision_figure(found).axes[1]
    labels = [label.get_text() for label in bars.get_yticklabels()]
    chosen = [label for label in labels if "●" in label]
    left = max(budget - (MOST_ARMS - RUNNERS_UP), 0)
    assert len(chosen) == budget - left
    assert labels[: len(chosen)] == chosen
    assert (f"left out: {left} chosen, at most" in bars.get_title()) == (left > 0)
    assert f"{100 - budget - (MOST_ARMS - len(chosen))} not chosen, at most" in bars.get_title()
    # how close it was: the last of the chosen beside the best of the others
    ranked = [arm.arm for arm in found.ranked()]
    near = slice(len(chosen) - 1, len(chosen) + RUNNERS_UP)
    assert [" ".join(label.split()[:2]) for label in labels[near]] == ranked[budget - 1 : budget + RUNNERS_UP]


@pytest.mark.parametrize(("budget", "share"), [(5, 0.85), (10, 0.62), (30, 0.43)])
def test_of_many_arms_the_graph_has_those_that_most_passes_between(budget, share):
    found = decision(100, 0.03, budget)
    nodes = graph_arms(found)
    assert len(nodes) == MOST_ARMS
    drawn = drawn_flows(found, strongest_flows(found), nodes)
    assert sum(abs(flow.amount) for flow in drawn) > share * np.abs(found.flows).sum()
    # no chosen arm stands there as if it passed nothing on
    for arm in [arm for arm in nodes if arm.chosen and np.abs(found.flows[:, arm.position]).max() > 0.01]:
        assert any(flow.cause == arm.position for flow in drawn)
    chosen = sum(arm.chosen for arm in nodes)
    assert chosen >= min(budget, MOST_SOURCES)


@pytest.mark.parametrize("name", ["21", "100", "100-dense"])
def test_every_circle_has_a_bar_or_a_name(name):
    graph, bars = decision_figure(CASES[name]).axes
    circled = {int(text.get_text()) for text in graph.texts if text.get_text().isdigit()}
    assert len(circled) == len(circles(graph))
    at_bars = {}
    for row, label in enumerate(bars.get_yticklabels(), start=1):
        if number := re.search(r"   (\d+) [●○]$", label.get_text()):
            at_bars[row] = int(number[1])
    assert all(row == number for row, number in at_bars.items())
    below = {int(number) for number in re.findall("[ \n](\\d+)\N{NO-BREAK SPACE}", graph.get_xlabel())}
    assert circled == set(at_bars.values()) | below
    assert not below & set(at_bars.values())


def star(n, budget):
    """All arms but one in a column."""
    A = np.zeros((n, n))
    A[0, 1:] = np.linspace(0.1, 0.5, n - 1)
    return reasons(explained(A, np.linspace(0.3, 0.9, n), np.arange(n) >= n - budget))


def with_amounts(seed):
    """Some arrows with numbers: with these seeds they would stand on arms if only texts had to be kept clear of."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    A = np.triu(rng.uniform(0.2, 0.5, (n, n)) * (rng.random((n, n)) < 0.4), 1)
    return reasons(explained(A, rng.uniform(0.3, 1, n), np.arange(n) >= n - 3))


CROWDED = {f"star-{n}": star(n, 3) for n in (4, 6, 9, 12, 24)}
CROWDED |= {f"{n}-{density}": decision(n, density, 3) for n in range(3, 13) for density in (0.2, 0.4)}
CROWDED |= {
    f"chain-{n}": reasons(explained(0.5 * np.eye(n, k=1), np.ones(n), np.arange(n) >= n - 3)) for n in (8, 12, 24)
}
CROWDED |= {f"amounts-{seed}": with_amounts(seed) for seed in (18, 22, 44, 50)}
CROWDED |= {
    f"{n}-two-lines": decision(n, 0.3, 3, names=[f"the name {k} in two lines" for k in range(n)]) for n in (5, 8, 12)
}
CROWDED |= {f"{n}-cyclic": decision(n, 0.3, 3, acyclic=False) for n in range(4, 13)}


@pytest.mark.parametrize("name", every(6, CROWDED))
def test_arms_and_what_is_written_stand_apart(name):
    figure = decision_figure(CROWDED[name])
    graph = figure.axes[0]
    assert faults(figure) == []
    arms = circles(graph)
    assert len(arms) == len(CROWDED[name].arms)
    for one, other in itertools.combinations(arms, 2):
        away = np.hypot(*(one.corners() - other.corners()).mean(axis=0))
        assert away > (one.width + other.width) / 2
    for text in graph.texts:
        inside = text.get_text().isdigit()  # the number of the arm
        assert text.get_window_extent().count_overlaps([box.padded(-1) for box in arms]) == inside, text.get_text()
    (left, low), (right, high) = graph.bbox.padded(2).get_points()
    arrows = [patch for patch in graph.patches if isinstance(patch, FancyArrowPatch)]
    for arrow in arrows:
        x, y = np.concatenate(arrow.get_path().transformed(arrow.get_transform()).to_polygons(closed_only=False)).T
        assert left < x.min() <= x.max() < right  # else it would be cut off
        assert low < y.min() <= y.max() < high
        line = quadratic(*corners_of(arrow)[:3])
        for box in arms:  # its own too: it begins and ends outside of them
            away = np.hypot(*(line - box.corners().mean(axis=0)).T).min()
            assert away > box.width / 2
    names = [text for text in graph.texts if text.get_text().startswith(("arm", "the name"))]
    on_heads = sum(text.get_window_extent().count_overlaps(heads(arrows)) for text in names)
    assert on_heads <= 1  # a thin one between two circles that stand close


def test_names_make_way_for_arrow_heads(monkeypatch):
    """However they would stand by the places of the arms alone."""
    monkeypatch.setattr("spillover.figures.flows.named_above", lambda drawn, where: set(where))
    graph = decision_figure(CROWDED["chain-12"]).axes[0]
    arrows = [patch for patch in graph.patches if isinstance(patch, FancyArrowPatch)]
    names = [text for text in graph.texts if text.get_text().startswith("arm")]
    assert len(names) == 12
    assert not any(text.get_window_extent().count_overlaps(heads(arrows)) for text in names)


def heads(arrows):
    """Boxes around the heads."""
    corners = [corners_of(arrow)[3:] for arrow in arrows]
    return [Bbox([head.min(axis=0), head.max(axis=0)]) for head in corners]


def test_dollars_in_names_are_no_formulas():
    figure = decision_figure(decision(3, 0.6, 1, names=["$5_{ or $6", "a $x$", "b"]))
    assert figure_bytes(figure)
    assert faults(figure) == []


def test_the_same_decision_gives_the_same_bytes():
    assert figure_bytes(decision_figure(CASES["five"])) == figure_bytes(decision_figure(CASES["five"]))
