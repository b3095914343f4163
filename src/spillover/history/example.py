"""Simulated histories: a small file to start from, and the source of the files in `examples/`."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import numpy as np

from spillover import validate
from spillover.rng import Purpose, Rng
from spillover.types import Array

HEADER = "round,arm,chosen,z,y"
CHANNELS = {  # mean sales of a week of each channel by itself, on a scale from 0 to 1
    "newsletter": 0.30,
    "posters": 0.25,
    "radio": 0.35,
    "search": 0.55,
    "social": 0.40,
    "video": 0.45,
}
EFFECTS = {  # (from, to): what one unit of sales through one channel adds to another
    ("video", "search"): 0.6,
    ("radio", "search"): 0.3,
    ("social", "newsletter"): 0.5,
    ("posters", "social"): 0.4,
    ("video", "social"): 0.2,
}
WEEKS, EACH_WEEK, PENDING = 40, 2, 2


def example_file() -> str:
    """The text of a CSV file: what six channels sold in forty weeks, two of which run each week; simulated."""
    weeks = dates(date(2026, 1, 5), 7, WEEKS)
    return simulated(CHANNELS, EFFECTS, rounds=weeks, budget=EACH_WEEK, pending=range(WEEKS - PENDING, WEEKS))


def dates(first: date, days: int, count: int) -> list[str]:
    """Dates at intervals of some days."""
    return [str(first + timedelta(days * k)) for k in range(count)]


def simulated(
    levels: Mapping[str, float],
    effects: Mapping[tuple[str, str], float],
    *,
    rounds: Sequence[object],
    budget: int,
    pending: Sequence[int] = (),
    later: tuple[int, Mapping[str, float]] | None = None,
    largest: float = 1.0,
    noise: float = 0.0,
    seed: int = 0,
) -> str:
    """The text of a history: random sets of arms, rewards around their levels, spilled over along the effects.

    levels: mean reward of each arm as a share of the largest. effects: (from, to) -> what a unit of one adds to the
    other. pending: positions of the rounds without outcomes. later: a position, and the levels of some arms from there
    on. largest: the largest possible reward z. noise: standard deviation of the noise in every y, as a share of the
    largest.
    """
    validate.whole("budget", budget, 1, len(levels))
    names, rng, lines = list(levels), Rng(seed), [HEADER]
    total = total_effects(names, effects)
    for t, day in enumerate(rounds):
        now = levels if later is None or t < later[0] else {**levels, **later[1]}
        mean = np.array([now[name] for name in names])
        here = rng.at(Purpose.WORLD, t)
        chosen = rng.at(Purpose.CHOICE, t).permutation(len(names)) < budget
        reward = largest * np.clip(mean + 0.3 * (here.uniform(len(names)) - 0.5), 0.0, 1.0)
        z = np.where(chosen, [float(f"{value:.3g}") for value in reward], 0.0)
        y = total @ z + largest * noise * here.normal(len(names))
        for k, name in enumerate(names):
            own, overall = (f"{z[k]:g}" if chosen[k] else ""), f"{y[k]:.5g}"
            known = (own, overall) if t not in pending else ("", "")
            lines.append(f"{day},{name},{int(chosen[k])},{','.join(known)}")
    return "\n".join(lines) + "\n"


def total_effects(names: Sequence[str], effects: Mapping[tuple[str, str], float]) -> Array:
    """(I - A)^-1: the total effect of a unit of each arm's own reward on every arm."""
    spill = np.zeros((len(names), len(names)))
    for (source, target), strength in effects.items():
        spill[names.index(target), names.index(source)] = strength
    return np.asarray(np.linalg.inv(np.eye(len(names)) - spill))
