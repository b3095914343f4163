"""A part of many cases for `make test`, all of them for `make test-long`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few_or_many(few: int, many: int) -> list[Any]:
    """Numbers of random cases for `parametrize`."""
    return [few, pytest.param(many, marks=pytest.mark.long)]


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """Cases for `parametrize`: of each `step` of them all but the first are marked long."""
    some = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.long] if k % step else []) for k, case in enumerate(some)]


def often(usual: Iterable[str], names: Iterable[str]) -> list[Any]:
    """Names for `parametrize`: the usual ones, and the others marked long, as each may be compiled for itself."""
    usual = set(usual)
    return [name if name in usual else pytest.param(name, marks=pytest.mark.long) for name in names]
