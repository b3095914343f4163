"""What is measured on records besides their final regret: slopes around changes, recovery, worlds won."""

from itertools import pairwise

import numpy as np

from spillover.experiments import Record, Results
from spillover.report.claims import final_regret
from spillover.types import Array, BoolArray, IntArray
from spillover_studies.synthetic.names import FRESH

SPAN = 300  # rounds over which a slope is taken
SHARE = 0.1  # of the random policy's regret a round: below it a policy counts as recovered


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
        """How much steeper the curve is after a change."""
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
