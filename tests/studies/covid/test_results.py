"""The Covid-19 study on small shapes: what is scored is what a loop over days and regions gives."""

import json
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from spillover.experiments.store import CellStore
from spillover.graph import SparseGraph
from spillover.policies import NDCSEM
from spillover.rng import Rng
from spillover.simulation import rounds
from spillover_studies.covid import (
    LITERAL,
    SEMI,
    CovidPlan,
    clustered_interval,
    is_covid_study,
    open_study,
    run_study,
    validation_days,
)
from spillover_studies.covid.plan import (
    BOUNDED_RULE,
    OTHER_SEED,
    PAPER_RULE,
    RULES,
    SPARSITY_SEED,
    SQUARED_RULE,
    VARIANTS,
    run_name,
)
from spillover_studies.covid.play import ONE_RUN, best_cell, prepare_all
from spillover_studies.covid.record import covid_italy, simulated_outbreak
from spillover_studies.covid.results import FORMAT, cell_name
from spillover_studies.covid.scores import (
    absolute_error,
    forced_choices,
    has_finite_spread,
    last_values,
    predict_from_all,
    predict_from_specific,
    since,
    weights_of,
)
from spillover_studies.covid.worlds import literal_world, shifted, spectral_radius
from tests.record import NEEDS_RECORD

SMALL = CovidPlan(shifts=(3, 11), seeds=2, discounts=(0.7, 0.85), explorations=(1e-4, 0.1))
FOLDER = os.environ.get("SPILLOVER_COVID_DATA")
needs_record = pytest.mark.skipif(not FOLDER, reason=NEEDS_RECORD)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return run_study(simulated_outbreak()[0], tmp_path_factory.mktemp("covid"), SMALL)


def test_rewards_are_those_of_a_loop(study) -> None:
    found, data = study.played(LITERAL, "ndc-sem"), study.data
    curves = study.rewards(LITERAL, "ndc-sem")
    for k, s in np.ndindex(2, 2):
        own, common, before = (
            np.linalg.inv(np.eye(21) - a[k, s]).sum(axis=0) for a in (found.adjacency, study.common(), study.star())
        )
        totals = dict.fromkeys(curves, 0.0)
        for day in range(1, 81):
            for i in range(21):
                if not found.x[k, s, day - 1, i]:
                    continue
                b = data["specific"][k, s, day - 1, i]
                source = i if day < 40 else (i + SMALL.shifts[k]) % 21
                totals["own"] += own[i] * b
                totals["common"] += common[i] * b
                totals["moving"] += before[source] * b
                totals["specific"] += b
                totals["recorded"] += data["overall"][k, s, day - 1, i]
            for name, curve in curves.items():
                assert curve[k, s, day - 1] == pytest.approx(totals[name], rel=1e-9)


def test_results_on_the_unit_scale_are_in_cases(study) -> None:
    found = study.played(LITERAL, "ndc-sem-unit")
    np.testing.assert_allclose(found.z, np.where(found.x, study.data["specific"], 0.0), rtol=1e-12)
    np.testing.assert_allclose(found.y, study.data["overall"], rtol=1e-12)
    assert study.about["unit"] == study.data["unshifted_overall"].max()


def test_all_policies_meet_the_same_data(study) -> None:
    first = study.played(LITERAL, "ndc-sem")
    for variant in VARIANTS:
        other = study.played(LITERAL, variant.name)
        np.testing.assert_array_equal(other.x[..., :21, :], first.x[..., :21, :])  # the initialisation is drawn alike
        np.testing.assert_allclose(other.y, first.y, rtol=1e-12)


def test_regret_is_recomputed_from_the_graph(study) -> None:
    found, weights = study.played(SEMI, "ndc-sem"), weights_of(study.star())
    scores = weights[..., None, :] * study.data["expected"]
    best = np.sort(scores, axis=-1)[..., -5:].sum(axis=-1)
    daily = best - (scores * found.x).sum(axis=-1)
    np.testing.assert_allclose(found.regret, np.cumsum(daily, axis=-1), rtol=1e-9)
    assert np.isnan(study.played(LITERAL, "ndc-sem").regret).all()
    delayed = study.played(SEMI, "delayed-oracle").regret
    assert (np.diff(delayed[..., 5:39]) == 0).all()
    assert (np.diff(delayed[..., 44:]) == 0).all()


def test_intervals_are_clustered_by_shift() -> None:
    values = np.random.default_rng(0).normal(size=(6, 4)) + np.arange(6)[:, None]
    means = [sum(row) / len(row) for row in values]  # the slow twin
    centre = sum(means) / 6
    spread = (sum((m - centre) ** 2 for m in means) / 5) ** 0.5
    half = stats.t.ppf(0.975, 5) * spread / 6**0.5
    np.testing.assert_allclose(clustered_interval(values), (centre, centre - half, centre + half))
    naive = 1.96 * values.std() / np.sqrt(values.size)
    assert half > 1.5 * naive  # seeds of one shift are no independent evidence
    with pytest.raises(ValueError, match=r"shape of values = \(3,\): must be \(shifts, seeds, \.\.\.\)"):
        clustered_interval(np.zeros(3))


def test_no_weights_where_the_spill_over_does_not_die_out() -> None:
    good, bad = np.zeros((2, 3, 3))
    good[0, 1] = 0.5
    bad[0, 1], bad[1, 0] = 2.0, 0.5  # spectral radius 1
    weights = weights_of(np.stack([good, bad, np.full((3, 3), np.nan)]))
    np.testing.assert_allclose(weights[0], [1, 1.5, 1])
    assert np.isnan(weights[1:]).all()
    assert np.isnan(predict_from_specific(bad, np.ones(3))).all()


def test_whether_the_spill_over_dies_out_is_told_by_the_eigenvalues() -> None:
    graphs = np.random.default_rng(0).uniform(-0.6, 0.6, (200, 8, 8))
    finite = spectral_radius(graphs) < 1
    assert 0.2 < finite.mean() < 0.8
    np.testing.assert_array_equal(has_finite_spread(graphs), finite)


def test_predictions_by_hand() -> None:
    a = np.zeros((3, 3))
    a[0, 1], a[2, 0] = 0.5, 0.25
    z, y = np.array([1.0, 0.0, 2.0]), np.array([4.0, 6.0, 8.0])
    np.testing.assert_allclose(predict_from_all(a, z, y), [1 + 3, 0, 2 + 1])
    np.testing.assert_allclose(predict_from_specific(a, z), [1, 0, 2.25])
    assert absolute_error(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0])) == 1.0


def test_naive_forecasts_know_only_what_had_arrived() -> None:
    y = np.arange(1, 81)[:, None] * np.ones(2)  # day t shows t
    days = validation_days()
    np.testing.assert_array_equal(last_values(y, days, 3)[1:, 0], days[1:] - 4)  # day t knows up to t - 1 - 3
    np.testing.assert_array_equal(last_values(y, days, 0)[:, 0], days - 1)
    assert np.isnan(last_values(y, np.array([4]), 3)).all()


def test_forced_choices_are_those_of_which_nothing_is_known(study) -> None:
    x = study.played(LITERAL, "ndc-sem").x
    forced = forced_choices(x, SMALL.delay)
    for k, s in np.ndindex(2, 2):
        for day in range(1, 81):
            known = x[k, s, : max(day - 1 - 3, 0)].any(axis=0)
            np.testing.assert_array_equal(forced[k, s, day - 1], x[k, s, day - 1] & ~known & (day > 21))
    assert set(np.argwhere(forced)[:, 2] + 1) == {22, 23, 24}
    assert (forced.sum(axis=(-2, -1)) == 3 + 2 + 1).all()


def test_graphs_at_decision_time_have_not_seen_the_day(study) -> None:
    """On the first validation day one day has arrived; the final graph has seen all but the held-out ones."""
    found, at = study.played(LITERAL, "ndc-sem"), validation_days() - 1
    z, y = found.z[..., at, :], found.y[..., at, :]
    final = predict_from_all(found.adjacency[..., None, :, :], z, y)
    assert found.ahead_from_all.shape == final.shape == (2, 2, 8, 21)
    assert not np.allclose(found.ahead_from_all[..., -1, :], final[..., -1, :])


def test_a_cell_of_the_grid_is_the_single_run(study) -> None:
    """The paper's cell on the first reported seed, with the grid's lambda."""
    grid, seeds = study.grid("cases", "reported"), SMALL.data_seeds([0])
    assert grid.rewards["own"].shape == (2, 2, 2)
    world = literal_world(prepare_all(simulated_outbreak()[0], SMALL, seeds))
    graph = SparseGraph(sparsity=study.grid_sparsity("cases"), row_bound=None)
    policy = NDCSEM(discount=0.85, exploration=0.1, unit=1.0, graph=graph)
    played = list(rounds(policy, world, 3, Rng(0, seeds), seeds.shape))
    z = sum(one.outcome.z for one in played)
    own = (weights_of(played[-1].state.graph.adjacency) * z).sum(axis=-1)[:, 0]
    np.testing.assert_allclose(grid.rewards["own"][1, 1], own, rtol=1e-9)


def test_the_grid_of_one_run_is_searched_as_in_the_paper(study) -> None:
    """Only the run that figures show, with lambda chosen online by the paper's rule in each cell."""
    grid, seeds = study.grid("cases", ONE_RUN), SMALL.data_seeds([0])[[SMALL.picture]]
    assert grid.rewards["own"].shape == (2, 2, 1)
    world = literal_world([prepare_all(simulated_outbreak()[0], SMALL, SMALL.data_seeds([0]))[SMALL.picture]])
    for i, j in np.ndindex(2, 2):
        policy = NDCSEM(
            discount=SMALL.discounts[i], exploration=SMALL.explorations[j], unit=1.0, graph=RULES[PAPER_RULE]
        )
        played = list(rounds(policy, world, 3, Rng(0, seeds), seeds.shape))
        own = weights_of(played[-1].state.graph.adjacency) * sum(one.outcome.z for one in played)
        assert grid.rewards["own"][i, j, 0] == pytest.approx(float(own.sum()), rel=1e-9)


def test_all_rules_are_played_on_the_same_data(study) -> None:
    """The rules differ in the graph alone: initialisations are equal, and A* is that of the rule."""
    paper = study.played(LITERAL, "ndc-sem", PAPER_RULE)
    for rule in (BOUNDED_RULE, SQUARED_RULE):
        other = study.played(LITERAL, "ndc-sem", rule)
        np.testing.assert_array_equal(paper.x[..., :21, :], other.x[..., :21, :])
        np.testing.assert_array_equal(paper.y, other.y)
        assert not np.array_equal(paper.adjacency, other.adjacency)
    assert study.played(LITERAL, "ndc-sem", BOUNDED_RULE).adjacency.sum(axis=-1).max() <= 0.95 + 1e-9
    assert paper.adjacency.sum(axis=-1).max() > 1  # as in the paper, there is no bound
    assert spectral_radius(paper.adjacency).max() < 1
    for rule in (PAPER_RULE, SQUARED_RULE):
        played = study.played(SEMI, "ndc-sem", PAPER_RULE, rule)
        total = np.linalg.inv(np.eye(21) - study.star(rule))
        np.testing.assert_allclose(played.y[..., -1, :], (total @ played.z[..., -1, :, None])[..., 0], rtol=1e-9)


def test_without_a_graph_weights_are_one(study) -> None:
    found = study.played(LITERAL, "ndc-sem-no-graph")
    assert not found.adjacency.any()
    assert np.isnan(found.sparsity).all()


def test_the_best_cell_and_the_seeds_it_is_chosen_on() -> None:
    values = np.zeros((2, 3, 4))
    values[1, 2] = 1.0
    assert best_cell(values) == (1, 2)
    assert {OTHER_SEED, SPARSITY_SEED}.isdisjoint(range(CovidPlan().seeds))


def test_more_seeds_leave_the_first_ones_as_they_were() -> None:
    few, many = CovidPlan(seeds=2).data_seeds(), CovidPlan(seeds=10).data_seeds()
    np.testing.assert_array_equal(few, many[:, :2])
    assert len(np.unique(many)) == 200


def test_a_study_is_kept_and_goes_on(study) -> None:
    again: list[str] = []
    kept = run_study(simulated_outbreak()[0], study.folder, SMALL, notify=again.append)
    assert again == []
    part = run_name(LITERAL, "sem-ucb", PAPER_RULE, PAPER_RULE)
    name = cell_name(part, study.about["identity"])
    (study.folder / "cells" / f"{name}.npz").write_bytes(b"half")
    with pytest.raises(
        ValueError, match="literal-sem-ucb-paper-paper is missing, damaged or of another study: run the study again"
    ):
        kept.played(LITERAL, "sem-ucb")
    run_study(simulated_outbreak()[0], study.folder, SMALL, notify=again.append)
    assert again == [part]
    opened = open_study(study.folder)
    assert opened.plan == SMALL
    assert opened.simulated
    assert is_covid_study(study.folder)


def test_studies_in_one_folder_leave_each_other_alone(tmp_path) -> None:
    record = simulated_outbreak()[0]
    tiny = CovidPlan(shifts=(3,), seeds=1, discounts=(0.85,), explorations=(0.1,))
    first = run_study(record, tmp_path, tiny)
    kept = {path: path.read_bytes() for path in (tmp_path / "cells").iterdir()}
    second = run_study(record, tmp_path, replace(tiny, seed=1))
    assert {path: path.read_bytes() for path in kept} == kept
    assert open_study(tmp_path).plan.seed == 1
    again: list[str] = []
    back = run_study(record, tmp_path, tiny, notify=again.append)
    assert again == []
    assert back.about["seconds"] == first.about["seconds"] > 0  # of the run that computed
    for path in (tmp_path / "cells").glob(f"*{first.about['identity'][:16]}.npz"):
        path.unlink()
    with pytest.raises(ValueError, match="data is missing, damaged or of another study: run the study again"):
        _ = open_study(tmp_path).data
    name = cell_name("data", first.about["identity"])
    CellStore(tmp_path).write(name, second.data, {"identity": second.about["identity"]})
    with pytest.raises(ValueError, match="data is of another study: run the study again"):
        _ = open_study(tmp_path).data


def test_an_invalid_study_json_is_refused(tmp_path) -> None:
    good = {"kind": "covid", "format": FORMAT, "identity": "a", "plan": {}}
    for content, message in (
        ([], "must be a file written by run_study"),
        ({"kind": "covid"}, "format = None: must be a whole number from 1"),
        ({"kind": "covid", "format": 1}, "run the study again"),
        (good | {"plan": 3}, "plan: must be the settings"),
        (good | {"plan": {"sedes": 3}}, "plan: must be the settings"),
        (good, "must have attribution, cases"),
    ):
        (tmp_path / "study.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=message):
            open_study(tmp_path)


def test_a_folder_without_a_study_is_named(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="must be a folder that run_study wrote"):
        open_study(tmp_path)
    (tmp_path / "study.json").write_text("{")
    with pytest.raises(ValueError, match="must be a complete JSON file"):
        open_study(tmp_path)
    (tmp_path / "study.json").write_text(json.dumps({"kind": "covid", "format": 9}))
    with pytest.raises(ValueError, match="format = 9: this version of spillover reads formats up to 3"):
        open_study(tmp_path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shifts": ()}, "shifts = \\(\\): must be at least one"),
        ({"shifts": (0,)}, "shift = 0: must be a whole number from 1 to 20"),
        ({"shifts": (1, 1)}, "each once"),
        ({"seeds": 0}, "seeds = 0: must be a whole number from 1 to 500"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_bad_plans_are_refused(given: Any, message) -> None:
    with pytest.raises(ValueError, match=message):
        CovidPlan(**given)


@needs_record
def test_the_record_as_the_paper_has_it(tmp_path) -> None:
    """Both scales on the record, two shifts, two seeds.

    By a common graph NDC-SEM is ahead in cases, and with bounded graphs behind on [0, 1]; without a bound weights are
    large.
    """
    study = run_study(covid_italy(FOLDER), tmp_path, SMALL)
    assert not study.simulated
    assert study.about["unit"] == pytest.approx(1963.571, abs=1e-3)
    assert study.about["negative_counts"] == 5
    gains = {}
    for rule in (PAPER_RULE, BOUNDED_RULE):
        for ours, theirs in (("ndc-sem", "sem-ucb"), ("ndc-sem-unit", "sem-ucb-unit")):
            ahead, behind = (since(study.rewards(LITERAL, name, rule)["common"], 40) for name in (ours, theirs))
            gains[ours, rule] = float((ahead - behind).mean())
    assert gains["ndc-sem", PAPER_RULE] > 0
    assert gains["ndc-sem", BOUNDED_RULE] > 0 > gains["ndc-sem-unit", BOUNDED_RULE]
    largest = {rule: weights_of(study.played(LITERAL, "sem-ucb", rule).adjacency).max() for rule in RULES}
    assert largest[PAPER_RULE] > 2 * largest[BOUNDED_RULE]
    moved = shifted(study.data["unshifted_overall"][0, 0], 3)
    np.testing.assert_array_equal(study.data["overall"][0, 0], moved)
