"""What is claimed of the policies that are not the paper's, and whether it holds."""

from collections.abc import Iterator

from spillover.experiments import Results
from spillover.metrics import Interval, mean_interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, paired, shown, sign_verdict
from spillover.report.tables import paired_ratio
from spillover.studies.beyond.families import MAIN, OURS, PAPERS, REFERENCE, VARIED, against_the_better, there


def below_one(ratio: Interval) -> str:
    """Whether a ratio is below 1 beyond its interval."""
    if float(ratio.high) < 1:
        return HOLDS
    return FAILS if float(ratio.low) > 1 else OPEN


def least_regret(results: Results) -> Iterator[Claim]:
    for family, records in there(results, MAIN):
        rivals = [r for name, r in records.items() if name not in (OURS, REFERENCE)]
        if OURS in records and rivals:
            differences = {rival.label: paired(rival, records[OURS]) for rival in rivals}
            closest = min(differences, key=lambda label: float(differences[label].mean))
            yield Claim(
                family.title,
                f"{records[OURS].label}, with nothing set, has less regret than all others",
                f"{shown(mean_interval(records[OURS].regret[:, -1]))}; the closest, {closest}, has "
                f"{shown(differences[closest])} more",
                sign_verdict(*differences.values()),
            )


def less_than_tuned(results: Results) -> Iterator[Claim]:
    said = {
        "ndc-sem-pending": "counting pulls in flight, at one setting for all delays, NDC-SEM has less regret than with "
        "the paper's setting for this one",
        "discounted-ts": "discounted TS, with nothing set, has less regret than NDC-SEM with the paper's setting",
    }
    for name, claim in said.items():
        for family, records in there(results, MAIN):
            if name in records and PAPERS[0] in records:
                ratio = paired_ratio(records[name], records[PAPERS[0]])
                yield Claim(family.title, claim, f"ratio {shown(ratio, 2)}", below_one(ratio))


def better_everywhere(results: Results) -> Iterator[Claim]:
    for family, records in there(results, VARIED):
        if (found := against_the_better(records)) is not None:
            yield Claim(
                family.title,
                f"{records[OURS].label} has less regret than the better of NDC-SEM and SEM-UCB",
                f"ratio {shown(found[0], 2)} to {found[1].label}",
                below_one(found[0]),
            )


def beyond_claims(results: Results) -> list[Claim]:
    """What is claimed of the policies that are not the paper's, each with its interval."""
    return [c for part in (least_regret, less_than_tuned, better_everywhere) for c in part(results)]
