"""The study beyond the paper: a small copy of the shipped file, its page, and ratios that are known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from spillover import figures
from spillover.experiments import parse_experiment, run_experiment
from spillover.metrics import Interval
from spillover.studies import load_experiment, write_report
from spillover_studies.beyond import claims as beyond_claims
from spillover_studies.beyond import settings as beyond
from spillover_studies.beyond.claims import few_worlds
from spillover_studies.beyond.numbers import NUMBERS
from spillover_studies.beyond.settings import (
    FOR_ANOTHER,
    SWEEPS,
    Multiple,
    by_policy,
    multiples,
)
from tests.report.examples import made_up, ratios

NO_INTERVAL = Interval(*[np.array(np.nan)] * 3)


def small():
    """The shipped file with short worlds, few replications and shorter delays under the same names."""
    text = load_experiment("beyond").text
    text = re.sub(r"^(horizon = .*|changes = \[\d.*)\n", "", text, flags=re.MULTILINE)
    worlds = r'kind = "(synthetic|spillover_studies.beyond.variants:SyntheticInUnits)"\n'
    text = re.sub(worlds, r'kind = "\1"\nhorizon = 60\nchanges = [20, 40]\n', text)
    text = text.replace("n_arms = 50", "n_arms = 20").replace("changes = [20, 40]\nchanges = []", "changes = []")
    text = re.sub(r"replications = (\d+)", lambda found: f"replications = {3 if found[1] == '25' else 2}", text)
    text = re.sub(r"(rounds|mean|assumed) = (\d+)", lambda found: f"{found[1]} = {int(found[2]) // 10}", text)
    text = re.sub(r"\[(\d+, )+\d+\]", lambda found: re.sub(r"\d+", lambda d: str(int(d[0]) // 10), found[0]), text)
    text = text.replace("changes = [2, 4]", "changes = [20, 40]")
    return replace(parse_experiment(text), study="beyond")


@pytest.fixture(scope="module")
def results(tmp_path_factory, quick_figures):
    return run_experiment(small(), tmp_path_factory.mktemp("beyond"), progress=False)


@pytest.fixture(scope="module")
def page(results):
    return write_report(results.store.folder)


def test_the_families_and_sweeps_are_those_of_the_shipped_file():
    """Every combination of the file has a name in the report, and is told in words that fit it."""
    experiment = load_experiment("beyond")
    named = {(family.world, family.delay) for family in beyond.MAIN + beyond.VARIED}
    named |= {(setting.world, setting.delay) for sweep in SWEEPS.values() for setting in sweep.settings}
    assert {key[:2] for key in experiment.combinations()} == named
    shown = {*beyond.COMPARED, *(policy for sweep in SWEEPS.values() for policy in sweep.policies)}
    assert {key[2] for key in experiment.combinations()} == shown
    large = experiment.worlds["large"]
    assert (large.n_arms, large.budget, large.edges) == (50, 10, 40)  # type: ignore[attr-defined]


def test_the_settings_of_a_sweep_are_what_their_names_say():
    worlds, delays = load_experiment("beyond").worlds, load_experiment("beyond").delays
    for name in ("edges-0", "edges-4", "edges-16", "edges-32", "edges-45"):
        assert worlds[name].edges == int(name.removeprefix("edges-"))  # type: ignore[attr-defined]
    for setting in SWEEPS["units"].settings:
        unit = float(setting.name.removeprefix("times "))
        assert (worlds[setting.world].unit if setting.world != "all" else 1.0) == unit  # type: ignore[attr-defined]
    for setting in SWEEPS["arm-delays"].settings[1:]:
        assert np.mean([delay.rounds for delay in delays[setting.delay].delays]) == 50  # type: ignore[attr-defined]


def test_parameters_are_those_of_the_paper_and_of_the_synthetic_study():
    beyond_policies, paper = load_experiment("beyond").policies, load_experiment("synthetic").policies
    for delay in ("50", "200", "400"):
        # the unit matters only where the rewards have another one
        assert replace(beyond_policies["ndc-sem"].policy(delay), unit=None) == paper["ndc-sem"].policy(delay)
        for name in ("ndc-sem-tuned", "sem-ucb-tuned"):
            if name in paper:
                assert replace(beyond_policies[name].policy(delay), unit=None) == paper[name].policy(delay)
        right = beyond_policies["ndc-sem-tuned"].policy(delay)
        assert beyond_policies[f"ndc-sem-for-{delay}"].policy(delay) == right
        assert beyond_policies["ndc-sem-misdated"].policy(delay).discount == right.discount
        assert beyond_policies["ndc-sem-misdated"].policy(delay).exploration == right.exploration


@pytest.mark.long
def test_the_page_has_it_all(page):
    text = page.read_text()
    anchors = re.findall(r'<section id="([\w-]+)"', text)
    sections = ["short", "claims", "beyond", "regret", "varied", *(sweep.name for sweep in SWEEPS.values())]
    assert anchors == [*sections, "parameters", "settings"]
    drawn = {"beyond-ratios", "beyond-regret", "beyond-varied", *(f"beyond-{sweep.name}" for sweep in SWEEPS.values())}
    assert {path.stem for path in (page.parent / "figures").iterdir()} == drawn
    for family in beyond.VARIED:
        assert family.title in text
    assert "the paper claims" not in text
    assert not re.findall(r'(?:src|href)="(?!data:|#)', text)


def test_it_says_in_short_what_to_take_away(page):
    section = re.search(r'<section id="short">.*?</section>', page.read_text(), re.DOTALL)
    assert section
    sentences = re.search(r"<p>(.*?)</p>", section[0], re.DOTALL)
    assert sentences
    assert len(re.findall(r"\.(?:\s|$)", sentences[1])) == 3
    assert re.search(r"in \d+ of 22 settings", sentences[1])
    assert re.search(r"\d of 5 claims hold", sentences[1])
    assert section[0].count("<tr>") == 1 + 3


def test_every_sweep_concludes_with_numbers(page):
    for sweep in SWEEPS.values():
        section = re.search(rf'<section id="{sweep.name}">.*?</section>', page.read_text(), re.DOTALL)
        assert section
        said = re.search(r"<b>(.*?)</b>", section[0], re.DOTALL)
        assert said
        assert said[1].endswith(".")
        assert re.search(r"\d", said[1])


def test_every_claim_has_an_interval_and_a_verdict_that_follows_from_it(results):
    claims = beyond_claims.beyond_claims(results)
    assert [len(claim.variants) for claim in claims] == [5, 16, 5, 5, 5]
    for finding, verdict in [(c.finding, c.verdict) for c in claims] + [v[1:3] for c in claims for v in c.variants]:
        assert re.search(r"\d \[.*, .*\]", finding)
        if found := re.search(r"ratio [\d.]+ \[(−?[\d.]+), ([\d.]+)\]", finding):
            low, high = (float(end.replace("−", "-")) for end in found.groups())
            expected = "holds" if high < 1 else "does not hold" if low > 1 else "not decided"
            if min(abs(low - 1), abs(high - 1)) > 0.006:  # not within what was rounded off
                assert verdict == expected


def test_ratios_are_those_of_the_means(results):
    found = {(r.row, r.policy): r for r in beyond.oracle_ratios(results, beyond.MAIN)}
    assert len(found) == 6 * (len(beyond.COMPARED) - 1)
    own, reference = (results.record("all", "200", name).regret[:, -1] for name in ("ndc-sem", "delayed-oracle"))
    ratio = found["all means change, D = 200", "ndc-sem"]
    assert ratio.mean == pytest.approx(own.mean() / reference.mean())
    assert ratio.low < ratio.mean < ratio.high


def test_a_policy_that_knows_the_range_does_not_care_for_the_units(results):
    found = multiples(results, SWEEPS["units"])
    own = [float(one.ratio.mean) for one in by_policy(found, beyond.OURS).values()]
    np.testing.assert_allclose(own, own[0], rtol=1e-6)


def test_the_parameters_for_a_delay_are_right_at_that_delay(results):
    for policy in FOR_ANOTHER:
        delay = policy.removeprefix("ndc-sem-for-")
        same = (results.record("all", delay, name).regret for name in (policy, "ndc-sem-tuned"))
        np.testing.assert_array_equal(*same)


def test_every_number_for_the_documents_is_markdown(results):
    for write in NUMBERS.values():
        text = write(results)
        assert re.search(r"\d", text)
        assert "<" not in text
        assert text == text.strip()


def test_a_mean_that_a_few_worlds_decide_is_said_to_be_one():
    oracle, ours = made_up("delayed-oracle"), made_up("ndc-sem", label="Switching-SEM")
    regret = oracle.regret * np.array([0.5, 0.6, 0.7, 0.8, 0.9, 13.0])[:, None]
    error = np.full_like(regret, 0.02)
    error[-1] = 0.1
    one = Multiple(SWEEPS["density"].settings[-1], ours._replace(regret=regret, graph_error=error), oracle, NO_INTERVAL)
    text = few_worlds(one)
    assert text.startswith("With 45 edges the mean is that of a few worlds: Switching-SEM has 0.75 times")
    assert "more than 4 times in 1 of 6." in text
    assert text.endswith("is 0.100 in these worlds, 0.020 in the others.")
    assert few_worlds(one._replace(record=one.record._replace(regret=regret / 4))) == ""


def test_the_best_of_the_papers_is_the_one_with_the_least_regret():
    good, bad = made_up("ndc-sem"), made_up("sem-ucb")
    assert good.regret[:, -1].mean() < bad.regret[:, -1].mean()
    ours = made_up("cucb")._replace(policy=beyond.OURS, regret=0.5 * good.regret)
    found = beyond.against_the_best({"ndc-sem": good, "sem-ucb": bad, beyond.OURS: ours})
    assert found is not None
    assert found[1] is good
    np.testing.assert_allclose(found[0], 0.5)  # exactly one half in every world: no doubt at all
    assert beyond_claims.below_one(found[0]) == "holds"
    assert beyond.against_the_best({"ndc-sem": good}) is None


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(0.8, 0.99, "holds"), (0.9, 1.1, "not decided"), (1.01, 2.0, "does not hold")]
)
def test_a_ratio_counts_when_its_interval_leaves_out_1(low, high, verdict):
    assert beyond_claims.below_one(Interval(*map(np.array, (1.0, low, high)))) == verdict


def test_a_part_of_the_study_has_its_page_too(tmp_path):
    run_experiment(small().changed(worlds=["none"], policies=["sem-ucb", "delayed-oracle"]), tmp_path, progress=False)
    assert "nothing changes" in write_report(tmp_path).read_text()


def test_the_figure_shows_every_ratio_and_refuses_none_at_all():
    ax = figures.ratios_figure(ratios())
    assert [text.get_text().replace("\n", " ") for text in ax.get_yticklabels()] == list(
        dict.fromkeys(r.row for r in ratios())
    )
    drawn = sorted(float(x) for container in ax.containers for x in container.lines[0].get_xdata())  # type: ignore[attr-defined]
    np.testing.assert_allclose(drawn, sorted(r.mean for r in ratios()))
    with pytest.raises(ValueError, match=r"ratios = .*: must be at least one that is a number above 0"):
        figures.ratios_figure([ratios()[0]._replace(mean=float("nan"))])
