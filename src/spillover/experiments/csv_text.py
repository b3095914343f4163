"""Tables as CSV that spreadsheets show and do not run."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FORMULA = "=+-@\t\r"  # a spreadsheet takes text that starts with one of these for a formula


def csv_bytes(frame: "pd.DataFrame") -> bytes:
    """A table as CSV; names that would be formulas get an apostrophe before them.

    >>> import pandas as pd
    >>> csv_bytes(pd.DataFrame({"policy": ["=1+1", "cucb"], "regret": [-1.5, 2.0]}))
    b"policy,regret\\n'=1+1,-1.5\\ncucb,2.0\\n"
    """
    texts = frame.select_dtypes(["object", "string"]).columns
    safe = frame.assign(**{name: frame[name].map(as_text) for name in texts})
    return safe.to_csv(index=False).encode()


def as_text(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(tuple(FORMULA)) else cell
