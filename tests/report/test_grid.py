"""Heat maps of a search: one for each place, with the values of its cells."""

import numpy as np

import spillover as sp
from spillover.experiments.tune import tune
from spillover.figures.grid import draw_grid

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
