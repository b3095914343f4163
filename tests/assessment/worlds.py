"""Simulated tables: random choices, a known matrix of effects, a baseline, context and noise."""

from datetime import date, timedelta

import numpy as np


def table(seed, rounds=120, arms=4, *, effects=None, baseline=0.0, context=0, noise=0.3, budget=None, share=0.5):
    """x, y and context of a linear world; effects[i, j] is what choosing j does to the outcome of i."""
    rng = np.random.default_rng(seed)
    if effects is None:
        effects = np.diag(rng.uniform(0.5, 1.5, arms)) + rng.uniform(0, 0.3, (arms, arms))
    x = rng.random((rounds, arms)) < share
    if budget is not None:
        x = np.argsort(rng.random((rounds, arms)), axis=1) < budget
    c = rng.normal(size=(rounds, context))
    y = x @ np.asarray(effects).T + baseline + c.sum(axis=1, keepdims=True) + noise * rng.normal(size=(rounds, arms))
    return x, y, c


def days(count, step=1, first=date(2020, 1, 1)):
    return tuple(str(first + timedelta(step * k)) for k in range(count))


def months(count, first=2010):
    return tuple(f"{first + k // 12}-{k % 12 + 1:02d}-01" for k in range(count))
