"""Slopes around changes, recovery from them, and the start, on made-up records."""

import numpy as np
import pytest

from spillover.contracts.hyperparameters import value_of
from spillover.environments import SyntheticSEM
from spillover.experiments.tune import run_search
from spillover.policies import AblatedNDCSEM
from spillover.studies import STUDIES, Request, load_experiment, load_search
from spillover_studies.synthetic import SEARCHES
from spillover_studies.synthetic.measures import DELAYS, PRINTED, Slopes, Start, play_start, recovery, regret_at
from spillover_studies.synthetic.tuned import SOURCES, best_cell, compare, read_searches
from tests.studies.synthetic.searches import made_up_cells, write_searches

ROUNDS = np.array([50, 100, 150, 200, 250, 300, 350, 400])


@pytest.fixture
def made_up(results):
    """A record with given regrets a round in eight windows of 50 rounds; the means change at 100, 200 and 300."""

    def make(*slopes):
        regret = np.cumsum(50.0 * np.array([slopes]), axis=-1)
        return results.record("fresh", "50", "random")._replace(rounds=ROUNDS, regret=regret)

    return make


def test_slopes_are_regret_a_round_before_and_after_changes(made_up):
    found = Slopes(made_up(1, 1, 2, 2, 1, 1, 0.2, 0.2), span=100)
    np.testing.assert_allclose(found.before, (1 + 2 + 1) / 3)
    np.testing.assert_allclose(found.after, (2 + 1 + 0.2) / 3)
    np.testing.assert_allclose(found.jump, ((2 - 1) + (1 - 2) + (0.2 - 1)) / 3)


def test_the_rounds_in_which_nobody_can_know_of_a_change_belong_to_it(made_up):
    found = Slopes(made_up(1, 1, 2, 0, 2, 0, 2, 0), span=50, blind=50)
    np.testing.assert_allclose(found.before, (1 + 0 + 0) / 3)
    np.testing.assert_allclose(found.after, 1)


def test_regret_is_interpolated_from_0_on(made_up):
    np.testing.assert_allclose(
        regret_at(made_up(1, 2, 0, 0, 0, 0, 0, 0), np.array([0, 25, 75, 100])), [[0, 25, 100, 150]]
    )


def test_recovery_is_counted_until_the_slope_is_low(made_up):
    random = made_up(*[2.0] * 8)
    waited, recovered = recovery(made_up(9, 9, 1, 0.1, 0.2, 5, 3, 3), random, share=0.1)
    assert waited.tolist() == [[50.0, 0.0, 100.0]]  # in the second window; at once; not before the end
    assert recovered.tolist() == [[True, True, False]]


def test_a_graph_is_identified_if_all_arms_but_the_first_have_a_reward_in_their_round():
    rewards = np.array([[True, True, True], [False, True, True], [True, False, True], [True, True, False]])
    start = Start(np.ones(4, bool), np.ones(4, bool), rewards, np.zeros(4))
    assert start.identified.tolist() == [True, True, False, False]


def test_the_identified_worlds_are_those_with_a_unique_solution():
    """The rank of the outcomes says the same, where rewards are 0 or 1: row i needs the outcomes of arms j > i."""
    environment = SyntheticSEM(n_arms=3, budget=2, edge_density=1 / 3, horizon=20, changes=())
    start = play_start(AblatedNDCSEM(), environment, 0, 40)
    assert 0 < start.identified.sum() < 40
    assert start.every_arm_pulled.all()
    assert start.full_rank.all()
    # an error of 0 up to the shrinkage by lambda is possible only where the graph is determined, or has no edge there
    assert start.graph_error[start.identified].max() < 1e-3
    assert start.graph_error[~start.identified].max() > 1e-2


def test_rewards_without_an_atom_at_0_identify_the_graph():
    environment = SyntheticSEM(n_arms=4, budget=2, law="beta", horizon=20, changes=())
    assert play_start(AblatedNDCSEM(), environment, 0, 20).identified.all()


# --- The tuned parameters are those that the shipped searches find --------------------------------------------------


@pytest.mark.parametrize("name", SEARCHES)
def test_the_effort_is_the_same_for_all_and_the_worlds_are_others(name):
    search = load_search(name)
    assert len(search.cells) == 80
    assert search.replications == 30
    assert search.seed != load_experiment("synthetic").seed == search.reported
    assert tuple(search.delays) == DELAYS
    assert [search.delays[d] for d in DELAYS] == [load_experiment("synthetic").delays[d] for d in DELAYS]
    assert search.worlds["fresh"] == load_experiment("synthetic").worlds["fresh"]


def test_the_cells_that_the_paper_prints_are_in_the_grid():
    cells = load_search("ndc-sem-grid").cells
    entry = load_experiment("synthetic").policies[PRINTED]
    printed = [(entry.policy(delay).discount, entry.policy(delay).exploration) for delay in DELAYS]
    assert printed == [(0.985, 1e-10), (0.985, 1e-6), (0.985, 1e-18)]
    assert set(printed) <= set(cells)


def test_the_published_sem_ucb_is_in_its_grid():
    """NDC-SEM without a discount at exploration 1/4 is SEM-UCB; lambda is that of the study."""
    cells = load_search("sem-ucb-grid").cells
    assert (0.25, load_experiment("synthetic").policies["sem-ucb"].policy("50").graph.sparsity) in cells


def test_every_search_is_used():
    assert {source.search for source in SOURCES.values()} == set(SEARCHES)


def test_the_worlds_of_the_searches_cannot_be_reported(tmp_path):
    request = Request(output=tmp_path, quick=True, seed=load_search("ndc-sem-grid").seed)
    with pytest.raises(ValueError, match="seed = 1000003: must be different from that of the worlds that parameters"):
        STUDIES["synthetic"].prepare(request)


def test_what_is_used_is_compared_with_what_was_found(results, tmp_path):
    write_searches(tmp_path)
    found = compare(results, read_searches(tmp_path))
    assert len(found) == 3 * 3 + 1
    assert all(comparison.agree for comparison in found)
    assert {c.delay for c in found} == {*DELAYS, "all"}


def test_another_best_cell_is_reported(results, tmp_path):
    write_searches(tmp_path)
    path = tmp_path / "tuning" / "ndc-sem-grid" / "tuning.csv"
    cells = read_searches(tmp_path)["ndc-sem-grid"]
    other = (cells["policy"] == "ndc-sem") & (cells["delay"] == "200") & (cells["discount"] == 0.95)
    cells.loc[other & (cells["exploration"] == 0.1), "final_regret"] = 1.0
    cells.to_csv(path, index=False)
    wrong = [c for c in compare(results, read_searches(tmp_path)) if not c.agree]
    assert [(c.policy, c.delay) for c in wrong] == [("ndc-sem-tuned", "200"), ("ndc-sem-once", "all")]
    assert wrong[0].found == {"discount": 0.95, "exploration": 0.1}
    assert wrong[0].regret == 1.0


def test_one_cell_for_all_delays_has_the_least_mean():
    cells = made_up_cells("ndc-sem-grid")
    best = best_cell(cells, "ndc-sem", DELAYS)
    own = cells[cells["policy"] == "ndc-sem"]
    at = (own["discount"] == best["discount"]) & (own["exploration"] == best["exploration"])
    np.testing.assert_allclose(best["final_regret"], own.loc[at, "final_regret"].mean())


def test_searches_that_were_not_run_are_left_out(results, tmp_path):
    assert compare(results, read_searches(tmp_path)) == []


@pytest.mark.long
@pytest.mark.parametrize("name", SEARCHES)
def test_the_searches_find_what_the_study_uses(name):
    """The proof: the whole grids on their 30 worlds."""
    cells = run_search(load_search(name)).to_frame()
    for policy, source in SOURCES.items():
        if source.search != name:
            continue
        entry = load_experiment("synthetic").policies[policy]
        for delays in [(delay,) for delay in DELAYS] if source.each_delay else [DELAYS]:
            best = best_cell(cells, source.policy, delays)
            player = entry.policy(delays[0])
            assert {key: value_of(player, key) for key in best if key != "final_regret"} == {
                key: value for key, value in best.items() if key != "final_regret"
            }
