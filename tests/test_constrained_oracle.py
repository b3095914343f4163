"""The best feasible set: against all sets on a thousand random problems, and what collides when there is none."""

import itertools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import Bounds, LinearConstraint, milp

import spillover as sp
from spillover.constraints import (
    BUDGET,
    Costs,
    Exclusive,
    Group,
    Include,
    Requires,
    Together,
    Unavailable,
    compile_rows,
    search,
)
from spillover.constraints.search import Infeasible, best_answer, best_set, conflicting, searched_set, top_arms
from spillover.core.batches import Batches
from spillover.policies import Constrained
from spillover.rng import Purpose
from spillover.types import Choice
from tests.reference.constraints_reference import feasible_sets, keeps, worth
from tests.sampling import few_or_many


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


@pytest.mark.parametrize("problems", few_or_many(150, 500))
@pytest.mark.parametrize("few", [search.FEW_ARMS, 0], ids=["all sets", "relaxation"])
def test_no_feasible_set_is_better_and_conflicts_are_true_and_minimal(few, problems, monkeypatch):
    monkeypatch.setattr(search, "FEW_ARMS", few)
    infeasible = 0
    for seed in range(problems):
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
    assert infeasible > problems / 10


def check_conflict(constraints, n, budget):
    found = conflicting(constraints, n, budget)
    for left_out in [None, *found]:
        kept = [constraints[k] for k in found if k not in (left_out, BUDGET)]
        allowed = budget if BUDGET in found and left_out != BUDGET else n
        assert bool(feasible_sets(kept, n, allowed)) is (left_out is not None), (constraints, budget, found)


def test_without_constraints_it_is_top_arms_bit_for_bit():
    scores = np.random.default_rng(0).choice([0.0, 1.0, 2.0, np.inf], (50, 8))
    ours = best_set(scores, 3, (), sp.Rng(4, np.arange(50)))
    np.testing.assert_array_equal(ours, top_arms(scores, 3, sp.Rng(4, np.arange(50))))


def test_orders_of_magnitude_do_not_drown_each_other():
    """Arms worth a millionth of a millionth are still decided among themselves, on what the large ones leave."""
    scores = np.array([1e6, 2e6, 3e-6, 5e-6, 4e-6, 1e-18, 2e-18])
    constraints = (Costs([1, 1, 2, 3, 2, 1, 1], limit=7), Exclusive([5, 6]))
    x = best_set(scores, 7, constraints, sp.Rng(0))
    levels = (slice(0, 2), slice(2, 5), slice(5, 7))
    best = max(feasible_sets(constraints, 7, 7), key=lambda other: [scores[part][other[part]].sum() for part in levels])
    np.testing.assert_array_equal(x, best)


SCALES = (1e-9, 1e-3, 1.0, 1e5, 1e6, 2.0**20, 1e9, 1e12)


def tied_problem(seed, n=13):
    """More arms than are searched without a relaxation, some of them tied to others."""
    generator = np.random.default_rng([13, seed])
    constraints = []
    for _ in range(generator.integers(1, 4, endpoint=True)):
        arms = generator.permutation(n)[: generator.integers(2, 3, endpoint=True)].tolist()
        enough = str(generator.choice(["all", "any"]))
        constraints.append(Together(arms) if generator.random() < 0.5 else Requires(arms[0], arms[1:], enough))
    return generator.normal(0.3, 1.0, n), int(generator.integers(3, 7, endpoint=True)), tuple(constraints)


def check_scales(seed):
    scores, budget, constraints = tied_problem(seed)
    sets = np.array(feasible_sets(constraints, len(scores), budget))
    chosen = {}
    for scale in SCALES:
        best = (sets @ (scale * scores)).max()
        answer = best_answer(scale * scores, budget, constraints)
        assert answer.value == pytest.approx(best, rel=1e-10), (seed, scale)
        assert answer.bound == answer.value
        chosen[scale] = answer.x
    np.testing.assert_array_equal(chosen[1.0], chosen[2.0**20])


@pytest.mark.parametrize("seed", [1104, 1129, 1626, 1708])
def test_the_unit_of_scores_does_not_matter(seed):
    """In these problems sets that are not the best were once called proved, in some units."""
    check_scales(seed)


@pytest.mark.long
def test_the_unit_of_scores_does_not_matter_in_many_problems():
    for seed in range(2_000):
        check_scales(seed)


@pytest.mark.parametrize(
    "constraints", [(Group([0, 1, 2, 3], at_most=2),), (Costs([1, 1, 1, 1, 5], limit=2),)], ids=["greedy", "search"]
)
def test_equal_arms_have_equal_chances(constraints):
    scores = np.broadcast_to([1.0, 1.0, 1.0, 1.0, -1.0], (3000, 5))
    x = best_set(scores, 3, constraints, sp.Rng(1, np.arange(3000)))
    assert (x.sum(axis=1) == 2).all()
    _, counts = np.unique(x, axis=0, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("kinds", [(Exclusive([0, 1]),), (Costs(np.arange(1.0, 9), limit=9), Requires(0, needs=[2]))])
def test_one_learner_chooses_as_its_row_of_a_batch(kinds):
    scores = np.random.default_rng(3).choice([0.5, 1.0, np.inf], (2, 3, 8))
    rows = np.arange(6).reshape(2, 3)
    budgets = np.array([[1, 2, 3], [4, 3, 2]])
    together = best_set(scores, budgets, kinds, sp.Rng(9, rows))
    for cell in np.ndindex(2, 3):
        alone = best_set(scores[cell], budgets[cell], kinds, sp.Rng(9, int(rows[cell])))
        np.testing.assert_array_equal(together[cell], alone)


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"scores = .*nan.*: must be numbers, not NaN"):
        best_set(np.array([0.5, np.nan]), 1, (Exclusive([0, 1]),), sp.Rng(0))


def test_a_conflict_is_said_in_words():
    constraints = (Exclusive([2, 3]), Include([0, 1]), Costs([3, 3, 1, 1], limit=5, label="staff"), Unavailable([3]))
    with pytest.raises(Infeasible) as caught:
        best_set(np.ones(4), 3, constraints, sp.Rng(0), arms=("north", "south", "east", "west"))
    assert str(caught.value) == (
        "constraints: no set of arms can keep these together: always north, south; costs of at most 5 (staff). "
        "Without any one of them there is a set"
    )
    with pytest.raises(Infeasible, match=r"keep this one: costs of at most 1$|together: always arm 0"):
        best_set(np.ones(2), 1, (Include([0]), Costs([2, 0], limit=1)), sp.Rng(0))


def hard_problem(seed, n=60):
    """Two resources, and scores that go with what they cost."""
    generator = np.random.default_rng(seed)
    costs = generator.uniform(0.1, 1, (2, n))
    scores = costs.mean(axis=0) + generator.uniform(-0.1, 0.1, n)
    groups = [Group(range(k, n, 6), at_most=2) for k in range(6)]
    return scores, [*(Costs(line, limit=2.5) for line in costs), *groups]


@pytest.mark.parametrize("seed", range(5))
def test_larger_problems_agree_with_a_general_solver(seed):
    scores, constraints = hard_problem(seed)
    answer = best_answer(scores, 8, constraints, sp.Rng(seed))
    rows = compile_rows(tuple(constraints), 60, 8)
    limits = LinearConstraint(rows.matrix, rows.low, rows.high)
    theirs = milp(
        -scores, constraints=limits, integrality=np.ones(60, int), bounds=Bounds(0, 1), options={"mip_rel_gap": 0}
    )
    assert answer.value == answer.bound == pytest.approx(scores[np.asarray(theirs.x) > 0.5].sum(), abs=1e-6)
    assert rows.holds(answer.x)


def test_an_unfinished_search_says_how_far_it_may_be_off():
    scores, constraints = hard_problem(0)
    best = best_answer(scores, 8, constraints)
    hasty = best_answer(scores, 8, constraints, effort=20)
    assert hasty.value <= best.value <= hasty.bound
    assert hasty.bound > hasty.value
    assert compile_rows(tuple(constraints), 60, 8).holds(hasty.x)


SIXTEEN = ((np.arange(2**16)[:, None] >> np.arange(16)) & 1).astype(bool)  # all sets of 16 arms


def costly_problem(seed, infinite=0):
    """Two resources and 16 arms, too many for the short way of small problems; some scores have no limit."""
    generator = np.random.default_rng(seed)
    costs = generator.uniform(0.1, 1, (2, 16))
    scores = costs.mean(axis=0) + generator.uniform(-0.1, 0.1, 16)
    scores[:infinite] = np.inf
    sets = SIXTEEN[(SIXTEEN.sum(axis=1) <= 7) & (SIXTEEN @ costs.T <= 2.2).all(axis=1)]
    return scores, tuple(Costs(line, limit=2.2) for line in costs), sets


@pytest.mark.parametrize("problems", few_or_many(8, 20))
@pytest.mark.parametrize("infinite", [0, 8, 14])
def test_how_much_better_another_set_could_be_is_right_against_all_sets(infinite, problems):
    unproved, not_best, without_limit = 0, 0, 0
    for seed, effort in itertools.product(range(problems), (1, 30, 10**6)):
        scores, constraints, sets = costly_problem(seed, infinite)
        x, could_gain = searched_set(scores, 7, constraints, sp.Rng(seed), effort=effort)
        best, found = max(worth(scores, other) for other in sets), worth(scores, x)
        np.testing.assert_array_equal(x, best_set(scores, 7, constraints, sp.Rng(seed), effort=effort))
        if could_gain == np.inf:
            without_limit += 1
        else:
            assert found[:2] == best[:2]
            assert found[2] - 1e-9 <= best[2] <= found[2] + could_gain + 1e-9
        assert effort < 10**6 or could_gain == 0
        unproved += bool(could_gain > 0)
        not_best += bool(found[1] < best[1] or found[2] < best[2] - 1e-9)
    assert 0 < not_best <= unproved
    assert (without_limit > 0) == (infinite > search.FEW_ARMS)


def test_arms_without_a_score_leave_no_doubt_about_the_total():
    """Which of them help is searched too, but the total does not depend on it."""
    costs = np.random.default_rng(0).uniform(1, 2, 20)
    constraints = (Group(range(20), at_least=7), Costs(costs, limit=float(np.sort(costs)[:8].sum())))
    assert searched_set(np.zeros(20), 10, constraints, effort=1)[1] == 0


def test_what_greedy_finds_is_proved_for_each_learner_of_a_batch():
    scores = np.random.default_rng(1).normal(size=(2, 3, 20))
    x, could_gain = searched_set(scores, 4, (Exclusive([0, 1]),), sp.Rng(0, np.arange(6).reshape(2, 3)), effort=1)
    assert x.shape == (2, 3, 20)
    np.testing.assert_array_equal(could_gain, np.zeros((2, 3)))


@pytest.mark.parametrize("effort", [0, -1, 1.5, True, 10**30])
def test_an_effort_that_is_none_is_refused(effort):
    for find in (best_set, best_answer):
        with pytest.raises(ValueError, match=r"effort = .*: must be a whole number from 1 to"):
            find(np.ones(3), 1, (Exclusive([0, 1]),), effort=effort)


# --- A policy's own decision is refused by name where no policy may make it; a person may play any set --------------


WORLD = sp.SyntheticSEM(n_arms=10, budget=4, horizon=20, changes=())
PROBLEM = sp.Problem(n_arms=10, budget=4)
TOO_MANY = r"decision of \w+ = \[1 1 1 1 1 1 1 1 1 1\]: must be at most 4 of the 10 arms, as the problem's budget says"


@dataclass(frozen=True, kw_only=True)
class Decides(sp.NDCSEM):
    """Decides as it is told."""

    how: Any = np.ones_like

    def select(self, state: Any, rng: sp.Rng) -> Choice:
        choice = super().select(state, rng)
        return choice._replace(x=self.how(choice.x))


@dataclass(frozen=True, kw_only=True)
class PlaysAll(sp.policies.CUCB):
    """Plays every arm in its compiled form, and only there."""

    @property
    def batches(self) -> Batches:
        return PlaysAllArms(self)


class PlaysAllArms(Batches):
    def play_stretch(self, state: Any, stretch: Any, rng: sp.Rng) -> Any:
        played = super().play_stretch(state, stretch, rng)
        stretch.flight.x[:] = True
        return played


def play(policy: Any) -> None:
    world = WORLD.draw(sp.Rng(0).at(Purpose.WORLD))
    list(sp.rounds(policy, world, 0, sp.Rng(0), ()))


def replay(policy: Any) -> Any:
    zeros = np.zeros((3, 10))
    return list(sp.replay(policy, PROBLEM, zeros, zeros, zeros))[-1]


ENTRANCES = {
    "simulate": lambda policy: sp.simulate(policy, WORLD, 2, replications=3),
    "compare": lambda policy: sp.compare([policy, sp.policies.Oracle()], WORLD, 2, replications=2),
    "rounds": play,
    "replay": replay,
    "choose": lambda policy: sp.Learner(policy, PROBLEM).choose(),
    "play": lambda policy: sp.Learner(policy, PROBLEM).play(),
    "explain": lambda policy: sp.Learner(policy, PROBLEM).explain(),
    "many choose": lambda policy: sp.Learners(policy, PROBLEM, seeds=range(3)).choose([1, 2]),
    "many play": lambda policy: sp.Learners(policy, PROBLEM, seeds=range(3)).play(),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_more_arms_than_the_budget_are_refused(entrance):
    with pytest.raises(ValueError, match=TOO_MANY):
        ENTRANCES[entrance](Decides())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_compiled_form_is_checked_too(threads):
    assert PlaysAll().batches.plays_stretches
    with pytest.raises(ValueError, match=TOO_MANY):
        sp.simulate(PlaysAll(), WORLD, 2, replications=8, threads=threads)


WRONG = {
    "numbers": lambda x: x.astype(float),
    "a list": lambda x: x.tolist(),
    "too short": lambda x: x[..., :-1],
    "another axis": lambda x: x[None],
    "nothing": lambda x: None,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_other_than_booleans_of_the_right_shape_are_refused(entrance, wrong):
    with pytest.raises(ValueError, match=r"decision of \w+ = .*: must be an array of booleans of shape \(.*10,?\)"):
        ENTRANCES[entrance](Decides(how=WRONG[wrong]))


def test_the_row_that_is_wrong_is_shown():
    def last_row(x: Any) -> Any:
        x = x.copy()
        x[-1] = [True] * 5 + [False] * 5
        return x

    with pytest.raises(ValueError, match=r"= \[1 1 1 1 1 0 0 0 0 0\]: must be at most 4"):
        sp.Learners(Decides(how=last_row), PROBLEM, seeds=range(4)).choose()


def test_a_refused_decision_changes_nothing_and_a_person_may_play_any_set():
    learner = sp.Learner(Decides(), PROBLEM)
    with pytest.raises(ValueError, match="decision of"):
        learner.play()
    assert learner.rounds == 0
    everything = sp.Learner(sp.NDCSEM(), PROBLEM)
    assert everything.play(np.ones(10)) == 1


@dataclass(frozen=True, kw_only=True)
class Insists(sp.NDCSEM):
    """Wants the first two arms above all, by its choice and its scores, and notes what is played in the end."""

    seen: ClassVar[list[Any]] = []

    def select(self, state: Any, rng: sp.Rng) -> Choice:
        choice = super().select(state, rng)
        return choice._replace(x=np.broadcast_to(np.arange(10) < 2, choice.x.shape))

    def explain(self, state: Any, rng: sp.Rng) -> Any:
        found = super().explain(state, rng)
        return replace(found, score=np.where(np.arange(10) < 2, 1e9, found.score))

    def played(self, state: Any, x: Any) -> Any:
        self.seen.append(np.array(x))
        return super().played(state, x)


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_no_arm_is_decided_that_is_not_available(entrance):
    Insists.seen.clear()
    found = ENTRANCES[entrance](Constrained(policy=Insists(), constraints=(Unavailable([0]),)))
    chosen = getattr(found, "chosen", found)  # of an explanation
    decided = [*Insists.seen, *([chosen] if getattr(chosen, "dtype", None) == np.bool_ else [])]
    assert decided
    assert not any(x[..., 0].any() for x in decided)
    assert any(x[..., 1].any() for x in decided)


def test_an_arm_that_is_not_available_in_this_round_alone():
    learner = sp.Learner(Insists(), PROBLEM)
    assert not learner.choose(available=range(1, 10))[0]
    learner.play()
    assert learner.choose()[0]
    many = sp.Learners(Insists(), PROBLEM, seeds=range(3))
    assert not many.choose(available=np.arange(10) > 0)[:, 0].any()
