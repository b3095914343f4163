"""Our claims on the new policies, and whether they hold."""

from collections.abc import Iterator

from spillover.experiments import Results
from spillover.metrics import Interval, mean_interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, format_ci, paired_interval, sign_verdict
from spillover.report.tables import paired_ratio
from spillover.studies.beyond.families import MAIN, OURS, PAPERS, REFERENCE, VARIED, against_the_better, families_run


def below_one(ratio: Interval) -> str:
    """Holds if the interval of a ratio is below 1, fails if it is above, else not decided."""
    if float(ratio.high) < 1:
        return HOLDS
    return FAILS if float(ratio.low) > 1 else OPEN


def least_regret(results: Results) -> Iterator[Claim]:
    for family, records in families_run(results, MAIN):
        rivals = [r for name, r in records.items() if name not in (OURS, REFERENCE)]
        if OURS in records and rivals:
            differences = {rival.label: paired_interval(rival, records[OURS]) for rival in rivals}
            closest = min(differences, key=lambda label: float(differences[label].mean))
            yield Claim(
                family.title,
                f"{records[OURS].label}, without tuning, has less regret than all others",
                f"{format_ci(mean_interval(records[OURS].regret[:, -1]))}; the closest, {closest}, has "
                f"{format_ci(differences[closest])} more",
                sign_verdict(*differences.values()),
            )


def less_than_tuned(results: Results) -> Iterator[Claim]:
    claims = {
        "ndc-sem-pending": "counting pulls in flight, with one setting for all delays, NDC-SEM has less regret than "
        "with the paper's setting for this delay",
        "discounted-ts": "discounted TS, without tuning, has less regret than NDC-SEM with the paper's setting",
    }
    for name, claim in claims.items():
        for family, records in families_run(results, MAIN):
            if name in records and PAPERS[0] in records:
                ratio = paired_ratio(records[name], records[PAPERS[0]])
                yield Claim(family.title, claim, f"ratio {format_ci(ratio, 2)}", below_one(ratio))


def better_everywhere(results: Results) -> Iterator[Claim]:
    for family, records in families_run(results, VARIED):
        if (found := against_the_better(records)) is not None:
            yield Claim(
                family.title,
                f"{records[OURS].label} has less regret than the better of NDC-SEM and SEM-UCB",
                f"ratio {format_ci(found[0], 2)} to {found[1].label}",
                below_one(found[0]),
            )


def beyond_claims(results: Results) -> list[Claim]:
    """All claims on the new policies, each with its interval."""
    return [c for part in (least_regret, less_than_tuned, better_everywhere) for c in part(results)]
