"""The paper's comparison at delay 50: final regret of every policy over the same 100 fresh worlds.

The paper's order is random > CTS, FTRL, CUCB > SEM-UCB > NDC-SEM. Each step is judged by the paired differences.
`ndc-sem` has the parameters that the paper prints for this delay, `ndc-sem-tuned` those that the synthetic study tunes
on other worlds.
"""

from itertools import pairwise

import numpy as np

import spillover as sp
from spillover.policies import POLICIES
from spillover.studies import load_experiment

DELAY = 50
REPLICATIONS = 100
TIERS = (("random",), ("cts", "ftrl", "cucb"), ("sem-ucb",), ("ndc-sem", "ndc-sem-tuned"))


def final_regrets(seed: int) -> dict[str, np.ndarray]:
    """Final regret of all policies, (replications,) each, on identical draws."""
    policies = {name: make() for name, make in POLICIES.items()}
    policies["ndc-sem-tuned"] = load_experiment("synthetic").policies["ndc-sem-tuned"].policy(str(DELAY))
    return {
        name: sp.simulate(policy, sp.SyntheticSEM(), DELAY, replications=REPLICATIONS, seed=seed).final_regret
        for name, policy in policies.items()
    }


def print_order(regret: dict[str, np.ndarray]) -> None:
    for above, below in pairwise(TIERS):
        for worse in above:
            for better in below:
                mean, low, high = sp.metrics.mean_interval(regret[worse] - regret[better])
                share = (regret[better] < regret[worse]).mean()
                verdict = "holds" if low > 0 else "turned round" if high < 0 else "not decided"
                print(
                    f"{worse:8} - {better:8} {mean:7.0f} [{low:6.0f}, {high:6.0f}]  "
                    f"{better} better in {share:4.0%} of the worlds: {verdict}"
                )


def main() -> None:
    regret = final_regrets(seed=0)
    oracle = regret["delayed-oracle"]
    print(f"final pseudo-regret, D = {DELAY}, {REPLICATIONS} fresh worlds, mean with 95% interval")
    for name, values in sorted(regret.items(), key=lambda item: -item[1].mean()):
        mean, low, high = sp.metrics.mean_interval(values)
        print(f"{name:28} {mean:7.0f} [{low:6.0f}, {high:6.0f}]  {mean / oracle.mean():5.1f} x the delayed oracle")
    print("\nthe paper's order, by paired differences")
    print_order(regret)


if __name__ == "__main__":
    main()
