"""The best feasible set: against all sets on a thousand random problems, and what collides when there is none."""

import numpy as np
import pytest

import spillover as sp
from spillover import exact
from spillover.constraints import (
    BUDGET,
    Costs,
    Exclusive,
    Group,
    Include,
    Requires,
    Together,
    Unavailable,
)
from spillover.oracle import Infeasible, best_set, conflicting
from tests.reference.constraints_reference import feasible_sets, keeps, worth


def some_arms(generator, n, most=4):
    return generator.permutation(n)[: generator.integers(1, min(n, most), endpoint=True)].tolist()


def random_constraint(generator, n):
    arms = some_arms(generator, n)
    match generator.integers(8):
        case 0 | 1:
            costs = generator.choice([0.1, 0.2, 0.3, 0.7, 1.0], n) if generator.random() < 0.5 else generator.random(n)
            return Costs(costs, limit=round(generator.random() * n * 0.4, 1))
        case 2:
            least = int(generator.integers(0, len(arms), endpoint=True))
            return Group(arms, at_most=int(generator.integers(least, len(arms), endpoint=True)), at_least=least)
        case 3:
            return Exclusive(arms)
        case 4:
            return Together(arms)
        case 5:
            return Include(arms[:2])
        case 6:
            return Unavailable(arms)
    arm, *needs = generator.permutation(n)[:3].tolist()
    return Requires(arm, needs=needs, enough=str(generator.choice(["all", "any"])))


def random_scores(generator, n):
    kinds = (
        generator.normal(size=n),
        generator.choice([0.0, 1.0, 2.0, -1.0], n),
        generator.choice([np.inf, 0.5, 0.0, -0.5, 1.0], n),
        generator.choice([1e9, 1.0, 1e-7, -1e-7, 3e-7, -np.inf], n),
    )
    return kinds[generator.integers(len(kinds))]


@pytest.mark.parametrize("few", [exact.FEW_ARMS, 0], ids=["all sets", "relaxation"])
def test_no_feasible_set_is_better_and_conflicts_are_true_and_minimal(few, monkeypatch):
    monkeypatch.setattr(exact, "FEW_ARMS", few)
    infeasible = 0
    for seed in range(500):
        generator = np.random.default_rng([few, seed])
        n = int(generator.integers(3, 9))
        budget = int(generator.integers(1, n, endpoint=True))
        constraints = tuple(random_constraint(generator, n) for _ in range(generator.integers(1, 6)))
        scores = random_scores(generator, n)
        sets = feasible_sets(constraints, n, budget)
        if not sets:
            infeasible += 1
            with pytest.raises(Infeasible):
                best_set(scores, budget, constraints, sp.Rng(seed))
            check_conflict(constraints, n, budget)
            continue
        x = best_set(scores, budget, constraints, sp.Rng(seed))
        best = max(worth(scores, other) for other in sets)
        found = worth(scores, x)
        context = f"{few} {seed} {scores} {budget} {constraints} {x}"
        assert x.sum() <= budget, context
        assert all(keeps(constraint, set(np.flatnonzero(x).tolist())) for constraint in constraints), context
        assert found[:2] == best[:2], context
        assert found[2] == pytest.approx(best[2], rel=1e-12, abs=1e-15), context
        rest = x & (scores != 0)  # arms of no score only as far as they are needed
        assert not any((other < x).any() and (other <= x).all() and (rest <= other).all() for other in sets), context
    assert infeasible > 50


def check_conflict(constraints, n, budget):
    found = conflicting(constraints, n, budget)
    for left_out in [None, *found]:
        kept = [constraints[k] for k in found if k not in (left_out, BUDGET)]
        allowed = budget if BUDGET in found and left_out != BUDGET else n
        assert bool(feasible_sets(kept, n, allowed)) is (left_out is not None), (constraints, budget, found)
