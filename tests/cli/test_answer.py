"""The printed answer is true: spill-over, exploration, constraints."""

import json
import re

import numpy as np
import pytest

from spillover.constraints import Costs
from spillover.history.example import example_file
from spillover.reasons import reasons
from spillover.recommendation.result import describe_constraints
from spillover.recommendation.text import main_target
from tests.cli.calls import call, refused
from tests.reasons.examples import made_up


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.csv").write_text(example_file())
    return tmp_path


def printed(*options: object) -> str:
    result = call("next", "h.csv", *options)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ({(1, 0): 0.4}, " to arm 2"),
        ({(1, 0): 0.4, (2, 0): 0.3, (3, 0): 0.05}, ", mostly to arm 2"),
        ({(1, 0): 0.4, (2, 0): 0.3, (3, 0): 0.3}, " to arm 2 and others"),
        # the strongest single path ends at arm 2, but more reaches arm 5 along three of them
        ({(1, 0): 0.4, (2, 0): 0.3, (3, 0): 0.3, (4, 1): 0.9, (4, 2): 0.9, (4, 3): 0.9}, " to arm 5 and others"),
        # what is taken away is no place that 0.3 spills over to
        ({(1, 0): -0.5, (2, 0): 0.4, (3, 0): 0.4}, " to arm 3 and others"),
        ({}, ""),
    ],
)
def test_the_main_target_counts_all_paths(edges, words) -> None:
    adjacency = np.zeros((5, 5))
    for place, weight in edges.items():
        adjacency[place] = weight
    found = reasons(made_up(adjacency, [0.5] * 5, [1, 0, 0, 0, 0]))
    assert main_target(found, found.arms[0]) == words


def test_no_target_is_named_in_an_unknown_graph() -> None:
    found = reasons(made_up(np.full((2, 2), np.nan), [0.5, 0.5], [1, 0]))
    assert main_target(found, found.arms[0]) == ""


NO_INTERVALS = ("--policy", "ndc-sem", "--set", "exploration=1e-6")


def test_the_first_number_is_the_score_where_exploration_is_in_it() -> None:
    content = json.loads(printed("--budget", 2, *NO_INTERVALS, "--json"))["reasons"]
    for options in (("--budget", 2), ("--budget", 2, "--unavailable", "search,radio"), ("--budget", 2, "--explore")):
        words = printed(*options, *NO_INTERVALS)
        explored = "exploration bonus" in words.partition("The first number")[0]
        assert ("The first number is the score: " in words) == explored
        assert (f"The first number is the {content['quantity']}." in words) == (not explored)


@pytest.mark.parametrize("budget", [3, 6])
def test_the_parts_that_are_printed_add_up_to_the_score(budget) -> None:
    words = printed("--budget", budget, *NO_INTERVALS)
    lines = [line for line in words.splitlines() if " by itself" in line]
    assert len(lines) == budget
    for line in lines:
        score, *parts = map(float, re.findall(r"-?\d+\.\d+(?:e-\d+)?", line))
        assert sum(parts) == pytest.approx(score, abs=2e-3)
        assert all(parts)
    explored = any("exploration bonus" in line for line in lines)
    assert ("The first number is the score: " in words) == explored


def test_printed_effects_lie_in_their_intervals_and_add_up() -> None:
    words = printed("--budget", 6)
    titles, *lines = words.splitlines()[2:9]
    assert titles.split() == ["effect", "by", "itself", "spill-over"]
    for line in lines:
        total, low, high, *parts = map(float, re.findall(r"-?\d+\.\d+", line))
        assert low <= total <= high
        assert sum(parts) == pytest.approx(total, abs=(high - low) / 4)
    assert "with 95% credible intervals" in words
    content = json.loads(printed("--budget", 6, "--json"))
    for arm in content["arms"]:
        assert arm["effect"] + arm["spill_over"] == pytest.approx(arm["total"])
        assert arm["total"] + arm["exploration"] == pytest.approx(arm["score"])


def test_under_constraints_the_closest_swap_is_a_feasible_one() -> None:
    free = printed("--budget", 2).partition("Next best: ")[2].partition(",")[0]
    assert free
    bound = printed("--budget", 2, "--unavailable", free)
    assert "Next best" not in bound
    content = json.loads(printed("--budget", 2, "--unavailable", free, "--json"))
    swap = content["reasons"]["swaps"][0]
    (less,) = re.findall(rf"Closest swap of one arm: {swap['in']} for {swap['out']}, ([\d.]+) less\.", bound)
    assert float(less) == pytest.approx(-swap["change"], abs=0.5 * 10.0 ** -len(less.partition(".")[2]))
    everything = ",".join(arm["arm"] for arm in content["reasons"]["arms"])
    rest = everything.split(",")
    only = printed("--budget", 1, "--unavailable", ",".join(rest[1:]))
    assert "swap" not in only.partition("More: ")[0]


def test_ties_are_broken_at_random(folder) -> None:
    (folder / "h.csv").write_text(NUMBERED)
    options = ("--budget", 1, "--policy", "cucb")
    assert re.search(r"^Next best: \d, tied with \d; the tie was broken at random\.$", printed(*options), re.MULTILINE)
    bound = printed(*options, "--unavailable", "3")
    chosen = bound.partition("choose ")[2][0]
    other = {"1": "2", "2": "1"}[chosen]
    assert f"Closest swap of one arm: {other} for {chosen}, a tie, broken at random." in bound


def test_choosing_nothing_has_a_reason() -> None:
    names = "newsletter,posters,radio,search,social,video"
    assert "choose nothing: the constraints allow no arm." in printed("--budget", 2, "--unavailable", names)


def test_all_reasons_name_the_constraints_the_arms_left_out_and_the_policy() -> None:
    best = json.loads(printed("--budget", 1, "--json"))["choose"][0]
    words = printed("--budget", 1, "--unavailable", best, "--explain")
    assert f"Constraint: none of {best}." in words
    assert f"Left out because of the constraints: {best} (score " in words
    assert "switching-sem learned from 38 of 40 rounds with 6 arms." in words


def test_without_y_the_graph_is_not_mentioned(folder) -> None:
    codes = {signal["code"] for signal in json.loads(printed("--budget", 2, "--json"))["reasons"]["health"]}
    assert "graph-identified" in codes
    rows = [line.rpartition(",")[0] for line in example_file().splitlines()]
    (folder / "h.csv").write_text("\n".join(rows))
    for options in ((), ("--unavailable", "radio")):
        without = {s["code"] for s in json.loads(printed("--budget", 2, "--json", *options))["reasons"]["health"]}
        assert without
        assert not {"graph-identified", "graph-not-identified", "arms-together"} & without
        assert "graph" not in printed("--budget", 2, "--explain", *options)


def test_a_file_has_no_delays() -> None:
    for options in ((), ("--unavailable", "radio")):
        health = json.loads(printed("--budget", 2, "--json", *options))["reasons"]["health"]
        assert "changes-seen" in {signal["code"] for signal in health}
        assert not any("utcomes take" in signal["sentence"] for signal in health)


NUMBERED = "round,arm,chosen,z,y\n" + "".join(
    f"{t},{arm},{int(arm == t)},{0.5 if arm == t else ''},{0.5 if arm == t else 0}\n"
    for t in (1, 2, 3)
    for arm in (1, 2, 3)
)


@pytest.mark.parametrize("kind", ['"unavailable"\narms = [2]', '"requires"\narm = 1\nneeds = [2]'])
def test_a_number_in_a_file_of_constraints_is_a_name(kind, folder) -> None:
    (folder / "h.csv").write_text(NUMBERED)
    (folder / "l.toml").write_text(f"[[limits]]\nkind = {kind}\n")
    limits = json.loads(printed("--budget", 2, "--limits", "l.toml", "--json"))["limits"]
    assert limits == ["none of 2" if "unavailable" in kind else "1 only with 2"]
    (folder / "l.toml").write_text(f"[[limits]]\nkind = {kind.replace('2', '0')}\n")
    refused(
        call("next", "h.csv", "--budget", 2, "--limits", "l.toml"), "l.toml:1: ", "'0': must be one of the arms 1, 2"
    )


def test_arms_without_a_cost_are_reported_as_free(folder) -> None:
    options = ("--budget", 2, "--limits", "l.toml")
    (folder / "l.toml").write_text(
        '[[limits]]\nkind = "costs"\nlimit = 10\ncosts = { radio = 1, search = 0, video = 2 }\n'
    )
    (limit,) = json.loads(printed(*options, "--json"))["limits"]
    assert limit.startswith("costs of at most 10, ")
    assert limit.endswith(" spent; no cost given, so free: newsletter, posters, social")
    for more in ((), ("--explain",)):
        assert f"Constraint: {limit}.\n" in printed(*options, *more)
    names = ("newsletter", "posters", "radio", "search", "social", "video")
    everybody = ", ".join(f"{name} = 1" for name in names)
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "costs"\nlimit = 10\ncosts = {{ {everybody} }}\n')
    assert json.loads(printed(*options, "--json"))["limits"] == ["costs of at most 10, 2 spent"]


def test_some_of_many_free_arms_are_listed() -> None:
    arms = [f"arm {k}" for k in range(12)]
    (words,) = describe_constraints([Costs({"arm 0": 1}, limit=2)], ["arm 3"], arms)
    assert words.endswith(", 0 spent; no cost given, so free: " + ", ".join(arms[1:9]) + " and 3 more")


def test_constraints_that_are_not_utf8_are_refused(folder) -> None:
    (folder / "l.toml").write_bytes('label = "Köln"'.encode("latin-1"))
    refused(call("next", "h.csv", "--budget", 2, "--limits", "l.toml"), "l.toml: must be UTF-8 text")


def test_unavailable_is_repeated_and_a_name_may_have_a_comma(folder) -> None:
    (folder / "h.csv").write_text(NUMBERED.replace(",1,1,", ',"a, b",1,').replace(",1,0,", ',"a, b",0,'))
    found = json.loads(printed("--budget", 1, "--unavailable", "a, b", "--unavailable", "3", "--json"))
    assert found["limits"] == ["none of 'a, b', 3"]
    assert found["choose"] == ["2"]


def test_names_with_commas_are_quoted_among_others(folder) -> None:
    names = {"video": "Munich, West", "social": "Oslo; harbour"}
    text = example_file()
    for plain, name in names.items():
        text = text.replace(f",{plain},", f',"{name}",')
    (folder / "h.csv").write_text(text)
    words = printed("--budget", 2)
    ((first, second),) = re.findall(r"choose (.*) and (.*)\.\n", words)
    assert {first, second} == {repr(name) for name in names.values()}
    assert f" behind {second}." in words
    assert f"Chosen: {first}, {second} (2 of 6 arms)." in printed("--budget", 2, "--explain")
    bound = printed("--budget", 1, "--unavailable", "Munich, West")
    assert "Constraint: none of 'Munich, West'." in bound
    assert "Left out because of the constraints: 'Munich, West' (score " in bound
    assert "for 'Oslo; harbour', " in bound
    every = ["newsletter", "posters", "radio", "search", *names.values()]
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "include"\narms = {json.dumps(every)}\n')
    result = call("next", "h.csv", "--budget", 2, "--limits", "l.toml")
    refused(result, "always newsletter, posters, radio, search, 'Munich, West', 'Oslo; harbour'")


def test_nothing_is_learned_from_rounds_without_a_choice(folder) -> None:
    rows = [f"{t},{arm},0,,{0 if t < 4 else ''}" for t in (1, 2, 3, 4) for arm in "ab"]
    (folder / "h.csv").write_text("\n".join(["round,arm,chosen,z,y", *rows]))
    line = "switching-sem learned nothing: none of the 2 arms was chosen in the 3 of 4 rounds with outcomes."
    for options in ((), ("--explain",)):
        words = printed("--budget", 1, *options)
        assert line in words.splitlines()
        assert "learned from" not in words
        assert "graph" not in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "window-cucb", "--set", "window=1"), "the policy has forgotten its outcomes"),
        (("--policy", "super-arm-ucb", "--budget", 3), "in a set that has not been tried yet"),
        (("--policy", "random"), "drawn at random"),
    ],
)
def test_an_observed_arm_is_not_reported_as_new(options, words) -> None:
    short = printed("--budget", 2, *options)
    assert f"  {words}\n" in short
    full = printed("--budget", 2, *options, "--explain")
    assert "The first outcome of" not in full
    assert "never chosen in a round with an outcome" not in full


def test_characters_missing_from_the_font_are_listed_once(folder) -> None:
    (folder / "h.csv").write_text(example_file().replace("video", "日本").replace("radio", "東京"), "utf-8")
    result = call("next", "h.csv", "--budget", 2, "--plot", "p.png")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("spillover: p.png: the font has no ")
    assert all(sign in line for sign in "日本東京")


def test_only_arms_that_would_be_chosen_count_as_left_out(folder) -> None:
    free = json.loads(printed("--budget", 2, "--json"))
    worst = free["reasons"]["arms"][-1]["arm"]
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "include"\narms = ["{worst}"]\n')
    lines = printed("--budget", 2, "--limits", "l.toml").splitlines()
    (line,) = [text for text in lines if text.startswith("Left out")]
    assert line.startswith(f"Left out because of the constraints: {free['choose'][1]} (score ")
    assert line.count("score") == 1


def test_a_set_that_is_not_proved_to_be_optimal_is_reported(folder) -> None:
    generator = np.random.default_rng(0)
    costs, arms = generator.uniform(0.1, 1, (2, 16)).round(3), [f"arm {k}" for k in range(16)]
    rows = [
        f"{t},{arm},{int(k == t)},{costs[:, k].mean() if k == t else ''},{costs[:, k].mean() if k == t else 0}"
        for t in range(16)
        for k, arm in enumerate(arms)
    ]
    (folder / "h.csv").write_text("\n".join(["round,arm,chosen,z,y", *rows]))
    tables = [dict(zip(arms, line.tolist(), strict=True)) for line in costs]
    entries = [", ".join(f'"{arm}" = {cost}' for arm, cost in table.items()) for table in tables]
    (folder / "l.toml").write_text(
        "".join(f'[[limits]]\nkind = "costs"\nlimit = 2.2\ncosts = {{ {entry} }}\n' for entry in entries)
    )
    options = ("--budget", 7, "--limits", "l.toml", "--policy", "ndc-sem")
    hasty, sure = (json.loads(printed(*options, *more, "--json"))["reasons"] for more in (("--effort", 1), ()))
    totals = [sum(arm["score"] for arm in found["arms"] if arm["chosen"]) for found in (hasty, sure)]
    assert (hasty["proved"], sure["proved"], sure["could_gain"]) == (False, True, 0.0)
    assert totals[0] <= totals[1] <= totals[0] + hasty["could_gain"]
    assert hasty["could_gain_share"] == pytest.approx(hasty["could_gain"] / totals[0])
    words = "The set is not proved to be optimal under the constraints: another could score up to "
    for more in ((), ("--explain",)):
        assert words not in printed(*options, *more)
        (line,) = [line for line in printed(*options, *more, "--effort", 1).splitlines() if words in line]
        assert line.endswith("% of the total score). --effort 800000 may settle it.")
    assert json.loads(printed("--budget", 2, "--json"))["reasons"]["proved"] is None


@pytest.mark.parametrize(
    ("effort", "words"), [(0, "effort = 0: must be a whole number from 1 to"), ("much", "Invalid value for '--effort'")]
)
def test_an_invalid_effort_is_refused(effort, words) -> None:
    refused(call("next", "h.csv", "--budget", 2, "--effort", effort), words)


def test_an_effort_without_constraints_is_refused() -> None:
    options = ("--budget", 2, "--effort", 900)
    refused(call("next", "h.csv", *options), "effort = 900: must be left out without --limits or --unavailable")
    assert printed(*options, "--unavailable", "radio")
