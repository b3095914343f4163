"""Arms that do not report: whether silence says something about the reward."""

import math
from typing import Final

from spillover.kernels.inner import bare

REPORTED_ZERO: Final = 0.02  # if silence means a reward of 0: share of such rewards that are reported all the same
MEMORY: Final = 0.995  # factor on the counts with every round
MOST_EVIDENCE: Final = 20.0  # bound on the logarithm of the odds, so that they can still turn


@bare
def weigh_silence(answers, odds, x, known, z, reward_range):
    """Compare two explanations of the chosen arms of a round that never report.

    Either outcomes are lost by chance, equally often for every arm; or a reward of 0 is not reported. Under the second,
    arms with lower rewards report less often, and what they do report is good news. odds: the logarithm of the odds for
    the second. answers: rewards, rewards of 0 (or of the end of the range that is next to it) and silences of each arm.
    Returns the probability of the second: the weight of a silence as a reward of 0.
    """
    low, high = reward_range[0], reward_range[1]
    zero = min(max(0.0, low), high)
    answered, silent = 0.0, 0.0
    for i in range(x.shape[0]):
        heard, lacking = answers[i, 0] + answers[i, 1], answers[i, 2]
        if heard + lacking == 0.0:
            continue  # as most of many arms
        answered += heard
        silent += lacking
        if not x[i]:
            for kind in range(3):
                answers[i, kind] *= MEMORY
    lost = (silent + 0.5) / (answered + silent + 1.0)
    for i in range(x.shape[0]):
        if x[i]:
            among_answers = (answers[i, 0] + 0.5) / (answers[i, 0] + answers[i, 1] + 1.0)
            among_all = (answers[i, 0] + 0.5) / (answers[i, 0] + answers[i, 1] + answers[i, 2] + 1.0)
            if known[i] and min(max(z[i], low), high) != zero:
                odds[0] += math.log(among_all) - math.log(among_answers * (1.0 - lost))
            elif known[i]:
                odds[0] += math.log((1.0 - among_all) * REPORTED_ZERO)
                odds[0] -= math.log((1.0 - among_answers) * (1.0 - lost))
            else:
                odds[0] += math.log((1.0 - among_all) * (1.0 - REPORTED_ZERO)) - math.log(lost)
            for kind in range(3):
                answers[i, kind] *= MEMORY
            answers[i, 2 if not known[i] else 1 if min(max(z[i], low), high) == zero else 0] += 1.0
    odds[0] = min(max(odds[0], -MOST_EVIDENCE), MOST_EVIDENCE)
    return 1.0 / (1.0 + math.exp(-odds[0]))
