"""Policies decide as they did when the corpus was recorded; `python -m tests.corpus compare` says more."""

import json

import pytest

from tests.corpus.__main__ import FILE, record_of
from tests.corpus.cases import cases

CASES, STORED = cases(), json.loads(FILE.read_text())
QUICK = [name for name in CASES if name.startswith(("batch, small: ", "live: ", "learners: ", "history: "))]


def test_every_case_is_recorded():
    assert list(CASES) == list(STORED)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in CASES]
)
def test_decisions_are_those_of_the_corpus(name):
    assert record_of(CASES[name]())["decisions"] == STORED[name]["decisions"]
