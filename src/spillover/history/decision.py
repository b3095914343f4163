"""The next decision of a learner that has been told a history, within limits, with its reasons."""

import copy
from collections.abc import Sequence
from typing import Any

from spillover.constraints import Constraint, compile_rows
from spillover.exact import EFFORT
from spillover.live import Learner
from spillover.policies.constrained import Constrained
from spillover.reasons import EXPECTED, Reasons
from spillover.reasons.health import Pending
from spillover.types import BoolArray


def next_reasons(
    learner: Learner,
    arms: Sequence[str],
    limits: Sequence[Constraint] = (),
    effort: int = EFFORT,
    heard: BoolArray | None = None,
) -> Reasons:
    """What it chooses next and why; limits bind this decision alone, not what was done before.

    effort: steps after which the search for the best set within the limits ends with the best one so far.
    heard: of which arms outcomes have come, whether or not the policy remembers them.
    """
    waiting = {played: choice.x for played, choice in learner.waiting.items()}
    pending = Pending(learner.rounds, waiting, timed=False, heard=heard)  # a file does not say when outcomes came
    if not limits:
        return learner.reasons(arms, pending=pending)
    inner: Any = learner.policy
    policy = Constrained(policy=inner, constraints=tuple(limits), arms=tuple(arms), effort=effort)
    policy.check(learner.problem)
    bound = copy.copy(learner)
    bound.policy = policy
    rows = compile_rows(tuple(limits), len(arms), learner.problem.budget, tuple(arms))
    return bound.reasons(
        arms,
        pending=pending,
        feasible=lambda x: bool(rows.holds(x)),
        signals=getattr(inner, "signals", lambda state: {})(learner.state),
        quantity=getattr(inner, "quantity", EXPECTED),
    )
