"""States on the way through a history, from which its continuation is learned without starting again."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from spillover.history.schedule import EVERY, Schedule
from spillover.reports import Details
from spillover.state import copy_state, leaves
from spillover.types import Choice, State

MOST = 6  # kept for one history


class Checkpoint(NamedTuple):
    """What is known after the first `done` rounds."""

    setting: Any  # policy, problem and seed
    way: tuple[int, ...]  # see `Schedule.way_to`
    done: int
    state: State
    waiting: dict[int, Choice]
    details: dict[int, Details]
    bytes: int = 0  # of the state


@dataclass
class Checkpoints:
    """The checkpoints of one history that grows; whoever changes a round of it calls `forget`."""

    kept: list[Checkpoint] = field(default_factory=list)

    def forget(self, first: int = 0) -> None:
        """Round number `first` (from 0 on) or a later one has changed."""
        self.kept = [checkpoint for checkpoint in self.kept if checkpoint.done <= first]

    def latest(self, setting: Any, schedule: Schedule) -> Checkpoint | None:
        """The last checkpoint that a replay by this schedule passes; its state may be rewritten."""
        fitting = [c for c in self.kept if c.setting == setting and schedule.way_to(c.done) == c.way]
        if not fitting:
            return None
        found = max(fitting, key=lambda checkpoint: checkpoint.done)
        return found._replace(state=copy_state(found.state), waiting=dict(found.waiting), details=dict(found.details))

    def wanted(self, schedule: Schedule, done: int) -> set[int]:
        """After which rounds to keep a checkpoint: close to the last outcome, and further and further before it."""
        found: set[int] = set()
        distance = 0
        while len(found) < MOST and schedule.learned - distance > done:
            stop = last_stop(schedule, schedule.learned - distance)
            if stop <= done:
                break
            found.add(stop)
            distance = 4 * max(schedule.learned - stop, schedule.pace)
        return found

    def keep(self, checkpoint: Checkpoint) -> None:
        """Add a checkpoint; of too many, those that are closest to a later one go, and other settings before them."""
        own = checkpoint._replace(
            state=copy_state(checkpoint.state),
            waiting=dict(checkpoint.waiting),
            details=dict(checkpoint.details),
            bytes=sum(leaf.nbytes for leaf in leaves(checkpoint.state).values()),
        )
        same = [c for c in self.kept if c.setting == own.setting and (c.done, c.way) != (own.done, own.way)]
        others = [c for c in self.kept if c.setting != own.setting]
        self.kept = [*others[-1:], *thinned(sorted([*same, own], key=lambda c: c.done))]

    @property
    def bytes(self) -> int:
        return sum(checkpoint.bytes for checkpoint in self.kept)


def last_stop(schedule: Schedule, at_most: int) -> int:
    """The last round of a full batch, up to a round; 0 if there is none."""
    if at_most >= schedule.unjudged > 0 or (schedule.unjudged == 0 and at_most > 0):
        stop = schedule.unjudged + (at_most - schedule.unjudged) // schedule.pace * schedule.pace
        return stop if schedule.way_to(stop) is not None else 0
    return min(at_most, schedule.unjudged - 1) // EVERY * EVERY


def thinned(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """At most MOST of them, the last one included: dense at the end, sparse before."""
    kept = list(checkpoints)
    while len(kept) > MOST:
        last = kept[-1].done
        ratios = [(last - before.done) / max(last - here.done, 1) for before, here in pairwise(kept[:-1])]
        closest = min(range(len(ratios)), key=ratios.__getitem__)
        del kept[closest + 1]
    return kept
