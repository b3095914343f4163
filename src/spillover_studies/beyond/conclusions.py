"""The sentence that each sweep ends with, computed from its numbers."""

import numpy as np

from spillover.metrics import Interval
from spillover.report.claims import format_ci
from spillover.report.tables import paired_ratio
from spillover_studies.beyond.families import OURS, PAPERS
from spillover_studies.beyond.sweeps import (
    ARM_DELAYS,
    CHANGED,
    DENSITY,
    FOR_ANOTHER,
    MISDATED,
    MISTUNED,
    TUNED,
    UNITS,
    Multiple,
    Sweep,
    by_policy,
)

FAR = 4.0  # so many times the delayed oracle's regret is a world in which a policy has failed


def conclusion(sweep: Sweep, found: list[Multiple]) -> str:
    """What a reader should take away; "" where policies that it compares were not run."""
    own = CONCLUSIONS[sweep.name](found)
    return " ".join(part for part in (own, against_rivals(found) if sweep.policies[1:] == PAPERS else "") if part)


def against_rivals(found: list[Multiple]) -> str:
    """In how many settings our policy has less regret than the best of the others, beyond doubt."""
    ours = by_policy(found, OURS)
    clear, settings = 0, 0
    for name, one in ours.items():
        rivals = [others[name] for policy in PAPERS if name in (others := by_policy(found, policy))]
        if rivals:
            best = min(rivals, key=lambda rival: float(rival.ratio.mean))
            settings += 1
            clear += float(paired_ratio(one.record, best.record).high) < 1
    if not settings:
        return ""
    return (
        "Switching-SEM, with the same constants everywhere, has less regret than the best of the other policies in "
        f"{clear} of {settings} settings, by paired 95% intervals."
    )


def mistuned(found: list[Multiple]) -> str:
    """What parameters for another delay cost, at most."""
    costs: list[tuple[Interval, str, str]] = []
    for policy in FOR_ANOTHER:
        for name, one in by_policy(found, policy).items():
            right = by_policy(found, f"ndc-sem-for-{name.removeprefix('D = ')}")
            if name in right and right[name].record.policy != policy:
                costs.append((paired_ratio(one.record, right[name].record), policy.removeprefix("ndc-sem-for-"), name))
    if not costs:
        return ""
    worst, tuned, name = max(costs, key=lambda cost: float(cost[0].mean))
    worse = sum(float(ratio.low) > 1 for ratio, _, _ in costs)
    better = sum(float(ratio.high) < 1 for ratio, _, _ in costs)
    return (
        f"Parameters tuned for another delay give NDC-SEM clearly more regret in {worse} of {len(costs)} cases and "
        f"clearly less in {better}; the worst, those for D = {tuned} at {name}, multiply it by {format_ci(worst, 2)}."
    )


def misdated(found: list[Multiple]) -> str:
    """What dating every outcome 50 rounds back costs, where that is wrong."""
    parts = []
    for policy, wrong in ((OURS, "switching-sem-misdated"), (TUNED, "ndc-sem-misdated")):
        dated, undated = by_policy(found, policy), by_policy(found, wrong)
        ratios = {
            name: paired_ratio(undated[name].record, dated[name].record)
            for name in dated
            if name in undated and name != "D = 50"
        }
        if ratios:
            where = max(ratios, key=lambda name: float(ratios[name].mean))
            label = dated[where].record.label
            parts.append(f"{format_ci(ratios[where], 2)} for {label} (at {where})")
    return f"Doing without dates multiplies the regret by up to {', and by up to '.join(parts)}." if parts else ""


def density(found: list[Multiple]) -> str:
    """How the multiples move from the sparsest to the densest graph, and that a few worlds decide the last one."""
    own = list(by_policy(found, OURS).values())
    parts = [trend(found, "From the fewest to the most edges"), few_worlds(own[-1]) if own else ""]
    return " ".join(part for part in parts if part)


def few_worlds(one: Multiple) -> str:
    """How unequal worlds are: the median world, the worst ones, and whether their graph was learned."""
    own, oracle = (record.regret[:, -1] for record in (one.record, one.reference))
    worst = own > FAR * oracle
    if not worst.any():
        return ""
    error = one.record.graph_error[:, -1]
    return (
        f"With {one.setting.name} the mean is that of a few worlds: {one.record.label} has "
        f"{float(np.median(own / oracle)):.2f} times the delayed oracle's regret in the median world, and more than "
        f"{FAR:g} times in {int(worst.sum())} of {len(own)}. An arm that gave no reward when it was tried has shown "
        "nothing of its effects; Switching-SEM takes them to be small, and may not try it again. The mean squared "
        f"error of its graph after the last round is {float(error[worst].mean()):.3f} in these worlds, "
        f"{float(error[~worst].mean()):.3f} in the others."
    )


def changed(found: list[Multiple]) -> str:
    return trend(found, "From no changing arm to ten")


def trend(found: list[Multiple], start: str) -> str:
    """The multiples in the first and the last setting."""
    parts = []
    for policy in (OURS, TUNED):
        if len(own := list(by_policy(found, policy).values())) > 1:
            first, last = (format_ci(own[k].ratio, 2) for k in (0, -1))
            parts.append(f"from {first} to {last} for {own[0].record.label}")
    return f"{start}, the regret over the delayed oracle's goes {', and '.join(parts)}." if parts else ""


def units(found: list[Multiple]) -> str:
    """How far the regret depends on the units."""
    parts = []
    for policy in (OURS, *PAPERS):
        own = by_policy(found, policy)
        if len(own) > 1:
            means = [float(one.ratio.mean) for one in own.values()]
            parts.append(f"{next(iter(own.values())).record.label} {max(means) / min(means):.2f}")
    if not parts:
        return ""
    factors = ", ".join(parts)
    return f"From one unit to another the regret over the delayed oracle's changes by up to this factor: {factors}."


def arm_delays(found: list[Multiple]) -> str:
    """What waiting for the slowest arm costs."""
    parts = []
    for policy in (OURS, TUNED):
        own = list(by_policy(found, policy).values())
        if len(own) > 1:
            base, worst = own[0], max(own[1:], key=lambda one: float(one.record.regret[:, -1].mean()))
            ratio = format_ci(paired_ratio(worst.record, base.record), 2)
            parts.append(f"{ratio} for {base.record.label} ({worst.setting.name})")
    if not parts:
        return ""
    return (
        f"Waiting for the slowest arm multiplies the regret with {found[0].setting.name} by up to "
        f"{', and by up to '.join(parts)}."
    )


CONCLUSIONS = {
    MISTUNED.name: mistuned,
    MISDATED.name: misdated,
    DENSITY.name: density,
    CHANGED.name: changed,
    UNITS.name: units,
    ARM_DELAYS.name: arm_delays,
}
