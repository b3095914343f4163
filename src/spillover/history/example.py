"""A small history to start from: weeks of advertising, with two weeks whose outcomes are still to come."""

from datetime import date, timedelta

import numpy as np

from spillover.rng import Purpose, Rng

CHANNELS = {  # how much a week of it sells by itself, on a scale from 0 to 1
    "newsletter": 0.30,
    "posters": 0.25,
    "radio": 0.35,
    "search": 0.55,
    "social": 0.40,
    "video": 0.45,
}
HELPS = {  # (from, to): what one unit of sales through one channel adds to another
    ("video", "search"): 0.6,
    ("radio", "search"): 0.3,
    ("social", "newsletter"): 0.5,
    ("posters", "social"): 0.4,
    ("video", "social"): 0.2,
}
WEEKS, EACH_WEEK, PENDING = 40, 2, 2
FIRST_MONDAY = date(2026, 1, 5)
HEADER = "round,arm,chosen,z,y"


def example_file() -> str:
    """The text of a CSV file: what six channels sold in forty weeks, two of which run each week; simulated."""
    names, rng = list(CHANNELS), Rng(0)
    spill = np.zeros((len(names), len(names)))
    for (source, target), strength in HELPS.items():
        spill[names.index(target), names.index(source)] = strength
    total = np.linalg.inv(np.eye(len(names)) - spill)
    level = np.array(list(CHANNELS.values()))
    lines = [HEADER]
    for week in range(WEEKS):
        order = rng.at(Purpose.CHOICE, week).permutation(len(names))
        chosen = order < EACH_WEEK
        sold = np.clip(level + 0.3 * (rng.at(Purpose.WORLD, week).uniform(len(names)) - 0.5), 0, 1)
        z = np.where(chosen, sold.round(2), 0.0)
        y = total @ z
        day = FIRST_MONDAY + timedelta(weeks=week)
        for k, name in enumerate(names):
            known = week < WEEKS - PENDING
            own = f"{z[k]:g}" if known and chosen[k] else ""
            lines.append(f"{day},{name},{int(chosen[k])},{own},{f'{y[k]:.4f}' if known else ''}")
    return "\n".join(lines) + "\n"
