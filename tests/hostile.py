"""Input that nobody would write by accident, by kinds: names, cells, tables, TOML, settings."""

import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from hypothesis import strategies as st

from spillover.formatting import ACTING

ACTING_NAMES = [
    "a\x1b[31mred", "b\nNext round: choose EVIL.", "c\r\x1b[2K", "\u202egnol", "\ufeffbom", "x\u2028y", "\x7f", "t\tab",
]  # fmt: skip
ODD_NAMES = [
    "$x^2$", "<script>alert(1)</script>", "--><b>", "=cmd()", "a,b", 'quo"te', "'", "1" * 5000, "é" * 300, "../..",
    "%s", "{0}", "𝔘𝔫𝔦", "👩‍👩‍👧", "می‌خواهم", "nan", "None", "-", "0", "1e5", "\U0010ffff", "\ufffe",
]  # fmt: skip
ODD_CELLS = [
    "", " ", "NA", "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "1e400", "9007199254740993", str(2**63),
    str(2**64),
    "0x10", "1,5", "1.234,5", "1 234", "45%", "$5", "(3)", "１", "true", "yes", "1_000", "--1", "+1", "9" * 400,
    "\x1b[0m",
    "a\nb", "2026-02-30", "0000-00-00", "9999-12-31", "1.", ".5",
]  # fmt: skip
names = st.sampled_from(ACTING_NAMES + ODD_NAMES) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=8
)
cells = st.sampled_from(ODD_CELLS) | st.integers(-(2**65), 2**65).map(str) | st.floats().map(repr)


@st.composite
def tables(draw):
    """Texts in columns: a sound history of arms with odd names, in which some cells are odd."""
    arms = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    rounds = draw(st.integers(1, 7))
    rows = [
        [str(t), arm, str((t + k) % 2), f"0.{(3 * t + k) % 10}" if (t + k) % 2 else "", f"{(7 * t + 5 * k) % 11}.5"]
        for t in range(1, rounds + 1)
        for k, arm in enumerate(arms)
    ]
    for _ in range(draw(st.integers(0, 3))):
        rows[draw(st.integers(0, len(rows) - 1))][draw(st.sampled_from([0, 2, 3, 4, 4]))] = draw(cells)
    header = draw(st.sampled_from([["round", "arm", "chosen", "z", "y"], ["week", "store", "promo", "z", "sales"]]))
    return pa.table({name: [row[k] or None for row in rows] for k, name in enumerate(header)})


TYPED = {
    "whole numbers": st.integers(-(2**63), 2**63 - 1).map(lambda v: pa.scalar(v, pa.int64())),
    "large whole numbers": st.integers(0, 2**64 - 1).map(lambda v: pa.scalar(v, pa.uint64())),
    "numbers": st.floats(allow_nan=False, allow_infinity=False).map(lambda v: pa.scalar(v, pa.float64())),
    "decimals": st.decimals(-(10**30), 10**30, places=6).map(lambda v: pa.scalar(Decimal(v), pa.decimal128(38, 6))),
    "long decimals": st.integers(-(10**70), 10**70).map(lambda v: pa.scalar(Decimal(v), pa.decimal256(76, 0))),
}


@st.composite
def typed_tables(draw):
    """A history whose outcomes are of one arrow type, with any values of it."""
    rounds, arms = draw(st.integers(2, 5)), ["a", "b"]
    values = [draw(TYPED[kind]) for kind in [draw(st.sampled_from(sorted(TYPED)))] for _ in range(2 * rounds)]
    return pa.table(
        {
            "week": [t for t in range(1, rounds + 1) for _ in arms],
            "store": arms * rounds,
            "promo": [(t + k) % 2 for t in range(rounds) for k in range(2)],
            "sales": pa.array([value.as_py() for value in values], values[0].type),
        }
    )


def as_csv(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pyarrow.csv.write_csv(table, content)
    return content.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    content = io.BytesIO()
    pyarrow.parquet.write_table(table, content)
    return content.getvalue()


NUMBERS = [
    "1e308",
    "-1",
    "0",
    "1e-320",
    "inf",
    "nan",
    "1" + 40 * "0",
    "1" + 400 * "0",
    "9" * 5000,
    str(2**63),
    str(2**64),
]
VALUES = [
    *NUMBERS,
    "true",
    '"x"',
    "[]",
    "[1, 2]",
    "2026-01-01",
    "07:30:00",
    "{}",
    60 * "[" + 60 * "]",
    3000 * "[",
    300 * "{a=",
    '"\\u001b[31m\\n"',
]
EXPERIMENT = """name = "odd"
replications = {replications}
block = {block}
record = {record}
seed = {seed}
[worlds.{world}]
kind = "synthetic"
n_arms = {n_arms}
budget = {budget}
horizon = {horizon}
changes = {changes}
noise = {noise}
weight_range = {weight_range}
[delays.d]
kind = "{delay}"
{parameter} = {rounds}
[policies.{policy}]
label = {label}
"""
SOUND = {
    "replications": "2", "block": "2", "record": "5", "seed": "0", "world": "w", "n_arms": "3", "budget": "1",
    "horizon": "12", "changes": "[]", "noise": "0.1", "weight_range": "[0.4, 0.7]", "delay": "constant",
    "parameter": "rounds", "rounds": "2", "policy": "random", "label": '"x"',
}  # fmt: skip
KEYS = ["w", '"a/b"', '"\\u001b[2J"', '"\\n"', '"$x$"', '"' + 200 * "x" + '"', "a.b.c", ".".join("a" * 400)]


@st.composite
def experiments(draw):
    """An experiment in which one or two values are odd."""
    given = dict(SOUND)
    for _ in range(draw(st.integers(1, 2))):
        key = draw(st.sampled_from(sorted(set(SOUND) - {"delay", "parameter", "policy"})))
        given[key] = draw(st.sampled_from(KEYS if key == "world" else VALUES))
    return EXPERIMENT.format(**given)


def faults(code: int, stdout: str, stderr: str) -> list[str]:
    """What is wrong with how a command ended: nothing, for an answer or a refusal."""
    found = [] if code in (0, 2) else [f"exit code {code}"]
    found += [f"on stderr: {line!r}" for line in stderr.split("\n")[:-1] if not line.startswith("spillover: ")]
    found += [f"a warning of a library: {line!r}" for line in stderr.split("\n") if "Warning: " in line]
    found += ["an answer and a refusal"] if code == 2 and stdout else []
    found += ["no reason"] if code == 2 and not stderr else []
    found += [f"{text!r} on the terminal" for text in ACTING.findall((stdout + stderr).replace("\n", ""))]
    return found + (["a forged line"] if "\nNext round: choose EVIL" in f"\n{stdout}{stderr}" else [])
