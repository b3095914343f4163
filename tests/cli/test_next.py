"""`spillover next`: a valid file gives a decision, an invalid one a clear error."""

import errno
import gzip
import itertools
import json
import re

import numpy as np
import pytest

from spillover.history.example import example_file
from spillover.kernels import silence
from spillover.recommendation.decide import usable_names
from tests.cli.calls import call, outside

HEADER = "round,arm,chosen,z,y"
SMALL = """round,arm,chosen,z,y
1,a,1,0.5,0.5
1,b,0,,0.1
2,a,0,,0.2
2,b,1,0.4,0.4
3,a,1,,
3,b,0,,
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder, text, name="h.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def answer(*arguments):
    """What a file gives, as JSON; nothing on stderr, but that something is compiled that was not needed before."""
    with silence():
        result = call("next", *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return json.loads(result.stdout)


def refused(folder, text, *parts, options=("--budget", 1), name="h.csv"):
    """Lines on stderr that start with the command's name, exit code 2, nothing on stdout; each part is in one."""
    result = call("next", written(folder, text, name), *options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert all(line.startswith("spillover: ") for line in lines)
    for part in parts:
        assert any(part in line for line in lines), result.stderr
    return lines


def changed(old, new, text=SMALL):
    assert old in text
    return text.replace(old, new)


def test_a_file_gives_a_decision_of_at_most_the_budget(folder) -> None:
    found = answer(written(folder, SMALL), "--budget", 1)
    assert found["round"] == "4"
    assert found["pending"] == ["3"]
    assert len(found["choose"]) == 1
    assert found["notes"] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (changed("1,b,0,,0.1", "1,b,0,0.7,0.1"), ["h.csv:3: z = 0.7 for an arm that was not chosen: must be empty"]),
        (SMALL + "1,b,0,,0.1\n", ["h.csv:8: round 1, arm 'b': appears more than once: must have one row"]),
        (changed("2,a,0,,0.2\n", ""), ["h.csv: round 2 has no row for 'a': must have one for each of the 2 arms"]),
        (changed("1,a,1,0.5", "1,a,1,lots"), ["h.csv:2: z = 'lots': must be a finite number, or empty"]),
        (changed("0.4,0.4", "0.4,nan"), ["h.csv:5: y = 'nan': must be a finite number, or empty"]),
        (changed("0.4,0.4", "inf,0.4"), ["h.csv:5: z = 'inf': must be a finite number"]),
        (changed("2,b,1", "2,b,maybe"), ["h.csv:5: chosen = 'maybe': must be 1 or 0, yes or no, true or false"]),
        (changed("2,b,1", "2,b,"), ["h.csv:5: chosen is empty: must be 1 or 0"]),
        (changed("2,b,1", "2,,1"), ["h.csv:5: arm is empty: must be a name"]),
        (changed("2,b,1", "31.12.2025,b,1"), ["h.csv:5: round = '31.12.2025': must be a whole number, or a date"]),
        (changed("2,b,1", ",b,1"), ["h.csv:5: round is empty: must be a whole number, or a date"]),
        (changed("2,b,1", "2026-01-01,b,1"), ["h.csv: rounds are numbers and dates", "must be of one kind"]),
        (changed("0.4,0.4", "1.4,0.4"), ["h.csv:5: z = 1.4: must be from 0 to 1", "--range LOW HIGH"]),
        (changed("0.4,0.4", "0.4,1e80"), ["h.csv:5: y = 1e+80: must be from -1e+40 to 1e+40"]),
        (changed("2,b,1,0.4,0.4", "2,b,1,0.4"), ["h.csv:5: has 4 values: must have 5, one for each column"]),
        (changed(HEADER, "round,arm,chosen,z,y,y"), ["column 'y' appears 2 times: must appear once"]),
        (changed(HEADER, "round,arm,chozen,z,y"), ["h.csv: no column 'chosen'", "did you mean chozen?"]),
        (changed(HEADER, "round,arm,chosen,z,overall"), ["no column 'y'", "--columns y=overall", "--columns y="]),
        ("", ["h.csv: is empty: must have a line of column names"]),
        ("\n\n", ["h.csv: is empty: must have a line of column names"]),
        (HEADER + "\n", ["h.csv: has column names but no rows"]),
        (HEADER, ["h.csv: has column names but no rows"]),
        (b"PK\x03\x04rest", ["h.csv: is a spreadsheet, which cannot be read: save it as CSV"]),
        (b"\xd0\xcf\x11\xe0rest", ["h.csv: is a spreadsheet, which cannot be read: save it as CSV"]),
        (SMALL.encode("utf-16"), ["h.csv: is UTF-16, which cannot be read: save it as CSV (in UTF-8)"]),
        (SMALL.replace(",b,", ",bø,").encode("latin-1"), ["h.csv:3: must be UTF-8 text"]),
        (b"round,\0arm", ["h.csv: is not text: must be CSV"]),
        (b"PAR1 and then nothing", ["h.csv: must be a complete Parquet file"]),
    ],
)
def test_problems_of_a_file_are_reported_with_their_lines(text, parts, folder) -> None:
    refused(folder, text, *parts)


def test_all_problems_are_reported_at_once_and_counted(folder) -> None:
    text = changed("1,a,1,0.5", "1,a,1,lots")
    text = changed("1,b,0,,0.1", "1,b,0,0.7,0.1", text)
    lines = refused(folder, changed("2,b,1", "2,b,maybe", text), ":2: z = 'lots'", ":3: z = 0.7", ":5: chosen")
    assert lines[-1] == "spillover: h.csv: 3 problems; no decision was made"
    assert len(lines) == 4


def test_problems_of_a_kind_are_one_line_with_their_number_and_the_first_places(folder) -> None:
    rows = "".join(f"{t},a,1,much,0\n" for t in range(1, 51))
    first, last = refused(folder, f"{HEADER}\n{rows}", ":2: z = 'much': must be a finite number")
    assert first.endswith(" (50 like this: lines 2, 3, 4, 5, 6, ...)")
    assert last.endswith("50 problems; no decision was made")


def test_line_numbers_count_blank_and_quoted_lines(folder) -> None:
    text = f'{HEADER}\n\n"1","a, b",1,0.5,0.5\n,,,,\n\n1,b,0\n2,"a, b",1,no,\n'
    refused(folder, text, "h.csv:7: z = 'no'", "h.csv:6: has 3 values")


def test_a_missing_file_and_a_folder(folder) -> None:
    result = call("next", "none.csv", "--budget", 1)
    assert (result.exit_code, result.stderr) == (2, "spillover: none.csv: No such file or directory\n")
    result = call("next", folder, "--budget", 1)
    assert (result.exit_code, result.stderr) == (
        2,
        f"spillover: {folder}: is a folder: must be a CSV, Parquet or Excel file\n",
    )


def test_a_file_that_may_not_be_read(folder, monkeypatch) -> None:
    def forbidden(path, *mode):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    name = written(folder, SMALL)
    monkeypatch.setattr("pathlib.Path.open", forbidden)  # not by chmod: root may read everything
    result = call("next", name, "--budget", 1)
    assert (result.exit_code, result.stderr) == (2, "spillover: h.csv: Permission denied\n")


def test_a_spreadsheet_by_its_name(folder) -> None:
    refused(folder, "anything", "h.xlsx: is a spreadsheet, which cannot be read: save it as CSV", name="h.xlsx")


def test_a_packed_file_that_was_cut_off(folder) -> None:
    packed = gzip.compress(example_file().encode())
    refused(folder, packed[: len(packed) // 2], "h.csv.gz: must be a complete gzip file", name="h.csv.gz")
    refused(folder, packed, "h.csv: is compressed with gzip: its name must end in .csv.gz")


def test_gaps_more_than_the_budget_and_parts_of_outcomes_are_noted(folder) -> None:
    text = SMALL + "7,a,1,0.5,\n7,b,1,0.5,0.5\n"
    found = answer(written(folder, text), "--budget", 1)
    gap, partly, over = found["notes"]
    assert gap.startswith("a gap between the rounds, from 3 to 7, where a step of 1 is usual")
    assert partly == "rounds with missing values count as pending: 7 (1 of 4 values missing)"
    assert over.startswith("one round chose more than 1, the most to choose now (7, with 2)")
    assert found["pending"] == ["3", "7"]


def test_sentences_say_how_many_to_choose_not_a_budget_which_reads_as_money(folder) -> None:
    name = written(folder, SMALL + "7,a,1,0.5,\n7,b,1,0.5,0.5\n")
    (folder / "limits.toml").write_text('[[limits]]\nkind = "include"\narms = ["a", "b"]\n')
    for arguments in (("next", name, "--budget", 1, "--explain"), ("evaluate", name, "--budget", 1), ("check", name)):
        assert "budget" not in call(*arguments).stdout.replace("--budget", "")
    both = call("next", name, "--budget", 1, "--limits", "limits.toml").stderr
    assert "choose at most 1 of the 2 arms; always a, b" in both


def test_without_y_every_arm_counts_for_itself(folder) -> None:
    text = "round,arm,chosen,z\n1,a,1,0.5\n1,b,0,\n2,a,0,\n2,b,1,0.9\n"
    found = answer(written(folder, text), "--budget", 1, "--policy", "ndc-sem")
    assert found["choose"] == ["b"]
    assert found["notes"] == ["no column y: spill-over cannot be learned, so every arm counts for itself alone"]


def test_unused_columns_are_noted(folder) -> None:
    text = "round,arm,chosen,z,y,comment\n" + "".join(f"{line},fine\n" for line in SMALL.splitlines()[1:])
    assert answer(written(folder, text), "--budget", 1)["notes"] == ["columns not used: comment"]


def test_columns_may_have_other_names(folder) -> None:
    text = changed(HEADER, "Day,REGION,chosen,z,cases")
    options = ("--budget", 1, "--columns", "round=day,arm=region,y=cases")
    assert answer(written(folder, text), *options)["choose"] == answer(written(folder, SMALL), "--budget", 1)["choose"]
    refused(folder, text, "columns = 'rund=day': must be pairs", "mean round?", options=("--columns", "rund=day"))
    refused(folder, text, "no column 'dya'", "did you mean Day?", options=("--columns", "round=dya,arm=region,y=cases"))


def test_a_declared_range_is_enforced(folder) -> None:
    text = changed("0.4,0.4", "140,0.4")
    assert answer(written(folder, text), "--budget", 1, "--range", 0, 200)["choose"]
    refused(folder, text, "z = 140: must be from 0 to 100", options=("--budget", 1, "--range", 0, 100))
    refused(folder, text, "range = (5.0, 1.0): must be a pair (low, high)", options=("--budget", 1, "--range", 5, 1))
    refused(folder, SMALL, "y = 0.5: must be from 0 to 0.3", options=("--budget", 1, "--overall-range", 0, 0.3))


def test_a_budget_is_asked_for_and_checked(folder) -> None:
    refused(
        folder,
        SMALL,
        "budget is missing: say how many of the 2 arms to choose at most",
        "so far 1 per round",
        options=(),
    )
    refused(folder, SMALL, "budget = 3: must be at most 2", options=("--budget", 3))
    refused(folder, SMALL, "budget = 0: must be a whole number from 1 on", options=("--budget", 0))


SILENT = """import spillover as sp

class Silent(sp.NDCSEM):
    @property
    def traits(self):
        return super().traits._replace(explains=False)
"""


def test_policies_and_their_parameters(folder) -> None:
    options = ("--budget", 1, "--policy", "ndc-sem", "--set")
    refused(folder, SMALL, "discont must be one of", "did you mean discount?", options=(*options, "discont=1"))
    refused(folder, SMALL, "discount = 2: must be a number strictly between", options=(*options, "discount=2"))
    refused(folder, SMALL, "policy = 'oracle': needs the true world", options=("--policy", "oracle"))
    refused(folder, SMALL, "policy = 'ftrl': needs the probabilities of past decisions", options=("--policy", "ftrl"))
    refused(folder, SMALL, "did you mean ndc-sem?", options=("--policy", "ndcsem"))
    (folder / "silent_policy.py").write_text(SILENT)
    refused(folder, SMALL, "must explain its decisions", options=("--policy", "silent_policy:Silent"))
    knows_graph = ("--budget", 1, "--policy", "cucb", "--set", "knows_graph=true")
    refused(folder, SMALL, "policy = 'cucb': needs the true graph", options=knows_graph)
    assert answer(written(folder, SMALL), *knows_graph[:-1], "knows_graph=false")["choose"]
    found = answer(written(folder, SMALL), *options, "discount=0.9", "--set", "graph=self-tuned")
    assert found["policy"] == "ndc-sem"
    found = answer(written(folder, SMALL), *options, "graph.sparsity=0.1", "--set", "graph.signed=true")
    assert found["policy"] == "ndc-sem"


@pytest.mark.parametrize("policy", usable_names())
def test_a_policy_that_needs_the_range_of_y_asks_for_it(policy, folder) -> None:
    options: tuple[object, ...] = ("--budget", 1, "--policy", policy)
    if policy == "cts":
        lines = refused(folder, SMALL, "policy = 'cts': needs the range of y from the start", options=options)
        assert lines[-1].endswith("must be given with --overall-range LOW HIGH")
        options += ("--overall-range", 0, 1)
    assert answer(written(folder, SMALL), *options)["choose"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_headings_that_do_not_match_are_split_by_the_separator_that_fits(separator, folder) -> None:
    text = separator.join(["Datum", "Kanal", "Gewählt", "Wert"]) + "\n"
    lines = refused(folder, text, "no column 'arm'", "there are: 'Datum', 'Kanal', 'Gewählt', 'Wert'")
    assert not any("did you mean" in line for line in lines)


def test_decimal_commas_and_points_in_one_column_are_refused(folder) -> None:
    said = "h.csv:2: z = '0,5': must be a finite number with a decimal point, as other cells have"
    refused(folder, changed("1,a,1,0.5,0.5", '1,a,1,"0,5",much'), said, "h.csv:2: y = 'much': must be")
    refused(folder, changed("0.4,0.4", "0,4;0,4,5").replace(",", ";"), "h.csv:5: ")


SPELLINGS = {
    "semicolons": lambda text: text.replace(",", ";"),
    "semicolons and decimal commas": lambda text: text.replace(",", ";").replace(".", ","),
    "tabs": lambda text: text.replace(",", "\t"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "line ends of Windows": lambda text: text.replace("\n", "\r\n"),
    "a separator declared in the first line": lambda text: "sep=;\n" + text.replace(",", ";"),
    "spaces": lambda text: text.replace(",", " , "),
    "capitals": lambda text: text.replace(HEADER, "Round,ARM,Chosen,Z,Y"),
    "blank lines": lambda text: text.replace("\n", "\n\n") + ",,,,\n",
    "quotes": lambda text: "\n".join(",".join(f'"{c}"' for c in row.split(",")) for row in text.splitlines()) + "\n",
    "rounds as floats": lambda text: "\n".join(
        row.replace(row.split(",")[0], f"{row.split(',')[0]}.0", 1) if row[:1].isdigit() else row
        for row in text.splitlines()
    ),
    "yes and no": lambda text: text.replace(",1,", ",Yes,").replace(",0,", ",no,"),
    "zeros for arms that were not chosen": lambda text: text.replace(",0,,", ",0,0,"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_same_content_gives_the_same_answer(spelling, folder) -> None:
    text = numbered(example_file())
    expected = answer(written(folder, text), "--budget", 2)
    assert answer(written(folder, SPELLINGS[spelling](text)), "--budget", 2) == expected


def numbered(text):
    """The example with rounds 1, 2, ... instead of dates."""
    header, *rows = text.splitlines()
    days = sorted({row.split(",")[0] for row in rows})
    return "\n".join([header, *(f"{days.index(row[:10]) + 1}{row[10:]}" for row in rows)]) + "\n"


def test_rows_and_columns_in_any_order_packed_or_as_parquet(folder) -> None:
    import pandas as pd

    expected = answer(written(folder, example_file()), "--budget", 2)
    frame = pd.read_csv("h.csv").sample(frac=1, random_state=1)[["y", "chosen", "arm", "z", "round"]]
    frame.to_csv("mixed.csv.gz", index=False)
    frame.to_parquet("mixed.parquet")
    frame.assign(round=pd.to_datetime(frame["round"]), chosen=frame["chosen"] == 1).to_parquet("typed.parquet")
    frame.assign(arm=frame["arm"].astype("category")).to_parquet("category.parquet")
    for name in ("mixed.csv.gz", "mixed.parquet", "typed.parquet", "category.parquet"):
        assert answer(name, "--budget", 2) | {"file": "h.csv"} == expected


def test_rows_of_parquet_are_named_by_their_number(folder) -> None:
    import pandas as pd

    rows = {"round": [1, 1], "arm": ["a", "b"], "chosen": [1, 0], "z": ["much", None], "y": [0.1, np.inf]}
    pd.DataFrame(rows).to_parquet("h.parquet")
    result = call("next", "h.parquet", "--budget", 1)
    assert result.exit_code == 2
    assert "h.parquet:row 1: z = 'much': must be a finite number" in result.stderr
    assert "h.parquet:row 2: y = inf: must be a finite number" in result.stderr


def test_an_example_is_written_once_and_gives_an_answer(folder) -> None:
    result = call("next", "--example")
    assert result.exit_code == 0
    *_, line = result.stdout.splitlines()
    assert line == "now run: spillover next history.csv --budget 2"
    done = call(*line.removeprefix("now run: spillover ").split())
    assert (done.exit_code, done.stderr) == (0, "")
    again = call("next", "--example")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "history.csv: already exists" in again.stderr
    assert call("next", "--example", "--force").exit_code == 0
    assert call("next", "--example", "mine.csv").exit_code == 0
    assert (folder / "mine.csv").read_text() == example_file()
    nowhere = call("next", "--example", "none/mine.csv")
    assert (nowhere.exit_code, nowhere.stderr) == (2, "spillover: none/mine.csv: No such file or directory\n")
    assert call("next", "history.csv", "--example", "other.csv").exit_code == 2
    assert call("next").exit_code == 2


LIMITS = """[[limits]]
kind = "costs"
label = "money"
costs = { newsletter = 100, posters = 400, radio = 600, search = 500, social = 300, video = 900 }
limit = 1000

[[limits]]
kind = "exclusive"
arms = ["radio", "video"]
"""


def test_constraints_are_satisfied(folder) -> None:
    free = answer(written(folder, example_file()), "--budget", 3)
    written(folder, LIMITS, "limits.toml")
    found = answer("h.csv", "--budget", 3, "--limits", "limits.toml", "--unavailable", "social, search")
    costs = {"newsletter": 100, "posters": 400, "radio": 600, "search": 500, "social": 300, "video": 900}
    spent = sum(costs[arm] for arm in found["choose"])
    assert spent <= 1000 < sum(costs[arm] for arm in free["choose"])
    assert not {"social", "search"} & set(found["choose"])
    assert found["limits"][0] == f"costs of at most 1000 (money), {spent} spent"
    # the best of all feasible sets
    scores = {arm["arm"]: arm["score"] for arm in found["reasons"]["arms"]}
    sets = [
        x
        for size in range(4)
        for x in itertools.combinations(sorted(set(scores) - {"social", "search"}), size)
        if sum(costs[arm] for arm in x) <= 1000 and not {"radio", "video"} <= set(x)
    ]
    assert set(found["choose"]) == set(max(sets, key=lambda x: sum(scores[arm] for arm in x)))


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('kind = "costs"', 'kind = "cost"', ["limits.toml:1: kind = 'cost': must be one of", "did you mean costs?"]),
        ('"radio", "video"]', '"radio", "vidio"]', ["limits.toml:7:", "'vidio'", "did you mean video?"]),
        ("limit = 1000", "limit = 1000 euro", ["limits.toml: must be TOML"]),
        ("[[limits]]", "[[limit]]", ["limits.toml:1: unknown key limit: must be limits"]),
        (LIMITS, "", ["limits.toml: no constraints: must have at least one table [[limits]]"]),
        ('kind = "exclusive"', 'kind = "include"', ["costs of at most 1000 (money)", "always radio, video"]),
    ],
)
def test_invalid_and_infeasible_constraints(old, new, parts, folder) -> None:
    written(folder, LIMITS.replace(old, new), "limits.toml")
    line = refused(folder, example_file(), options=("--budget", 2, "--limits", "limits.toml"))[-1]
    for part in parts:
        assert part in line


def test_an_unavailable_arm_must_be_one(folder) -> None:
    refused(
        folder,
        example_file(),
        "unavailable = 'vidio': must be one of the arms of the file; did you mean video?",
        options=("--budget", 2, "--unavailable", "vidio"),
    )


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_plot_is_saved(ending, folder) -> None:
    result = call("next", written(folder, example_file()), "--budget", 2, "--plot", f"why.{ending}")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == f"Plot: why.{ending}"
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert (folder / f"why.{ending}").read_bytes().startswith(start)


def test_a_plot_that_cannot_be_written_is_refused_before_anything_is_read(folder) -> None:
    refused(folder, SMALL, "plot = 'why.jpg': must be a file that ends in .png", options=("--plot", "why.jpg"))
    refused(folder, SMALL, "must be in a folder that exists", options=("--plot", "none/why.png"))


def test_the_printed_numbers_add_up(folder) -> None:
    result = call("next", written(folder, example_file()), "--budget", 2)
    first, _, _, one, other, *rest = result.stdout.splitlines()
    chosen = re.fullmatch(r"Next round \(2026-10-12\): choose (\w+) and (\w+)\.", first)
    assert chosen is not None
    assert [line.split()[0] for line in (one, other)] == list(chosen.groups())
    for line in (one, other):
        whole, low, high, own, spilled, *_ = map(float, re.findall(r"\d\.\d+", line))
        assert own + spilled == pytest.approx(whole, abs=(high - low) / 8)
    assert "Pending: 2026-09-28, 2026-10-05." in rest
    full = call("next", "h.csv", "--budget", 2, "--explain").stdout
    assert full.startswith(first)
    for words in ("video spills over to", "Swaps:", "Health:", "2 outcomes are pending: 2026-09-28, 2026-10-05."):
        assert words in full


def test_the_start_and_arms_that_were_never_tried(folder) -> None:
    text = "round,arm,chosen,z,y\n1,a,1,0.5,0.5\n1,b,0,,0\n1,c,0,,0\n"
    plan = ("--budget", 1, "--policy", "ndc-sem", "--explore")
    planned = call("next", written(folder, text), *plan).stdout
    assert "  at the start every arm is tried, alone and with others; no outcome of it yet\n" in planned
    rounds = "".join(f"{t},a,1,0.5,0.5\n{t},b,0,,0\n{t},c,0,,0\n" for t in range(2, 6))
    later = call("next", written(folder, text + rounds), *plan).stdout
    assert "not tried yet" in later
    waiting = "6,a,0,,\n6,b,1,,\n6,c,0,,\n7,a,0,,\n7,b,0,,\n7,c,1,,\n"
    under_way = call("next", written(folder, text + rounds + waiting), *plan).stdout
    assert "tried, but no outcome has arrived yet" in under_way


def test_a_forced_trial_is_not_reported_as_the_start(folder) -> None:
    header, *rows = numbered(example_file()).splitlines()
    written(folder, "\n".join([header, *rows]))
    options = ("--budget", 2, "--policy", "glr-sem-ucb", "--set", "forced=1")
    found = answer("h.csv", *options)
    assert found["round"] == "41"
    assert found["reasons"]["planned"] is True
    assert found["reasons"]["plan"].startswith("a forced trial: ")
    for more in ((), ("--explain",)):
        text = call("next", "h.csv", *options, *more).stdout
        assert found["reasons"]["plan"] in text
        assert "at the start" not in text


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ("y=a,z=a", "'a' is z and y"),
        ("y=A,z=a", "'a' is z and y"),
        ("z=y", "'y' is z and y; y= if there is no y"),
        ("round=arm", "'arm' is round and arm"),
    ],
)
def test_a_column_is_used_once(columns, parts, folder) -> None:
    options = ("--budget", 1, "--columns", columns)
    (line,) = refused(folder, SMALL, options=options)
    assert line == f"spillover: columns = {columns!r}: must use each column once, but {parts}"


@pytest.mark.parametrize(("columns", "both"), [("y=z", "'z' is z and y"), ("chosen=y", "'y' is chosen and y")])
def test_a_column_does_not_mean_what_another_one_is_taken_for(columns, both, folder) -> None:
    refused(folder, SMALL, f"h.csv: column {both}: must be one of them", options=("--budget", 1, "--columns", columns))


def test_columns_may_be_exchanged(folder) -> None:
    text = changed(HEADER, "round,arm,chosen,y,z")
    options = ("--budget", 1, "--columns", "z=y,y=z")
    assert answer(written(folder, text), *options) == answer(written(folder, SMALL), "--budget", 1)


def test_a_file_with_too_much_in_it(folder, monkeypatch) -> None:
    monkeypatch.setattr("spillover.history.panel.MOST_ARMS", 1)
    refused(folder, SMALL, "more than 1 arms in h.csv: must be at most that many", "name the right one with --columns")
    monkeypatch.setattr("spillover.history.panel.MOST_ARMS", 10)
    monkeypatch.setattr("spillover.history.frame.MOST_ROWS", 5)
    refused(folder, SMALL, "h.csv: more than 5 rows: must be at most that many")


def test_a_large_file_is_announced(folder, monkeypatch) -> None:
    monkeypatch.setattr("spillover.cli.output.LARGE", 10)
    result = call("next", written(folder, SMALL), "--budget", 1)
    assert result.stderr == "spillover: reading h.csv, 0.0 GB\n"
    assert call("next", "h.csv", "--budget", 1, "--quiet").stderr == ""


def test_pending_rounds_before_known_ones_are_noted(folder) -> None:
    text = changed("1,a,1,0.5,0.5\n1,b,0,,0.1", "1,a,1,,\n1,b,0,,")
    assert answer(written(folder, text), "--budget", 1)["notes"] == ["pending although later rounds have outcomes: 1"]


def test_a_process_of_its_own_prints_json_alone(folder) -> None:
    done = outside("next", written(folder, SMALL), "--budget", 1, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["policy"]


def test_the_round_to_decide_can_be_named(folder) -> None:
    path = written(folder, example_file())
    found = [answer(path, "--budget", 2, *more) for more in ([], ["--round", "X"])]
    assert found[1].pop("round") == "X"
    assert found[0].pop("round") == "2026-10-12"
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("head", "columns"),
    [
        ("round,arm,chosen,z,y", []),
        ("round,arm,chosen,z", []),
        ("round,arm,chosen,y", ["--columns", "round=round,arm=arm,chosen=chosen,outcome=y"]),
    ],
)
def test_before_the_first_round_the_plan_decides(head, columns, folder) -> None:
    """A table with nothing but the round to decide."""
    cells = "," * (head.count(",") - 1)
    text = "\n".join([head, *(f"2026-01-05,{arm}{cells}" for arm in "abc")])
    found = answer(written(folder, text), "--budget", 2, *columns)
    assert (found["round"], found["rounds"], len(found["choose"])) == ("2026-01-05", 0, 2)
    assert found["not_yet"] == ["no arm has an outcome yet"]
