"""Figures: what is drawn is what was measured."""

import numpy as np

import spillover as sp
from spillover.report import regret_figure, save_figure

WORLD = sp.SyntheticSEM(n_arms=5, budget=2, horizon=40, changes=(10, 30))


def test_regret_is_drawn_with_its_band_and_the_changes(tmp_path) -> None:
    runs = {
        name: sp.simulate(policy, WORLD, 2, replications=4)
        for name, policy in (("random", sp.Uniform()), ("NDC-SEM", sp.NDCSEM()))
    }
    ax = regret_figure(runs, title="a title")
    curves = {line.get_label(): line for line in ax.lines if not str(line.get_label()).startswith("_")}
    assert set(curves) == {"random", "NDC-SEM"}
    np.testing.assert_array_equal(curves["NDC-SEM"].get_ydata(), runs["NDC-SEM"].regret.mean(axis=0))
    assert sorted(line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 2) == [10, 30]
    assert len(ax.collections) == 2
    assert len({line.get_linestyle() for line in curves.values()}) == 2  # told apart in grey, too
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        save_figure(ax.figure, tmp_path / f"regret.{ending}")
        assert (tmp_path / f"regret.{ending}").read_bytes().startswith(start)
