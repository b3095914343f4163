"""Off-policy estimators, written from their definitions for one action at a time: slow, and independent of the package.

IPS, SNIPS, DM and DR are those of the Open Bandit Pipeline's documentation (Saito et al. 2021). obp 0.4.1 itself gave
the same numbers on the problem of `obp_problem`; they are `OBP`.
"""

import numpy as np

OBP = {"ips": 0.5744657038600269, "snips": 0.5951401585500603, "dm": 0.5368008205527456, "dr": 0.5736187873919796}


def obp_problem():
    """Actions, rewards, probabilities of logged actions, those of a target policy, and a model of rewards."""
    g = np.random.Generator(np.random.Philox(5))
    rounds, actions = 40, 3
    action = g.integers(actions, size=rounds)
    logging = g.dirichlet(np.ones(actions) * 3, size=rounds).round(3)
    target = g.dirichlet(np.ones(actions), size=rounds).round(3)
    target = target / target.sum(axis=1, keepdims=True)
    model = g.uniform(size=(rounds, actions)).round(3)
    here = np.arange(rounds)
    reward = (model[here, action] + 0.3 * g.standard_normal(rounds)).round(3)
    return action, reward, logging[here, action], target, model


def estimates(action, reward, propensity, target, model):
    """All four estimators, round by round."""
    ips, weights, dm, dr = [], [], [], []
    for t, a in enumerate(action):
        weight = target[t][a] / propensity[t]
        expected = sum(target[t][b] * model[t][b] for b in range(len(target[t])))
        weights.append(weight)
        ips.append(weight * reward[t])
        dm.append(expected)
        dr.append(expected + weight * (reward[t] - model[t][a]))
    count = len(action)
    return {"ips": sum(ips) / count, "snips": sum(ips) / sum(weights), "dm": sum(dm) / count, "dr": sum(dr) / count}
