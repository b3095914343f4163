"""The paper's claims on the synthetic data, our findings, and whether the claims hold.

All findings are computed from results. Differences are paired: both policies meet the same worlds, rewards and delays.
"""

from spillover.experiments import Results
from spillover.report.claims import Claim
from spillover_studies.synthetic.claims.changes import (
    closely_follows,
    complies_faster,
    discount_alleviates,
    sem_ucb_cannot_adapt,
    smoother,
)
from spillover_studies.synthetic.claims.graph import (
    alleviates_delay,
    better_knowledge,
    convex,
    full_rank,
    identifiable,
    learns_structure,
    rich_data,
)
from spillover_studies.synthetic.claims.regret import (
    base_arms,
    delays_degrade,
    lemma,
    order_of_delay,
    outperforms,
    theorem,
)

PARTS = (
    outperforms,
    complies_faster,
    better_knowledge,
    smoother,
    delays_degrade,
    alleviates_delay,
    discount_alleviates,
    closely_follows,
    sem_ucb_cannot_adapt,
    learns_structure,
    convex,
    rich_data,
    full_rank,
    identifiable,
    base_arms,
    theorem,
    order_of_delay,
    lemma,
)


def all_claims(results: Results) -> list[Claim]:
    """Every claim of the abstract, Sections III to V-A, the conclusion and the appendix on synthetic data, once.

    They are quotations: […] leaves something out, other brackets are ours.
    """
    claims = [part(results) for part in PARTS]
    return [claim._replace(claim=f"“{claim.claim}”") for claim in claims]


__all__ = ["PARTS", "all_claims"]
