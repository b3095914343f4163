"""Streams with a history, for the benchmarks of the service."""

from collections.abc import Callable
from typing import Any

import numpy as np

from spillover.service import Outcome, Service
from spillover.service.events import RoundsImported

DECISIONS = {10: 60, 100: 60, 1_000: 6}  # measured, by the number of arms
AT_ONCE = 500  # rounds in an event
KINDS: dict[str, dict[str, Any]] = {  # what streams observe
    "z and y": {},
    "y": {"observes": "overall"},
    "payoff": {"observes": "payoff"},
    "context": {"context": ["price"]},
}
CHANGED: dict[str, Callable[[dict[str, Any], np.random.Generator], dict[str, Any]]] = {  # of their rounds
    "z and y": lambda line, rng: {},
    "y": lambda line, rng: {"z": None},
    "payoff": lambda line, rng: {"z": None, "y": [sum(line["y"])]},
    "context": lambda line, rng: {"context": {"price": float(rng.random())}},
}


def names(n: int) -> list[str]:
    return [f"arm {k:04d}" for k in range(n)]


def complete(rng: np.random.Generator, x: Any) -> tuple[Any, Any]:
    """Own rewards of the chosen arms, and outcomes with some spill-over to the next arm."""
    z = np.where(x, np.clip(rng.normal(0.5, 0.1, x.shape), 0, 1), 0.0)
    return z, z + 0.2 * np.roll(z, 1, axis=-1)


def filled(service: Service, stream: str, n: int, rounds: int, kind: str = "z and y") -> None:
    """A stream with a history of random decisions."""
    rng, arms, budget = np.random.default_rng(0), names(n), max(n // 10, 1)
    service.create_stream(stream, {"arms": arms, "budget": budget} | KINDS[kind])
    with service.open_streams.writing(stream) as ledger:
        for start in range(0, rounds, AT_ONCE):
            count = min(AT_ONCE, rounds - start)
            x = rng.permuted(np.tile(np.arange(n) < budget, (count, 1)), axis=1)
            known = rounds_of(arms, start, x, *complete(rng, x))
            for line in known:
                line |= CHANGED[kind](line, rng)
            event = RoundsImported(source="benchmark", rounds=known)
            service.open_streams.record(ledger, [event], f"import:{start}", {"start": start}, "")


def rounds_of(arms: list[str], start: int, x: Any, z: Any, y: Any) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "round": str(start + t + 1),
            "chosen": [arms[k] for k in np.flatnonzero(x[t])],
            "context": {},
            "z": [value if played else None for value, played in zip(z[t].tolist(), x[t], strict=True)],
            "y": y[t].tolist(),
        }
        for t in range(len(x))
    )


def items_of(rng: np.random.Generator, service: Service, stream: str, label: int) -> list[Outcome]:
    """All outcomes of a round that was executed."""
    with service.open_streams.writing(stream) as ledger:
        arms, x = ledger.settings.arms, ledger.x[ledger.rows[str(label)]].copy()
    z, y = complete(rng, x)
    return [Outcome(round=label, arm=arm, z=float(z[k]) if x[k] else None, y=float(y[k])) for k, arm in enumerate(arms)]
