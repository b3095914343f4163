"""The ways in which a policy is used: simulated, live, by many learners, and on a recorded history."""

from typing import Any, NamedTuple

import numpy as np

import spillover as sp
from spillover.contracts.world import score_each
from spillover.history import History, replay_history
from spillover.rng import Purpose

SEED = 32


class Played(NamedTuple):
    """What is compared of a case; the first axis is that of the replications (or of the cells of a grid)."""

    decisions: Any  # (replications, rounds, arms)
    regret: Any  # (replications,): cumulative, after the last round
    estimates: Any  # of the first replication and up to six arms: weights, or the column sums of the graph


class Watched:
    """An environment that keeps the decisions that are measured in its worlds."""

    def __init__(self, environment: Any) -> None:
        self.environment, self.seen = environment, list[Any]()

    def draw(self, rng: sp.Rng, batch: Any = ()) -> Any:
        world = self.environment.draw(rng, batch)
        measure = world.score_rounds

        def score_rounds(first: int, x: Any) -> Any:
            self.seen.append((first, x.copy()))
            return measure(first, x)

        object.__setattr__(world, "score_rounds", score_rounds)  # this world only
        return world

    def decisions(self, horizon: int) -> Any:
        """Those of all rounds; rounds that were played again count once."""
        found = np.zeros((*self.seen[0][1].shape[:-2], horizon, self.seen[0][1].shape[-1]), np.bool_)
        for first, x in self.seen:
            found[..., first - 1 : first - 1 + x.shape[-2], :] = x
        return found.reshape(-1, *found.shape[-2:])


def column_sums(adjacency: Any) -> Any:
    """Of the graph of the first replication; nothing without a graph."""
    whole = adjacency.toarray() if hasattr(adjacency, "toarray") else np.asarray(adjacency)
    return np.zeros(0) if adjacency is None else whole.reshape(-1, *whole.shape[-2:])[0].sum(axis=0)[:6]


def simulated(policy: Any, environment: Any, delay: Any = 0, *, replications: int = 12) -> Played:
    """All replications in a batch, or one learner alone."""
    watched = Watched(environment)
    run = sp.simulate(policy, watched, delay, replications=replications, seed=SEED, record=10**6, threads=1)
    return Played(watched.decisions(run.regret.shape[-1]), run.final_regret.ravel(), column_sums(run.adjacency))


def worlds_of(environment: Any, replications: int) -> tuple[Any, Any, list[sp.Problem]]:
    """Worlds of all replications, their streams, and the problem of each."""
    rng = sp.Rng(SEED, np.arange(replications))
    world = environment.draw(rng.at(Purpose.WORLD), (replications,))
    problem = world.problem._replace(weights=world.weights(1))  # for policies that know the graph
    ranges = np.broadcast_to(problem.overall_range, (replications, 2))
    each = zip(ranges, problem.weights, strict=True)
    return world, rng, [problem._replace(overall_range=tuple(its), weights=weights) for its, weights in each]


def arrivals_of(horizon: int, replications: int, latest: int) -> list[list[tuple[int, int]]]:
    """Which outcomes (replication, round) are reported after each round: out of order, and a tenth of them never."""
    late, place = sp.Rng(SEED + 1).uniform(2 * horizon * replications).reshape(2, horizon, replications)
    found: list[list[tuple[float, int, int]]] = [[] for _ in range(horizon)]
    for t in range(horizon):
        for k in range(replications):
            arrives = t + int(late[t, k] * latest / 0.9)
            if arrives < min(horizon, t + latest):
                found[arrives].append((place[t, k], k, t + 1))
    return [[(k, t) for _, k, t in sorted(each)] for each in found]


def reports_of(outcome: Any, k: int, observes: str, parts: bool) -> list[dict[str, Any]]:
    """What is reported of the outcome of replication k, in two parts if arms may report at different times."""
    y = outcome.y[k].sum() if observes == "payoff" else outcome.y[k]
    whole = {"z": outcome.z[k], "y": y} if observes == "both" else {"y": y}
    if not parts:
        return [whole]
    early = np.arange(outcome.y.shape[-1]) % 2 == 0
    return [{name: np.where(early, value, np.nan) for name, value in whole.items()}, whole]


def live(
    policy: Any, environment: Any, *, many: bool = False, parts: bool = False, dose: float = 0.0, replications: int = 3
) -> Played:
    """Learners in live use, each by itself or all of them as `Learners`; what they do must be the same.

    parts: half of the arms report first. dose: amounts vary by as much from arm to arm.
    """
    world, rng, problems = worlds_of(environment, replications)
    n, horizon, observes = len(world.arms), environment.horizon, world.problem.observes
    seeds = range(SEED, SEED + replications)
    together = sp.Learners(policy, world.problem._replace(weights=world.weights(1)), seeds)
    alone = [sp.Learner(policy, problem, seed=seed) for problem, seed in zip(problems, seeds, strict=True)]
    arrivals, outcomes, decisions = arrivals_of(horizon, replications, 20), {}, []
    for t in range(1, horizon + 1):
        context = world.context(t)
        given = [{} if context is None else {"context": context[k]} for k in range(replications)]
        amount = {"dose": 1.0 + dose * np.sin(np.arange(n) + t)} if dose else {}
        if many:
            x = together.choose(**({} if context is None else {"context": context}))
            together.play(**{name: np.broadcast_to(value, x.shape) * x for name, value in amount.items()})
        else:
            x = np.stack([learner.choose(**given[k]) for k, learner in enumerate(alone)])
            for k, learner in enumerate(alone):
                learner.play(**{name: value * x[k] for name, value in amount.items()})
        decisions.append(x)
        outcomes[t] = world.play(t, x, rng)
        lines = [(k, s, reports_of(outcomes[s], k, observes, parts)) for k, s in arrivals[t - 1]]
        for part in range(2 if parts else 1):
            if many and lines:
                who, rounds = [k for k, _, _ in lines], [s for _, s, _ in lines]
                names = lines[0][2][part]
                together.report(
                    who, rounds, **{name: np.stack([line[part][name] for *_, line in lines]) for name in names}
                )
            for k, s, line in [] if many else lines:
                alone[k].report(s, **line[part])
    first = together.learner(0) if many else alone[0]
    if context is not None:
        first.observe(context[0])
    return measured(world, np.stack(decisions, axis=-2), 1, first.explain().weights)


def measured(world: Any, decisions: Any, first: int, weights: Any) -> Played:
    regret = score_each(world, first, decisions).regret.sum(axis=-1)
    return Played(decisions, regret, np.asarray(weights)[:6])


def recorded(environment: Any, replications: int) -> tuple[Any, list[sp.Problem], Any, Any]:
    """Worlds with a log of random decisions of various sizes, and their outcomes."""
    world, rng, problems = worlds_of(environment, replications)
    x = np.zeros((environment.horizon, replications, len(world.arms)), np.bool_)
    outcomes = []
    for t in range(environment.horizon):
        own = rng.at(Purpose.CHOICE, t + 1)
        x[t] = own.permutation(len(world.arms)) < 1 + t % world.problem.budget
        outcomes.append(world.play(t + 1, x[t], rng))
    return world, problems, x.swapaxes(0, 1), np.stack([np.stack([o.z, o.y]) for o in outcomes]).transpose(2, 1, 0, 3)


def replayed(policy: Any, environment: Any, delay: Any = 0, *, replications: int = 3) -> Played:
    """What a policy would have decided along a recorded log."""
    world, problems, x, outcomes = recorded(environment, replications)
    runs = [
        list(sp.replay(policy, problem, x[k], *outcomes[k], delay=delay, seed=SEED + k))[:-1]
        for k, problem in enumerate(problems)
    ]
    return measured(world, np.stack([[each.chosen for each in run] for run in runs]), 1, runs[0][-1].weights)


def history(policy: Any, environment: Any, *, replications: int = 6) -> Played:
    """The decision after a whole history, as `spillover next` makes it; one round in ten has not arrived."""
    world, problems, x, outcomes = recorded(environment, replications)
    horizon, n, observes = environment.horizon, len(world.arms), world.problem.observes
    arrived = np.arange(horizon) % 10 != 7
    learners = []
    for k, problem in enumerate(problems):
        z, y = (np.where(arrived[:, None], each, 0.0 if observes == "both" else np.nan) for each in outcomes[k])
        told = History(
            arms=tuple(f"arm {i:04d}" for i in range(n)),
            rounds=tuple(str(t + 1) for t in range(horizon)),
            x=x[k],
            z=z if observes == "both" else None,
            y=y,
            arrived=arrived,
            following=str(horizon + 1),
            notes=(),
            observes=observes,
            has_baseline=world.problem.baseline,
        )
        ranges = {"reward_range": problem.reward_range, "overall_range": problem.overall_range}
        learners.append(replay_history(policy, told, budget=problem.budget, seed=SEED + k, **ranges))
    decisions = np.stack([learner.choose() for learner in learners])[:, None]
    return measured(world, decisions, horizon, learners[0].explain().weights)
