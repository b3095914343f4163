"""In which batches a history is learned; batches of a longer history begin with those of a shorter one.

So a state on the way through a history is one on the way through its continuations, and need not be computed again.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spillover.contracts import Policy
from spillover.types import BoolArray

# Evidence for a graph candidate is discounted by 1% with every outcome: older than 1,000, it weighs less than 1e-4.
JUDGED = 1_000
SOLUTIONS = 100  # of the graph over a long history, at most, where candidates are scored by their predictions
EVERY = 1_000  # rounds between two updates of the progress


class RoundBatch(NamedTuple):
    """The rounds up to `stop`, to be learned in one call."""

    stop: int
    judged: bool  # whether the policy gets the memo that it had before the first of them
    solved: bool  # whether the policy solves for the graph after them
    brief: bool = False  # whether costly estimates may stay as they were: there are more rounds to come in this batch


class Schedule(NamedTuple):
    """The batches of a history: up to `unjudged`, then up to `learned`, then rounds whose outcomes are pending."""

    rounds: int
    learned: int  # after the last outcome nothing is learned
    unjudged: int
    pace: int  # rounds in a batch between `unjudged` and `learned`
    after: int  # rounds in a batch after `learned`
    has_memo: bool

    def batches(self, done: int = 0) -> Iterator[RoundBatch]:
        """The batches after the first `done` rounds, which must end with a batch."""
        for stop in range((done // EVERY + 1) * EVERY, self.unjudged, EVERY):
            yield RoundBatch(stop, False, False)
        if done < self.unjudged:
            yield RoundBatch(self.unjudged, False, True)
        for start in range(max(done, self.unjudged), self.learned, self.pace):
            stop = start + self.pace
            yield RoundBatch(min(stop, self.learned), self.has_memo, True, brief=stop > self.learned)
        for start in range(max(done, self.learned), self.rounds, self.after):
            yield RoundBatch(min(start + self.after, self.rounds), self.has_memo, False)

    def way_to(self, stop: int) -> tuple[int, ...] | None:
        """What the state after `stop` rounds depends on besides them; None if no full batch ends there.

        Schedules with the same way to a round have the same batches up to it.
        """
        if 0 < stop < self.unjudged and stop % EVERY == 0:
            return ()
        if self.unjudged <= stop <= self.learned and stop > 0 and (stop - self.unjudged) % self.pace == 0:
            return (self.unjudged, self.pace)
        return None


def schedule_of(policy: Policy, has_memo: bool, arrived: BoolArray) -> Schedule:
    """How a policy learns a history.

    A graph that is a function of sums over the rounds is solved for once, after the last outcome: solving in every
    round gives the same result (wherever the minimiser is unique, see docs/graph.md). A policy that scores candidates
    by their predictions solves 50 to 100 times in a long history, and scores them by the last outcomes: at least 1,000
    of them, from a full thousand of rounds on. One whose memo belongs to its own round, or whose graph must be solved
    for after each outcome, learns round by round.
    """
    outcomes = np.flatnonzero(arrived)
    learned = int(outcomes[-1]) + 1 if len(outcomes) else 0
    unjudged, pace, after = learned, 1, EVERY
    if policy.reuses_memo:
        first = int(outcomes[-JUDGED - 1]) + 1 if len(outcomes) > JUDGED else 0
        unjudged, pace = first // EVERY * EVERY, power_of_two(learned // SOLUTIONS)
    elif has_memo or not policy.deferrable:
        unjudged, after = 0, 1 if has_memo else EVERY
    return Schedule(len(arrived), learned, unjudged, pace, after, has_memo)


def power_of_two(least: int) -> int:
    """The smallest power of two from `least` on: it changes only when a history has doubled.

    >>> [power_of_two(number) for number in (0, 1, 2, 3, 100)]
    [1, 1, 2, 4, 128]
    """
    return 1 << max(least - 1, 0).bit_length()
