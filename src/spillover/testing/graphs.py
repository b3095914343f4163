"""The contract of a graph learner."""

from typing import Any, NamedTuple

import numpy as np

from spillover.contracts import Environment
from spillover.contracts.hyperparameters import value_of, with_values
from spillover.environments import FixedSEM, SyntheticSEM
from spillover.graph import GraphLearner
from spillover.graph.edges import impossible_edges
from spillover.rng import Purpose, Rng
from spillover.state import copy_state
from spillover.testing.invariance import GRAPH_AGREEMENT, disagreement
from spillover.testing.policies import state_form
from spillover.testing.trial import (
    Arrays,
    Skipped,
    demand,
    demand_equal,
    demand_frozen,
    problem_arrays,
    random_sets,
    rows_of,
    run_checks,
    snapshot,
)
from spillover.types import Array, Batch, BoolArray, IntArray, Problem

LEARNERS = 6
DEFERRAL_AGREEMENT = 1e-6  # estimates are solved for to a tolerance
USUAL = SyntheticSEM(n_arms=5, budget=3, edge_density=0.2, horizon=40, changes=(), law="beta")


class Rounds(NamedTuple):
    """Rounds that were played at random: the arguments of `absorb`, each with the rounds as its first axis."""

    problem: Problem
    z: Array
    y: Array
    arrived: BoolArray
    played_at: IntArray

    def at(self, k: int) -> tuple[Array, Array, BoolArray, IntArray]:
        return self.z[k], self.y[k], self.arrived[k], self.played_at[k]

    def part(self, rows: Any) -> "Rounds":
        return Rounds(self.problem, *(array[rows] for array in self[1:]))


def check_graph_learner(learner: GraphLearner, *, environment: Environment = USUAL, seed: int = 0) -> list[str]:
    """Check that a graph learner keeps the contract of `spillover.graph.GraphLearner`.

    environment: whose outcomes it learns from, with a short horizon; by default five arms of which three are played.
    Returns the checks that were skipped, with the reasons.

    >>> import spillover as sp
    >>> check_graph_learner(sp.graph.NoGraph())  # it keeps the contract
    ['check_learner_grid: it has no grids']
    """
    return run_checks(learner, GRAPH_CHECKS, environment, seed)


def rounds_of(environment: Environment, seed: int, batch: Batch) -> Rounds:
    """The observations of the learners of a batch; a learner alone observes the same."""
    rows = rows_of(batch)
    rng = Rng(seed, rows)
    world = environment.draw(rng.at(Purpose.WORLD), batch)
    n, budget, horizon = world.problem.n_arms, world.problem.budget, world.horizon
    x = random_sets(n, budget, (horizon, LEARNERS), [seed], least=1)[:, rows]
    outcomes = [world.play(t, x[t - 1], rng.at(Purpose.WORLD, t)) for t in range(1, horizon + 1)]
    z, y = np.array([outcome.z for outcome in outcomes]), np.array([outcome.y for outcome in outcomes])
    arrived = np.random.default_rng([seed, horizon]).uniform(size=(horizon, LEARNERS))[:, rows] < 0.8
    played_at = np.broadcast_to(np.arange(1, horizon + 1)[(..., *[None] * len(batch))], (horizon, *batch))
    return Rounds(world.problem, z, y, arrived, np.array(played_at))


def learn(learner: Any, graph: Any, rounds: Rounds) -> Any:
    """The graph after some rounds, as a policy without delay learns it."""
    for k in range(len(rounds.z)):
        graph = learn_one(learner, graph, rounds, k)
    return graph


def learn_one(learner: Any, graph: Any, rounds: Rounds, k: int) -> Any:
    z, y, arrived, played_at = rounds.at(k)
    memo = learner.remember(graph)
    return learner.solve(learner.absorb(graph, z, y, arrived, played_at, z, memo))


def shown(graph: Any) -> Arrays:
    """The part of a graph that a policy sees."""
    return {"adjacency": np.array(graph.adjacency), "weights": np.array(graph.weights)}


def agree(ours: Arrays, theirs: Arrays, tolerance: float, broken: str, remedy: str) -> None:
    found = disagreement(*({name: (array, tolerance) for name, array in one.items()} for one in (ours, theirs)))
    demand(found is None, f"{broken}: {found}", remedy)


def check_learner_form(learner: Any, environment: Any, seed: int) -> None:
    """A graph learner is a frozen dataclass of keyword-only hyperparameters, derived from GraphLearner."""
    demand_frozen(learner)
    demand(isinstance(learner, GraphLearner), "it is no GraphLearner", "derive it from spillover.graph.GraphLearner")
    for name, value in learner.traits._asdict().items():
        demand(isinstance(value, bool), f"{name} is {value!r}", f"say in traits whether it is {name}, True or False")
    grids = [name for name in learner.grids if np.ndim(value_of(learner, name))]
    demand(not grids, f"{grids} hold arrays", "check one setting with plain numbers: the checks make grids of it")


def check_learner_state(learner: Any, environment: Any, seed: int) -> None:
    """A graph is a NamedTuple of arrays, each with the batch's axes first; types and shapes never change."""
    for batch in ((), (3,), (2, 3)):
        rounds = rounds_of(environment, seed, batch)
        graph = learner.init(rounds.problem, batch)
        start = state_form(graph, batch, "graph")
        for k in range(len(rounds.z)):
            graph = learn_one(learner, graph, rounds, k)
            now = state_form(graph, batch, "graph")
            changed = [f"{a}: {start.get(a)} at first, {now.get(a)}" for a in start | now if start.get(a) != now.get(a)]
            remedy = "let init make every array with the type and shape that it keeps"
            demand(not changed, f"after round {k + 1} with batch {batch} it has {'; '.join(changed)}", remedy)


def check_learner_estimates(learner: Any, environment: Any, seed: int) -> None:
    """Weights are finite; adjacency, gain, gram and memo have their shapes; edges are possible, and signed if it is."""
    for batch in ((), (2, 3)):
        rounds = rounds_of(environment, seed, batch)
        graph = learner.init(rounds.problem, batch)
        memos = []
        for k in range(len(rounds.z)):
            demand_estimates(learner, graph, rounds.problem, batch, f"after round {k} with batch {batch}")
            memos.append(memo_form(learner.remember(graph), batch))
            graph = learn_one(learner, graph, rounds, k)
        remedy = "always return None, or an array (*batch, ...) of one type and shape without NaN"
        demand(len(set(memos)) == 1, f"remember gave {' and '.join(sorted(set(map(str, memos))))}", remedy)


def demand_estimates(learner: Any, graph: Any, problem: Problem, batch: Batch, where: str) -> None:
    n = problem.n_arms
    line, square = (*batch, n), (*batch, n, n)
    gram = learner.signals(graph).get("gram")
    expected = {"weights": (graph.weights, line), "gain": (learner.gain(graph), line)}
    expected |= {"adjacency": (graph.adjacency, square), "gram": (np.zeros(square) if gram is None else gram, square)}
    for name, (array, shape) in expected.items():
        broken = f"{where} {name} has shape {np.shape(array)}"
        demand(np.shape(array) == shape, broken, f"return {'(*batch, n)' if shape == line else '(*batch, n, n)'}")
        unknown = name == "adjacency" and np.isnan(array).all()  # a learner of weights alone
        demand(unknown or bool(np.isfinite(array).all()), f"{where} {name} is not finite", "guard divisions by zero")
    edges = np.nan_to_num(np.asarray(graph.adjacency))
    impossible = edges[..., impossible_edges(problem, None, None)]
    broken = f"{where} there is an edge {np.abs(impossible).max(initial=0.0):.3g} that cannot be"
    remedy = "no self-loops, and where problem.acyclic holds only edges from later to earlier arms"
    demand(not impossible.any(), broken, remedy)
    least = edges.min(initial=0.0)
    demand(learner.traits.signed or least >= 0, f"{where} an edge is {least:.3g}", "clip at 0, or say signed=True")
    if not learner.traits.learns:
        broken = f"{where} weights are {graph.weights.ravel()[:3]}"
        demand(bool((graph.weights == 1).all()), broken, "leave them at 1, or say learns = True")


def memo_form(memo: Any, batch: Batch) -> Any:
    if memo is None:
        return None
    good = isinstance(memo, np.ndarray | np.generic) and memo.shape[: len(batch)] == batch and not np.isnan(memo).any()
    remedy = f"return None, or an array with the batch's axes {batch} first and without NaN"
    demand(bool(good), f"remember gave {getattr(memo, 'shape', type(memo).__name__)}", remedy)
    return memo.dtype.str, memo.shape


def check_learner_pure(learner: Any, environment: Any, seed: int) -> None:
    """Reading changes nothing, learning changes the graph alone, and equal arguments give equal results."""
    batch = (3,)
    rounds = rounds_of(environment, seed, batch)
    before = problem_arrays(rounds.problem)
    graph = learner.init(rounds.problem, batch)
    demand_equal(problem_arrays(rounds.problem), before, "init changed the problem", "copy the arrays of a problem")
    for k in range(len(rounds.z)):
        kept, given = snapshot(graph), rounds_arrays(rounds)
        for reads in (learner.remember, learner.gain, learner.signals):
            reads(graph)
            broken = f"{reads.__name__} changed the graph in round {k + 1}"
            demand_equal(snapshot(graph), kept, broken, "compute on copies")
        twin = copy_state(graph)
        graph = learn_one(learner, graph, rounds, k)
        broken = f"absorb or solve changed an outcome in round {k + 1}"
        demand_equal(rounds_arrays(rounds), given, broken, "copy what you rewrite: only the graph may be")
        again = snapshot(learn_one(learner, twin, rounds, k))
        remedy = "keep no memory but the graph, and draw no random numbers"
        demand_equal(again, snapshot(graph), f"equal graphs and outcomes gave two graphs in round {k + 1}", remedy)


def rounds_arrays(rounds: Rounds) -> Arrays:
    return {name: np.array(getattr(rounds, name)) for name in rounds._fields[1:]}


def check_learner_rows(learner: Any, environment: Any, seed: int) -> None:
    """A learner alone equals its row of a batch, bit for bit."""
    remedy = "work on axis=-1, and let no learner see another one's row"
    alone = []
    for k in range(LEARNERS):
        rounds = rounds_of(environment, seed, (LEARNERS,)).part((slice(None), k))
        alone.append(snapshot(learn(learner, learner.init(problem_of(rounds.problem, k)), rounds)))
    for batch in ((LEARNERS,), (2, 3)):
        rounds = rounds_of(environment, seed, batch)
        whole = snapshot(learn(learner, learner.init(rounds.problem, batch), rounds))
        for cell in np.ndindex(*batch):
            row = {name: np.asarray(leaf[cell]) for name, leaf in whole.items()}
            broken = f"learner {cell} of a batch {batch} differs from the same learner alone"
            demand_equal(row, alone[int(rows_of(batch)[cell])], broken, remedy)


def problem_of(problem: Problem, row: int) -> Problem:
    """The problem of one learner out of a batch."""
    ranges = {name: getattr(problem, name) for name in ("reward_range", "overall_range")}
    return problem._replace(**{name: v[row] for name, v in ranges.items() if v is not None and np.ndim(v) > 1})


def check_learner_silence(learner: Any, environment: Any, seed: int) -> None:
    """A weight of 0 says that no outcome has arrived: the statistics stay as they are."""
    batch = (3,)
    rounds = rounds_of(environment, seed, batch)
    graph = learner.init(rounds.problem, batch)
    for k in range(len(rounds.z)):
        before = snapshot(graph)
        z, y, arrived, played_at = rounds.at(k)
        graph = learner.absorb(graph, z, y, np.zeros_like(arrived), played_at)
        broken = f"absorb with weight 0 changed the graph in round {k + 1}"
        demand_equal(snapshot(graph), before, broken, "multiply what an outcome adds by its weight")
        graph = learn_one(learner, graph, rounds, k)


def check_learner_deferral(learner: Any, environment: Any, seed: int) -> None:
    """A learner that says deferrable estimates the same if it is solved for once, after many outcomes."""
    if not learner.traits.deferrable or learner.traits.judges:  # what is judged depends on the estimates on the way
        raise Skipped("it is not deferrable, or judges its estimates on the way")
    rounds = rounds_of(environment, seed, (3,))
    after_each = learn(learner, learner.init(rounds.problem, (3,)), rounds)
    once = learner.init(rounds.problem, (3,))
    for k in range(len(rounds.z)):
        once = learner.absorb(once, *rounds.at(k))
    broken = "solving once after many outcomes estimates something else than solving after each"
    remedy = "let solve depend on the statistics only, or leave deferrable = False"
    agree(shown(learner.solve(once)), shown(after_each), DEFERRAL_AGREEMENT, broken, remedy)


def check_learner_order(learner: Any, environment: Any, seed: int) -> None:
    """A learner that says order_free estimates the same graph from the same outcomes in another order."""
    if not learner.traits.order_free:
        raise Skipped("order_free is False")
    batch = (3,)
    rounds = rounds_of(environment, seed, batch)
    count = len(rounds.z)
    orders = {"backwards": np.arange(count)[::-1], "scattered": np.random.default_rng(seed).permutation(count)}
    expected = shown(learn(learner, learner.init(rounds.problem, batch), rounds))
    for name, order in orders.items():
        found = shown(learn(learner, learner.init(rounds.problem, batch), rounds.part(order)))
        broken = f"outcomes that came {name} gave another graph"
        agree(found, expected, GRAPH_AGREEMENT["weights"], broken, "use sums of outcomes, or say order_free = False")


def check_learner_grid(learner: Any, environment: Any, seed: int) -> None:
    """Every cell of a grid of the hyperparameters in `grids` equals the single learner."""
    values = {name: value_of(learner, name) for name in learner.grids}
    names = [name for name, value in values.items() if isinstance(value, int | float | np.number)]
    if not names:
        raise Skipped("it has no grids")
    rounds = rounds_of(environment, seed, (3,))
    alone = snapshot(learn(learner, learner.init(rounds.problem, (3,)), rounds))
    grid = with_values(learner, {name: np.full((2, 1), float(values[name])) for name in names})
    copies = rounds.part((slice(None), np.tile(np.arange(3), (2, 1))))  # the same for both cells
    whole = snapshot(learn(grid, grid.init(rounds.problem, (2, 3)), copies))
    for cell in range(2):
        one = {name: leaf[cell] for name, leaf in whole.items()}
        broken = f"cell {cell} of a grid of equal {', '.join(names)} differs from the single learner"
        demand_equal(one, alone, broken, "let arrays in `grids` broadcast over the batch, or leave them out of `grids`")


def check_learner_edges(learner: Any, environment: Any, seed: int) -> None:
    """One arm, rewards that are all zero, a single round, a graph with a cycle: all of them work."""
    cycle = np.array([[0, 0.4, 0], [0, 0, 0.4], [0.4, 0, 0]])
    edges: dict[str, Environment] = {
        "one arm": SyntheticSEM(n_arms=1, budget=1, horizon=8, changes=()),
        "rewards that are all zero": FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=12),
        "a single round": SyntheticSEM(n_arms=4, budget=2, horizon=1, changes=()),
        "a cycle": FixedSEM(adjacency=cycle, means=[0.2, 0.5, 0.8], budget=2, horizon=15, acyclic=False),
    }
    for name, each in edges.items():
        try:
            check_learner_estimates(learner, each, seed)
        except Exception as error:
            raise AssertionError(f"with {name}: {type(error).__name__}: {error}") from error


GRAPH_CHECKS = (
    check_learner_form,
    check_learner_state,
    check_learner_estimates,
    check_learner_pure,
    check_learner_rows,
    check_learner_silence,
    check_learner_deferral,
    check_learner_order,
    check_learner_grid,
    check_learner_edges,
)
