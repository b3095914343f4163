"""How often each warning is wrong: on 200 clean simulated tables, half with own rewards z and half without."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import spillover as sp
from tests.assessment.worlds import days, months

ALLOWED = {"mostly-exploration", "arms-idle"}  # true of these tables: choices are random, few arms are certain


def clean_table(seed, with_z):
    """Random decisions in a stationary world: a sparse graph, a baseline (without z), noise; dated rounds."""
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(3, 9)), int(rng.integers(60, 200))
    graph = np.triu(np.where(rng.random((n, n)) < 0.25, rng.uniform(0.2, 0.6, (n, n)), 0.0), 1)
    reach = np.linalg.inv(np.eye(n) - graph)
    x = rng.random((rounds, n)) < rng.uniform(0.25, 0.6)
    beta = rng.uniform(0.2, 0.9, n)
    z = np.where(x, rng.beta(5 * beta, 5 * (1 - beta), (rounds, n)), 0.0)
    level, noise = (0.0, 0.0) if with_z else (rng.uniform(0, 2), 0.3)
    y = (z + level + noise * rng.normal(size=(rounds, n))) @ reach.T
    labels = days(rounds) if seed % 2 else months(rounds)
    cells = {"round": np.repeat(labels, n), "arm": np.tile([f"arm {j}" for j in range(n)], rounds)}
    cells |= {"chosen": x.ravel().astype(int), "y": y.ravel()}
    if with_z:
        cells["z"] = np.where(x, z, np.nan).ravel()
    return pd.DataFrame(cells)


def alarms(found):
    codes = [finding.code for finding in found.cautions if finding.warning]
    return {*codes, *(signal.code for signal in found.reasons.health if signal.warning)} - ALLOWED


@pytest.mark.long
def test_warnings_are_rarely_wrong() -> None:
    count: Counter[str] = Counter()
    for seed in range(200):
        count.update(alarms(sp.next_decision(clean_table(seed, with_z=seed % 4 < 2), budget=2)))
    assert all(times <= 4 for times in count.values()), count
