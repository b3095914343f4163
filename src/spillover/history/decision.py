"""The next decision of a learner that has learned a history, under constraints, with its reasons."""

from collections.abc import Sequence

from spillover.constraints import Constraint
from spillover.live import Learner
from spillover.reasons import Reasons
from spillover.reasons.health import Pending
from spillover.set_search import EFFORT
from spillover.types import BoolArray


def next_reasons(
    learner: Learner,
    arms: Sequence[str],
    constraints: Sequence[Constraint] = (),
    effort: int = EFFORT,
    observed: BoolArray | None = None,
) -> Reasons:
    """What it chooses next and why; the constraints bind this decision alone, not earlier ones.

    effort: steps after which the search for the best set under constraints ends with the best one so far.
    observed: which arms have outcomes in the history, whether or not the policy remembers them.
    """
    waiting = {played: choice.x for played, choice in learner.waiting.items()}
    pending = Pending(learner.rounds, waiting, timed=False, observed=observed)  # a file has no times of arrival
    bound = learner.under(constraints, arms=arms, effort=effort) if constraints else learner
    return bound.reasons(arms, pending=pending)
