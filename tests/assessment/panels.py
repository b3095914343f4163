"""Simulated panels: units that are chosen once and stay so, with a known effect and parallel trends."""

import numpy as np


def panel(seed, *, units=40, rounds=20, chosen=12, effect=-2.0, growth=0.0, together=False):
    """x, y and the average effect on the chosen; errors of a unit are autocorrelated, and effects differ."""
    rng = np.random.default_rng(seed)
    starts = np.full(chosen, rounds // 2) if together else rng.integers(rounds // 3, rounds - 2, chosen)
    x = np.zeros((rounds, units), np.bool_)
    x[:, :chosen] = np.arange(rounds)[:, None] >= starts
    noise = rng.normal(size=(rounds, units))
    for t in range(1, rounds):
        noise[t] = 0.6 * noise[t - 1] + 0.8 * noise[t]
    effects = x * (effect + growth * np.cumsum(x, axis=0) + 0.5 * rng.normal(size=units))
    trend = np.cumsum(rng.normal(size=(rounds, 1)), axis=0)
    return x, 3.0 * rng.normal(size=units) + trend + noise + effects, float(effects[x].mean())
