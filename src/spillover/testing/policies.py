"""The contract of a policy."""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from spillover.contracts import AnyPolicy, Environment, FourFunctions, Policy, as_policy
from spillover.contracts.hyperparameters import value_of, with_values
from spillover.delays import ArmDelays, ConstantDelay, LossyDelay, UniformDelay
from spillover.environments import FixedSEM, SyntheticSEM
from spillover.policies import Uniform
from spillover.rng import Purpose
from spillover.simulation import rounds
from spillover.simulation.protocol import problem_for
from spillover.testing.invariance import check_catch_up, check_order, check_stretches, check_units
from spillover.testing.trial import (
    SCATTERED,
    Explained,
    Feasible,
    LoggedDelay,
    Overridden,
    Pure,
    ReloadedArrays,
    ReloadedJSON,
    Skipped,
    Trial,
    demand,
    demand_equal,
    demand_frozen,
    demand_same_run,
    rows_of,
    run_around,
    run_arrays,
    run_checks,
    snapshot,
    start_trial,
    steps,
)
from spillover.types import Batch, State

DELAYS = (ConstantDelay(3), UniformDelay(0, 6), SCATTERED)


def check_policy(
    policy: AnyPolicy, *, environment: Environment | None = None, seed: int = 0, edge_shapes: bool = True
) -> list[str]:
    """Check the contract of `spillover.contracts.Policy`.

    environment: where to test it, with a short horizon; by default five arms, of which two are played. A policy that
        uses context, fits a baseline or does without z is also tested where there is context, a baseline or no z.
    edge_shapes: also test one arm, all arms at once, no rewards at all, a single round and a graph with a cycle; set
        it to False for a policy that works with a fixed number of arms only.
    Returns the checks that were skipped, with the reasons.

    >>> import spillover as sp
    >>> "check_grid: it has no grids" in check_policy(sp.Uniform(), edge_shapes=False)  # it keeps the contract
    True
    """
    usual = SyntheticSEM(n_arms=5, budget=2, edge_density=0.2, horizon=30, changes=(12,), law="beta")
    trial = Trial(environment or usual, seed)
    skipped = run_checks(policy, POLICY_CHECKS, trial)
    if environment is None:
        for demanding in demanding_worlds(as_policy(policy), usual):
            run_checks(policy, DEMANDING_CHECKS, Trial(demanding, seed))
    if edge_shapes:
        skipped += run_checks(policy, (check_edge_shapes,), trial)
    return skipped


def demanding_worlds(player: Policy, usual: SyntheticSEM) -> list[SyntheticSEM]:
    """Worlds with what the policy says that it can handle, and without what it says that it does not need."""
    found = []
    context, baseline = 2 if player.traits.uses_context else 0, player.traits.fits_baseline
    if context or baseline or not player.traits.needs_rewards:
        observes = "both" if player.traits.needs_rewards else "overall"
        found.append(replace(usual, context=context, baseline=baseline, observes=observes, noise=0.1))
    if not player.traits.needs_outcomes and not player.traits.needs_rewards:
        found.append(replace(usual, context=context, baseline=baseline, observes="payoff"))
    return found


def check_parts(policy: Any, trial: Trial) -> None:
    """A policy that accepts missing outcomes works with arms that report at different times, row by row."""
    player, world, _ = start_trial(policy, trial, 0)
    if not player.traits.accepts_missing:
        raise Skipped("accepts_missing is False")
    n = world.problem.n_arms
    late = ArmDelays(tuple(LossyDelay(UniformDelay(0, 1 + arm), 0.1) for arm in range(n)))
    run_around(Feasible, policy, trial, late)
    run_around(Pure, policy, trial, late)
    together = list(steps(policy, trial, late, rows_of((3,))))
    for row in range(3):
        whole = [{name: np.asarray(value[row]) for name, value in step.items()} for step in together]
        broken = f"with outcomes in parts row {row} of a batch (3,) differs from the same replication alone"
        demand_same_run(whole, list(steps(policy, trial, late, row)), broken, "keep the rows of a batch independent")


def check_form(policy: Any, trial: Trial) -> None:
    """A policy is a frozen dataclass of keyword-only hyperparameters with four functions."""
    demand_frozen(policy)
    remedy = "derive it from spillover.policies.Policy, or see there for the signatures of the four functions"
    demand(isinstance(policy, FourFunctions), "it has no init, select, played or update", remedy)
    player = start_trial(policy, trial, 0)[0]
    remedy = "say in traits whether it is, True or False"
    demand(isinstance(player.traits.order_free, bool), f"order_free is {player.traits.order_free!r}", remedy)
    grids = [name for name in as_policy(policy).grids if np.ndim(value_of(policy, name))]
    demand(not grids, f"{grids} hold arrays", "check one setting with scalars: the checks make grids of it")


def check_state(policy: Any, trial: Trial) -> None:
    """The state is a NamedTuple of arrays, each with the batch's axes first; types and shapes never change."""
    for batch in ((), (3,), (2, 3)):
        player, world, rng = start_trial(policy, trial, rows_of(batch))
        start = state_form(player.init(problem_for(player, world), rng.at(Purpose.START), batch), batch)
        for played in rounds(player, world, SCATTERED, rng, batch):
            now = state_form(played.state, batch)
            changed = [f"{k}: {start.get(k)} at first, {now.get(k)}" for k in start | now if start.get(k) != now.get(k)]
            remedy = "give every array its final type and shape in init"
            demand(not changed, f"after round {played.t} with batch {batch} the state has {'; '.join(changed)}", remedy)


def state_form(state: State, batch: Batch, path: str = "state") -> dict[str, tuple[str, Batch]]:
    """Check every leaf; returns types and shapes."""
    is_named_tuple = isinstance(state, tuple) and hasattr(state, "_fields")
    demand(is_named_tuple, f"{path} is a {type(state).__name__}", "make it a typing.NamedTuple of NumPy arrays")
    found: dict[str, tuple[str, Batch]] = {}
    for name, value in zip(state._fields, state, strict=True):
        place = f"{path}.{name}"
        if isinstance(value, np.ndarray | np.generic):
            remedy = "use numbers or booleans: nothing else can be saved"
            demand(value.dtype.kind in "biuf", f"{place} has type {value.dtype}", remedy)
            broken = f"{place} has shape {value.shape} for a batch {batch}"
            demand(value.shape[: len(batch)] == batch, broken, f"give it the axes {batch} first, in init and later")
            found[place] = str(value.dtype), value.shape
        else:
            found |= state_form(value, batch, place)
    return found


def check_feasible(policy: Any, trial: Trial) -> None:
    """Under all delays at most `budget` arms are chosen, as a boolean mask, and no state contains NaN."""
    for delay in DELAYS:
        run_around(Feasible, policy, trial, delay)


def check_pure(policy: Any, trial: Trial) -> None:
    """No function changes its arguments (except the state in update), and equal arguments give equal results."""
    run_around(Pure, policy, trial)


def check_memory(policy: Any, trial: Trial) -> None:
    """Everything learned is in the state: runs are reproducible, and interleaved runs do not affect each other."""
    before = attributes(policy)
    alone = [list(steps(policy, trial, SCATTERED, k)) for k in (0, 1)]
    changed = [name for name, value in attributes(policy).items() if before.get(name) != value]
    remedy = "put what is learned into the state that init returns, and draw from the given rng only"
    demand(not changed, f"a run changed the attributes {changed} of the policy itself", remedy)
    repeated = list(steps(policy, trial, SCATTERED, 0))
    demand_same_run(repeated, alone[0], "a second run with the same seed differs from the first", remedy)
    turns = zip(steps(policy, trial, SCATTERED, 0), steps(policy, trial, SCATTERED, 1), strict=True)
    for run, expected in zip(zip(*turns, strict=True), alone, strict=True):
        demand_same_run(list(run), expected, "two interleaved runs differ from each alone", remedy)


def attributes(policy: Any) -> dict[str, str]:
    """The attributes of an object as text, without cached properties."""
    return {
        name: repr(value)
        for name, value in getattr(policy, "__dict__", {}).items()
        if not isinstance(getattr(type(policy), name, None), cached_property)
    }


def check_rows(policy: Any, trial: Trial) -> None:
    """A single run equals its row of a batch, bit for bit; so does a cell of a batch with several axes."""
    remedy = "work on axis=-1, draw from the given rng only, and keep the rows of a batch independent"
    alone = [list(steps(policy, trial, SCATTERED, k)) for k in range(6)]
    for batch, lead in (((6,), ()), ((2, 3), ()), ((3,), (2,))):
        together = list(steps(policy, trial, SCATTERED, rows_of(batch), lead))
        for cell in np.ndindex(*lead, *batch):
            row = [{name: np.asarray(value[cell]) for name, value in step.items()} for step in together]
            single = alone[int(rows_of(batch)[cell[len(lead) :]])]
            broken = f"row {cell} of a batch {(*lead, *batch)} differs from the same replication alone"
            demand_same_run(row, single, broken, remedy)


def check_reload(policy: Any, trial: Trial) -> None:
    """A run continues identically after its state was saved and loaded, as JSON or as arrays, without pickle."""
    for batch in ((), (3,)):
        uninterrupted = list(steps(policy, trial, SCATTERED, rows_of(batch)))
        for wrapper in (ReloadedJSON, ReloadedArrays):
            player, world, rng = start_trial(policy, trial, rows_of(batch))
            played = rounds(wrapper(player), world, SCATTERED, rng, batch)
            run = [{"x": np.array(r.x)} | snapshot(r.state, "state.") for r in played]
            kept = [{name: step[name] for name in run[0]} for step in uninterrupted]
            remedy = "keep everything that affects decisions in the arrays of the state"
            demand_same_run(run, kept, f"a run whose state went through {wrapper.__name__[8:]} differs", remedy)


def check_blocks(policy: Any, trial: Trial) -> None:
    """The same seed gives the same results, however the replications are split into blocks."""
    together = run_arrays(policy, trial, 0, 6)
    for first, count in ((0, 2), (2, 3), (5, 1)):
        block = run_arrays(policy, trial, first, count)
        rows = {name: value[first : first + count] for name, value in together.items()}
        broken = f"simulate(first={first}, replications={count}) differs from these rows of replications=6"
        demand_equal(block, rows, broken, "draw from the given rng only, and keep the rows of a batch independent")


def check_grid(policy: Any, trial: Trial) -> None:
    """Every cell of a grid over the hyperparameters in `grids` equals the single run."""
    values = {name: value_of(policy, name) for name in as_policy(policy).grids}
    names = [name for name, value in values.items() if isinstance(value, int | float | np.number)]
    if not names:
        raise Skipped("it has no grids")
    # each hyperparameter gets an axis of its own with two equal values: only the shapes are new
    axes = {name: [2 if k == j else 1 for j in range(len(names))] for k, name in enumerate(names)}
    grid = with_values(policy, {name: np.full(shape, float(values[name])) for name, shape in axes.items()})
    together, alone = run_arrays(grid, trial, 0, 3), run_arrays(policy, trial, 0, 3)
    for cell in np.ndindex(*(2 for _ in names)):
        one = {name: value[cell] for name, value in together.items()}
        broken = f"cell {cell} of a grid of equal {', '.join(names)} differs from the single run"
        demand_equal(one, alone, broken, "broadcast the arrays in `grids` over the batch, or remove them from `grids`")


def check_same_world(policy: Any, trial: Trial) -> None:
    """A policy gets the same rewards and delays as any other one, and does not change the world."""
    batch, delay = (3,), LoggedDelay(SCATTERED)
    player, world, rng = start_trial(policy, trial, rows_of(batch))
    seen = [(r.t, np.array(r.x), r.outcome) for r in rounds(player, world, delay, rng, batch)]
    fresh, clean = start_trial(Uniform(), trial, rows_of(batch))[1:]
    for t, x, outcome in seen:
        untouched = fresh.play(t, x, clean.at(Purpose.WORLD, t))
        late = SCATTERED.draw(t, clean.at(Purpose.DELAY, t), batch)
        met = {"z": outcome.z, "y": outcome.y, "best": world.best(t), "delay": delay.log[t - 1]}
        given = {"z": untouched.z, "y": untouched.y, "best": fresh.best(t), "delay": late}
        broken = f"in round {t} the world differs from the one that another policy meets"
        demand_equal(met, given, broken, "change neither the world nor the given rng")


def check_override(policy: Any, trial: Trial) -> None:
    """A policy whose decisions are overridden still works, with feasible choices and without NaN."""
    run_around(Overridden, policy, trial)


def check_explanation(policy: Any, trial: Trial) -> None:
    """Explanations show the choice that the policy then makes, and change nothing."""
    if start_trial(policy, trial, 0)[0].traits.explains:
        for batch in ((), (2, 3)):
            run_around(Explained, policy, trial, batch=batch)


def check_edge_shapes(policy: Any, trial: Trial) -> None:
    """It works with one arm, all arms at once, no rewards at all, a single round, and a graph with a cycle."""
    cycle = np.array([[0, 0.4, 0], [0, 0, 0.4], [0.4, 0, 0]])
    edges: dict[str, Environment] = {
        "one arm": SyntheticSEM(n_arms=1, budget=1, horizon=8, changes=()),
        "a budget for all arms": SyntheticSEM(n_arms=4, budget=4, horizon=15, changes=(8,)),
        "rewards that are all zero": FixedSEM(adjacency=np.zeros((3, 3)), means=np.zeros(3), budget=2, horizon=12),
        "a single round": SyntheticSEM(n_arms=4, budget=2, horizon=1, changes=()),
        "a cycle": FixedSEM(adjacency=cycle, means=[0.2, 0.5, 0.8], budget=2, horizon=15, acyclic=False),
    }
    for name, environment in edges.items():
        for batch in ((), (3,)):
            try:
                run_around(Feasible, policy, Trial(environment, trial.seed), UniformDelay(0, 3), batch)
            except Exception as error:
                raise AssertionError(f"with {name}, batch {batch}: {type(error).__name__}: {error}") from error


POLICY_CHECKS = (
    check_form,
    check_feasible,  # first: a loop refuses what is not feasible
    check_state,
    check_pure,
    check_memory,
    check_rows,
    check_reload,
    check_blocks,
    check_grid,
    check_same_world,
    check_override,
    check_order,
    check_catch_up,
    check_stretches,
    check_explanation,
    check_units,
    check_parts,
)
# where there is context, a baseline or no z; the others would only repeat what they have found already
DEMANDING_CHECKS = (
    check_feasible,
    check_state,
    check_pure,
    check_rows,
    check_reload,
    check_override,
    check_catch_up,
    check_explanation,
    check_units,
    check_parts,
)
