"""Rounds as people write them: numbers, dates, months, quarters and weeks; their order, gaps and the next one.

How a column is written is decided for all of it: every cell must be of the same kind.
"""

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spillover.history.cells import round_value
from spillover.types import IntArray

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUMBER, DATE, MONTH, QUARTER, WEEK = "number", "date", "month", "quarter", "week"
DAY_FIRST, MONTH_FIRST = "day-first", "month-first"
ANY_ROUND = (
    "a whole number, or a date such as 2026-03-31, 31.3.2026 or 31 Mar 2026, a month (2026-03), a quarter (2026Q1) "
    "or a week (2026-W05)"
)
MONTH_NAME = r"(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
FORMS = {
    MONTH: (
        r"(?P<year>\d{4})[-/. ]?m?(?P<month>0[1-9]|1[0-2]|(?<=[mM])[1-9])",
        rf"{MONTH_NAME}[-/ .,]*(?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[-/ .,]*{MONTH_NAME}",
        r"(?P<month>0?[1-9]|1[0-2])/(?P<year>\d{4})",
    ),
    QUARTER: (r"(?P<year>\d{4})[-/. ]*q(?P<quarter>[1-4])", r"q(?P<quarter>[1-4])[-/. ]*(?P<year>\d{4})"),
    WEEK: (
        r"(?P<year>\d{4})[-/. ]*(?:w|kw|cw)[- ]?(?P<week>\d{1,2})",
        r"(?:w|kw|cw|week)[-/. ]*(?P<week>\d{1,2})[-/. ,]+(?P<year>\d{4})",
    ),
    DATE: (
        rf"(?P<day>\d{{1,2}})[-/ .]+{MONTH_NAME}[-/ .,]+(?P<year>\d{{4}}|\d{{2}})",
        rf"{MONTH_NAME}[-/ .]+(?P<day>\d{{1,2}}),?[ ]+(?P<year>\d{{4}})",
    ),
}
COMPILED = {kind: [re.compile(form, re.IGNORECASE) for form in forms] for kind, forms in FORMS.items()}
TWO_ORDERS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})( \d{1,2}:\d{2}(?::\d{2})?)?")
SHORT_MONTH = re.compile(rf"{MONTH_NAME}[-/ ]?['’]?(?P<year>\d{{2}})", re.IGNORECASE)  # of 2026, or the day?
NUMBERED = re.compile(r"(round|week|wk|w|kw|cw|day|month|period|step|trial|epoch|woche|monat)[-_ .#]*(\d{1,9})", re.I)
PARTS_OF_YEAR = {
    MONTH: re.compile(rf"m?(?P<number>\d{{1,2}})|{MONTH_NAME}", re.IGNORECASE),
    QUARTER: re.compile(r"q?(?P<number>\d)", re.IGNORECASE),
    WEEK: re.compile(r"(?:w|wk|kw|cw|week)?[-_ .]*(?P<number>\d{1,2})", re.IGNORECASE),
}
CLEARER = 1.5  # times as many of the months between the first and the last, as of the days
YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})")
FEWEST = 3  # dates needed to recognise a regular step


class AskOrder(ValueError):
    """Dates that are valid with the day first and with the month first."""


class Rounds(NamedTuple):
    """The rounds of a column: values in one order, and how they were written."""

    kind: str
    values: list[Any]  # int (also for months, quarters and weeks: a running number) or datetime; None: unreadable


def parse_rounds(texts: Sequence[str], dates: str | None = None) -> Rounds:
    """The distinct texts of a column as rounds of one kind; the kind that reads most of them.

    dates: "day-first" or "month-first", where that is not clear from the column.

    >>> parse_rounds(["2026-01", "2026-02"]).kind, parse_rounds(["Q1 2026"]).values
    ('month', [8104])
    >>> parse_rounds(["31/01/2026", "05/02/2026"]).values[1]
    datetime.datetime(2026, 2, 5, 0, 0)
    """
    if texts and value_of_kind(WEEK, texts[0]) is not None:  # which is an ISO date too: the Monday
        weeks = of_kind(WEEK, texts)
        if all(value is not None for value in weeks.values):
            return weeks
    found = plain_rounds(texts)
    if all(value is not None for value in found.values):
        return found
    others = (slashed_dates(texts, dates), short_months(texts), numbered(texts))
    readings = [found, *others, *(of_kind(kind, texts) for kind in FORMS)]
    best = max(readings, key=lambda reading: sum(value is not None for value in reading.values))
    return best if best.kind != DATE else Rounds(DATE, merged(best.values, found.values))


def merged(values: Sequence[Any], plain: Sequence[Any]) -> list[Any]:
    """Dates in one form, and ISO dates among them."""
    return [p if v is None and not isinstance(p, int) else v for v, p in zip(values, plain, strict=True)]


def plain_rounds(texts: Sequence[str]) -> Rounds:
    """Whole numbers and ISO dates."""
    values = [round_value(text) for text in texts]
    return Rounds(DATE if any(isinstance(value, datetime) for value in values) else NUMBER, values)


def of_kind(kind: str, texts: Sequence[str]) -> Rounds:
    return Rounds(kind, [value_of_kind(kind, text) for text in texts])


def short_months(texts: Sequence[str]) -> Rounds:
    """Jan-26 as a month of 2026; unreadable if it may as well be the 26th of January.

    Months follow each other closely if they are months, and days if they are days.

    >>> short_months(["Dec-25", "Jan-26"]).values, short_months(["Jan-05", "Jan-12", "Jan-19"]).values
    ([24311, 24312], [None, None, None])
    """
    found = [SHORT_MONTH.fullmatch(text.strip()) for text in texts]
    parts = {(MONTHS.index(match["name"].casefold()), int(match["year"])) for match in found if match}
    months = [12 * four_digits(f"{year:02d}") + month for month, year in parts]
    try:
        days = [datetime(2024, month + 1, day).toordinal() for month, day in parts]
    except ValueError:  # no such day
        days = []
    if not parts or (days and max(days) - min(days) + 1 < CLEARER * (max(months) - min(months) + 1)):
        return Rounds(MONTH, [None] * len(texts))
    names = [
        None if match is None else {"year": str(four_digits(match["year"])), "name": match["name"]} for match in found
    ]
    return Rounds(MONTH, [None if parts is None else ordinal(MONTH, parts) for parts in names])


def numbered(texts: Sequence[str]) -> Rounds:
    """Week 1, Week 2 and so on as numbers, if all have the same word.

    >>> numbered(["Week 2", "week 10"]).values, numbered(["Week 1", "Day 1"]).values
    ([2, 10], [None, None])
    """
    found = [NUMBERED.fullmatch(text.strip()) for text in texts]
    several = len({match[1].casefold() for match in found if match}) > 1
    return Rounds(NUMBER, [None if several or match is None else int(match[2]) for match in found])


def value_of_kind(kind: str, text: str) -> Any:
    """One month, quarter, week or date with the name of its month; None if the text is none."""
    for form in COMPILED[kind]:
        if match := form.fullmatch(text.strip()):
            return ordinal(kind, match.groupdict())
    return None


def ordinal(kind: str, parts: dict[str, str | None]) -> Any:
    """The running number of a month, quarter or week; a datetime for a date; None if there is no such day."""
    digits = parts["year"] or "0000"
    year = four_digits(digits)
    name = parts.get("name")
    month = MONTHS.index(name.casefold()) + 1 if name else int(parts.get("month") or 1)
    try:
        if kind == MONTH:
            return 12 * year + month - 1 if year else None
        if kind == QUARTER:
            return 4 * year + int(parts["quarter"] or 1) - 1 if year else None
        if kind == WEEK:
            return date.fromisocalendar(year, int(parts["week"] or 1), 1).toordinal() // 7
        return datetime(year, month, int(parts["day"] or 1))
    except ValueError:
        return None


def part_value(kind: str, text: str) -> float:
    """A part of a year, as it is written beside the year; NaN if it is none.

    >>> part_value("month", "March"), part_value("quarter", "Q4"), part_value("week", "KW 5"), part_value("week", "Q4")
    (3.0, 4.0, 5.0, nan)
    """
    match = PARTS_OF_YEAR[kind].fullmatch(text.strip())
    if match is None:
        return float("nan")
    found = match.groupdict()
    return float(found["number"] or MONTHS.index(found["name"].casefold()) + 1)


def slashed_dates(texts: Sequence[str], dates: str | None) -> Rounds:
    """05/01/2026 and 5.1.2026: the order of day and month is that of the whole column, if some value settles it."""
    found = [TWO_ORDERS.fullmatch(text.strip()) for text in texts]
    years = [YEAR_FIRST.fullmatch(text.strip()) for text in texts]
    pairs = [(int(match[1]), int(match[3])) for match in found if match]
    if not pairs:
        return Rounds(DATE, [day_of(match, 1, 2, 3) if match else None for match in years])
    order = dates or settled_order(pairs, {match[2] for match in found if match})
    day, month = (1, 3) if order == DAY_FIRST else (3, 1)
    values = [day_of(match, 4, month, day, match[5]) if match else None for match in found]
    return Rounds(DATE, values)


def settled_order(pairs: Sequence[tuple[int, int]], signs: set[str]) -> str:
    """The order of day and month, from values above 12; with points the day comes first everywhere."""
    if any(first > 12 for first, _ in pairs):
        return DAY_FIRST
    if any(second > 12 for _, second in pairs):
        return MONTH_FIRST
    if signs == {"."} or all(first == second for first, second in pairs):
        return DAY_FIRST
    raise AskOrder


def day_of(match: re.Match[str], year: int, month: int, day: int, time: str | None = None) -> datetime | None:
    try:
        whole = datetime(four_digits(match[year]), int(match[month]), int(match[day]))
        clock = [int(part) for part in time.strip().split(":")] if time else []
        return whole.replace(**dict(zip(("hour", "minute", "second"), clock, strict=False)))  # type: ignore[arg-type]
    except ValueError:
        return None


def four_digits(year: str) -> int:
    """A year; one of two digits is from 1970 to 2069."""
    return int(year) if len(year) == 4 else int(year) + (1900 if int(year) >= 70 else 2000)


def period_label(kind: str, value: int) -> str:
    """The label of a running number.

    >>> period_label("month", 24312), period_label("quarter", 8104), period_label("week", 105663)
    ('2026-01', '2026Q1', '2026-W05')
    """
    if kind == MONTH:
        return f"{value // 12:04d}-{value % 12 + 1:02d}"
    if kind == QUARTER:
        return f"{value // 4:04d}Q{value % 4 + 1}"
    if kind == WEEK:
        year, week, _ = monday(value).isocalendar()
        return f"{year:04d}-W{week:02d}"
    return str(value)


def monday(week: int) -> date:
    return date.fromordinal(7 * week + 1)


def moment(kind: str, value: Any) -> datetime | None:
    """The first moment of a round; None if rounds are numbers."""
    if kind == DATE:
        return value if isinstance(value, datetime) else None
    if kind == WEEK:
        return datetime.combine(monday(value), datetime.min.time())
    if kind in (MONTH, QUARTER):
        months = 1 if kind == MONTH else 3
        return datetime(value * months // 12, value * months % 12 + 1, 1)
    return None


def joined_periods(years: Sequence[int], parts: Sequence[int], kind: str) -> list[str]:
    """Labels of rounds that are written in two columns: the year, and the month, quarter or week in it."""
    forms = {MONTH: "{:04d}-{:02d}", QUARTER: "{:04d}Q{}", WEEK: "{:04d}-W{:02d}"}
    return [forms[kind].format(year, part) for year, part in zip(years, parts, strict=True)]


class Calendar(NamedTuple):
    """The order of the rounds."""

    rank: IntArray  # position of each round as it was written; -1 where it cannot be read
    labels: tuple[str, ...]  # in order
    following: str | None  # the label of the next round, if the rounds have a regular step
    notes: tuple[str, ...]
    kind: str = NUMBER  # how the rounds are written: numbers, dates, months, quarters or weeks
    values: tuple[Any, ...] = ()  # in order: numbers (running ones for months, quarters and weeks) or dates
    next_value: Any = None  # of the next round


def calendar(texts: Sequence[str], dates: str | None = None) -> Calendar:
    """Sort rounds; one that is written in two ways (1 and 1.0) counts once.

    dates: the order of day and month, "day-first" or "month-first", where the rounds do not settle it.

    >>> calendar(["3", "1", "2", "1.0"])[:3]
    (array([2, 0, 1, 0]), ('1', '2', '3'), '4')
    >>> calendar(["2026-01-31", "2026-02-28", "2026-03-31"]).following
    '2026-04-30'
    >>> calendar(["Nov 2026", "Dec 2026"]).following
    '2027-01'
    """
    kind, values = parse_rounds(texts, dates)
    known: list[Any] = sorted({value for value in values if value is not None})
    place = {value: k for k, value in enumerate(known)}
    rank = np.array([place.get(value, -1) for value in values], np.int64)
    labels = tuple(round_labels(known, kind))
    if len(known) < 2:
        following = known[0] + 1 if known and isinstance(known[0], int) else None
        next_label = None if following is None else period_label(kind, following)
        return Calendar(rank, labels, next_label, (), kind, tuple(known), following)
    steps: list[Any] = monthly(known) or [later - earlier for earlier, later in pairwise(known)]
    usual = Counter(steps).most_common(1)[0][0]
    gaps = [k for k, step in enumerate(steps) if step != usual]
    regular = isinstance(known[0], int) or (not gaps and len(known) >= FEWEST)
    following = after(known[-1], usual, known) if regular else None
    next_label = None if following is None else round_labels([*known, following], kind)[-1]
    notes = tuple(gap_notes(known, labels, usual, gaps, kind))
    return Calendar(rank, labels, next_label, notes, kind, tuple(known), following)


def round_labels(known: Sequence[Any], kind: str = DATE) -> list[str]:
    """Numbers and dates as text; without the time of day if all are at midnight."""
    if all(isinstance(value, int) for value in known):
        return [period_label(kind, value) for value in known]
    if all(value.time() == time() and value.tzinfo is None for value in known):
        return [value.date().isoformat() for value in known]
    return [value.isoformat(" ") for value in known]


def monthly(known: Sequence[Any]) -> list[int] | None:
    """The steps in months, if all dates are the same day of the month, or its last day."""
    if isinstance(known[0], int) or len(known) < FEWEST or known[1] - known[0] < timedelta(28):
        return None
    same = len({(value.day, value.time()) for value in known}) == 1
    last = all(value.day == monthrange(value.year, value.month)[1] for value in known)
    if not (same or last):
        return None
    months = [12 * value.year + value.month for value in known]
    return [later - earlier for earlier, later in pairwise(months)]


def after(latest: Any, step: Any, known: Sequence[Any]) -> Any:
    """The round one step after the latest; None after the year 9999."""
    try:
        if isinstance(latest, int) or isinstance(step, timedelta):
            return latest + step
        month = latest.year * 12 + latest.month - 1 + step
        year, month = month // 12, month % 12 + 1
        same = len({value.day for value in known}) == 1 and latest.day <= 28
        return latest.replace(year=year, month=month, day=latest.day if same else monthrange(year, month)[1])
    except (OverflowError, ValueError):
        return None


def gap_notes(
    known: Sequence[Any], labels: Sequence[str], usual: Any, gaps: Sequence[int], kind: str = NUMBER
) -> list[str]:
    """Notes on rounds that are not evenly spaced."""
    if not gaps:
        return []
    first = gaps[0]
    many = f"{len(gaps):,} gaps" if len(gaps) > 1 else "a gap"
    where = f"{'the first ' if len(gaps) > 1 else ''}from {labels[first]} to {labels[first + 1]}"
    notes = [
        f"{many} between the rounds, {where}, where {step_in_words(usual, known, kind)} is usual: "
        "only the order of rounds matters, and a gap is not a round"
    ]
    if (
        kind == NUMBER
        and isinstance(known[0], int)
        and all(looks_like_a_date(value) for value in (known[0], known[-1]))
    ):
        notes.append(f"rounds such as {labels[0]} are read as numbers; dates must be written like {dashed(known[0])}")
    return notes


def step_in_words(step: Any, known: Sequence[Any], kind: str = NUMBER) -> str:
    if isinstance(known[0], int):
        return f"a step of {step}" if kind in (NUMBER, DATE) else f"{step} {kind}{'s' if step != 1 else ''}"
    if isinstance(step, timedelta):
        return f"{step.days} day{'s' if step.days != 1 else ''}" if not step.seconds else str(step)
    return f"{step} month{'s' if step != 1 else ''}"


def dashed(number: int) -> str:
    text = str(number)
    return f"{text[:4]}-{text[4:6]}-{text[6:]}"


def looks_like_a_date(number: int) -> bool:
    """Whether a whole number is a date without its dashes."""
    try:
        return len(str(number)) == 8 and 1900 <= datetime.fromisoformat(dashed(number)).year <= 2200
    except ValueError:
        return False
