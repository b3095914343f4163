"""The Covid-19 report on a small study: it is complete and self-contained; simulated data are marked and not judged."""

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Circle
from matplotlib.text import Text

from spillover import figures
from spillover.figures.flows import Page, curves, distances
from spillover.metrics import Interval
from spillover.study import Request
from spillover_studies.covid import LITERAL, CovidPlan, clustered_interval, plan_for
from spillover_studies.covid.plan import BOUNDED_RULE, PAPER_RULE, planned_runs
from spillover_studies.covid.record import MissingData, simulated_outbreak
from spillover_studies.covid.report import figures as covid
from spillover_studies.covid.report import write_covid_report
from spillover_studies.covid.report.figures import CHOSEN, FORCED, RADIUS, STARTING, frame_of, places
from spillover_studies.covid.report.measures import format_ci, overlaps, recovery
from spillover_studies.covid.report.tables import contribution_table, reward_table
from tests.cli.calls import call, refused
from tests.report.layout import faults

NAMES = tuple(f"R{i:02d}" for i in range(21))
FIGURES = {
    "cumulative-reward", "cumulative-reward-rulers", "error", "expected-cases", "gain-by-shift", "graph", "grid-cases",
    "grid-unit", "lambda-rules", "one-run-reward", "prediction-error", "recorded-cases", "selection",
    "semi-synthetic-regret",
}  # fmt: skip


SMALL = CovidPlan(shifts=(3, 11), seeds=2, discounts=(0.7, 0.85), explorations=(1e-4, 0.1))


@pytest.fixture(scope="module")
def study(small_study):
    return small_study


@pytest.fixture(scope="module")
def page(study, quick_figures):
    return write_covid_report(study.folder)


def test_every_section_and_figure_is_there(page) -> None:
    text = page.read_text()
    anchors = (
        "short", "limits", "reading", "claims", "estimates", "selection", "rewards", "penalty", "regret", "payoff",
        "graph", "data", "tuning", "provenance",
    )  # fmt: skip
    assert tuple(re.findall(r'<section id="([^"]*)"', text)) == anchors
    assert all(f'href="#{anchor}"' in text for anchor in anchors)
    assert {path.stem for path in (page.parent / "figures").iterdir()} == FIGURES
    assert text.count("<img ") == len(FIGURES)
    assert "What a health authority can and cannot learn from this" in text
    for words in ("resampled, not measured", "do not react", "change is artificial", "Correlation is not causation"):
        assert words in text


def test_the_page_is_self_contained(page) -> None:
    """Nothing is loaded from elsewhere, every picture has words, nothing of a template is left."""
    text = page.read_text()
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)
    assert "http" not in re.sub(r'"data:[^"]*"', "", text)
    assert all(alt.strip() for alt in re.findall(r'alt="([^"]*)"', text))
    assert "{{" not in text
    assert not re.search(r"\bnan\b", re.sub(r'"data:[^"]*"', "", text))


@pytest.fixture(scope="module")
def simulated_page(simulated_study, quick_figures):
    return write_covid_report(simulated_study.folder)


def test_simulated_data_are_marked_in_the_title_and_every_caption(simulated_page) -> None:
    text = simulated_page.read_text()
    assert re.search(r"<title>[^<]*[Ss]imulated", text)
    assert re.search(r"<h1>[^<]*[Ss]imulated", text)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", text)
    assert len(captions) == 3
    assert all(caption.startswith("Simulated outbreak, not real data. ") for caption in captions)
    for path in simulated_page.parent.glob("*.csv"):
        assert set(pd.read_csv(path)["source"]) == {"simulated"}


def test_simulated_data_judge_nothing(simulated_page) -> None:
    """No tally, no verdict and no finding: what the software does, and where to put the record."""
    text = re.sub(r'"data:[^"]*"|<style>.*?</style>', "", simulated_page.read_text(), flags=re.S)
    assert tuple(re.findall(r'<section id="([^"]*)"', text)) == ("short", "reading", "steps", "provenance")
    assert not re.search(r"\bhold|not decided|cannot be checked|of \d+ runs|of \d+ shifts|% of the regions", text)
    assert "judges nothing" in text
    for words in ("SPILLOVER_COVID_DATA", "--data FOLDER", "139 files", "dpc-covid19-ita-regioni-20200413.csv"):
        assert words in text
    assert "http" not in text


def test_the_tables_are_the_study(page, study) -> None:
    assert {p.stem for p in page.parent.glob("*.csv")} == {"rewards", "regret", "errors", "tuning", "contributions"}
    frame = pd.read_csv(page.parent / "rewards.csv")
    row = frame.query("mode == 'literal' and policy == 'sem-ucb' and score == 'common' and shift == 11 and seed == 1")
    row = row.query("lambda_rule == 'paper'")
    curve = study.rewards(LITERAL, "sem-ucb")["common"][2, 1]
    assert row["all_days"].item() == pytest.approx(curve[-1])
    assert row["since_change"].item() == pytest.approx(curve[79] - curve[38])
    assert len(pd.read_csv(page.parent / "tuning.csv")) == 2 * 3 * 4


def test_words_are_explained_before_they_are_used(page) -> None:
    """Shift, common graph and scale are defined after the limits and before the claims; no LaTeX labels anywhere."""
    text = re.sub(r'"data:[^"]*"', "", page.read_text())
    assert text.index("<b>Shift.</b>") < text.index('<section id="claims"')
    assert text.index("<b>Common graph") < text.index('<section id="claims"')
    early = text[text.index('<section id="limits"') : text.index('<section id="reading"')]
    assert not re.search(r"common graph|ruler|\[0, 1\]|shift k|A\*", early)
    assert not re.search(r"fig:|SuperArmSelection|EstCollected|\\textbf", text)


def test_contributions_are_ranked(study) -> None:
    table = contribution_table(study)
    assert list(table["place by contribution"]) == list(range(1, 22))
    assert table["contribution"].is_monotonic_decreasing
    assert sorted(table["place by cases"]) == list(range(1, 22))
    assert all(((values >= 0) & (values <= 5)).all() for values in overlaps(study).values())
    assert len(reward_table(study)) == 3 * 5


def test_the_limitations_of_the_graph_have_numbers(page, study) -> None:
    found = recovery()
    assert found.measured < 1e-6
    assert 0.3 < found.resampled[0] < found.resampled[1] < 1
    assert 1.5 < found.masked_rows / found.true_rows < 2.2
    above = study.data["unshifted_specific"] > study.data["unshifted_overall"]
    text = page.read_text()
    assert f"In {above.mean():.0%} of all region-days" in text
    assert f"Lombardia {above[..., study.regions.index('LOM')].mean():.0%}" in text
    rows = [row.sum() > 0.95 - 1e-6 for row in study.star(BOUNDED_RULE).reshape(-1, 21)]
    assert f"{sum(rows) / len(rows):.0%} of the regions in the graph of all days are at the bound" in text
    assert all(f'<td style="text-align:left">{region}</td>' in text for region in study.regions)
    assert "Computing took" in text


def test_a_number_without_spread_has_no_interval() -> None:
    assert format_ci(clustered_interval(np.full((4, 2), 21.74)), 1) == "21.7"
    assert format_ci(clustered_interval(np.ones((1, 2)))) == "1"
    assert format_ci(clustered_interval(np.arange(8.0).reshape(4, 2)), 1).startswith("3.5 [")


def test_recorded_cases_are_ranked_on_the_days_before_the_change(study) -> None:
    """Days 1 to 39 and no later one: cases that explode after the change leave every ranking as it is."""
    later = {name: values.copy() for name, values in study.data.items()}
    later["unshifted_overall"][..., 39:, :] *= np.linspace(1, 1000, 21)
    other = type(study)(folder=study.folder, about=study.about, plan=study.plan, read={"data": (later, {})})
    pd.testing.assert_frame_equal(contribution_table(other), contribution_table(study))
    for label, values in overlaps(study).items():
        np.testing.assert_array_equal(overlaps(other)[label], values)
    row = contribution_table(study).set_index("region").loc[study.about["names"][4]]
    recorded = [study.data["unshifted_overall"][0, 0, day - 1, 4] for day in range(1, 40)]
    assert row["recorded cases a day (mean of 7-day means, days 1–39)"] == pytest.approx(sum(recorded) / 39)


# --- figures ---------------------------------------------------------------------------------------------------------


def drawn(kind: str):
    """Each figure on made-up numbers of the right shape."""
    rng = np.random.default_rng(0)
    curves = {name: np.cumsum(rng.random((4, 3, 80)), axis=-1) for name in ("ndc-sem", "sem-ucb", "sem-ucb-unit")}
    x = rng.random((80, 21)) < 0.2
    days = [date(2020, 7, 31) + timedelta(k) for k in range(80)]
    adjacency = np.where(rng.random((21, 21)) < 0.1, rng.random((21, 21)), 0.0)
    places = (37 + 10 * rng.random(21), 7 + 10 * rng.random(21))
    errors = {name: Interval(*(np.array(v) for v in (m, m - 1, m + 1))) for m, name in ((30.0, "graph"), (7.0, "last"))}
    rules = {rule: {name: rng.random((4, 3)) for name in ("ndc-sem", "sem-ucb")} for rule in ("paper", "squared")}
    makers = {
        "days": lambda: covid.days_figure(curves, change=40),
        "runs": lambda: covid.runs_figure({name: curves[name] for name in ("ndc-sem", "sem-ucb")}, (2, 1)),
        "panels": lambda: covid.days_panels({"one": curves, "two": curves, "three": curves})[0],
        "gain": lambda: covid.gain_figure({"a": rng.normal(size=(20, 3)), "b": rng.normal(size=(20, 3))}, range(1, 21)),
        "selection": lambda: covid.selection_figure(x, NAMES, forced=np.zeros_like(x), best=x),
        "error": lambda: covid.error_figure(errors, ["last"]),
        "prediction": lambda: covid.prediction_panels(
            100 * rng.random((4, 21)),
            100 * rng.random((4, 21)),
            (15, 35, 55, 75),
            NAMES,
            naive=100 * rng.random((4, 21)),
        )[0],
        "recorded": lambda: covid.recorded_panels(1000 * rng.random((80, 21)), days, NAMES)[0],
        "schematic": lambda: covid.schematic_figure(adjacency, *places, NAMES, shades=rng.random(21)),
        "rules": lambda: covid.rules_figure({"one": rules, "two": rules})[0],
    }
    return makers[kind]()


KINDS = ("days", "runs", "panels", "gain", "selection", "error", "prediction", "recorded", "schematic", "rules")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_overlaps_or_leaves_the_page(kind) -> None:
    assert faults(figures.figure_of(drawn(kind))) == []


def test_bands_are_clustered() -> None:
    values = np.random.default_rng(1).random((4, 3, 80))
    ax = covid.days_figure({"ndc-sem": values})
    mean, low, high = clustered_interval(values)
    line = next(line for line in ax.lines if line.get_label() == "ndc-sem")
    np.testing.assert_allclose(np.asarray(line.get_ydata(), float), mean)
    corners = np.asarray(ax.collections[0].get_paths()[0].vertices)
    assert corners[:, 1].min() == pytest.approx(low.min())
    assert corners[:, 1].max() == pytest.approx(high.max())


def test_every_shift_is_drawn_beside_the_median_run() -> None:
    values = np.random.default_rng(1).random((4, 3, 80))
    ax = covid.runs_figure({"ndc-sem": values}, (2, 1))
    *shifts, run = (np.asarray(line.get_ydata(), float) for line in ax.lines if len(np.asarray(line.get_xdata())) == 80)
    np.testing.assert_allclose(shifts, values.mean(axis=1))
    np.testing.assert_array_equal(run, values[2, 1])


def test_what_is_no_choice_is_marked() -> None:
    x, forced = np.zeros((2, 80, 21), np.bool_)
    x[0, 0] = x[21, 3] = x[30, 5] = forced[21, 3] = True
    ax = covid.selection_figure(x, NAMES, forced=forced, best=np.zeros_like(x))
    boxes = {figures_color(c): len(c.get_paths()) for c in ax.collections}
    assert boxes == {STARTING.lower(): 1, FORCED.lower(): 1, CHOSEN.lower(): 1}
    at = sorted(float(np.asarray(line.get_xdata())[0]) for line in ax.lines)
    assert at == [21.5, 39.5, 43.5]  # between the days: the change is the first day of what is new


def figures_color(collection) -> str:
    from matplotlib.colors import to_hex

    return to_hex(collection.get_facecolor()[0])


def test_every_figure_is_narrow_enough_for_a_small_screen(study) -> None:
    """At most 6.2 inches wide with letters of at least 8 points: 7 pixels and more on a screen of 400."""
    for kind in KINDS:
        figure = figures.figure_of(drawn(kind))
        assert figure.get_figwidth() <= 6.2
        small = [
            text.get_text()
            for text in figure.findobj(Text)
            if text.get_text().strip() and float(text.get_fontsize()) < 8
        ]
        assert small == []


def test_the_schematic_points_from_j_to_i() -> None:
    adjacency = np.zeros((21, 21))
    adjacency[4, 7] = 0.5  # region 7 acts on region 4
    latitude, longitude = np.linspace(38, 46, 21), np.linspace(8, 16, 21)
    ax = covid.schematic_figure(adjacency, latitude, longitude, NAMES)
    arrow: Any
    (arrow,) = (p for p in ax.patches if str(p.get_label()).startswith("_A["))
    assert arrow.get_label() == "_A[4,7]"
    centres = [p.center for p in ax.patches if isinstance(p, Circle)]
    start, end = arrow._posA_posB
    assert start == pytest.approx(centres[7])
    assert end == pytest.approx(centres[4])


def test_circles_are_apart_and_north_is_up() -> None:
    place = places(np.array([45.0, 45.1, 38.0, 45.05]), np.array([9.0, 9.1, 13.0, 9.05]))
    apart = np.hypot(*(place[:, None] - place).transpose(2, 0, 1)) + 1e9 * np.eye(4)
    assert apart.min() > 2 * RADIUS
    assert place[2, 1] < place[[0, 1, 3], 1].min()
    assert place[2, 0] > place[[0, 1, 3], 0].max()


def test_arrows_keep_off_the_names_of_other_regions() -> None:
    """The real places of the regions, and the edges of a simulated outbreak."""
    record, adjacency = simulated_outbreak()
    ax = covid.schematic_figure(adjacency, record.latitude, record.longitude, record.regions)
    place = places(record.latitude, record.longitude)
    page = Page(place, np.full(21, RADIUS), (), frame_of(place))
    arrows: list[Any] = [p for p in ax.patches if str(p.get_label()).startswith("_A[")]
    assert len(arrows) == 25
    for arrow in arrows:
        i, j = map(int, re.findall(r"\d+", str(arrow.get_label())))
        bend = np.array([arrow.get_connectionstyle().rad])
        gap = distances(curves(page, (j, i), bend), np.delete(place, [i, j], axis=0))
        assert gap.min() > RADIUS


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: covid.days_figure({}), "curves = {}: must be at least one"),
        (lambda: covid.gain_figure({"a": np.zeros((3, 2))}, (1, 2)), r"shape of gains\['a'\] = \(3, 2\)"),
        (
            lambda: covid.schematic_figure(np.zeros((2, 2)), np.ones(1), np.ones(1), ["a"]),
            r"shape of adjacency = \(2, 2\)",
        ),
        (lambda: covid.recorded_panels(np.zeros((3, 2)), [], ["a", "b"]), r"shape of cases = \(3, 2\)"),
        (lambda: covid.error_figure({}, []), "errors = {}: must be at least one"),
    ],
)
def test_bad_input_is_named(draw, message) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


# --- the command -----------------------------------------------------------------------------------------------------


def nowhere(*given, **extra):
    raise MissingData("139 of 139 files are not in the cache")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No record, no network, a small study, no page."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spillover_studies.covid.covid_italy", nowhere)
    monkeypatch.setattr("spillover_studies.covid.plan_for", lambda request, simulated: SMALL)
    few = [run for run in planned_runs() if run.mode == LITERAL and run.rule == PAPER_RULE]  # the command needs no more
    monkeypatch.setattr("spillover_studies.covid.results.planned_runs", lambda: few)
    return tmp_path


def test_without_the_record_the_command_says_that_it_simulates(offline) -> None:
    result = call("reproduce", "covid", "--no-report")
    assert result.exit_code == 0, result.output
    assert "139 of 139 files are not in the cache" in result.stderr
    assert "SIMULATED" in result.stderr
    assert "SIMULATED" in result.stdout
    assert "set SPILLOVER_COVID_DATA to it" in result.stdout
    content = json.loads(call("reproduce", "covid", "--no-report", "--json").stdout)
    assert (content["experiment"], content["source"], content["results"]) == (
        "covid",
        "simulated",
        "results/covid-simulated",
    )
    assert "gains" not in content  # nothing is judged


def test_a_simulated_study_is_small_unless_more_is_asked_for() -> None:
    request = Request(output=Path("results"))
    assert plan_for(request, simulated=True) == CovidPlan(seeds=2)
    assert plan_for(request, simulated=False) == CovidPlan()
    assert plan_for(replace(request, replications=5), simulated=True) == CovidPlan(seeds=5)


def test_report_knows_a_study_of_covid(offline, monkeypatch) -> None:
    call("reproduce", "covid", "--no-report")
    monkeypatch.setattr("spillover_studies.covid.report.write_covid_report", lambda folder: folder / "report.html")
    assert call("report", "results/covid-simulated").stdout == "wrote results/covid-simulated/report.html\n"


def test_a_simulated_study_never_replaces_one_of_the_record(offline, monkeypatch) -> None:
    record = simulated_outbreak()[0]._replace(source="record")
    monkeypatch.setattr("spillover_studies.covid.covid_italy", lambda *given, **extra: record)
    content = json.loads(call("reproduce", "covid", "--no-report", "--json").stdout)
    assert (content["results"], len(content["gains"])) == ("results/covid", 15)
    kept = {path: path.read_bytes() for path in (offline / "results").rglob("*") if path.is_file()}
    monkeypatch.setattr("spillover_studies.covid.covid_italy", nowhere)
    call("reproduce", "covid", "--no-report")
    assert {path: path.read_bytes() for path in kept} == kept


def test_a_folder_that_this_version_cannot_read_is_not_replaced(offline) -> None:
    path = offline / "results/covid-simulated/study.json"
    path.parent.mkdir(parents=True)
    for text, message in (
        ('{"kind": "covid", "format": 99}', "reads formats up to"),
        ("[1]", "must be a file written by run_study"),
        ("{", "must be a complete JSON file"),
    ):
        path.write_text(text)
        result = call("reproduce", "covid", "--no-report")
        assert result.exit_code == 2
        assert message in result.stderr.splitlines()[-1]
        assert path.read_text() == text


def test_an_interrupted_run_says_what_is_kept(offline, monkeypatch) -> None:
    def stop(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("spillover_studies.covid.results.keep_grids", stop)
        result = call("reproduce", "covid", "--no-report")
    assert result.exit_code == 130
    message = "stopped: 6 of 45 parts are kept in results/covid-simulated; run the same command again to resume"
    assert result.stderr.splitlines()[-1] == f"spillover: {message}"
    assert call("reproduce", "covid", "--no-report").exit_code == 0


def test_data_that_cannot_be_is_refused(offline, monkeypatch) -> None:
    refused(call("reproduce", "synthetic", "--data", "here"), "--data is the Covid-19 record")
    monkeypatch.undo()
    refused(call("reproduce", "covid", "--data", offline / "none"), "none", "must be a folder")
    refused(call("reproduce", "--data", offline / "none"), "none", "must be a folder")
    assert not (offline / "results").exists()  # before the synthetic study
    refused(call("reproduce", "covid", "--replications", "501"), "seeds = 501: must be a whole number from 1 to 500")
