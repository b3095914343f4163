"""Delays of the outcomes, drawn for each round and each replication."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spillover import kernels, validate
from spillover.contracts import Delay
from spillover.registry import Registry
from spillover.rng import Purpose, Rng
from spillover.types import Array, Batch, BoolArray, IntArray, Lateness

NEVER = int(np.iinfo(np.int64).max)  # the delay of an outcome that is lost


@dataclass(frozen=True)
class ConstantDelay(Delay):
    """Every outcome arrives `rounds` rounds late; 0 is the ordinary bandit.

    >>> import spillover as sp
    >>> ConstantDelay(50).draw(1, sp.Rng(0), ()).item()
    50
    """

    rounds: int

    stationary = True

    def __post_init__(self) -> None:
        validate.whole("rounds", self.rounds, 0)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        return np.full(batch, self.rounds, np.int64)

    @property
    def constant(self) -> int:
        return self.rounds

    @property
    def largest(self) -> int:
        return self.rounds


@dataclass(frozen=True)
class UniformDelay(Delay):
    """Uniform on the whole numbers from `low` to `high`, both included.

    >>> import spillover as sp
    >>> UniformDelay(10, 20).largest
    20
    """

    low: int
    high: int

    stationary = True

    def __post_init__(self) -> None:
        validate.whole("low", self.low, 0)
        validate.whole("high", self.high, self.low)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        u = np.broadcast_to(rng.uniform(1)[..., 0], batch)
        return np.asarray(self.low + np.floor(u * (self.high - self.low + 1)).astype(np.int64))

    @property
    def largest(self) -> int:
        return self.high


@dataclass(frozen=True)
class GeometricDelay(Delay):
    """Geometric on 0, 1, 2, ... with the given mean.

    >>> import spillover as sp
    >>> world = sp.FixedSEM(adjacency=[[0, 0.5], [0, 0]], means=[0.5, 0.4], budget=1, horizon=10)
    >>> sp.simulate(sp.NDCSEM(), world, GeometricDelay(mean=3), replications=2, seed=0).regret.shape
    (2, 10)
    """

    mean: float

    stationary = True

    def __post_init__(self) -> None:
        validate.number("mean", self.mean, "a number from 0 to 1e15", low=0, high=1e15)
        validate.require(np.ndim(self.mean) == 0, "mean", self.mean, "a single number")

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        if self.mean == 0:
            return np.zeros(batch, np.int64)
        u = np.broadcast_to(rng.uniform(1)[..., 0], batch)
        # inversion: P(delay >= k) = q^k with q = mean / (1 + mean)
        return np.asarray(np.floor(np.log1p(-u) / -np.log1p(1.0 / self.mean)).astype(np.int64))


@dataclass(frozen=True)
class RecordedDelay(Delay):
    """Recorded delays, `(rounds,)` for all replications or `(replications, rounds)`; NaN or NEVER: a lost outcome.

    >>> import spillover as sp
    >>> RecordedDelay([3, 0, np.nan]).draw(1, sp.Rng(0), ()).item()  # round 1 is three rounds late, round 3 is lost
    3
    """

    delays: Any

    def __post_init__(self) -> None:
        accepted = "whole numbers >= 0 (NaN: lost), (rounds,) or (replications, rounds)"
        try:
            record = np.asarray(self.delays)
        except ValueError:
            raise ValueError(f"delays = {self.delays!r}: must be {accepted}") from None
        validate.require(record.ndim in (1, 2) and record.size > 0, "delays", self.delays, accepted)
        validate.require(record.dtype.kind in "iuf", "delays", self.delays, accepted)
        known = record[~np.isnan(record)] if record.dtype.kind == "f" else record
        storable = record.dtype.kind == "f" or bool((known <= NEVER).all())
        good = storable and bool(((known >= 0) & (known == np.floor(known))).all())
        validate.require(good, "delays", self.delays, accepted)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        return self.draw_rounds(np.array([t]), rng, batch)[..., 0]

    def draw_rounds(self, rounds: IntArray, rng: Rng, batch: Batch = ()) -> IntArray:
        record, latest = np.asarray(self.delays), int(rounds.max())
        validate.require(latest <= record.shape[-1], "t", latest, f"at most {record.shape[-1]}, the rounds on record")
        if record.ndim == 2:
            rows = rng.keys[..., 1].astype(np.int64)
            most = int(rows.max(initial=0))
            validate.require(most < len(record), "replication", most, f"below {len(record)}, the rows on record")
            found = record[rows[..., None], rounds - 1]
        else:
            found = record[rounds - 1]
        if record.dtype.kind == "f":
            lost = ~np.isfinite(found) | (found >= NEVER)
            found = np.where(lost, NEVER, np.where(lost, 0, found).astype(np.int64))
        return np.broadcast_to(found, (*batch, len(rounds))).astype(np.int64)

    @property
    def largest(self) -> int | None:
        most = np.nan_to_num(np.asarray(self.delays, float), nan=np.inf).max()
        return int(most) if most < NEVER else None

    def check_reach(self, horizon: int, replications: int) -> None:
        shape = np.shape(self.delays)
        enough = shape[-1] >= horizon and (len(shape) == 1 or shape[0] >= replications)
        accepted = f"at least ({horizon},) or ({replications}, {horizon}): (replications, rounds) to be played"
        validate.require(enough, "shape of delays", shape, accepted)


@dataclass(frozen=True)
class LossyDelay(Delay):
    """Another delay under which each outcome is lost with probability `loss`.

    >>> LossyDelay(ConstantDelay(5), loss=0.1)  # one outcome in ten never arrives
    LossyDelay(delay=ConstantDelay(rounds=5), loss=0.1)
    """

    delay: Delay
    loss: float

    def __post_init__(self) -> None:
        accepted = "a Delay, such as ConstantDelay(3)"
        given: Any = self.delay
        validate.require(isinstance(given, Delay) and not isinstance(given, type), "delay", given, accepted)
        validate.number("loss", self.loss, "a probability, from 0 to 1", low=0, high=1)

    @property
    def per_arm(self) -> bool:
        return self.delay.per_arm

    @property
    def stationary(self) -> bool:
        return self.delay.stationary

    @property
    def depends_on_rewards(self) -> bool:
        return self.delay.depends_on_rewards

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        lost = self.draw_lost(rng, batch)
        return np.where(lost, NEVER, self.delay.draw(t, rng, batch))

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        lost = self.draw_lost(rng, batch)
        return np.where(lost, NEVER, self.delay.draw_given(t, x, z, rng, batch))

    def draw_lost(self, rng: Rng, batch: Batch) -> BoolArray:
        """Draw whether outcomes are lost, before anything else is drawn."""
        lost = np.broadcast_to(rng.uniform(1)[..., 0], batch) < self.loss
        return lost[..., None] if self.per_arm else lost

    @property
    def foreseeable(self) -> bool:
        return self.delay.foreseeable

    def foresee(self, rounds: IntArray, rng: Rng, batch: Batch, n_arms: int, calls: int = 0) -> Lateness:
        if not self.depends_on_rewards:
            return super().foresee(rounds, rng, batch, n_arms, calls)
        lost = from_call(rng.over(Purpose.DELAY, rounds), calls).uniform(1)[..., 0] < self.loss
        late = self.delay.foresee(rounds, rng, batch, n_arms, calls + 1)
        return late._replace(delays=np.where(lost, NEVER, late.delays))

    @property
    def largest(self) -> int | None:
        return None if self.loss > 0 else self.delay.largest

    def check_reach(self, horizon: int, replications: int) -> None:
        self.delay.check_reach(horizon, replications)


@dataclass(frozen=True)
class ArmDelays(Delay):
    """A delay for each arm: the arms of a round report at different times.

    delays: one for each arm, each a number of rounds, a record of delays, or a Delay. A policy that accepts missing
    outcomes learns each arm's outcome when it arrives, others learn a round when all of its arms have reported.

    >>> ArmDelays((0, 3, GeometricDelay(0.0))).draw(1, Rng(0))
    array([0, 3, 0])
    """

    delays: tuple[Any, ...]

    per_arm = True

    def __post_init__(self) -> None:
        accepted = "a delay for each arm, such as (0, 3, UniformDelay(1, 5))"
        given: Any = self.delays
        validate.require(isinstance(given, list | tuple) and len(given) > 0, "delays", given, accepted)
        each = tuple(as_delay(delay) for delay in given)
        validate.require(not any(delay.per_arm for delay in each), "delays", given, accepted)
        object.__setattr__(self, "delays", each)

    @property
    def stationary(self) -> bool:
        return all(delay.stationary for delay in self.delays)

    @property
    def depends_on_rewards(self) -> bool:
        return any(delay.depends_on_rewards for delay in self.delays)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        return np.stack([delay.draw(t, rng, batch) for delay in self.delays], axis=-1)

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        return np.stack([delay.draw_given(t, x, z, rng, batch) for delay in self.delays], axis=-1)

    @property
    def largest(self) -> int | None:
        longest = [delay.largest for delay in self.delays]
        return None if None in longest else max(each for each in longest if each is not None)

    def check_reach(self, horizon: int, replications: int) -> None:
        for delay in self.delays:
            delay.check_reach(horizon, replications)


@dataclass(frozen=True)
class ParetoDelay(Delay):
    """Heavy-tailed delays: P(delay >= d) = (1 + d / scale)^-tail, rounded down; the mean is infinite for tail <= 1.

    >>> delay = ParetoDelay(scale=10, tail=1.5)
    >>> delay.stationary, delay.largest  # no longest delay
    (True, None)
    """

    scale: float
    tail: float = 1.1

    stationary = True

    def __post_init__(self) -> None:
        for name, value in (("scale", self.scale), ("tail", self.tail)):
            validate.number(name, value, "a number above 0, below 1e15", low=0, high=1e15, open_ends=True)
            validate.require(np.ndim(value) == 0, name, value, "a single number")

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        u = np.broadcast_to(rng.uniform(1)[..., 0], batch)
        late = self.scale * np.expm1(np.minimum(-np.log1p(-u), 500.0 * self.tail) / self.tail)
        return np.asarray(np.minimum(late, 1e15).astype(np.int64))


@dataclass(frozen=True)
class ConversionDelay(Delay):
    """Only good news arrives: the arms whose reward is 0 never report, the others do so after `delay`.

    That is how clicks and orders reach a shop: there is a message if somebody buys, and none if nobody does. The
    outcomes of the arms that are not played arrive after `delay` as well.

    silence: probability that a reward of 0 is not reported.

    >>> ConversionDelay(3).draw_given(1, np.array([True, True, False]), np.array([1.0, 0.0, 0.0]), Rng(0))
    array([                  3, 9223372036854775807,                   3])
    """

    delay: Any
    silence: float = 1.0

    per_arm = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "delay", as_delay(self.delay))
        validate.require(not self.delay.per_arm, "delay", self.delay, "one delay for all arms")
        validate.number("silence", self.silence, "a probability, from 0 to 1", low=0, high=1)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        raise ValueError("delay = ConversionDelay: depends on the rewards, so it cannot be drawn without them")

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        require_rewards(self, x, z)
        arrives = np.broadcast_to(self.delay.draw(t, rng, batch)[..., None], x.shape)
        silent = x & (z == 0.0) & (rng.uniform(x.shape[-1]) < self.silence)
        return np.where(silent, NEVER, arrives)

    foreseeable = True

    def foresee(self, rounds: IntArray, rng: Rng, batch: Batch, n_arms: int, calls: int = 0) -> Lateness:
        if self.delay.stationary:
            own = from_call(rng.over(Purpose.DELAY, rounds), calls)
            arrives = self.delay.draw(int(rounds[0]), own, (*batch, len(rounds)))
            drawn = own.uniform(n_arms)
        else:
            streams = [from_call(rng.at(Purpose.DELAY, int(t)), calls) for t in rounds]
            each = [self.delay.draw(int(t), own, batch) for t, own in zip(rounds, streams, strict=True)]
            arrives = np.stack(each, axis=-1)
            drawn = np.stack([own.uniform(n_arms) for own in streams], axis=-2)
        return Lateness.of_all_arms(arrives, arrives)._replace(silent=drawn < self.silence)

    def check_reach(self, horizon: int, replications: int) -> None:
        self.delay.check_reach(horizon, replications)


@dataclass(frozen=True)
class BadNewsDelay(Delay):
    """Bad news comes late: a round takes from `good` rounds (rewards of 1) to `bad` rounds (rewards of 0).

    Between them the delay is linear in the average reward of the arms played.

    >>> BadNewsDelay(10, 50).draw_given(1, np.array([True, True, False]), np.array([1.0, 0.5, 0.0]), Rng(0))
    array(20)
    """

    good: int
    bad: int

    def __post_init__(self) -> None:
        validate.whole("good", self.good, 0)
        validate.whole("bad", self.bad, self.good)

    def draw(self, t: int, rng: Rng, batch: Batch = ()) -> IntArray:
        raise ValueError("delay = BadNewsDelay: depends on the rewards, so it cannot be drawn without them")

    def draw_given(self, t: int, x: BoolArray, z: Array, rng: Rng, batch: Batch = ()) -> IntArray:
        require_rewards(self, x, z)
        return np.asarray(kernels.bad_news_delay(x, z, self.good, self.bad))

    foreseeable = True

    def foresee(self, rounds: IntArray, rng: Rng, batch: Batch, n_arms: int, calls: int = 0) -> Lateness:
        shape = (*batch, len(rounds))
        good, bad = (np.broadcast_to(np.int64(each), shape) for each in (self.good, self.bad))
        return Lateness.of_all_arms(good, bad)

    @property
    def largest(self) -> int:
        return self.bad


def from_call(rng: Rng, calls: int) -> Rng:
    """Skip the first `calls` draws of the streams."""
    rng.calls = calls
    return rng


def require_rewards(delay: Delay, x: BoolArray, z: Array) -> None:
    """Raise a ValueError if the rewards of played arms are not observed."""
    seen = not bool(np.isnan(z[x]).any())
    validate.require(seen, "delay", delay, "a delay that does not depend on rewards, as z is not observed")


def as_delay(delay: Any) -> Delay:
    """A delay from its short forms: a number of rounds, recorded delays, or a Delay itself.

    >>> as_delay(ConstantDelay(3)).rounds
    3
    """
    if isinstance(delay, Delay) and not isinstance(delay, type):
        return delay
    if isinstance(delay, int | np.integer) and not isinstance(delay, bool):
        validate.whole("delay", delay, 0)
        return ConstantDelay(int(delay))
    if isinstance(delay, list | tuple | range | np.ndarray) or hasattr(delay, "to_numpy"):
        return RecordedDelay(delay if isinstance(delay, list | tuple) else np.asarray(delay))
    raise ValueError(f"delay = {delay!r}: must be a number of rounds, a record of delays, or a Delay")


BUILT_IN: dict[str, Callable[..., Delay]] = {
    "constant": ConstantDelay,
    "uniform": UniformDelay,
    "geometric": GeometricDelay,
    "recorded": RecordedDelay,
    "lossy": LossyDelay,
    "per-arm": ArmDelays,
    "pareto": ParetoDelay,
    "conversions": ConversionDelay,
    "bad-news": BadNewsDelay,
}
DELAYS = Registry("delay", "spillover.delays", Delay, BUILT_IN)


__all__ = [
    "DELAYS",
    "NEVER",
    "ArmDelays",
    "BadNewsDelay",
    "ConstantDelay",
    "ConversionDelay",
    "GeometricDelay",
    "LossyDelay",
    "ParetoDelay",
    "RecordedDelay",
    "UniformDelay",
    "as_delay",
]
