"""The words of an answer are true: of what spills over, of exploration, of limits."""

import json
import re

import numpy as np
import pytest

from spillover.cli.answer import mostly
from spillover.cli.limits import in_words
from spillover.constraints import Costs
from spillover.history.example import example_file
from spillover.reasons import reasons
from tests.cli.calls import call, refused
from tests.reasons.examples import made_up


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.csv").write_text(example_file())
    return tmp_path


def told(*options: object) -> str:
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
def test_whom_an_arm_reaches_counts_all_paths(edges, words) -> None:
    adjacency = np.zeros((5, 5))
    for place, weight in edges.items():
        adjacency[place] = weight
    found = reasons(made_up(adjacency, [0.5] * 5, [1, 0, 0, 0, 0]))
    assert mostly(found, found.arms[0]) == words


def test_of_an_unknown_graph_nobody_is_named() -> None:
    found = reasons(made_up(np.full((2, 2), np.nan), [0.5, 0.5], [1, 0]))
    assert mostly(found, found.arms[0]) == ""


def test_the_first_number_is_the_score_where_exploration_is_in_it() -> None:
    content = json.loads(told("--budget", 2, "--json"))["reasons"]
    for options in (("--budget", 2), ("--budget", 2, "--unavailable", "search,radio")):
        words = told(*options)
        explored = "for what is not sure yet" in words.partition("The first number")[0]
        assert ("The first number is the score: " in words) == explored
        assert (f"The first number is the {content['quantity']}." in words) == (not explored)


@pytest.mark.parametrize(
    "options", [("--budget", 6), ("--budget", 3, "--policy", "ndc-sem", "--set", "exploration=1e-6")]
)
def test_the_parts_that_are_printed_add_up_to_the_score(options) -> None:
    words = told(*options)
    lines = [line for line in words.splitlines() if " by itself" in line]
    assert len(lines) == options[1]
    for line in lines:
        score, *parts = map(float, re.findall(r"-?\d+\.\d+(?:e-\d+)?", line))
        assert sum(parts) == pytest.approx(score, abs=2e-3)
        assert all(parts)
    explored = any("for what is not sure yet" in line for line in lines)
    assert ("The first number is the score: " in words) == explored


def test_within_limits_the_closest_swap_is_one_that_they_allow() -> None:
    free = told("--budget", 2).partition("Next best: ")[2].partition(",")[0]
    assert free
    bound = told("--budget", 2, "--unavailable", free)
    assert "Next best" not in bound
    content = json.loads(told("--budget", 2, "--unavailable", free, "--json"))
    swap = content["reasons"]["swaps"][0]
    assert f"Closest swap of one arm: {swap['in']} for {swap['out']}, {-swap['change']:.3f} less." in bound
    everything = ",".join(arm["arm"] for arm in content["reasons"]["arms"])
    rest = everything.split(",")
    only = told("--budget", 1, "--unavailable", ",".join(rest[1:]))
    assert "swap" not in only.partition("More: ")[0]


def test_of_arms_that_are_as_good_chance_decides(folder) -> None:
    (folder / "h.csv").write_text(NUMBERED)
    options = ("--budget", 1, "--policy", "cucb")
    assert re.search(r"^Next best: \d, as good as \d; chance decided\.$", told(*options), re.MULTILINE)
    bound = told(*options, "--unavailable", "3")
    chosen = bound.partition("choose ")[2][0]
    other = {"1": "2", "2": "1"}[chosen]
    assert f"Closest swap of one arm: {other} for {chosen}, as good; chance decided." in bound


def test_nothing_to_choose_has_its_reason() -> None:
    names = "newsletter,posters,radio,search,social,video"
    assert "choose nothing: the limits leave no arm." in told("--budget", 2, "--unavailable", names)


def test_the_full_reasons_name_the_limits_what_they_left_out_and_the_policy() -> None:
    best = json.loads(told("--budget", 1, "--json"))["choose"][0]
    words = told("--budget", 1, "--unavailable", best, "--explain")
    assert f"Limit: none of {best}." in words
    assert f"Left out by the limits: {best}, with " in words
    assert "by switching-sem." in words


def test_of_a_file_without_y_nothing_is_said_of_the_graph(folder) -> None:
    codes = {signal["code"] for signal in json.loads(told("--budget", 2, "--json"))["reasons"]["health"]}
    assert "graph-identified" in codes
    rows = [line.rpartition(",")[0] for line in example_file().splitlines()]
    (folder / "h.csv").write_text("\n".join(rows))
    for options in ((), ("--unavailable", "radio")):
        without = {s["code"] for s in json.loads(told("--budget", 2, "--json", *options))["reasons"]["health"]}
        assert without
        assert not {"graph-identified", "graph-not-identified", "arms-together"} & without
        assert "graph" not in told("--budget", 2, "--explain", *options)


def test_a_file_does_not_say_how_long_outcomes_take() -> None:
    for options in ((), ("--unavailable", "radio")):
        health = json.loads(told("--budget", 2, "--json", *options))["reasons"]["health"]
        assert "changes-seen" in {signal["code"] for signal in health}
        assert not any("utcomes take" in signal["sentence"] for signal in health)


NUMBERED = "round,arm,chosen,z,y\n" + "".join(
    f"{t},{arm},{int(arm == t)},{0.5 if arm == t else ''},{0.5 if arm == t else 0}\n"
    for t in (1, 2, 3)
    for arm in (1, 2, 3)
)


@pytest.mark.parametrize("kind", ['"unavailable"\narms = [2]', '"requires"\narm = 1\nneeds = [2]'])
def test_a_number_in_a_file_of_limits_is_a_name(kind, folder) -> None:
    (folder / "h.csv").write_text(NUMBERED)
    (folder / "l.toml").write_text(f"[[limits]]\nkind = {kind}\n")
    limits = json.loads(told("--budget", 2, "--limits", "l.toml", "--json"))["limits"]
    assert limits == ["none of 2" if "unavailable" in kind else "1 only with 2"]
    (folder / "l.toml").write_text(f"[[limits]]\nkind = {kind.replace('2', '0')}\n")
    refused(
        call("next", "h.csv", "--budget", 2, "--limits", "l.toml"), "l.toml:1: ", "'0': must be one of the arms 1, 2"
    )


def test_arms_without_a_cost_are_said_to_be_free(folder) -> None:
    options = ("--budget", 2, "--limits", "l.toml")
    (folder / "l.toml").write_text(
        '[[limits]]\nkind = "costs"\nlimit = 10\ncosts = { radio = 1, search = 0, video = 2 }\n'
    )
    (limit,) = json.loads(told(*options, "--json"))["limits"]
    assert limit.startswith("costs of at most 10, ")
    assert limit.endswith(" spent; free, as no cost is given: newsletter, posters, social")
    for more in ((), ("--explain",)):
        assert f"Limit: {limit}.\n" in told(*options, *more)
    names = ("newsletter", "posters", "radio", "search", "social", "video")
    everybody = ", ".join(f"{name} = 1" for name in names)
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "costs"\nlimit = 10\ncosts = {{ {everybody} }}\n')
    assert json.loads(told(*options, "--json"))["limits"] == ["costs of at most 10, 2 spent"]


def test_of_many_free_arms_some_are_named() -> None:
    arms = [f"arm {k}" for k in range(12)]
    (words,) = in_words([Costs({"arm 0": 1}, limit=2)], ["arm 3"], arms)
    assert words.endswith(", 0 spent; free, as no cost is given: " + ", ".join(arms[1:9]) + " and 3 more")


def test_limits_that_are_not_utf8_are_named(folder) -> None:
    (folder / "l.toml").write_bytes('label = "Köln"'.encode("latin-1"))
    refused(call("next", "h.csv", "--budget", 2, "--limits", "l.toml"), "l.toml: must be text in UTF-8")


def test_unavailable_is_repeated_and_a_name_may_have_a_comma(folder) -> None:
    (folder / "h.csv").write_text(NUMBERED.replace(",1,1,", ',"a, b",1,').replace(",1,0,", ',"a, b",0,'))
    found = json.loads(told("--budget", 1, "--unavailable", "a, b", "--unavailable", "3", "--json"))
    assert found["limits"] == ["none of 'a, b', 3"]
    assert found["choose"] == ["2"]


def test_names_with_commas_are_quoted_among_others(folder) -> None:
    names = {"video": "Munich, West", "social": "Oslo; harbour"}
    text = example_file()
    for plain, name in names.items():
        text = text.replace(f",{plain},", f',"{name}",')
    (folder / "h.csv").write_text(text)
    words = told("--budget", 2)
    ((first, second),) = re.findall(r"choose (.*) and (.*)\.\n", words)
    assert {first, second} == {repr(name) for name in names.values()}
    assert f" behind {second}." in words
    assert f"Chosen: {first}, {second} (2 of 6 arms)." in told("--budget", 2, "--explain")
    bound = told("--budget", 1, "--unavailable", "Munich, West")
    assert "Limit: none of 'Munich, West'." in bound
    assert "Left out by the limits: 'Munich, West', with " in bound
    assert "for 'Oslo; harbour', " in bound
    every = ["newsletter", "posters", "radio", "search", *names.values()]
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "include"\narms = {json.dumps(every)}\n')
    result = call("next", "h.csv", "--budget", 2, "--limits", "l.toml")
    refused(result, "always newsletter, posters, radio, search, 'Munich, West', 'Oslo; harbour'")


def test_rounds_in_which_nothing_was_chosen_teach_nothing(folder) -> None:
    rows = [f"{t},{arm},0,,{0 if t < 4 else ''}" for t in (1, 2, 3, 4) for arm in "ab"]
    (folder / "h.csv").write_text("\n".join(["round,arm,chosen,z,y", *rows]))
    line = "Learned of no arm: none of the 2 was chosen in the 3 of 4 rounds with outcomes, by switching-sem."
    for options in ((), ("--explain",)):
        words = told("--budget", 1, *options)
        assert line in words.splitlines()
        assert "Learned from" not in words
        assert "graph" not in words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--policy", "window-cucb", "--set", "window=1"), "nothing is remembered of it"),
        (("--policy", "super-arm-ucb", "--budget", 3), "in a set that was not tried yet"),
        (("--policy", "random"), "drawn by chance"),
    ],
)
def test_an_arm_that_was_heard_of_is_not_said_to_be_new(options, words) -> None:
    short = told("--budget", 2, *options)
    assert f"  {words}\n" in short
    full = told("--budget", 2, *options, "--explain")
    assert "The first outcome of" not in full
    assert "no outcome yet" not in full


def test_signs_that_the_font_lacks_are_named_once(folder) -> None:
    (folder / "h.csv").write_text(example_file().replace("video", "日本").replace("radio", "東京"), "utf-8")
    result = call("next", "h.csv", "--budget", 2, "--plot", "p.png")
    assert result.exit_code == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("spillover: p.png: the font of pictures has no ")
    assert all(sign in line for sign in "日本東京")


def test_left_out_by_limits_is_only_what_would_be_chosen_without_them(folder) -> None:
    free = json.loads(told("--budget", 2, "--json"))
    worst = free["reasons"]["arms"][-1]["arm"]
    (folder / "l.toml").write_text(f'[[limits]]\nkind = "include"\narms = ["{worst}"]\n')
    (line,) = [text for text in told("--budget", 2, "--limits", "l.toml").splitlines() if text.startswith("Left out")]
    assert line.startswith(f"Left out by the limits: {free['choose'][1]}, with ")
    assert ";" not in line


def test_a_set_that_is_not_proved_to_be_the_best_is_said_to_be_so(folder) -> None:
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
    hasty, sure = (json.loads(told(*options, *more, "--json"))["reasons"] for more in (("--effort", 1), ()))
    totals = [sum(arm["score"] for arm in found["arms"] if arm["chosen"]) for found in (hasty, sure)]
    assert (hasty["proved"], sure["proved"], sure["could_gain"]) == (False, True, 0.0)
    assert totals[0] <= totals[1] <= totals[0] + hasty["could_gain"]
    assert hasty["could_gain_share"] == pytest.approx(hasty["could_gain"] / totals[0])
    words = "The set is not proved to be the best within the limits: another could score up to "
    for more in ((), ("--explain",)):
        assert words not in told(*options, *more)
        (line,) = [line for line in told(*options, *more, "--effort", 1).splitlines() if words in line]
        assert line.endswith("% of the total score). --effort 800000 may settle it.")
    assert json.loads(told("--budget", 2, "--json"))["reasons"]["proved"] is None


@pytest.mark.parametrize(
    ("effort", "words"), [(0, "effort = 0: must be a whole number from 1 to"), ("much", "Invalid value for '--effort'")]
)
def test_an_effort_that_is_none_is_refused(effort, words) -> None:
    refused(call("next", "h.csv", "--budget", 2, "--effort", effort), words)


def test_an_effort_without_limits_is_refused() -> None:
    options = ("--budget", 2, "--effort", 900)
    refused(call("next", "h.csv", *options), "effort = 900: must be left out without --limits or --unavailable")
    assert told(*options, "--unavailable", "radio")
