"""The numbers of docs/covid.md are those of the study on the record."""

import os
import re
from pathlib import Path

import pytest

from spillover_studies.covid import CovidPlan, run_study, validation_days
from spillover_studies.covid.numbers import NUMBERS
from spillover_studies.covid.plan import PICTURE_SEED, SEED_ROOM
from spillover_studies.covid.record import covid_italy
from spillover_studies.covid.report.measures import recovery
from tests.record import NEEDS_RECORD

DOCUMENT = Path(__file__).parents[3] / "docs" / "covid.md"
FOLDER = os.environ.get("SPILLOVER_COVID_DATA")


def written() -> str:
    """What the document has between the marks."""
    found = re.search(r"covid findings`[^>]*-->\n(.*?)\n<!-- end -->", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


def test_the_findings_are_in_the_document() -> None:
    assert written().startswith("On the record, 20 shifts × 10 seeds, ")


def test_the_settings_in_the_document_are_the_defaults() -> None:
    text, plan = " ".join(DOCUMENT.read_text(encoding="utf-8").split()), CovidPlan()
    cells = len(plan.discounts) * len(plan.explorations)
    for words in (
        f"**Data sets.** {len(plan.shifts)} shifts k × {plan.seeds} seeds. The number {100 * SEED_ROOM} × base seed + "
        f"{SEED_ROOM} k + s",
        f"NDC-SEM (γ = {plan.discount:g}, ξ = {plan.exploration:g})",
        f"drawn from seed {PICTURE_SEED}",
        f"{cells} × {len(plan.shifts)} learners",
        f"({', '.join(map(str, validation_days()[:2]))}, ..., {validation_days()[-1]})",
    ):
        assert words in text


def test_what_the_data_page_says_of_a_simulated_outbreak() -> None:
    """docs/covid-data.md, of seed 0."""
    text = " ".join((DOCUMENT.parent / "covid-data.md").read_text(encoding="utf-8").split())
    found = recovery((0,))
    assert found.measured < 1e-9
    assert f"the largest error of an entry is {found.resampled[0]:.2f}." in text
    assert f"rows sum to {found.masked_rows:.2f} on average, while the truth is {found.true_rows:.2f}." in text


@pytest.mark.long
@pytest.mark.skipif(not FOLDER, reason=NEEDS_RECORD)
def test_the_findings_in_the_document_are_those_of_the_record(tmp_path) -> None:
    """`make numbers ARGS=docs/covid.md` writes them."""
    assert written() == NUMBERS["findings"](run_study(covid_italy(FOLDER), tmp_path))
