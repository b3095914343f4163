"""The game protocol: one loop for a single run, for thousands of replications, and for a recorded log."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from spillover import validate
from spillover.contracts import (
    AnyPolicy,
    Delay,
    Environment,
    Policy,
    ScoredWorld,
    World,
    as_policy,
    require_context,
    require_explains,
    suited,
)
from spillover.delays import as_delay
from spillover.extras import needed_for
from spillover.foresight import SparseWorld
from spillover.hyperparameters import grid_settings, spread_grid
from spillover.mailbox import FeedbackQueue
from spillover.measuring import measure
from spillover.metrics import Interval, RegretCurve, mean_interval
from spillover.rng import Purpose, Rng
from spillover.showing import Shown, view_of
from spillover.stretches import Foreseen, Part, Unforeseen, fuses, in_parts, play_stretches
from spillover.tabular import in_columns, shared_names
from spillover.threads import cores, shares, side_by_side
from spillover.types import Array, Batch, BoolArray, Explanation, Feedback, IntArray, Outcome, Problem, State

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Result = TypeVar("Result")
BY_REPLICATION = ("regret", "payoff", "optimality_ratio", "graph_error")
MOST_POINTS = 500  # of a line in a figure
FEWEST_LEARNERS, FEWEST_DECISIONS = 8, 100_000  # in a simulation that is worth several threads


class Round(NamedTuple):
    """A round that has been played; the policy has learned everything that arrived at its end.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=3).draw(sp.Rng(0))
    >>> for played in rounds(sp.SwitchingSEM(), world, sp.ConstantDelay(1), sp.Rng(0), ()):
    ...     print(played.t, played.x.astype(int), played.outcome.y)
    1 [0 1] [0. 0.]
    2 [0 1] [0. 0.]
    3 [1 0] [0. 0.]
    """

    t: int  # from 1
    x: BoolArray
    outcome: Outcome
    state: State  # the next round rewrites it: copy it to keep it


def rounds(policy: AnyPolicy, world: World, delay: Any, rng: Rng, batch: Batch) -> Iterator[Round]:
    """Play a policy in a world to its horizon; `rng` has the world's batch, and `batch` ends with the same axes.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=50).draw(sp.Rng(0))
    >>> payoffs = [played.outcome.y.sum() for played in rounds(sp.NDCSEM(), world, sp.ConstantDelay(1), sp.Rng(0), ())]
    >>> len(payoffs)
    50
    """
    delay = as_delay(delay)
    delay.check_reach(world.horizon, int(rng.keys[..., 1].max(initial=0)) + 1)
    return play_rounds(suited(policy, world.problem), world, delay, rng, batch)


def play_rounds(policy: Policy, world: World, delay: Delay, rng: Rng, batch: Batch) -> Iterator[Round]:
    own, problem = rng.spread(batch), problem_for(policy, world)
    queue = FeedbackQueue(delay, world.horizon, own, batch, takes_parts(policy, problem))
    context_of, foreseen = known_context(world, batch), Foreseen(world, rng)
    state = policy.init(problem, own.at(Purpose.START), batch)
    for t in range(1, world.horizon + 1):
        if (context := context_of(t)) is not None:
            state = policy.observe(state, context)
        choice = policy.select(state, own.at(Purpose.CHOICE, t))
        state = policy.played(state, choice.x)
        outcome = foreseen.play(t, choice.x)
        if context is not None:
            outcome = outcome._replace(context=context)
        for feedback, played_at in queue.exchange(t, choice, outcome):
            state = policy.update(state, feedback, own.at(Purpose.LEARNING, played_at))
        yield Round(t, choice.x, outcome, state)


def takes_parts(policy: Policy, problem: Problem) -> bool:
    """Whether the policy learns each arm's outcome when it arrives; a payoff is known when all have arrived."""
    return policy.accepts_missing and problem.observes != "payoff"


def known_context(world: World, batch: Batch) -> Callable[[int], Array | None]:
    """The context of a round, (*batch, k), as a function of the round; None without context."""
    columns = world.problem.context
    if not columns:
        return lambda t: None
    shape, source = (*batch, columns), require_context(world)
    return lambda t: np.broadcast_to(np.asarray(source.context(t), float), shape)


def problem_for(policy: Policy, world: World) -> Problem:
    """The problem as the policy may know it: with the true weights only if the policy knows the graph."""
    if not policy.knows_graph:
        return world.problem
    accepted = "none for a policy that knows the graph"
    validate.require(not world.graph_changes, "graph_changes", world.graph_changes, accepted)
    return world.problem._replace(weights=require_scored(world).weights(1))


def require_scored(world: World) -> ScoredWorld:
    """Raise a TypeError for a world that does not know expected payoffs."""
    if not isinstance(world, ScoredWorld):
        raise TypeError(f"world = {type(world).__name__}: must be a ScoredWorld, in which regret is defined")
    return world


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Run(Shown):
    """The result of a simulation; the first axes are the policy's grid (none for a single setting) and replications.

    >>> import spillover as sp
    >>> sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=200, changes=()), 5, replications=3)
    Run(NDCSEM, 3 replications x 200 rounds, delay 5, final regret 66.5 [−56.3, 189.3])
    """

    view = "spillover.views.run:RunView"

    policy: Any
    environment: Any
    delay: Any
    seed: int
    first: int
    changes: tuple[int, ...]
    regret: Array  # (*grid, replications, rounds): cumulative pseudo-regret
    payoff: Array  # (*grid, replications, rounds): realised payoff of each round
    optimality_ratio: Array  # (*grid, replications, periods)
    graph_error: Array  # (*grid, replications, recorded rounds): MSE of the adjacency; NaN without a graph
    recorded: IntArray  # the rounds at whose end the graph was measured
    adjacency: Any  # (*grid, replications, n, n): the estimate after the last round; sparse in a `SparseWorld`, or None

    @property
    def final_regret(self) -> Array:
        """Regret after the last round, (*grid, replications)."""
        return self.regret[..., -1]

    @property
    def average_payoff(self) -> Array:
        """Mean realised payoff up to each round, (*grid, replications, rounds)."""
        return np.cumsum(self.payoff, axis=-1) / np.arange(1, self.payoff.shape[-1] + 1)

    def blind_regret(self, rounds: int) -> Array:
        """Regret of the first `rounds` rounds; under a delay D the first D + 1 are played without any feedback."""
        validate.whole("rounds", rounds, 1, self.regret.shape[-1])
        return self.regret[..., rounds - 1]

    def interval(self, measure: str = "regret") -> Interval:
        """Mean over replications with its 95% confidence interval, of a field of this run by name."""
        measures = ("regret", "payoff", "final_regret", "average_payoff", "optimality_ratio", "graph_error")
        validate.require(measure in measures, "measure", measure, f"one of {', '.join(measures)}")
        values = getattr(self, measure)
        return mean_interval(values, axis=-1 if measure == "final_regret" else -2)

    def regret_curves(self) -> list[RegretCurve]:
        """The regret over time of each setting of the grid, at up to `MOST_POINTS` rounds, for `report.regret_figure`.

        >>> import spillover as sp
        >>> run = sp.simulate(sp.NDCSEM(discount=[0.9, 0.99]), sp.SyntheticSEM(horizon=50, changes=()), replications=2)
        >>> [(curve.label, curve.regret.shape) for curve in run.regret_curves()]
        [('NDCSEM(discount=0.9)', (2, 50)), ('NDCSEM(discount=0.99)', (2, 50))]
        """
        name, horizon = type(self.policy).__name__, self.regret.shape[-1]
        step = -(-horizon // MOST_POINTS)
        rounds = np.arange(horizon, 0, -step)[::-1]
        cells = self.regret.reshape(-1, *self.regret.shape[-2:])[..., rounds - 1]
        settings = grid_settings(as_policy(self.policy))
        names = [f"{name}({setting})" for setting in settings] if settings else [name]
        return [RegretCurve(each, each, rounds, cell, self.changes) for each, cell in zip(names, cells, strict=True)]

    def plot(self, *, title: str = "") -> "Figure":
        """Cumulative regret over time with its 95% band; one line for each setting of a grid.

        `spillover.report.regret_figure` draws several runs on one pair of axes.

        >>> import spillover as sp
        >>> run = sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=50, changes=()), replications=2)
        >>> run.plot(title="NDC-SEM").axes[0].get_xlabel()
        'round'
        """
        drawn: Figure = view_of(self.view, self).plot(title=title)
        return drawn

    def to_frame(self, every: int = 1) -> "pd.DataFrame":
        """One row for each replication and round (of those divisible by `every`, and the last one).

        Columns: the grid's coordinates if there is a grid, replication, round, period, regret, payoff, graph_error
        (NaN where it was not recorded).

        >>> import spillover as sp
        >>> run = sp.simulate(sp.Uniform(), sp.SyntheticSEM(horizon=100, changes=()), 5, replications=2)
        >>> run.to_frame(every=50)[["replication", "round", "period"]]
           replication  round  period
        0            0     50       1
        1            0    100       1
        2            1     50       1
        3            1    100       1
        """
        with needed_for("a data frame", "research"):
            import pandas as pd

        validate.whole("every", every, 1)
        horizon = self.regret.shape[-1]
        kept = np.array([t for t in range(1, horizon + 1) if t % every == 0 or t == horizon])
        error = np.full(self.regret.shape, np.nan)
        error[..., self.recorded - 1] = self.graph_error
        names = [f"grid_{k}" for k in range(self.regret.ndim - 2)]
        index = np.indices((*self.regret.shape[:-1], len(kept))).reshape(self.regret.ndim, -1)
        columns: dict[str, Any] = dict(zip(names, index[:-2], strict=True))
        columns["replication"] = self.first + index[-2]
        columns["round"] = kept[index[-1]]
        columns["period"] = np.searchsorted(self.changes, kept, side="right")[index[-1]] + 1
        for name, values in (("regret", self.regret), ("payoff", self.payoff), ("graph_error", error)):
            columns[name] = values[..., kept - 1].ravel()
        return pd.DataFrame(columns)


def simulate(
    policy: AnyPolicy,
    environment: Environment,
    delay: Any = 0,
    *,
    replications: int = 1,
    seed: int = 0,
    record: int | Sequence[int] = 50,
    first: int = 0,
    progress: bool = False,
    threads: int | None = None,
) -> Run:
    """Play a policy in newly drawn worlds, all replications at once.

    Replication k draws from its own streams, so it has the same world, rewards and delays for every policy, and for
    every `first` (the number of the first replication) and `replications`. Hyperparameters that are arrays make a
    grid, all of whose cells meet the same replications. record: measure the graph every so many rounds, or at the end
    of the listed rounds. threads: among how many the replications are divided, if the policy is compiled as a whole; by
    default as many as there are cores, or fewer if there is little to do. Results do not depend on it.

    >>> import spillover as sp
    >>> run = sp.simulate(sp.NDCSEM(), sp.SyntheticSEM(horizon=200, changes=()), sp.ConstantDelay(5), replications=3)
    >>> run.regret.shape, run.optimality_ratio.shape, run.graph_error.shape
    ((3, 200), (3, 1), (3, 4))
    """
    require_environment(environment)
    validate.whole("replications", replications, 1)
    validate.whole("first", first, 0)
    if threads is not None:
        validate.whole("threads", threads, 1)
    given = Given(policy, environment, as_delay(delay), seed, record)
    _, grid = spread_grid(as_policy(policy))
    learners = replications * int(np.prod(grid, dtype=int))
    if threads == 1 or not worth_threads(given, learners):
        return simulate_replications(given, first, replications, progress)
    return in_threads(
        lambda start, count: simulate_replications(given, start, count, progress and start == first),
        shares(first, replications, cores() if threads is None else threads),
    )


class Given(NamedTuple):
    """What is simulated."""

    policy: AnyPolicy
    environment: Environment
    delay: Delay
    seed: int
    record: int | Sequence[int]


def worth_threads(given: Given, learners: int) -> bool:
    """Whether there is enough to do, in compiled code: other code of several threads would run in turns."""
    policy = as_policy(given.policy)
    if not policy.fuses or not given.delay.foreseeable or learners < FEWEST_LEARNERS:
        return False
    world = given.environment.draw(Rng(given.seed).at(Purpose.WORLD))
    compiled = fuses(world, suited(policy.with_world(world), world.problem), given.delay)
    return compiled and learners * world.horizon >= FEWEST_DECISIONS


def simulate_replications(given: Given, first: int, replications: int, progress: bool) -> Run:
    """Simulate some replications, in one thread."""
    policy, environment, delay, seed, record = given
    player, grid = spread_grid(as_policy(policy))
    rng = Rng(seed, np.arange(first, first + replications))
    world = require_scored(environment.draw(rng.at(Purpose.WORLD), (replications,)))
    player = suited(player.with_world(world), world.problem)
    horizon = world.horizon
    recorded = rounds_to_record(record, horizon)
    batch = (*grid, replications)

    delay.check_reach(horizon, first + replications)
    measured = from_parts(
        lambda parts: measure(world, batch, recorded, parts, progress), player, world, delay, rng, batch, recorded
    )
    edges = [0, *(c - 1 for c in world.changes)]
    chosen_well = np.add.reduceat(measured.matches, edges, axis=-1)
    best_possible = np.add.reduceat(measured.possible, edges, axis=-1)
    return Run(
        policy=policy,
        environment=environment,
        delay=delay,
        seed=seed,
        first=first,
        changes=world.changes,
        regret=np.cumsum(measured.regret, axis=-1),
        payoff=measured.payoff,
        # if the best set is empty (all means are 0), every decision is optimal
        optimality_ratio=np.where(best_possible > 0, chosen_well / np.maximum(best_possible, 1), 1.0),
        graph_error=measured.error,
        recorded=recorded,
        adjacency=estimate(player, measured.state, world) if player.learns_graph else None,
    )


def from_parts(
    use: Callable[[Iterator[Part]], Result],
    policy: Policy,
    world: ScoredWorld,
    delay: Delay,
    rng: Rng,
    batch: Batch,
    recorded: IntArray,
) -> Result:
    """What `use` makes of all rounds, which are played by the compiled form of the policy if it has one.

    It may be called twice: rounds are played again one after another if the compiled form cannot go on.
    """
    if fuses(world, policy, delay):
        with suppress(Unforeseen):
            return use(play_stretches(policy, problem_for(policy, world), world, delay, rng, batch, recorded))
    played = play_rounds(policy, world, delay, rng, batch)
    return use(in_parts(played, policy, recorded, isinstance(world, SparseWorld)))


def estimate(policy: Policy, state: State, world: World) -> Any:
    """The estimated graph, sparse if that of the world is."""
    return policy.edges(state) if isinstance(world, SparseWorld) else policy.adjacency(state)


def in_threads(play: Callable[[int, int], Run], parts: Sequence[tuple[int, int]]) -> Run:
    """A run whose replications are simulated side by side."""
    runs = side_by_side(play, parts)
    if len(runs) == 1:
        return runs[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(run, name) for run in runs], axis=-2) for name in BY_REPLICATION
    }
    graphs = [run.adjacency for run in runs if run.adjacency is not None]
    return replace(runs[0], **joined, adjacency=np.concatenate(graphs, axis=-3) if graphs else None)


def require_environment(given: object) -> None:
    """Raise a TypeError for an object without a `draw`, and for a class instead of an object."""
    if isinstance(given, type) or not isinstance(given, Environment):
        raise TypeError(f"environment = {given!r}: must be an environment, such as SyntheticSEM()")


def rounds_to_record(record: int | Sequence[int], horizon: int) -> IntArray:
    """The rounds that `record` describes."""
    accepted = f"a whole number of rounds, or a list of rounds from 1 to {horizon}"
    given = validate.numbers("record", record, accepted)
    valid = np.isfinite(given) & (given == np.floor(given)) & (given >= 1)
    good = bool(valid.all()) and given.ndim <= 1
    validate.require(good and not isinstance(record, str | bool | None), "record", record, accepted)
    if given.ndim == 0:
        return np.arange(int(given), horizon + 1, int(given))
    validate.require(bool((given <= horizon).all()), "record", record, accepted)
    return np.unique(given.astype(np.int64))


def replay(
    policy: AnyPolicy,
    problem: Problem,
    x: Any,
    z: Any,
    y: Any,
    *,
    context: Any = None,
    delay: Any = 0,
    seed: int = 0,
) -> Iterator[Explanation]:
    """Let a policy learn a recorded log; yields its explanations of rounds 1 to T + 1.

    x, z, y: the recorded decisions and outcomes, `(T, n)`. They are checked before the first round. z is None if the
    problem does not observe it. Outcomes may be NaN if the policy accepts missing ones. Tables (pandas, Polars, Arrow)
    have a column for each arm: those of z and y are put into the order of x.
    context: `(T + 1, k)`, the last row that of the coming round; with `(T, k)` the explanations end with round T.

    >>> import spillover as sp
    >>> x = z = y = np.array([[1.0, 0.0], [0.0, 1.0]])  # two rounds: each arm was played once, and brought 1
    >>> *past, coming = replay(sp.NDCSEM(), sp.Problem(n_arms=2, budget=1), x, z, y)
    >>> len(past), coming.mean
    (2, array([1., 1.]))
    """
    validate.problem(problem)
    player = suited(policy, problem)
    require_explains(player, "to be replayed")
    late = as_delay(delay)
    arms = shared_names(x, z, y)
    x, z, y = (in_columns(name, given, arms) for name, given in (("x", x), ("z", z), ("y", y)))
    context = in_columns("context", context, None)
    decisions = np.asarray(x)
    shape = (len(decisions) if decisions.ndim else 0, problem.n_arms)
    log = validate.decision("x", decisions, shape)
    late.check_reach(len(log), 1)
    rewards = validate.observed_rewards(z, problem.observes, shape)
    given = Feedback(log, rewards, y, np.zeros(len(log), np.int64), np.ones(len(log), np.bool_))
    partial = problem.observes != "both" or player.accepts_missing
    check = validate.partial_feedback if partial else validate.feedback
    checked = check(given, shape, np.asarray(problem.reward_range, float), np.arange(1, len(log) + 1))
    if not player.accepts_missing and np.isnan(checked.y).any():
        row = int(np.isnan(checked.y).any(axis=-1).argmax())
        accepted = "numbers: the policy does not accept missing outcomes"
        validate.require(False, f"y of round {row + 1}", checked.y[row], accepted)
    table = validate.context(context, problem.context, (len(log), len(log) + 1))
    return replay_checked(player, problem, log, Outcome(checked.z, checked.y, table), late, Rng(seed))


def replay_checked(
    policy: Policy, problem: Problem, log: BoolArray, outcome: Outcome, delay: Delay, rng: Rng
) -> Iterator[Explanation]:
    queue = FeedbackQueue(delay, len(log), rng, (), takes_parts(policy, problem))
    state = policy.init(problem, rng.at(Purpose.START))
    z, y, table = outcome
    last = len(log) + 1 if table is None else len(table)
    for t in range(1, last + 1):
        context = None if table is None else table[t - 1]
        if context is not None:
            state = policy.observe(state, context)
        yield policy.explain_choice(state, rng.at(Purpose.CHOICE, t))
        if t > len(log):
            return
        choice = policy.select(state, rng.at(Purpose.CHOICE, t))._replace(x=log[t - 1])
        state = policy.played(state, choice.x)
        for feedback, played_at in queue.exchange(t, choice, Outcome(z[t - 1], y[t - 1], context)):
            state = policy.update(state, feedback, rng.at(Purpose.LEARNING, played_at))


__all__ = ["Round", "Run", "replay", "rounds", "simulate"]
