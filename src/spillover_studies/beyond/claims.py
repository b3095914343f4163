"""Our claims on the new policies, and whether they hold: first in the paper's setting at D = 50, then elsewhere."""

from collections.abc import Callable
from typing import NamedTuple

from spillover.experiments import Record, Results
from spillover.metrics import Interval
from spillover.report.claims import FAILS, HOLDS, OPEN, Claim, Variant, format_ci, paired_interval, sign_verdict
from spillover.report.tables import paired_ratio
from spillover_studies.beyond.families import (
    MAIN,
    OURS,
    PAPERS,
    REFERENCE,
    VARIED,
    Family,
    against_the_best,
    families_run,
)

PRINTED, TUNED, *_ = PAPERS
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
