"""Replications of a policy in a world, measured; they are divided among the processors that this process may use."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spillover import kernels, validate
from spillover.contracts import AnyPolicy, Delay, Environment, Policy, ScoredWorld, World, as_policy, edges_of, suited
from spillover.contracts.hyperparameters import spread_grid
from spillover.contracts.world import ForeseeableWorld, SparseWorld, score_each
from spillover.core.batches import as_batches
from spillover.delays import as_delay
from spillover.metrics import graph_mse, sparse_graph_mse
from spillover.rng import Purpose, Rng
from spillover.simulation.protocol import play_rounds, problem_for, require_scored
from spillover.simulation.run import Run
from spillover.simulation.stretches import Part, Unforeseen, fuses, in_parts, play_stretches
from spillover.types import Array, Batch, BoolArray, IntArray, Scored, State

Result = TypeVar("Result")
Step = TypeVar("Step")


def cores() -> int:
    """Count the processors that this process may use."""
    from joblib import cpu_count

    return int(cpu_count())


def shares(first: int, count: int, threads: int) -> list[tuple[int, int]]:
    """Divide `count` things from `first` on into consecutive shares (first, count), one a thread, none of them empty.

    >>> shares(10, 5, 2)
    [(10, 3), (13, 2)]
    """
    threads = min(threads, count)
    cuts = [first + (count * k + threads - 1) // threads for k in range(threads + 1)]
    return [(start, end - start) for start, end in pairwise(cuts)]


def side_by_side(work: Callable[[int, int], Result], parts: Sequence[tuple[int, int]]) -> list[Result]:
    """Work on all parts, each in a thread of its own, and return the results in their order; for compiled code."""
    if len(parts) == 1:
        return [work(*parts[0])]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, *zip(*parts, strict=True)))


BY_REPLICATION = ("regret", "payoff", "optimality_ratio", "graph_error")
FEWEST_LEARNERS, FEWEST_DECISIONS = 8, 100_000  # in a simulation that is worth several threads


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
    decisions: bool = False,
) -> Run:
    """Play a policy in newly drawn worlds, all replications at once.

    Replication k draws from its own streams, so it has the same world, rewards and delays for every policy, and for
    every `first` (the number of the first replication) and `replications`. Hyperparameters that are arrays make a
    grid, all of whose cells meet the same replications. record: measure the graph every so many rounds, or at the end
    of the listed rounds. threads: among how many the replications are divided, if the policy is compiled as a whole; by
    default as many as there are cores, or fewer if there is little to do. Results do not depend on it. decisions: keep
    what was played in each round, as `run.decisions`.

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
    given = Given(policy, environment, as_delay(delay), seed, record, decisions)
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
    decisions: bool


def worth_threads(given: Given, learners: int) -> bool:
    """Whether there is enough to do, in compiled code: other code of several threads would run in turns."""
    if as_batches(as_policy(given.policy)) is None or not given.delay.foreseeable or learners < FEWEST_LEARNERS:
        return False
    world = given.environment.draw(Rng(given.seed).at(Purpose.WORLD))
    compiled = fuses(world, suited(given.policy, world.problem, world), given.delay)
    return compiled and learners * world.horizon >= FEWEST_DECISIONS


def simulate_replications(given: Given, first: int, replications: int, progress: bool) -> Run:
    """Simulate some replications, in one thread."""
    policy, environment, delay, seed, record, decisions = given
    player, grid = spread_grid(as_policy(policy))
    rng = Rng(seed, np.arange(first, first + replications))
    world = require_scored(environment.draw(rng.at(Purpose.WORLD), (replications,)))
    player = suited(player, world.problem, world)
    horizon = world.horizon
    recorded = rounds_to_record(record, horizon)
    batch = (*grid, replications)

    delay.check_reach(horizon, first + replications)
    measured = from_parts(
        lambda parts: measure(Measures(world, batch, recorded, decisions), parts, progress),
        player, world, delay, rng, batch, recorded,
    )  # fmt: skip
    edges = [0, *(c - 1 for c in world.changes)]
    chosen_well, best_possible = (
        np.add.reduceat(counts, edges, axis=-1, dtype=np.int64) for counts in (measured.matches, measured.possible)
    )
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
        decisions=measured.decisions,
        adjacency=estimate(player, measured.state, world) if player.traits.learns_graph else None,
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
    return edges_of(policy, state) if isinstance(world, SparseWorld) else policy.adjacency(state)


def in_threads(play: Callable[[int, int], Run], parts: Sequence[tuple[int, int]]) -> Run:
    """A run whose replications are simulated side by side."""
    runs = side_by_side(play, parts)
    if len(runs) == 1:
        return runs[0]
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(run, name) for run in runs], axis=-2) for name in BY_REPLICATION
    }
    for name in ("adjacency", "decisions"):
        each = [getattr(run, name) for run in runs if getattr(run, name) is not None]
        joined[name] = np.concatenate(each, axis=-3) if each else None
    return replace(runs[0], **joined)


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


class Measures:
    """The measures of a run, filled in part by part."""

    def __init__(self, world: ScoredWorld, batch: Batch, recorded: IntArray, decisions: bool) -> None:
        self.world = world
        # asked once: a protocol of so many members takes longer to check than a stretch to be measured
        self.sparse = world if isinstance(world, SparseWorld) else None
        self.score = scorer(world)
        self.regret, self.payoff = (np.empty((*batch, world.horizon)) for _ in range(2))
        self.matches = np.empty((*batch, world.horizon), np.int32)
        self.possible = np.empty((batch[-1], world.horizon), np.int32)
        self.error = np.full((*batch, len(recorded)), np.nan)
        self.decisions = np.empty((*batch, world.horizon, world.problem.n_arms), np.bool_) if decisions else None
        self.column = {int(t): k for k, t in enumerate(recorded)}
        self.state: State = None

    def by_graph(self, recorded: Sequence[int]) -> Iterator[tuple[Array, list[int]]]:
        """The true graphs, each with the recorded rounds (by number) in which it holds."""
        starts = np.searchsorted(self.world.graph_changes, recorded, side="right")
        for start in np.unique(starts):
            which = np.flatnonzero(starts == start).tolist()
            yield self.world.adjacency(recorded[which[0]]), which

    def add(self, part: Part) -> None:
        first = part.first
        now = slice(first - 1, first - 1 + part.x.shape[-2])
        scored = self.score(first, part.x)
        self.regret[..., now], self.matches[..., now], self.possible[..., now] = scored
        kernels.payoff_of(part.y, out=self.payoff[..., now])
        if self.decisions is not None:
            self.decisions[..., now, :] = part.x
        for name, values in (("expected payoff", scored.regret), ("outcome", self.payoff[..., now])):
            if np.isnan(values.sum()) and np.isnan(values).any():
                last = first + part.x.shape[-2] - 1
                where = f"{name} of {type(self.world).__name__} in rounds {first} to {last}"
                validate.require(False, where, np.nan, "numbers: the world has NaN among its parameters or outcomes")
        if self.sparse is not None:
            for k, t in enumerate(part.recorded):
                self.error[..., self.column[t]] = sparse_graph_mse(part.graphs[k], self.sparse.edges(t))
        else:
            for graph, which in self.by_graph(part.recorded):
                columns = [self.column[part.recorded[k]] for k in which]
                self.error[..., columns] = graph_mse(part.graphs[..., which, :, :], graph[..., None, :, :])
        self.state = part.state


def scorer(world: ScoredWorld) -> Callable[[int, BoolArray], Scored]:
    """Measures the decisions of some rounds, at once if the world can do that."""
    return world.score_rounds if isinstance(world, ForeseeableWorld) else partial(score_each, world)


def measure(measured: Measures, parts: Iterator[Part], progress: bool) -> Measures:
    """Play all parts, and measure them."""
    for part in with_progress(parts, measured.world.horizon, progress, " rounds", lambda part: part.x.shape[-2]):
        measured.add(part)
    return measured


def with_progress(
    steps: Iterator[Step], total: int, progress: bool, unit: str, size: Callable[[Step], int] = lambda step: 1
) -> Iterator[Step]:
    """The same steps with a progress bar; size: how much of the total a step is.

    In a notebook it is a widget (if ipywidgets is installed); elsewhere a line on stderr, unless that is piped.
    """
    if not progress:
        yield from steps
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, unit=unit, disable=None, leave=False) as bar:
        for step in steps:
            yield step
            bar.update(size(step))
