"""Figures: what is drawn is what was measured, in styles that differ."""

import base64
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

import spillover as sp
from spillover import figures as drawn_figures
from spillover.experiments.tune import tune
from spillover.figures.graph import FALSE, MISSED, RIGHT
from spillover.figures.grid import draw_grid
from spillover.metrics import mean_interval
from spillover.policies import POLICIES
from spillover_studies.covid.plan import DISCOUNTS, EXPLORATIONS
from tests.report import layout
from tests.report.examples import CHANGES, LABELS, differences, graph, learned, made_up, steps, studies, study

figures: Any = drawn_figures  # artists have attributes that their stubs do not know


def named(ax):
    """Lines with a name of their own."""
    return {line.get_label(): line for line in ax.lines if not str(line.get_label()).startswith("_")}


def test_regret_is_drawn_with_its_band_and_the_changes() -> None:
    records = study()
    ax = figures.regret_figure(records, title="a title")
    for record, band in zip(records, ax.collections, strict=True):
        mean, low, high = mean_interval(record.regret)
        np.testing.assert_array_equal(named(ax)[record.label].get_ydata(), mean)
        np.testing.assert_array_equal(named(ax)[record.label].get_xdata(), record.rounds)
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == pytest.approx((low.min(), high.max()))
    assert [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2] == list(CHANGES)
    assert ax.get_title() == "a title"
    assert ax.get_ylim()[0] < 0  # the oracle's line is on 0, and not under the frame


def test_panels_share_one_scale_and_one_legend() -> None:
    panels = figures.regret_panels(studies())
    assert [ax.get_title() for ax in panels] == list(studies())
    assert len({ax.get_ylim() for ax in panels}) == 1
    legend = figures.figure_of(panels[0]).legends
    assert [t.get_text() for t in legend[0].get_texts()] == [*LABELS.values(), "change of the means"]
    assert len(legend) == 1


def test_given_axes_are_used_and_get_no_legend() -> None:
    given = figures.new_panels(1, 3)
    assert figures.regret_panels(studies(), axes=given) == given
    assert not figures.figure_of(given[0]).legends
    ax = figures.new_axes()
    assert figures.regret_figure(study(), ax=ax) is ax
    assert figures.ratio_figure(study(), ax=figures.new_axes()).figure.legends == []


def test_one_replication_has_no_band() -> None:
    ax = figures.regret_figure([made_up("ndc-sem", replications=1)])
    assert np.isfinite(ax.get_ylim()).all()
    assert figures.figure_bytes(figures.figure_of(ax)).startswith(b"\x89PNG")


def test_styles_are_fixed_and_differ_in_grey() -> None:
    styles = figures.styles_for([*POLICIES, *(f"mine-{k}" for k in range(8))])
    assert len({(s.color, s.linestyle) for s in styles.values()}) == len(styles)
    assert len({(s.linestyle, s.marker) for s in styles.values()}) == len(styles)  # without any colour
    core = [styles[name] for name in LABELS]
    assert len({s.linestyle for s in core if s.color != "#000000"}) == 6
    assert len({s.hatch for s in core[:6]}) == 6
    for name in POLICIES:
        assert figures.styles_for([name])[name] == styles[name]


def test_a_policy_of_ones_own_keeps_the_style_it_is_given() -> None:
    styles = figures.styles_for(["a", "b"])
    ax = figures.regret_figure([made_up("b")], styles=styles)
    assert named(ax)["b"].get_color() == styles["b"].color
    alone = figures.regret_figure([made_up("b")])
    assert named(alone)["b"].get_color() == styles["a"].color


def test_means_are_steps_in_rows_and_the_best_are_filled() -> None:
    means, best = steps(5)
    ax = figures.means_figure(means, best=best, changes=CHANGES)
    rows = [line for line in ax.lines if str(line.get_label()).startswith("_arm")]
    for i, line in enumerate(rows):
        np.testing.assert_array_equal(line.get_xdata(), [1, *CHANGES, 5001])
        np.testing.assert_allclose((i + 0.96 - line.get_ydata()[:4]) / 0.86, means[[0, 1000, 2500, 4000], i])
    written = [t.get_text() for t in ax.texts]
    assert written == [f"{v:.2f}" for i in range(5) for v in means[[0, 1000, 2500, 4000], i]]
    assert {to_hex(c.get_facecolor()[0]) for c in ax.collections if len(c.get_facecolor())} == {"#56b4e9", "#e0e0e0"}


def test_means_in_cases_have_their_own_scale() -> None:
    ax = figures.means_figure(np.tile([[10.0, 250.0]], (50, 1)), names=["a", "b"])
    assert "from 0 to 250" in ax.get_ylabel()


def test_bars_are_the_optimality_ratios() -> None:
    records = study(("ndc-sem", "sem-ucb"))
    ax = figures.ratio_figure(records)
    bars = [c for c in ax.containers if hasattr(c, "patches")]
    for record, container in zip(records, bars, strict=True):
        np.testing.assert_allclose(
            [bar.get_height() for bar in container.patches], record.optimality_ratio.mean(axis=0)
        )
        segments = container.errorbar.lines[2][0].get_segments()
        _, low, high = mean_interval(record.optimality_ratio)
        np.testing.assert_allclose([s[:, 1] for s in segments], np.stack([low, high], axis=1))
    assert len({container.patches[0].get_hatch() for container in bars}) == 2
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1–999", "1000–2499", "2500–3999", "4000–5000"]


def test_graph_error_is_drawn_by_delay_on_a_log_scale() -> None:
    records = [made_up("ndc-sem", d) for d in ("50", "200", "400")]
    ax = figures.graph_error_figure([*records, made_up("random")])
    assert ax.get_yscale() == "log"
    for record in records:
        line = named(ax)[f"D = {record.delay}"]
        np.testing.assert_allclose(line.get_ydata(), record.graph_error.mean(axis=0))
    two = figures.graph_error_figure([made_up(p, d) for p in ("ndc-sem", "sem-ucb") for d in ("50", "200")])
    assert "SEM-UCB, D = 200" in named(two)
    with pytest.raises(ValueError, match="records = \\['random'\\]: must be some with an estimate"):
        figures.graph_error_figure([made_up("random")])


def test_edges_are_told_right_missed_and_false() -> None:
    truth = graph(10, 8)
    kinds = [e.kind for e in figures.edges_of(learned(truth), truth)]
    assert (kinds.count(RIGHT), kinds.count(MISSED), kinds.count(FALSE)) == (7, 1, 1)
    left, right = figures.graph_pair(truth, learned(truth))
    assert "7 right, 1 missed, 1 false" in right.get_title()
    arrows = {a.get_label(): a for a in right.patches if isinstance(a, FancyArrowPatch) and "A[" in str(a.get_label())}
    assert len(arrows) == 9
    assert sum(isinstance(a, FancyArrowPatch) and "A[" in str(a.get_label()) for a in left.patches) == 8
    for i, j in np.argwhere(truth > 0):
        points: Any = arrows[f"_A[{i + 1},{j + 1}]"].get_path().vertices
        assert abs(points[0, 0] - j) <= 0.3  # from the cause
        assert abs(points[3, 0] - i) <= 0.3  # to the effect; what follows is the head


def test_heavier_edges_are_wider() -> None:
    adjacency = np.zeros((3, 3))
    adjacency[0, 1], adjacency[0, 2] = 0.2, 0.8
    ax = figures.graph_figure(adjacency)
    widths = {str(p.get_label()): p.get_linewidth() for p in ax.patches}
    assert widths["_A[1,2]"] < widths["_A[1,3]"]
    assert {"A[1,2]\n0.20", "A[1,3]\n0.80"} <= {t.get_text() for t in ax.texts}


@pytest.mark.parametrize("smaller", [True, False])
def test_the_best_cell_is_marked(smaller) -> None:
    values = np.array([[3.0, np.nan, 2.0], [1.0, 5.0, 4.0]])
    ax = figures.grid_figure(values, [0.9, 0.985], [0, 1e-10, 0.3], smaller_is_better=smaller)
    frame = next(p for p in ax.patches if p.get_label() == "best")
    assert frame.get_xy() == ((0.5, -0.5) if smaller else (0.5, 0.5))
    np.testing.assert_array_equal(np.ma.filled(ax.images[0].get_array(), np.nan), values.T)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["0", "$10^{-10}$", r"$3\cdot10^{-1}$"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0.9", "0.985"]
    assert len(ax.texts) == 5


def test_a_cell_of_interest_is_circled_if_the_grid_has_it() -> None:
    for cell, expected in (((0.985, 1e-10), [(1.0, 1.0)]), ((0.985, 1e-9), []), ((0.5, 0.3), [])):
        ax = figures.grid_figure(np.ones((2, 3)), [0.9, 0.985], [0, 1e-10, 0.3], circled=cell)
        circles = [ring for ring in ax.patches if ring.get_label() == "_circled"]
        assert [ring.center for ring in circles] == expected


def test_every_discount_and_exploration_of_the_covid_grid_has_a_label() -> None:
    ax = figures.grid_figure(np.ones((10, 22)), DISCOUNTS, EXPLORATIONS)
    shown = [[label.get_text() for label in labels if label.get_visible()] for labels in tick_labels(ax)]
    assert shown[0] == ["0.5", "0.6", "0.65", "0.7", "0.75", "0.8", "0.85", "0.9", "0.95", "0.99"]
    assert len(shown[1]) == 22
    assert [shown[1][k] for k in (0, 1, 18, 19, 20)] == [
        "$10^{-8}$",
        r"$3\cdot10^{-8}$",
        "$10^{-2}$",
        r"$7\cdot10^{-2}$",
        "$10^{-1}$",
    ]
    assert layout.faults(figures.figure_of(ax)) == []


def test_labels_that_would_touch_each_other_are_left_out_evenly() -> None:
    discounts = np.arange(50, 90) / 100
    ax = figures.grid_figure(np.ones((40, 2)), discounts, [0.1, 1.0])
    shown = [float(label.get_text()) for label in tick_labels(ax)[0] if label.get_visible()]
    step = 40 // len(shown)
    assert 2 <= step <= 5
    np.testing.assert_array_equal(shown, discounts[::step])
    assert layout.faults(figures.figure_of(ax)) == []


def tick_labels(ax: Any) -> tuple[Any, Any]:
    return ax.get_xticklabels(), ax.get_yticklabels()


def test_regret_against_the_delay() -> None:
    records = [made_up("ndc-sem", d) for d in ("400", "50", "uniform-50")]
    ax = figures.delay_figure(records, {"50": 50, "400": 400, "uniform-50": 50}, random=["uniform-50"])
    constant, random = (c for c in ax.containers[:2])
    np.testing.assert_allclose(
        constant.lines[0].get_ydata(), [records[1].regret[:, -1].mean(), records[0].regret[:, -1].mean()]
    )
    np.testing.assert_allclose(constant.lines[0].get_xdata(), [50, 400])
    np.testing.assert_allclose(random.lines[0].get_ydata(), [records[2].regret[:, -1].mean()])
    assert random.lines[0].get_markerfacecolor() == "white"
    _, low, high = mean_interval(records[1].regret[:, -1])
    np.testing.assert_allclose(constant.lines[2][0].get_segments()[0][:, 1], [low, high])
    with pytest.raises(ValueError, match=r"delays = .*: must be a mean delay for each of \['400'"):
        figures.delay_figure(records, {"50": 50})


def test_forest_shows_means_intervals_and_zero() -> None:
    ax = figures.forest_figure(differences())
    means = [line for line in ax.lines if line.get_label() == "_mean"]
    assert [line.get_xdata()[0] for line in means] == [-312, 120, 50]
    assert [line.get_markerfacecolor() == "white" for line in means] == [False, True, True]
    intervals = [list(line.get_xdata()) for line in ax.lines if line.get_label() == "_interval"]
    assert intervals[:2] == [[-400, -220], [-30, 270]]
    texts = [" ".join(t.get_text().split()) for t in ax.texts]
    assert [text.split(": ")[1] for text in texts] == ["−312 [−400, −220]", "+120 [−30, +270]", "+50"]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.regret_figure([]), "records = \\[\\]: must be at least one"),
        (lambda: figures.ratio_figure([]), "records = \\[\\]: must be at least one"),
        (lambda: figures.forest_figure([]), "differences = \\[\\]: must be at least one"),
        (lambda: figures.means_figure(np.zeros(3)), "shape of means = \\(3,\\): must be"),
        (
            lambda: figures.means_figure(np.zeros((3, 2)), names=["a"]),
            "names = \\('a',\\): must be one for each of the 2",
        ),
        (lambda: figures.graph_figure(np.zeros((2, 3))), "shape of adjacency = \\(2, 3\\): must be"),
        (lambda: figures.graph_pair(np.zeros((2, 2)), np.zeros((3, 3))), "shape of truth = \\(2, 2\\): must be"),
        (lambda: figures.grid_figure(np.zeros((2, 3)), [1], [1, 2]), "shape of values = \\(2, 3\\): must be"),
        (lambda: figures.grid_figure(np.full((1, 1), np.nan), [1], [1]), "values = .*: must be a finite number"),
    ],
)
def test_bad_input_is_named(draw, message) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


# --- Heat maps of a search: one for each place, with the values of its cells ----------------------------------------


WORLD = sp.SyntheticSEM(n_arms=4, budget=2, horizon=60, changes=())


def test_a_heat_map_for_a_grid_of_discount_and_exploration(tmp_path):
    grid = {"discount": [0.5, 0.9], "exploration": [1e-3, 0.1, 1.0]}
    found = tune(sp.NDCSEM(), WORLD, 2, grid=grid, replications=2)
    paths = draw_grid(found.to_frame(), tmp_path)
    assert sorted(path.suffix for path in paths) == [".pdf", ".png", ".svg"]
    assert all(path.stat().st_size > 1000 for path in paths)
    text = next(path for path in paths if path.suffix == ".svg").read_text()
    best = found.best().iloc[0]
    assert np.isclose(found.to_frame()["final_regret"].min(), best["final_regret"])
    assert "<svg" in text


def test_none_without_both_axes(tmp_path):
    found = tune(sp.NDCSEM(), WORLD, 2, grid={"graph.sparsity": [1e-3, 0.1]}, replications=2)
    assert draw_grid(found.to_frame(), tmp_path) == []
    assert not list(tmp_path.iterdir())


# --- Figures as files, and as parts of a page -----------------------------------------------------------------------


def one():
    return figures.figure_of(figures.regret_figure(study(("ndc-sem", "random"))))


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_figure_gives_the_same_bytes(ending, start, tmp_path) -> None:
    figures.save_figure(one(), tmp_path / f"first.{ending}")
    figures.save_figure(one(), tmp_path / f"again.{ending.upper()}")
    first = (tmp_path / f"first.{ending}").read_bytes()
    assert first.startswith(start)
    assert first == (tmp_path / f"again.{ending.upper()}").read_bytes()


def test_three_formats_at_once(tmp_path) -> None:
    figure = one()
    for name in ("delay-0.5", "with.svg"):
        paths = figures.save_figures(figure, tmp_path / name, dpi=50)
        assert [p.name for p in paths] == [f"{name.removesuffix('.svg')}.{e}" for e in ("png", "svg", "pdf")]
        assert all(p.stat().st_size > 1000 for p in paths)


def test_an_unknown_format_is_refused_and_nothing_written(tmp_path) -> None:
    with pytest.raises(ValueError, match="format = 'gif': must be one of png, svg, pdf"):
        figures.save_figure(one(), tmp_path / "a.gif")
    assert not list(tmp_path.iterdir())


def test_an_image_in_a_page() -> None:
    tag = figures.html_image(one(), alt='regret of "A" & B')
    found = re.fullmatch(r'<img src="data:image/png;base64,([^"]+)" width="480" alt="([^"]+)">', tag)
    assert found
    assert base64.b64decode(found[1]) == figures.figure_bytes(one())
    assert found[2] == "regret of &quot;A&quot; &amp; B"


def test_drawings_in_a_page_do_not_share_ids() -> None:
    drawings = [figures.html_svg(one(), "regret", name=name) for name in ("a", "b")]
    ids = []
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)  # well-formed, without declaration and document type
        assert (root.get("role"), root.get("aria-label")) == ("img", "regret")
        own = {e.get("id") for e in root.iter() if e.get("id")}
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', drawing))
        assert used <= own
        ids.append(own)
    assert not ids[0] & ids[1]
    with pytest.raises(ValueError, match="name = '1 x': must be a letter"):
        figures.html_svg(one(), "regret", name="1 x")
