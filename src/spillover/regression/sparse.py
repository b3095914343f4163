"""Effects of arms on the outcomes of all arms, most of which are 0: a spike-and-slab regression by mean field."""

from typing import NamedTuple

import numpy as np

from spillover.types import Array

SWEEPS = 40
HEAT, COOLING = 100.0, 0.5  # noise is larger at first, so that the strongest effects enter before others absorb them
SETTLED = 1e-4  # of the usual effect: sweeps end once nothing moves by more
SLAB = 0.15  # variance of a cross effect at first, in squares of the usual own effect
SPREAD = 0.25  # variance of own effects at first, in the same units
SPREAD_ROUNDS = 3.0  # arms that this counts as
UNSEEN = 1e-9  # of the most that is known of any effect: what is less is rounding
MOST_EDGES = 0.7  # share of cross effects that are not 0


class SparseEffects(NamedTuple):
    """effects[i, j]: of arm j on outcome i; the probability that it is not 0; and its prior variance."""

    effects: Array  # (n, n)
    probability: Array  # (n, n)
    variance: Array  # (n, n)


def sparse_effects(precision: Array, moments: Array, noise: Array) -> SparseEffects:
    """Fit own effects that resemble each other, and cross effects that are 0 or small.

    precision: (n, n, n), X'X of each outcome. moments: (n, n), X'y of each outcome. noise: (n,), variances.
    The share of cross effects and all prior variances are estimated along the way.
    """
    from scipy.special import expit  # imported here, because simulations do not need SciPy

    n = len(moments)
    own, other = np.eye(n, dtype=bool), ~np.eye(n, dtype=bool)
    squares = np.maximum(np.diagonal(precision, axis1=1, axis2=2), 0.0)
    known = np.diagonal(squares)
    seen_own = known > UNSEEN * squares.max(initial=0.0)
    first = np.diagonal(moments)[seen_own] / known[seen_own]
    centre = float(first.mean()) if len(first) else 0.0
    effects = np.diag(np.full(n, centre))  # sparse from the start
    effects[seen_own, seen_own] = first
    probability = own.astype(float)
    usual = float(np.mean(np.square(np.diag(effects)))) + 1e-12
    spread = float(np.var(np.diag(effects))) + 0.1 * usual
    slab, share = SLAB * usual, 1.0 / n
    rest = moments - np.einsum("iab,ib->ia", precision, effects)
    for sweep in range(SWEEPS):
        before, heat = effects.copy(), max(1.0, HEAT * COOLING**sweep)
        felt = heat * noise[:, None]
        seen = squares / felt
        width = 1.0 / (seen + 1.0 / slab)
        odds = np.log(share / (1.0 - share)) + 0.5 * np.log(width / slab)
        own_width = 1.0 / (np.diagonal(seen) + 1.0 / spread)
        mean = np.empty((n, n))
        for j in range(n):
            pull = (rest[:, j] + squares[:, j] * effects[:, j]) / felt[:, 0]
            mean[:, j] = width[:, j] * pull
            here = expit(odds[:, j] + 0.5 * mean[:, j] * pull)
            new = here * mean[:, j]
            here[j], new[j] = 1.0, own_width[j] * (pull[j] + centre / spread)
            rest -= precision[:, :, j] * (new - effects[:, j])[:, None]
            probability[:, j], effects[:, j] = here, new
        variance = np.where(own, own_width[:, None], probability * (width + mean**2) - effects**2)
        edges = float(probability[other].sum())
        share = float(np.clip((edges + 1.0) / (other.sum() + n), 0.1 / n, MOST_EDGES))
        slab = (float((variance + effects**2)[other].sum()) + SLAB * usual) / (edges + 1.0)
        direct = np.diag(effects)
        centre, usual = float(direct.mean()), float(np.mean(direct**2)) + 1e-12
        around = float(((direct - centre) ** 2 + np.diag(variance)).sum())
        spread = (around + SPREAD_ROUNDS * SPREAD * usual) / (n + SPREAD_ROUNDS)
        if heat == 1.0 and np.abs(effects - before).max() < SETTLED * np.sqrt(usual):
            break
    return SparseEffects(effects, probability, np.where(own, spread, probability * slab))
