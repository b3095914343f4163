"""The 95% intervals of InstrumentalSEM contain the truth in 90% to 99% of the cases, in worlds of many kinds.

Effects on other arms and edges are mostly 0, and intervals nearly always contain 0 then, because the prior says so. So
those that are not 0 are counted apart.

`python -m tests.policies.test_instrumental_intervals` prints the table of docs/instrumental.md.
"""

from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

import spillover as sp
from spillover.policies.instrumental_effects import edge_interval
from spillover.policies.instrumental_state import prior_equations, rest_variance
from tests.policies.instrumental_worlds import draw_history, learn

ABSENT = "edge that does not exist"


def random_graph(generator, n, ordered):
    edges = (generator.uniform(size=(n, n)) < 1.2 / n) * generator.uniform(0.1, 0.8, (n, n))
    order = np.arange(n) if ordered else generator.permutation(n)
    return np.triu(edges, 1)[np.ix_(order, order)]


def contained(interval, truth):
    return (interval[..., 0] - 1e-9 <= truth) & (truth <= interval[..., 1] + 1e-9)


def coverage(worlds, seed):
    """The share of own effects, spill-overs, totals, effects and edges inside their intervals."""
    return {name: float(np.mean(values)) for name, values in inside_intervals(worlds, seed).items()}


def inside_intervals(worlds, seed):
    """Whether each true value is in its interval, by kind."""
    inside = defaultdict(list)
    for number in range(worlds):
        generator = np.random.default_rng([seed, number])
        n, rounds, ordered = int(generator.integers(3, 9)), int(generator.integers(60, 501)), generator.uniform() < 0.5
        history = draw_history(
            generator,
            random_graph(generator, n, ordered),
            rounds,
            context=int(generator.integers(0, 3)),
            noise=generator.choice([0.05, 0.2, 0.5]),
            hidden=generator.choice([0.0, 0.0, 0.3]),
            change=int(generator.integers(rounds // 4, 3 * rounds // 4)) if generator.uniform() < 0.3 else None,
        )
        state, found = learn(sp.InstrumentalSEM(), history, acyclic=bool(ordered), budget=n // 2)
        effects = history.effects()
        own, total = np.diag(effects), effects.sum(axis=0)
        inside["own effect"].extend(contained(found.direct_interval, own))
        inside["spill-over"].extend(contained(found.spill_interval, total - own))
        inside["total effect"].extend(contained(found.total_interval, total))
        inside["cell"].extend(contained(found.effects_interval, effects).ravel())
        others, edges = contained(found.effects_interval, effects), contained(found.edge_interval, history.adjacency)
        inside["effect on another arm"].extend(others[(effects != 0.0) & ~np.eye(n, dtype=bool)])
        inside["edge that exists"].extend(edges[history.adjacency > 0.0])
        inside[ABSENT].extend(edges[state.allowed & (history.adjacency == 0.0)])
    return inside


@pytest.mark.long
def test_intervals_contain_the_truth_in_some_worlds():
    """A guard against intervals that are far too narrow; how often exactly is measured by the long test."""
    found = coverage(40, seed=0)
    assert all(share > 0.88 for share in found.values()), found


@pytest.mark.long
def test_intervals_contain_the_truth_as_often_as_they_say():
    found = coverage(300, seed=1)
    assert found.pop(ABSENT) > 0.95
    assert all(0.90 <= share <= 0.99 for share in found.values()), found


@pytest.mark.parametrize("signed", [False, True])
def test_before_any_outcome_an_edge_has_the_interval_of_its_prior(signed):
    allowed = ~np.tri(3, dtype=bool)
    prior = prior_equations(allowed, rest_variance(1, 0), signed, ())
    law = stats.norm(scale=0.5) if signed else stats.halfnorm(scale=0.5)
    found = edge_interval(prior, allowed, signed)
    np.testing.assert_allclose(found[allowed], np.tile([min(law.ppf(0.025), 0.0), law.ppf(0.975)], (3, 1)), rtol=1e-6)
    np.testing.assert_array_equal(found[~allowed], 0.0)


if __name__ == "__main__":
    print("| | intervals | contained the truth |\n|---|---|---|")
    for name, values in inside_intervals(400, seed=20261117).items():
        print(f"| {name} | {len(values):,} | {np.mean(values):.1%} |")
