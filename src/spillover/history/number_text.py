"""Numbers as people write them: percent and currency signs, thousands separators, decimal commas.

What a comma or a point means is decided for a whole column, by the values that allow one reading only.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spillover.types import Array

EMPTY = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "-", "–", "—"})
CURRENCY = r"(?:[$€£¥₹₩₽₺]|usd|eur|gbp|chf|jpy|cny|cad|aud|sek|nok|dkk|pln|zł|kr\.?)"
SHAPE = re.compile(
    rf"^(\(?)([+-]?)\s*({CURRENCY})?\s*([+-]?)\s*([\d.,' ]*\d[.,]?)\s*(%)?\s*({CURRENCY})?(\)?)$", re.IGNORECASE
)
SCIENTIFIC = re.compile(r"^[+-]?(\d+[.,]?\d*|[.,]\d+)[eE][+-]?\d+$")
PLAIN = re.compile(r"^\d+$")
GROUPS = {sign: re.compile(rf"^[1-9]\d{{0,2}}(?:{re.escape(sign)}\d{{3}})+$") for sign in ",. '"}
POINT, COMMA = ".", ","


class NumberText(NamedTuple):
    """A number taken apart."""

    digits: str  # with its points and commas
    negative: bool
    percent: bool
    currency: str


class Unclear(NamedTuple):
    """Why texts of a column are no numbers: which of them, and what is accepted."""

    texts: tuple[str, ...]
    accepted: str


def is_empty(text: str) -> bool:
    """Whether a cell says that there is no value.

    >>> is_empty("N/A"), is_empty("0")
    (True, False)
    """
    return text.casefold() in EMPTY


def take_apart(text: str) -> NumberText | None:
    """The parts of a number; None if it is none.

    >>> take_apart("-€ 1.234,50")
    NumberText(digits='1.234,50', negative=True, percent=False, currency='€')
    """
    clean = re.sub("[\u00a0\u2009\u202f]", " ", text).replace("−", "-").replace("’", "'").strip()
    if SCIENTIFIC.match(clean):
        return NumberText(clean.lstrip("+-"), clean.startswith("-"), False, "")
    found = SHAPE.match(clean)
    if not found:
        return None
    opened, sign, before, inner, digits, percent, after, closed = found.groups()
    if bool(opened) != bool(closed) or (sign and inner) or (before and after) or point_of(digits.strip()) == "?":
        return None
    negative = bool(opened) or "-" in (sign, inner)
    return NumberText(digits.strip(), negative, bool(percent), (before or after or "").casefold())


def point_of(digits: str) -> str:
    """What the digits say about the decimal sign: "." or ","; "" if they fit both; "?" if they fit neither.

    >>> [point_of(text) for text in ("1234", "0.5", "1,5", "1,234", "1,234.5", "1.234.567", "1.2.3")]
    ['', '.', ',', '', '.', ',', '?']
    """
    fits = [sign for sign in (POINT, COMMA) if value_of(digits, sign) is not None]
    return "" if len(fits) == 2 else fits[0] if fits else "?"


def value_of(digits: str, point: str) -> float | None:
    """The number that the digits mean with this decimal sign; None if they do not fit it."""
    mantissa, _, exponent = digits.casefold().partition("e")
    whole, _, fraction = mantissa.partition(point)
    if fraction and not PLAIN.match(fraction):
        return None
    if whole and not PLAIN.match(whole):
        used = {sign for sign in whole if not sign.isdigit()}
        if len(used) != 1 or not GROUPS[used.pop()].match(whole):
            return None
        whole = re.sub(r"\D", "", whole)
    return float(f"{whole or 0}.{fraction or 0}e{exponent or 0}") if whole or fraction else None


def evidence(texts: Iterable[str]) -> set[str]:
    """The decimal signs that some of the texts allow only."""
    parts = (take_apart(text) for text in texts if not is_empty(text))
    return {point_of(part.digits) for part in parts if part is not None} & {POINT, COMMA}


def parse_numbers(
    texts: Sequence[str], point: str | None = None, elsewhere: frozenset[str] = frozenset()
) -> Array | Unclear:
    """The numbers of a column's distinct texts, NaN for empty ones; or why they are not clear.

    point: the decimal sign, if it was given. elsewhere: the decimal signs that the rest of the table shows.

    >>> parse_numbers(["1.234", "0,5", ""])
    array([1.234e+03, 5.000e-01,       nan])
    >>> print(parse_numbers(["1,234", "2,500"]).accepted)
    clear whether it is 1234 or 1.234: say which with --decimal point or --decimal comma
    """
    parts = [None if is_empty(text) else take_apart(text) for text in texts]
    bad = [text for text, part in zip(texts, parts, strict=True) if part is None and not is_empty(text)]
    if bad:
        return Unclear(tuple(bad), "a finite number, or empty until it is known")
    known = [part for part in parts if part is not None]
    if mixed := mixed_signs(known):
        return Unclear(texts_like(texts, parts, mixed[0]), mixed[1])
    chosen = point or decided_point(known, elsewhere)
    if chosen is None:
        several = [part for part in known if COMMA in part.digits]
        return Unclear(texts_like(texts, parts, several), unclear_point(several[0]))
    values = [np.nan if part is None else signed_value(part, chosen) for part in parts]
    wrong = [
        text for text, value, part in zip(texts, values, parts, strict=True) if part is not None and np.isnan(value)
    ]
    if wrong:
        sign = "point" if chosen == POINT else "comma"
        return Unclear(tuple(wrong), f"a finite number with a decimal {sign}, as other cells have")
    return np.array(values, np.float64)


def signed_value(part: NumberText, point: str) -> float:
    value = value_of(part.digits, point)
    if value is None or not np.isfinite(value):
        return np.nan
    return (-value if part.negative else value) / (100.0 if part.percent else 1.0)


def texts_like(texts: Sequence[str], parts: Sequence[NumberText | None], some: Sequence[NumberText]) -> tuple[str, ...]:
    """The texts of some of the numbers."""
    wanted = set(some)
    return tuple(text for text, part in zip(texts, parts, strict=True) if part in wanted)


def mixed_signs(known: Sequence[NumberText]) -> tuple[list[NumberText], str] | None:
    """Percent signs on some cells only, or several currencies: these numbers do not belong on one scale."""
    without = [part for part in known if not part.percent and part.digits.strip("0.,")]
    if without and any(part.percent for part in known):
        return without, "written with a percent sign, as other cells are (or all without)"
    currencies = sorted({part.currency for part in known} - {""})
    if len(currencies) > 1:
        other = [part for part in known if part.currency == currencies[1]]
        return other, f"in one currency; there are {' and '.join(currencies)}"
    return None


def decided_point(known: Sequence[NumberText], elsewhere: frozenset[str]) -> str | None:
    """The decimal sign of a column; None if nothing settles it.

    A single point with three digits after it (1.234) is a decimal point unless the rest of the table has commas.
    """
    shown = {point_of(part.digits) for part in known}
    here = shown & {POINT, COMMA}
    if len(here) == 1:
        return here.pop()
    if len(here) == 2:
        return POINT  # the others are reported
    if len(elsewhere) == 1:
        return next(iter(elsewhere))
    return None if any(COMMA in part.digits for part in known) else POINT


def unclear_point(part: NumberText) -> str:
    whole, decimal = (f"{value_of(part.digits, point):.10g}" for point in (POINT, COMMA))
    return f"clear whether it is {whole} or {decimal}: say which with --decimal point or --decimal comma"
