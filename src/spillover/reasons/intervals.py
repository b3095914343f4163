"""Numbers rounded to what their interval supports."""

from typing import Any

import numpy as np

Interval = tuple[float, float]
FINEST = 6  # decimals; smaller numbers are written with an exponent
LARGEST = 1e12


def decimals_for(half_width: float) -> int:
    """Decimals of a number that is known up to this much: its last digit is of the size of the uncertainty.

    >>> [decimals_for(width) for width in (0.004, 0.15, 0.4, 25.0, 4000.0)]
    [3, 2, 1, 0, -3]
    """
    if not np.isfinite(half_width) or half_width <= 0:
        return 3
    exponent = int(np.floor(np.log10(half_width)))
    leading = half_width / 10.0**exponent
    return -exponent + (1 if leading < 3 else 0)


def round_to(value: float, decimals: int) -> str:
    """A number with so many decimals; negative ones round to tens, hundreds and so on.

    >>> round_to(0.4567, 2), round_to(12345.6, -2), round_to(-0.001, 1), round_to(2.5e-9, 10)
    ('0.46', '12,300', '0.0', '2.5e-09')
    """
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if decimals > FINEST or abs(value) >= LARGEST:
        exponent = int(np.floor(np.log10(abs(value)))) if value else 0
        return f"{value:.{max(exponent + decimals, 0)}e}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def format_estimate(value: float, interval: Interval) -> str:
    """A number with its interval.

    >>> format_estimate(0.4687, (0.402, 0.535)), format_estimate(-1234.0, (-1900.0, -600.0))
    ('0.47 (0.40 to 0.54)', '-1,200 (-1,900 to -600)')
    """
    low, high = interval
    decimals = decimals_for((high - low) / 2)
    return f"{round_to(value, decimals)} ({round_to(low, decimals)} to {round_to(high, decimals)})"


def interval_of(intervals: Any, *place: int) -> Interval | None:
    """One interval of an explanation; None where there is none."""
    if intervals is None:
        return None
    low, high = np.asarray(intervals, float)[place]
    return (float(low), float(high)) if np.isfinite(low) and np.isfinite(high) else None


def short_number(value: float) -> str:
    """Three significant digits, for numbers without an interval.

    >>> [short_number(value) for value in (0.123456, 12345.6, 1234567.0, 1e-7)]
    ['0.123', '12,300', '1,230,000', '1.00e-07']
    """
    if not np.isfinite(value) or value == 0:
        return round_to(value, 0)
    return round_to(value, 2 - int(np.floor(np.log10(abs(value)))))
