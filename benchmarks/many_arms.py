"""Candidate edges against all edges, and learners with many thousand arms."""

import resource
from collections.abc import Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import spillover as sp
from spillover.constraints.search import top_arms
from spillover.contracts import suited
from spillover.metrics import mean_interval
from spillover.rng import Purpose
from spillover.state import leaves

FRESH = 52_000  # the first seed: no parameter was chosen on these worlds


class Played(NamedTuple):
    """A round of a session."""

    regret: float
    learner: float  # seconds of processor time to decide and to learn
    world: float  # and to draw and measure the round
    state: Any


def world_of(n: int, s: int, rounds: int) -> sp.SyntheticSEM:
    """0.8 edges an arm, and means that change half-way."""
    return sp.SyntheticSEM(n_arms=n, budget=s, edge_density=0.8 / (n - 1), horizon=rounds, changes=(rounds // 2,))


def session(policy: sp.Policy, environment: sp.SyntheticSEM, seed: int) -> Iterator[Played]:
    """Play a policy round by round, without delay."""
    rng = sp.Rng(seed)
    world = environment.draw(rng.at(Purpose.WORLD))
    player = suited(policy, world.problem)
    state = player.init(world.problem, rng.at(Purpose.START))
    now, here = np.array(0), np.array(True)
    for t in range(1, world.horizon + 1):
        begin = process_time()
        choice = player.select(state, rng.at(Purpose.CHOICE, t))
        state = player.played(state, choice.x)
        chosen = process_time()
        z, y, _ = world.play(t, choice.x, rng.at(Purpose.WORLD, t))
        regret = world.expected(t, world.best(t)) - world.expected(t, choice.x)
        drawn = process_time()
        state = player.update(state, sp.Feedback(choice.x, z, y, now, here, memo=choice.memo), rng)
        learned = process_time()
        yield Played(float(regret), chosen - begin + learned - drawn, drawn - chosen, state)


def against_dense() -> None:
    """Regret and processor time of candidate edges relative to all edges, played side by side in the same worlds.

    The mean of ratios is above 1 even if both are equally good, as one lucky guess lowers the regret of a world by a
    tenth: so the ratio of the mean regrets is printed too.
    """
    heads = "N", "s", "rounds", "worlds", "regret, candidates / dense", "of the means", "time, dense / candidates"
    print(f"| {' | '.join(heads)} | MB, dense | MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n, s, rounds, worlds in ((200, 20, 1_500, 60), (1_000, 20, 1_500, 20)):
        ratios, spent, regrets = [], np.zeros(2), np.zeros(2)
        for seed in range(FRESH, FRESH + worlds):
            totals, sizes = np.zeros(2), [0, 0]
            policies = [sp.NDCSEM(graph=graph, initialisation="sweep") for graph in ("dense", "candidates")]
            for sides in zip(*(session(policy, world_of(n, s, rounds), seed) for policy in policies), strict=True):
                totals += [side.regret for side in sides]
                spent += [side.learner for side in sides]
                sizes = [state_bytes(side.state) for side in sides]
            ratios.append(totals[1] / totals[0])
            regrets += totals
        found = mean_interval(np.array(ratios), axis=-1)
        low, high = float(found.low), float(found.high)
        memory = " | ".join(f"{size / 1e6:.1f}" for size in sizes)
        print(
            f"| {n:,} | {s} | {rounds:,} | {worlds} | {float(found.mean):.3f} [{low:.3f}, {high:.3f}] "
            f"| {regrets[1] / regrets[0]:.3f} | {spent[0] / spent[1]:.1f} | {memory} |"
        )


def many_arms() -> None:
    """Milliseconds a round, memory, and regret of a learner at N = 1,000, 10,000 and 100,000."""
    print("| N | s | policy | rounds | ms a round, learner | ms, world | state MB | process MB | regret / no graph |")
    print("|---|---|---|---|---|---|---|---|---|")
    for n, s, rounds in ((1_000, 100, 900), (10_000, 100, 900), (100_000, 100, 1_500)):
        alone = sum(played.regret for played in session(sp.NDCSEM(graph="none"), world_of(n, s, rounds), FRESH))
        for name, policy in (("ndc-sem", sp.NDCSEM()), ("switching-sem", sp.SwitchingSEM())):
            regret, learner, world = 0.0, [], []
            for played in session(policy, world_of(n, s, rounds), FRESH):
                regret += played.regret
                learner.append(played.learner)
                world.append(played.world)
                state = played.state
            pace, drawing = (np.median(spent[-rounds // 3 :]) * 1e3 for spent in (learner, world))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                f"| {n:,} | {s} | {name} | {rounds:,} | {pace:.2f} | {drawing:.2f} | {state_bytes(state) / 1e6:.0f} "
                f"| {peak:.0f} | {regret / alone:.2f} |"
            )


def selection(n: int = 100_000, budget: int = 100, calls: int = 20) -> None:
    """Milliseconds to choose the best of many arms, whatever the scores are like."""
    rising = np.arange(1, n + 1) / n
    kinds = {
        "random": np.random.default_rng(0).random(n),
        "all equal": np.full(n, 0.5),
        "rising": rising,
        "falling": rising[::-1].copy(),
        "organ pipe": np.minimum(rising, rising[::-1]),
    }
    found = []
    for kind, scores in kinds.items():
        top_arms(scores, budget, sp.Rng(0))
        begin = process_time()
        for _ in range(calls):
            top_arms(scores, budget, sp.Rng(0))
        found.append(f"{kind} {(process_time() - begin) / calls * 1e3:.2f}")
    print(f"ms to choose {budget} of {n:,} arms by their scores: {', '.join(found)}")


def state_bytes(state: Any) -> int:
    return sum(leaf.nbytes for leaf in leaves(state).values())


def main() -> None:
    against_dense()
    print()
    many_arms()
    print()
    selection()


if __name__ == "__main__":
    main()
