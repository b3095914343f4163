"""The contracts of environments, of their worlds and of delays."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spillover import validate
from spillover.contracts import Delay, Environment, ScoredWorld, require_contextual
from spillover.rng import Purpose, Rng
from spillover.testing.invariance import check_course, check_delay_rounds
from spillover.testing.trial import (
    Arrays,
    Skipped,
    demand,
    demand_close,
    demand_equal,
    demand_frozen,
    random_sets,
    rows_of,
    run_checks,
    type_name,
)
from spillover.types import Batch, BoolArray

BATCH = (6,)


def check_environment(environment: Environment, *, seed: int = 0, draws: int = 400) -> list[str]:
    """Check the contract of `spillover.contracts.ScoredWorld` for the worlds of an environment.

    draws: how many rewards to draw in each round in which the mean payoff is compared with the expected one.
    Returns the checks that were skipped, with the reasons.

    >>> import spillover as sp
    >>> small = sp.SyntheticSEM(n_arms=3, budget=2, horizon=6, changes=(4,))
    >>> check_environment(small, draws=50)  # it keeps the contract
    ['check_context: the problem has no context']
    """
    return run_checks(environment, ENVIRONMENT_CHECKS, seed, draws)


def draw_world(environment: Environment, seed: int, replication: Any = None) -> tuple[ScoredWorld, Rng]:
    """A drawn world and its streams, for a few replications or the given ones."""
    rows = rows_of(BATCH) if replication is None else replication
    rng = Rng(seed, rows)
    return environment.draw(rng.at(Purpose.WORLD), np.shape(rows)), rng


def key_rounds(world: ScoredWorld) -> list[int]:
    """The first round, the last one, one in the middle, and those before and after changes."""
    sides = [t for change in world.changes[:3] for t in (change - 1, change)]
    return sorted({1, *sides, (1 + world.horizon) // 2, world.horizon})


def decisions(world: ScoredWorld, t: int, count: int, batch: Batch = BATCH) -> BoolArray:
    """Random feasible decisions, (count, *batch, n)."""
    return random_sets(world.problem.n_arms, world.problem.budget, (count, *batch), [t, count])


def check_world_form(environment: Any, seed: int, draws: int) -> None:
    """An environment is a frozen dataclass; its worlds have a problem, a horizon, changes inside it and a graph."""
    demand_frozen(environment)
    world, _ = draw_world(environment, seed)
    demand(
        isinstance(world, ScoredWorld),
        f"draw returned {type(world).__name__}, which is not a ScoredWorld",
        "implement all members of spillover.contracts.ScoredWorld",
    )
    validate.problem(world.problem)
    validate.whole("horizon", world.horizon, 1)
    inside = all(2 <= c <= world.horizon for c in world.changes) and bool((np.diff(world.changes) > 0).all())
    broken = f"changes are {world.changes} with a horizon of {world.horizon}"
    demand(inside, broken, "list the first rounds of new periods in increasing order, from 2 to the horizon")
    n = world.problem.n_arms
    for t in key_rounds(world):
        a = np.asarray(world.adjacency(t))
        shape = (*BATCH, n, n)
        demand(a.shape == shape, f"adjacency({t}) has shape {a.shape}", f"return (*batch, n, n), here {shape}")
        demand(bool(np.isfinite(a).all()), f"adjacency({t}) is not finite", "return finite numbers")
        lengths = np.shape(world.weights(t))
        demand(lengths == shape[:-1], f"weights({t}) has shape {lengths}", f"return (*batch, n), here {shape[:-1]}")
        looped = np.tril(a).any() if world.problem.acyclic else np.diagonal(a, axis1=-2, axis2=-1).any()
        kind = "strictly upper triangular" if world.problem.acyclic else "without self-loops"
        demand(not looped, f"adjacency({t}) is not {kind}", "put causes after effects, or set acyclic=False")


def check_world_rows(environment: Any, seed: int, draws: int) -> None:
    """A row of a batch is the world that the same replication draws alone, and draws are reproducible."""
    world = draw_world(environment, seed)[0]
    remedy = "draw from the given rng only: it has one stream for each replication"
    whole = {t: world_arrays(*draw_world(environment, seed), t, decisions(world, t, 1)[0]) for t in key_rounds(world)}
    for k in range(BATCH[0]):
        alone, rng = draw_world(environment, seed, k)
        for t in reversed(key_rounds(world)):  # another order of rounds must not matter either
            row = {name: np.asarray(value[k]) for name, value in whole[t].items()}
            one = world_arrays(alone, rng, t, decisions(world, t, 1)[0][k])
            demand_close(one, row, f"round {t} of replication {k} alone differs from its row in a batch", remedy)


def world_arrays(world: ScoredWorld, rng: Rng, t: int, x: BoolArray) -> Arrays:
    """Everything observable about a round of a world."""
    outcome = world.play(t, x, rng.at(Purpose.WORLD, t))
    shown = {"z": outcome.z, "y": outcome.y, "expected": world.expected(t, x), "best": world.best(t)}
    shown |= {"matches": world.matches(t, x), "adjacency": world.adjacency(t), "weights": world.weights(t)}
    if world.problem.context:
        shown["context"] = np.asarray(require_contextual(world).context(t))
    return {name: np.array(value) for name, value in shown.items()}


def check_no_memory(environment: Any, seed: int, draws: int) -> None:
    """The outcome of a round follows from round, decision and the given rng, not from what was played before."""
    world, rng = draw_world(environment, seed)
    for t in key_rounds(world):
        x, others = decisions(world, t, 1)[0], decisions(world, t, 3)
        first = world_arrays(world, rng, t, x)
        for other in others:
            world.play(t, other, rng.at(Purpose.WORLD, t))
        again = world_arrays(world, rng, t, x)
        broken = f"round {t} brings something else after other decisions were played"
        demand_close(again, first, broken, "keep no memory in a world: it cannot be scored, nor played in stretches")


def check_best(environment: Any, seed: int, draws: int) -> None:
    """best(t) is feasible, no decision has a higher expected payoff, and matches counts all of its arms."""
    world, _ = draw_world(environment, seed)
    problem = world.problem
    for t in key_rounds(world):
        best = world.best(t)
        mask = best.dtype == np.bool_ and best.shape == (*BATCH, problem.n_arms)
        demand(mask, f"best({t}) is {best.dtype} of shape {best.shape}", "return a mask (*batch, n_arms)")
        most = int(best.sum(axis=-1).max())
        demand(most <= problem.budget, f"best({t}) has {most} arms, the budget is {problem.budget}", "take fewer")
        value = world.expected(t, best)
        for x in (*decisions(world, t, 50), *neighbours(best, problem.budget)):
            gain = world.expected(t, x) - value
            k = int(np.argmax(gain))
            broken = f"in round {t} best has expected payoff {value[k]}, and {np.flatnonzero(x[k])} has {gain[k]} more"
            demand(float(gain[k]) <= 1e-9 * max(1.0, abs(float(value[k]))), broken, "return a maximiser of expected")
        matched, full = world.matches(t, best), best.sum(axis=-1)
        broken = f"matches({t}, best({t})) is {matched} where best has {full} arms"
        demand(bool((matched == full).all()), broken, "count the chosen arms that belong to an optimal decision")


def neighbours(best: BoolArray, budget: int) -> Iterator[BoolArray]:
    """A decision with one arm added, dropped or exchanged; the decision itself where that is infeasible."""
    n = best.shape[-1]
    for out in range(n):
        for into in range(n):
            x = best.copy()
            x[..., out] = False
            x[..., into] = True
            yield np.where(x.sum(axis=-1, keepdims=True) <= budget, x, best)
        x = best.copy()
        x[..., out] = False
        yield x


def check_expected(environment: Any, seed: int, draws: int) -> None:
    """The mean of drawn payoffs agrees with the expected payoff, which does not contain the baseline."""
    world, _ = draw_world(environment, seed)
    nothing = np.zeros((*BATCH, world.problem.n_arms), np.bool_)
    for t in key_rounds(world):
        x = decisions(world, t, 1)[0] | world.best(t) if t % 2 else world.best(t)
        x &= np.cumsum(x, axis=-1) <= world.problem.budget
        sources = [Rng(seed + 1 + k, rows_of(BATCH)).at(Purpose.WORLD, t) for k in range(draws)]
        if world.problem.baseline:  # compared with doing nothing, on the same draws
            idle = [world.play(t, nothing, source.restarted()).y.sum(axis=-1) for source in sources]
        else:
            idle = [np.zeros(BATCH)] * draws
        played = [world.play(t, x, source).y.sum(axis=-1) for source in sources]
        payoff = np.array(played) - np.array(idle)  # (draws, replications)
        gap = np.abs(payoff.mean(axis=0) - world.expected(t, x))
        # five standard errors, and a margin for ten rare events that happened not to be drawn
        allowed = 5 * payoff.std(axis=0) / np.sqrt(draws) + 10 * np.ptp(payoff) / draws + 1e-9
        k = int(np.argmax(gap - allowed))
        broken = (
            f"in round {t} the mean payoff of replication {k} over {draws} draws is {payoff[:, k].mean():.6g}, "
            f"the expected one {world.expected(t, x)[k]:.6g} (allowed gap {allowed[k]:.2g})"
        )
        demand(bool(gap[k] <= allowed[k]), broken, "use the same model of the rewards in play and expected")


def check_outcomes(environment: Any, seed: int, draws: int) -> None:
    """z is 0 for idle arms, otherwise in range and independent of the other arms played; y is finite and in range.

    z is NaN if the problem does not observe it, and y holds the payoff alone if only that is observed.
    """
    world, rng = draw_world(environment, seed)
    problem = world.problem
    if problem.observes != "both":
        check_observed(world, rng)
        return
    low, high = np.moveaxis(np.broadcast_to(problem.reward_range, (*BATCH, 2)), -1, 0)[..., None]
    check_range = problem.overall_range is not None and not has_noise(world, seed)
    for t in key_rounds(world):
        first: Any = None
        for x in decisions(world, t, 12):
            given = x.copy()
            z, y, _ = world.play(t, x, rng.at(Purpose.WORLD, t))
            demand(np.array_equal(x, given), f"play({t}) changed the decision", "copy x first")
            idle = np.abs(np.where(x, 0.0, z)).max()
            demand(idle == 0, f"in round {t} an arm that was not played has z = {idle}", "set z to 0 where x is False")
            inside = np.where(x, (z >= low) & (z <= high), True)
            broken = f"in round {t} z = {z[~inside][:1]} is outside of reward_range = {problem.reward_range}"
            demand(bool(inside.all()), broken, "declare the full range of the rewards")
            demand(bool(np.isfinite(y).all()), f"in round {t} y is not finite", "return finite numbers")
            if check_range:
                demand_inside(y, problem.overall_range, t)
            first = (x, z) if first is None else first
            common = x & first[0]
            broken = f"in round {t} the reward of an arm depends on what else is played"
            demand_equal({"z": z[common]}, {"z": first[1][common]}, broken, "draw rewards of all arms, then mask by x")


def check_observed(world: ScoredWorld, rng: Rng) -> None:
    """Outcomes of a problem that does not observe everything."""
    for t in key_rounds(world):
        for x in decisions(world, t, 12):
            z, y, _ = world.play(t, x, rng.at(Purpose.WORLD, t))
            demand(bool(np.isnan(z).all()), f"in round {t} z is not NaN", "return NaN for what is not observed")
            demand(bool(np.isfinite(y).all()), f"in round {t} y is not finite", "return finite numbers")
            hidden = world.problem.observes == "payoff" and y[..., 1:].any()
            remedy = "put the sum of y into y[..., 0] and 0 elsewhere"
            demand(not hidden, f"in round {t} y shows more than the payoff", remedy)


def check_context(environment: Any, seed: int, draws: int) -> None:
    """The context of a round is finite, the same whenever it is asked for, and comes with the outcome."""
    world, rng = draw_world(environment, seed)
    columns = world.problem.context
    if not columns:
        raise Skipped("the problem has no context")
    contextual = require_contextual(world)
    for t in key_rounds(world):
        found = np.asarray(contextual.context(t))
        shape = (*BATCH, columns)
        demand(found.shape == shape, f"context({t}) has shape {found.shape}", f"return (*batch, k), here {shape}")
        demand(bool(np.isfinite(found).all()), f"context({t}) is not finite", "return finite numbers")
        outcome = world.play(t, decisions(world, t, 1)[0], rng.at(Purpose.WORLD, t))
        later = {"after the round": contextual.context(t), "in the outcome": outcome.context}
        for name, value in ((name, np.asarray(value)) for name, value in later.items()):
            broken = f"the context of round {t} differs {name}"
            demand_equal({"context": value}, {"context": found}, broken, "return the context of round t, also in play")
        now, alone = contextual.scores(t, t), np.eye(world.problem.n_arms, dtype=np.bool_)
        each = [world.expected(t, np.broadcast_to(arm, (*BATCH, len(arm)))) for arm in alone]
        broken = f"scores({t}, {t}) are not the expected payoffs of the arms"
        demand(np.allclose(now, np.stack(each, -1)), broken, "return expected(t, x) of each arm alone")


def has_noise(world: ScoredWorld, seed: int) -> bool:
    """Whether y varies when nothing is played: noise may take it out of its range."""
    idle = np.zeros((*BATCH, world.problem.n_arms), np.bool_)
    streams = (Rng(seed + k, rows_of(BATCH)).at(Purpose.WORLD, 1) for k in (1, 2))
    first, second = (world.play(1, idle, rng).y for rng in streams)
    return not np.array_equal(first, second)


def demand_inside(y: NDArray[Any], overall_range: Any, t: int) -> None:
    low, high = np.moveaxis(np.broadcast_to(overall_range, (*y.shape[:-1], 2)), -1, 0)[..., None]
    slack = 1e-9 * (high - low)
    outside = (y < low - slack) | (y > high + slack)
    broken = f"in round {t} y = {y[outside][:1]} is outside of overall_range"
    demand(not outside.any(), broken, "declare the range of y over all feasible decisions, or None")


def check_leading_axes(environment: Any, seed: int, draws: int) -> None:
    """Decisions may have further axes before the world's batch, all of which meet the same world."""
    world, rng = draw_world(environment, seed)
    for t in key_rounds(world):
        x = decisions(world, t, 6).reshape(2, 3, *BATCH, -1)
        whole = world_arrays(world, rng, t, x)
        for cell in np.ndindex(2, 3):
            one = world_arrays(world, rng, t, x[cell])
            found = {name: whole[name][cell] for name in ("z", "y", "expected", "matches")}
            broken = (
                f"in round {t} the outcome of decision {cell} of a (2, 3) array differs from that of the same one alone"
            )
            demand_close(found, {name: one[name] for name in found}, broken, "broadcast the world over leading axes")


ENVIRONMENT_CHECKS = (
    check_world_form,
    check_no_memory,
    check_world_rows,
    check_best,
    check_outcomes,
    check_context,
    check_expected,
    check_leading_axes,
    check_course,
)


def check_delay(delay: Delay, *, seed: int = 0, rounds: int = 20, replications: int = 6) -> list[str]:
    """Check the contract of `spillover.contracts.Delay`, for some rounds and replications.

    Returns the checks that were skipped, with the reasons.

    >>> import spillover as sp
    >>> check_delay(sp.UniformDelay(2, 5))  # it keeps the contract, and nothing was skipped
    []
    """
    return run_checks(delay, DELAY_CHECKS, seed, rounds, replications)


def drawn(delay: Any, t: int, seed: int, replication: Any) -> Any:
    """The delays of round t in these replications, unchecked, for a round with rewards of all sizes."""
    batch = np.shape(replication)
    x, z = (np.broadcast_to(line, (*batch, 4)) for line in ([True, True, False, True], [1.0, 0.0, 0.0, 0.5]))
    return delay.draw_given(t, x, z, Rng(seed, replication).at(Purpose.DELAY, t), batch)


def check_delay_values(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """Delays are whole numbers >= 0 or NEVER, as int64 in the shape of the batch, with an axis for arms if per_arm."""
    first = drawn(delay, 1, seed, 0)
    arms = np.shape(first)[-1:] if delay.per_arm else ()
    for batch in ((), (replications,), (2, replications // 2)):
        for t in range(1, rounds + 1):
            found, where = drawn(delay, t, seed, rows_of(batch)), f"draw({t}) with batch {batch} gave"
            array = isinstance(found, np.ndarray | np.generic) and found.dtype == np.int64
            remedy = "return an array of int64: .astype(np.int64); NEVER for lost outcomes"
            demand(array, f"{where} {type_name(found)}", remedy)
            remedy = f"return shape {(*batch, *arms)}: a delay for each replication, and each arm if per_arm = True"
            demand(found.shape == (*batch, *arms), f"{where} shape {found.shape}", remedy)
            least = int(found.min(initial=0))
            demand(least >= 0, f"{where} {least}", "return delays >= 0: 0 means at the end of the same round")


def check_delay_rows(delay: Any, seed: int, rounds: int, replications: int) -> None:
    """A replication's delays are the same alone, in a batch, in another order of rounds, and the second time."""
    remedy = "draw from the given rng only, one number for each replication, and keep no memory"
    batch = (replications,)
    whole = {t: np.array(drawn(delay, t, seed, rows_of(batch))) for t in range(1, rounds + 1)}
    for t in reversed(whole):
        again = {"delay": np.array(drawn(delay, t, seed, rows_of(batch)))}
        demand_equal(again, {"delay": whole[t]}, f"a second draw of round {t} differs from the first", remedy)
        for k in range(replications):
            alone, row = np.array(drawn(delay, t, seed, k)), np.asarray(whole[t][k])
            broken = f"in round {t} replication {k} alone differs from its row in a batch"
            demand_equal({"delay": alone}, {"delay": row}, broken, remedy)


DELAY_CHECKS = (check_delay_values, check_delay_rows, check_delay_rounds)
