"""The 95% intervals of InstrumentalSEM contain the truth in 90% to 99% of the cases, in worlds of many kinds."""

from collections import defaultdict

import numpy as np
import pytest

import spillover as sp
from tests.policies.instrumental_worlds import draw_history, learn


def random_graph(generator, n, ordered):
    edges = (generator.uniform(size=(n, n)) < 1.2 / n) * generator.uniform(0.1, 0.8, (n, n))
    order = np.arange(n) if ordered else generator.permutation(n)
    return np.triu(edges, 1)[np.ix_(order, order)]


def contained(interval, truth):
    return (interval[..., 0] - 1e-9 <= truth) & (truth <= interval[..., 1] + 1e-9)


def coverage(worlds, seed):
    """The share of own effects, spill-overs, totals, cells and edges inside their intervals."""
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
        inside["edge"].extend(contained(found.edge_interval, history.adjacency)[state.allowed])
    return {name: float(np.mean(values)) for name, values in inside.items()}


def test_intervals_contain_the_truth_in_some_worlds():
    """A guard against intervals that are far too narrow; how often exactly is measured by the long test."""
    found = coverage(12, seed=0)
    assert all(share > 0.85 for share in found.values()), found


@pytest.mark.long
def test_intervals_contain_the_truth_as_often_as_they_say():
    found = coverage(300, seed=1)
    assert all(0.90 <= share <= 0.99 for share in found.values()), found
