"""Detection of changes of the graph from the residuals of y on z."""

from typing import NamedTuple

import numpy as np

from spillover.types import Batch, Finite, Round

# Lower bound on the mean number of arrivals between false alarms.
QUIET = 1e6


class ChangeEvidence(NamedTuple):
    """Evidence of a change since the last one."""

    suspicion: Finite  # (*batch, n): that the residuals of each arm's outcome have grown
    risen: Finite  # (*batch, n, n): that the effect of each arm on each outcome has grown
    fallen: Finite  # (*batch, n, n): or shrunk
    alarms: Round  # (*batch,): how many changes were detected
    since: Round  # (*batch,): the round of play whose outcome revealed the last one; 0 before the first


def empty_change_evidence(n_arms: int, batch: Batch) -> ChangeEvidence:
    square = (*batch, n_arms, n_arms)
    never = np.zeros(batch, np.int64)
    return ChangeEvidence(np.zeros((*batch, n_arms)), np.zeros(square), np.zeros(square), never, never.copy())
