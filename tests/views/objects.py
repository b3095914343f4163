"""One small result of each kind, with names that would act if they were not escaped."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spillover as sp
from spillover.experiments import Results, parse_experiment, run_experiment
from spillover.experiments.tune import Tuned, tune

WORLD = sp.SyntheticSEM(n_arms=4, budget=2, horizon=60, changes=(30,))
HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b\u202e", "line\nbreak")
EXPERIMENT = """
name = "small"
title = "<b>small</b>"
replications = 2
[worlds.calm]
kind = "synthetic"
n_arms = 4
budget = 2
horizon = 60
changes = []
[delays.late]
kind = "constant"
rounds = 5
[policies.ndc-sem]
kind = "ndc-sem"
label = "<i>NDC</i>"
[policies.random]
kind = "random"
"""


@cache
def run(policy: Any = None, replications: int = 3) -> sp.Run:
    return sp.simulate(policy or sp.NDCSEM(), WORLD, 5, replications=replications)


@cache
def learner(names: tuple[str, ...] = HOSTILE, rounds: int = 20) -> sp.Learner:
    """A learner that has played some rounds; it must not be changed."""
    made = sp.Learner(sp.NDCSEM(), sp.Problem(n_arms=len(names), budget=2), arms=names)
    rng = np.random.default_rng(0)
    for t in range(rounds):
        number = made.play()
        if t % 5:
            z = np.where(made.waiting[number].x, rng.random(len(names)), 0.0)
            made.report(number, z=z, y=z)
    return made


def sales() -> pd.DataFrame:
    """Forty rounds of decisions and outcomes."""
    rng = np.random.default_rng(1)
    names = HOSTILE[:3]
    chosen = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=list(names))
    outcome = 10 + chosen * [3.0, 1.0, 0.5] + rng.normal(0, 0.3, (40, 3))
    return chosen.add_prefix("x:").join(outcome.add_prefix("y:"))


@cache
def answer(minimise: bool = False) -> Any:
    return sp.next_decision(sales(), budget=1, minimise=minimise)


@cache
def evaluation() -> Any:
    return sp.evaluate(sales(), always=[[HOSTILE[0]], [HOSTILE[1]]], budget=1, draws=20)


@cache
def tuned() -> Tuned:
    return tune(sp.NDCSEM(), WORLD, 5, grid={"discount": [0.5, 0.9], "exploration": [1e-3, 0.1]}, replications=2)


@cache
def comparison() -> sp.PairedComparison:
    return sp.compare({HOSTILE[0]: sp.NDCSEM(), HOSTILE[1]: sp.Uniform()}, WORLD, 5, replications=3)


def results(folder: Path) -> Results:
    return run_experiment(parse_experiment(EXPERIMENT, "small"), folder, progress=False)


def everything(folder: Path) -> dict[str, Any]:
    return {
        "run": run(),
        "grid": run(sp.NDCSEM(discount=(0.5, 0.9))),
        "comparison": comparison(),
        "learner": learner(),
        "learners": sp.Learners(sp.NDCSEM(), sp.Problem(n_arms=3, budget=2), seeds=range(7)),
        "reasons": learner().reasons(),
        "answer": answer(),
        "minimised": answer(minimise=True),
        "evaluation": evaluation(),
        "tuned": tuned(),
        "results": results(folder),
        "problem": sp.Problem(n_arms=3, budget=2, reward_range=np.array([[0.0, 1.0]] * 50)),
    }
