"""Our claims on the new policies, whether they hold, and the sentence that concludes each sweep."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spillover.experiments import Record, Results
from spillover.metrics import Interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, Variant, format_ci, paired_interval, sign_verdict
from spillover.report.tables import paired_ratio
from spillover_studies.beyond.settings import (
    FOR_ANOTHER,
    MAIN,
    OURS,
    PAPERS,
    PRINTED,
    REFERENCE,
    TEXTS,
    TUNED,
    VARIED,
    Family,
    Multiple,
    Sweep,
    against_the_best,
    by_policy,
    families_run,
)

Records = dict[str, Record]
BAR = "Holds if the 95% interval of the paired ratio is below 1; a bar of ours."


class Finding(NamedTuple):
    text: str
    verdict: str


def below_one(ratio: Interval) -> str:
    """Holds if the interval of a ratio is below 1, fails if it is above, else not decided."""
    if float(ratio.high) < 1:
        return HOLDS
    return FAILS if float(ratio.low) > 1 else OPEN


def least_regret(records: Records) -> Finding | None:
    """Our policy against every other one."""
    rivals = [r for name, r in records.items() if name not in (OURS, REFERENCE)]
    if OURS not in records or not rivals:
        return None
    differences = {rival.label: paired_interval(rival, records[OURS]) for rival in rivals}
    closest = min(differences, key=lambda label: float(differences[label].mean))
    text = f"the closest, {closest}, has {format_ci(differences[closest])} more"
    return Finding(text, sign_verdict(*differences.values()))


def against(name: str, rival: str) -> Callable[[Records], Finding | None]:
    """One policy against another."""

    def finding(records: Records) -> Finding | None:
        if name not in records or rival not in records:
            return None
        ratio = paired_ratio(records[name], records[rival])
        return Finding(f"ratio {format_ci(ratio, 2)} to {records[rival].label}", below_one(ratio))

    return finding


def less_than_the_papers(records: Records) -> Finding | None:
    """Our policy against the best of the paper's."""
    if (found := against_the_best(records)) is None:
        return None
    return Finding(f"ratio {format_ci(found[0], 2)} to {found[1].label}", below_one(found[0]))


class Question(NamedTuple):
    """A claim, what decides it in a setting, and the settings."""

    claim: str
    finding: Callable[[Records], Finding | None]
    bar: str
    families: tuple[Family, ...] = MAIN


QUESTIONS = (
    Question(
        "Switching-SEM, without tuning, has less regret than every other policy",
        least_regret,
        "Holds if the 95% intervals of all paired differences are above 0; a bar of ours.",
    ),
    Question(
        "Switching-SEM has less regret than the best of NDC-SEM and SEM-UCB, tuned or not",
        less_than_the_papers,
        f"{BAR} The rival is chosen in hindsight, in its favour.",
        (MAIN[0], *VARIED),
    ),
    Question(
        "Counting pulls in flight, with one setting for all delays, NDC-SEM has less regret than tuned for the delay",
        against("ndc-sem-pending", TUNED),
        BAR,
    ),
    Question(
        "Counting pulls in flight, with one setting for all delays, NDC-SEM has less regret than with the printed "
        "parameters for the delay",
        against("ndc-sem-pending", PRINTED),
        BAR,
    ),
    Question(
        "Discounted TS, without tuning, has less regret than NDC-SEM tuned for the delay",
        against("discounted-ts", TUNED),
        BAR,
    ),
)


def answer(results: Results, question: Question) -> Claim | None:
    """The first setting that was run is the claim's own, the others are variants."""
    found = [
        (family, finding)
        for family, records in families_run(results, question.families)
        if (finding := question.finding(records)) is not None
    ]
    if not found:
        return None
    (own, (text, verdict)), *others = found
    variants = tuple(Variant(family.title, *finding) for family, finding in others)
    return Claim(own.title, question.claim, text, verdict, question.bar, variants)


def beyond_claims(results: Results) -> list[Claim]:
    """All claims on the new policies that the results decide."""
    answers = (answer(results, question) for question in QUESTIONS)
    return [claim for claim in answers if claim is not None]


FAR = 4.0  # so many times the delayed oracle's regret is a world in which a policy has failed


def conclusion(sweep: Sweep, found: list[Multiple]) -> str:
    """Conclude what a reader should take away; "" where policies that it compares were not run."""
    own = CONCLUSIONS[sweep.name](found)
    return " ".join(part for part in (own, against_rivals(found) if sweep.policies[1:] == PAPERS else "") if part)


def against_rivals(found: list[Multiple]) -> str:
    """Count the settings in which our policy has less regret than the best of the others, beyond doubt."""
    ours = by_policy(found, OURS)
    clear, settings = 0, 0
    for name, one in ours.items():
        rivals = [others[name] for policy in PAPERS if name in (others := by_policy(found, policy))]
        if rivals:
            best = min(rivals, key=lambda rival: float(rival.ratio.mean))
            settings += 1
            clear += float(paired_ratio(one.record, best.record).high) < 1
    return TEXTS("conclusions.rivals", clear=clear, settings=settings) if settings else ""


def mistuned(found: list[Multiple]) -> str:
    """Say what parameters for another delay cost, at most."""
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
    cases = {"cases": len(costs), "worse": worse, "better": better}
    return TEXTS("conclusions.mistuned", **cases, tuned=tuned, name=name, worst=worst)


def misdated(found: list[Multiple]) -> str:
    """Say what dating every outcome 50 rounds back costs, where that is wrong."""
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
    return TEXTS("conclusions.misdated", parts=", and by up to ".join(parts)) if parts else ""


def density(found: list[Multiple]) -> str:
    """Say how the multiples move from the sparsest to the densest graph, and that a few worlds decide the last one."""
    own = list(by_policy(found, OURS).values())
    parts = [trend(found, "From the fewest to the most edges"), few_worlds(own[-1]) if own else ""]
    return " ".join(part for part in parts if part)


def few_worlds(one: Multiple) -> str:
    """Say how unequal worlds are: the median world, the worst ones, and whether their graph was learned."""
    own, oracle = (record.regret[:, -1] for record in (one.record, one.reference))
    worst = own > FAR * oracle
    if not worst.any():
        return ""
    error = one.record.graph_error[:, -1]
    return TEXTS(
        "conclusions.few_worlds",
        setting=one.setting.name,
        label=one.record.label,
        median=float(np.median(own / oracle)),
        far=FAR,
        worst=int(worst.sum()),
        worlds=len(own),
        error=float(error[worst].mean()),
        others=float(error[~worst].mean()),
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
    return TEXTS("conclusions.trend", start=start, parts=", and ".join(parts)) if parts else ""


def units(found: list[Multiple]) -> str:
    """Say how far the regret depends on the units."""
    parts = []
    for policy in (OURS, *PAPERS):
        own = by_policy(found, policy)
        if len(own) > 1:
            means = [float(one.ratio.mean) for one in own.values()]
            parts.append(f"{next(iter(own.values())).record.label} {max(means) / min(means):.2f}")
    return TEXTS("conclusions.units", factors=", ".join(parts)) if parts else ""


def arm_delays(found: list[Multiple]) -> str:
    """Say what waiting for the slowest arm costs."""
    parts = []
    for policy in (OURS, TUNED):
        own = list(by_policy(found, policy).values())
        if len(own) > 1:
            base, worst = own[0], max(own[1:], key=lambda one: float(one.record.regret[:, -1].mean()))
            ratio = format_ci(paired_ratio(worst.record, base.record), 2)
            parts.append(f"{ratio} for {base.record.label} ({worst.setting.name})")
    if not parts:
        return ""
    return TEXTS("conclusions.arm_delays", setting=found[0].setting.name, parts=", and by up to ".join(parts))


CONCLUSIONS = {
    "mistuned": mistuned,
    "misdated": misdated,
    "density": density,
    "changed": changed,
    "units": units,
    "arm-delays": arm_delays,
}
