"""The page of a simulated outbreak: what the software does and where to put the record. Nothing is judged."""

from collections.abc import Iterator
from html import escape

import numpy as np

from spillover.report.page import Part
from spillover_studies.covid import LABELS, LITERAL, CovidResults
from spillover_studies.covid.plan import RULES, planned_runs
from spillover_studies.covid.record import SOURCE, VARIABLE, registry
from spillover_studies.covid.report import caveats, reading
from spillover_studies.covid.report.cases import recorded_panels
from spillover_studies.covid.report.curves import days_figure
from spillover_studies.covid.report.sections import Draw
from spillover_studies.covid.report.selection import selection_figure
from spillover_studies.covid.scores import forced_choices


def parts(study: CovidResults, draw: Draw) -> Iterator[Part]:
    """(anchor, title, body) of every section."""
    yield "short", "In short", in_short(study)
    yield "reading", "How to read this page", reading.reading(study)
    yield "steps", "What the software does", steps(study, draw)
    yield "provenance", "Data, settings, seeds, versions", caveats.provenance(study)


def in_short(study: CovidResults) -> str:
    """What the page is, and where the record belongs."""
    files = list(registry())
    repository = SOURCE.removeprefix("https://")
    return (
        "<p><b>Simulated outbreak: nothing on this page is about a real epidemic or about the paper's claims.</b> The "
        "record was not available, so the study ran on made-up cases. It shows that the software works, and judges "
        "nothing.</p>"
        f"<p><b>Where to put the record.</b> It has {len(files)} files, {escape(files[0])} to {escape(files[-1])}, "
        f"from the folder {escape(repository)}. Put them into a folder, unchanged, and give it to the command: "
        f"<code>spillover reproduce covid --data FOLDER</code>, or set the variable <code>{VARIABLE}</code> to it. "
        "Each file is checked. The page on the record is then written to another folder, <code>covid</code>, and has "
        "the paper's figures and claims.</p>"
    )


def steps(study: CovidResults, draw: Draw) -> str:
    """Every step of the study in words, and three of its pictures."""
    at = (study.plan.picture, 0)
    x = study.played(LITERAL, "ndc-sem").x[at]
    names = ("ndc-sem", "sem-ucb")
    cells = len(study.plan.discounts) * len(study.plan.explorations)
    words = (
        f"Region-specific cases are drawn and smoothed for {reading.sample_size(study)}, and shifted on day "
        f"{study.about['change']}.",
        f"{len(list(planned_runs()))} combinations of policy, mode, scale and way to learn the graph (of which there "
        f"are {len(RULES)}) are played, all data sets of one in a batch.",
        f"The grid of {cells} cells is searched, on both scales.",
        "The arrays go to <code>cells/</code>, the tables to <code>rewards.csv</code>, <code>regret.csv</code>, "
        "<code>errors.csv</code>, <code>tuning.csv</code> and <code>contributions.csv</code>, where every row says "
        "that it is simulated.",
    )
    pictures = (
        draw(
            "recorded-cases",
            recorded_panels(np.array(study.about["cases"]), study.days, study.regions)[0],
            "Daily new cases of the 21 regions, made up.",
        ),
        draw(
            "selection",
            selection_figure(x, study.regions, forced=forced_choices(x, study.plan.delay)),
            "Regions chosen by NDC-SEM on each day of one run. Lines: end of the initialisation, the change, and the "
            "first day on which an outcome from after the change is known.",
        ),
        draw(
            "cumulative-reward",
            days_figure(
                {name: study.rewards(LITERAL, name)["own"] for name in names},
                labels=LABELS,
                change=study.about["change"],
            ),
            "Estimated cumulative overall reward, each policy by its own final graph; mean and 95% band.",
        ),
    )
    return f"<ol>{''.join(f'<li>{text}</li>' for text in words)}</ol>{''.join(pictures)}"
