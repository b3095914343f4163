"""Stretches of rounds of the reference points, which decide without learning: when rounds arrive is all they know."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from spillover import kernels
from spillover.policies.compiled_rounds import outcomes_for_kernels, played_by
from spillover.rng import Rng
from spillover.types import Array, BoolArray, Constant, IntArray, Lateness, Round, Rounds, Stretch


class CountState(NamedTuple):
    """The number of rounds played, and the latest round whose outcome has arrived."""

    rounds: Rounds  # (*batch,)
    latest: Round  # (*batch,), or (*batch, n) for each arm: 0 while nothing has arrived
    shape: Constant[IntArray]  # (*batch, 2): number of arms, budget

    @property
    def budget(self) -> IntArray:
        return self.shape[..., 1]


def next_rounds(state: CountState, stretch: Stretch) -> IntArray:
    """The rounds of a stretch."""
    return int(state.rounds.flat[0]) + 1 + np.arange(len(stretch.recorded))


def play_decided(x: BoolArray, state: CountState, stretch: Stretch, rng: Rng) -> CountState | None:
    """`play_stretch` of a reference point that learns nothing; None if an outcome is not valid.

    x: its decisions, (*batch, rounds, n).
    """
    brought = bring_outcomes(x, state, stretch, rng)
    return take_arrivals(state, stretch)[1] if brought else None


def bring_outcomes(x: BoolArray, state: CountState, stretch: Stretch, rng: Rng) -> bool:
    """Write decisions and what they bring into the rings; returns whether the outcomes are valid."""
    flight = stretch.flight
    start = next_rounds(state, stretch)[0] % flight.x.shape[-2]
    flight.x[..., start : start + x.shape[-2], :] = x
    outcomes = outcomes_for_kernels(stretch)
    return played_by(kernels.decided_rounds, state.rounds, rng.keys, *outcomes, *flight[:3]) is not None


def take_arrivals(state: CountState, stretch: Stretch, ahead: bool = False) -> tuple[IntArray, CountState]:
    """The latest rounds that have arrived before each round of a stretch, and the state after it.

    They are (*batch, rounds, n) if the state has one for each arm and these report at different times; otherwise
    (*batch, rounds, 1). ahead: only what is in flight already, none of the stretch; everything stays as it is.
    """
    x, z, _, *lists, _, arrival = stretch.flight
    by_arm = state.latest.ndim > state.rounds.ndim
    known = state.latest if by_arm else state.latest[..., None]
    if not arrival.shape[-1]:
        known = known[..., :1]  # all arms report together
    newest, after = kernels.newest_arrivals(
        *(state.rounds, known, *stretch.lateness, stretch.horizon, ahead), *(x, z, *lists, arrival)
    )
    latest = np.broadcast_to(after if by_arm else after[..., 0], state.latest.shape).copy()
    return newest, state._replace(rounds=state.rounds + len(stretch.recorded), latest=latest)


def waits_for_rewards(stretch: Stretch) -> bool:
    """Whether it depends on rewards when, or whether, outcomes arrive."""
    late = stretch.lateness
    return bool(late.silent.any() or (late.slowest != late.delays).any())


def pieces(stretch: Stretch) -> Iterator[Stretch]:
    """The stretch in pieces that are so short that no decision of a piece can depend on its outcomes."""
    late, length = stretch.lateness, len(stretch.recorded)
    least = min(int(delays.min(initial=length)) for delays in (late.delays, late.slowest, late.by_arm))
    for start in range(0, length, least + 1):
        yield piece_of(stretch, slice(start, min(start + least + 1, length)))


def piece_of(stretch: Stretch, rounds: slice) -> Stretch:
    """Some rounds of a stretch."""
    course, (delays, slowest, silent, by_arm) = stretch.course, stretch.lateness
    return stretch._replace(
        course=course._replace(
            rewards=of_rounds(course.rewards, rounds),
            noise=of_rounds(course.noise, rounds),
            baseline=of_rounds(course.baseline, rounds),
        ),
        lateness=Lateness(delays[..., rounds], slowest[..., rounds], silent[..., rounds, :], by_arm[..., rounds, :]),
        recorded=stretch.recorded[rounds],
    )


def of_rounds(part: Array, rounds: slice) -> Array:
    """Some rounds of what differs from round to round; otherwise it is a number, or has an axis of length 1."""
    return part[..., rounds, :] if part.ndim > 1 and part.shape[-2] > 1 else part
