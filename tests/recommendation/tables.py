"""Ten tables of different kinds, as data frames, and the options to read them with."""

import io
from typing import Any

import numpy as np
import pandas as pd

from spillover.history.example import example_file
from tests.assessment.worlds import months, table

ARMS = ("radio", "video", "search", "posters")


def example(shift=0.0, with_z=True):
    """The example of `spillover next --example`."""
    frame = pd.read_csv(io.StringIO(example_file()))
    frame["y"] += shift
    return frame if with_z else frame.drop(columns="z")


def wide(seed, *, one_outcome=False, context=0, doses=False, level=0.0, rounds=72):
    """One row for each round; effects between arms, and a baseline."""
    effects = np.diag([0.9, 0.6, 0.5, 0.3])
    effects[2, 1], effects[0, 3] = 0.35, -0.2
    x, y, c = table(seed, rounds=rounds, effects=effects, baseline=level, context=context, noise=0.2, share=0.4)
    if doses:
        amounts = np.where(x, np.random.default_rng(seed).uniform(50, 150, x.shape), 0.0).round(2)
        y = y + (amounts / 100 - x) @ effects.T
    frame = pd.DataFrame({"month": [label[:7] for label in months(rounds)]})
    for j, arm in enumerate(ARMS):
        frame[f"chosen_{arm}"] = amounts[:, j] if doses else x[:, j].astype(int)
    if one_outcome:
        frame["sales"] = y.sum(axis=1)
    else:
        for j, arm in enumerate(ARMS):
            frame[f"sales_{arm}"] = y[:, j]
    for k in range(context):
        frame[f"price_{k + 1}"] = c[:, k]
    return frame


TABLES: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "example": (example(), {}),
    "example with a baseline": (example(shift=0.3), {}),
    "example without z": (example(with_z=False), {}),
    "example without z, with a baseline": (example(shift=0.3, with_z=False), {}),
    "wide": (wide(1), {}),
    "wide with a baseline": (wide(2, level=3.0), {}),
    "wide with context": (wide(3, level=1.0, context=2), {"context": ["price_1", "price_2"]}),
    "one outcome": (wide(4, one_outcome=True, level=2.0), {}),
    "amounts": (wide(5, doses=True, level=1.0), {"doses": True}),
    "one outcome, amounts and context": (
        wide(6, one_outcome=True, doses=True, context=1, level=2.0),
        {"doses": True, "context": ["price_1"]},
    ),
}
