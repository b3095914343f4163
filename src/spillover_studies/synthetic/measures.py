"""Names in synthetic.toml, and measures of records besides their final regret: slopes at changes, recovery, starts."""

from collections.abc import Callable, Iterable
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from spillover.environments import SyntheticSEM
from spillover.experiments import Record, Results
from spillover.metrics import Interval, graph_mse
from spillover.report.claims import FAILS, HOLDS, OPEN, final_regret, format_ci, sign_verdict
from spillover.rng import Purpose, Rng
from spillover.simulation import rounds
from spillover.types import Array, BoolArray, IntArray
from spillover_studies.texts import Texts

DELAYS = ("50", "200", "400")  # the paper's
TUNED, PRINTED, ONCE = "ndc-sem-tuned", "ndc-sem", "ndc-sem-once"
TUNINGS = {
    TUNED: "tuned for each delay on other worlds",
    PRINTED: "printed parameters",
    ONCE: "tuned once for all delays",
}
FRESH, PICTURE = "fresh", "picture"  # worlds: many, and the one of the figures
SEM_UCB, SEM_UCB_TUNED = "sem-ucb", "sem-ucb-tuned"
BLIND = ("cucb", "cts", "ftrl")  # the rivals that do not learn the graph
RIVALS = (SEM_UCB, *BLIND, "random")
ORACLE, SWITCHING = "delayed-oracle", "switching-sem"
SHOWN = (TUNED, PRINTED, ONCE, SEM_UCB, SEM_UCB_TUNED, *BLIND, "random", SWITCHING, ORACLE)
EXACT = 1e-6  # an error of the graph below which it counts as learned; that of an empty graph is about 0.025

SPAN = 300  # rounds over which a slope is taken
SHARE = 0.1  # of the random policy's regret a round: below it a policy counts as recovered
CLOSE = 0.9  # of the delayed oracle's ratio
STEEPER = 1.25  # slope at long delays over that at short ones, up to which growth counts as linear
TEXTS = Texts(__package__, span=SPAN, share=SHARE, exact=EXACT, close=CLOSE, steeper=STEEPER)


def regret_at(record: Record, rounds: IntArray) -> Array:
    """Regret at the end of given rounds, interpolated between recorded ones, (replications, rounds)."""
    known = np.concatenate([[0], record.rounds])
    return np.stack([np.interp(rounds, known, np.concatenate([[0.0], row])) for row in record.regret])


class Slopes:
    """Regret a round around the changes, mean over the changes, (replications,) each.

    Before: over `span` rounds. After: over `span` rounds and those before them in which nobody can know of the change.
    Both end at the next change.
    """

    def __init__(self, record: Record, span: int = SPAN, blind: int = 0) -> None:
        shortest = min(np.diff([0, *record.changes, record.horizon]))
        back, ahead = min(span, shortest), min(blind + span, shortest)
        changes = np.array(record.changes)
        before, here, after = (regret_at(record, changes + offset) for offset in (-back, 0, ahead))
        self.before: Array = (here - before).mean(axis=-1) / back
        self.after: Array = (after - here).mean(axis=-1) / ahead

    @property
    def jump(self) -> Array:
        """Subtract the slope before a change from that after it."""
        return self.after - self.before


def recovery(record: Record, random: Record, share: float = SHARE) -> tuple[Array, BoolArray]:
    """Rounds from each change until a policy has recovered from it, and whether it has, (replications, changes) each.

    It has recovered once its regret a round, between two recorded rounds, is at most a share of the random policy's in
    that world and period. If it never is, the rounds are those until the next change.
    """
    waited, recovered = [], []
    for start, end in pairwise([*record.changes, record.horizon]):
        inside = record.rounds[(record.rounds > start) & (record.rounds < end)]
        edges = np.array([start, *inside, end])
        slopes = np.diff(regret_at(record, edges)) / np.diff(edges)
        level = np.diff(regret_at(random, np.array([start, end]))) / (end - start)
        low = slopes <= share * level
        recovered.append(low.any(axis=-1))
        waited.append(np.where(recovered[-1], edges[low.argmax(axis=-1)], end) - start)
    return np.stack(waited, axis=-1).astype(float), np.stack(recovered, axis=-1)


def best_of_all(results: Results, delay: str, ours: str, rivals: tuple[str, ...], world: str = FRESH) -> BoolArray:
    """Whether a policy has less final regret than all rivals, (worlds,)."""
    own = final_regret(results.record(world, delay, ours))
    return np.asarray(
        np.all([own < final_regret(results.record(world, delay, rival)) for rival in rivals], axis=0), np.bool_
    )


class Start(NamedTuple):
    """After round N, with all of its feedback, (worlds,) each."""

    every_arm_pulled: BoolArray
    full_rank: BoolArray  # of the N decisions
    own_reward: BoolArray  # (worlds, N): whether arm i has a reward other than 0 in round i
    graph_error: Array

    @property
    def identified(self) -> BoolArray:
        """Whether the outcomes admit only one graph, for decisions that make up a triangular H.

        Row i of A solves y[i] - z[i] = sum over j > i of A[i, j] y[j] in every round, so it is unique if these y[j] are
        linearly independent over the rounds. They are if the z[j] are, because y = (I - A)^-1 z with a triangular
        matrix. Arm j is not played before round j, so the z[j], j > i, are independent if and only if z[j] is not 0 in
        round j for each of them. Row 1 has the most: arms 2 to N.
        """
        return np.asarray(self.own_reward[:, 1:].all(axis=-1))


def play_start(policy: Any, environment: SyntheticSEM, seed: int, worlds: int) -> Start:
    """Play N rounds without a delay."""
    n = environment.n_arms
    rng = Rng(seed, np.arange(worlds))
    world = environment.draw(rng.at(Purpose.WORLD), (worlds,))
    played = list(islice(rounds(policy, world, 0, rng, (worlds,)), n))
    x = np.stack([r.x for r in played], axis=-2).astype(float)
    z = np.stack([r.outcome.z for r in played], axis=-2)
    return Start(
        every_arm_pulled=np.asarray(x.any(axis=-2).all(axis=-1)),
        full_rank=np.asarray(np.linalg.matrix_rank(x) == n),
        own_reward=np.asarray(np.diagonal(z, axis1=-2, axis2=-1) != 0),
        graph_error=graph_mse(policy.adjacency(played[-1].state), world.adjacency(n)),
    )


def fresh_worlds(results: Results) -> SyntheticSEM:
    environment = results.experiment.worlds["fresh"]
    assert isinstance(environment, SyntheticSEM)
    return environment


def study_start(results: Results, policy: str, environment: SyntheticSEM | None = None) -> Start:
    """The start of a policy of the study in its fresh worlds, or in others drawn from the same seed."""
    count = len(results.record("fresh", "50", policy).replications)
    player = results.experiment.policies[policy].policy("50")
    return play_start(player, environment or fresh_worlds(results), results.experiment.seed, count)


def by_delay(finding: Callable[[str], str]) -> str:
    """The finding at each of the paper's delays."""
    return "; ".join(f"D = {delay}: {finding(delay)}" for delay in DELAYS)


def interval_by_delay(found: Callable[[str], Interval], digits: int = 0) -> str:
    """The interval at each of the paper's delays."""
    return by_delay(lambda delay: format_ci(found(delay), digits))


def at_every_delay(found: Callable[[str], Iterable[Interval]]) -> str:
    """Judge by the signs of the intervals at each of the paper's delays."""
    return joint(*(sign_verdict(*found(delay)) for delay in DELAYS))


def joint(*verdicts: str) -> str:
    """Holds if all hold, fails if one fails, else not decided."""
    if all(verdict == HOLDS for verdict in verdicts):
        return HOLDS
    return FAILS if FAILS in verdicts else OPEN


def listed(values: list[str]) -> str:
    """
    >>> listed(["1", "2", "3"]), listed(["1"])
    ('1, 2 and 3', '1')
    """
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} and {values[-1]}"
