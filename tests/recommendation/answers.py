"""Reasons to judge: made up from effects, with intervals."""

import numpy as np

import spillover as sp
from spillover.assessment import assess
from spillover.reasons import reasons
from spillover.recommendation.result import cautions
from tests.assessment.worlds import table


def explanation(effects, *, chosen=None, half_width=0.05, known=None, **more):
    """What a policy would say of a matrix of effects, effects[i, j] of choosing j on i, if it were sure of it."""
    effects = np.asarray(effects, float)
    n = len(effects)
    own, total = np.diagonal(effects).copy(), effects.sum(axis=0)
    seen = np.ones(n, bool) if known is None else np.asarray(known, bool)
    around = np.array([-half_width, half_width])
    weights = np.divide(total, own, out=np.ones(n), where=own != 0)
    mean = np.where(seen, own, np.nan)
    given = dict(
        mean=mean,
        count=np.where(seen, 9.0, 0.0),
        clock=np.array(20.0),
        index=np.nan_to_num(own) + 0.01,
        adjacency=np.full((n, n), np.nan),
        gain=np.ones(n),
        weights=weights,
        score=weights * (np.nan_to_num(own) + 0.01),
        chosen=np.arange(n) < 1 if chosen is None else np.asarray(chosen, bool),
        effects=effects,
        effects_interval=effects[..., None] + around,
        direct_interval=own[:, None] + around,
        spill_interval=(total - own)[:, None] + np.sqrt(n - 1) * around,
        total_interval=total[:, None] + np.sqrt(n) * around,
    )
    return sp.Explanation(**given | more)


def said(effects, *, truth=None, seed=0, rounds=200, level=0.0, signals=None, sign=1.0, **more):
    """The cautions about claimed effects, given data from the true ones."""
    effects = np.asarray(effects, float)
    x, y, _ = table(seed, rounds=rounds, arms=len(effects), effects=effects if truth is None else truth, baseline=level)
    names = tuple("abcdefgh"[: len(effects)])
    found = reasons(explanation(effects, **more), arms=names)
    y = sign * y
    return cautions(found, assess(x, y, arms=names), y, signals or {}, sign=sign, sees_rewards=False)
