"""Public data: the daily Covid-19 record of Italy's regions, by name and SHA-256; the package does not contain it."""

import csv
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spillover import validate
from spillover.rng import Purpose, Rng
from spillover.types import Array

VARIABLE = "SPILLOVER_COVID_DATA"  # a folder with the files
COMMIT = "fc82987b9ebda01fe8e5b59d5667e3e00721edb9"
SOURCE = f"https://github.com/pcm-dpc/COVID-19/tree/{COMMIT}/dati-regioni"
BASE_URL = f"https://raw.githubusercontent.com/pcm-dpc/COVID-19/{COMMIT}/dati-regioni/"
ATTRIBUTION = (
    "Data: Presidenza del Consiglio dei Ministri - Dipartimento della Protezione Civile, "
    f"repository pcm-dpc/COVID-19, commit {COMMIT[:12]}, licence CC-BY-4.0"
)
TIMEOUT = (3.0, 10.0)  # seconds to connect, and between bytes: being offline should be noticed soon
RETRIES = 1
WORKERS = 8  # the files are small: most of the time is spent waiting

DENSITY_WINDOW = (date(2020, 4, 20), date(2020, 6, 3))  # 45 days without travel between regions
STUDY_WINDOW = (date(2020, 7, 31), date(2020, 10, 18))  # 80 days

# the paper's abbreviations in the order of its table, and the record's names
REGIONS = {
    "ABR": "Abruzzo", "BAS": "Basilicata", "CAL": "Calabria", "CAM": "Campania", "EMR": "Emilia-Romagna",
    "FVG": "Friuli Venezia Giulia", "LAZ": "Lazio", "LIG": "Liguria", "LOM": "Lombardia", "MAR": "Marche",
    "MOL": "Molise", "PAB": "P.A. Bolzano", "PAT": "P.A. Trento", "PIE": "Piemonte", "PUG": "Puglia",
    "SAR": "Sardegna", "SIC": "Sicilia", "TOS": "Toscana", "UMB": "Umbria", "VDA": "Valle d'Aosta", "VEN": "Veneto",
}  # fmt: skip


class MissingData(FileNotFoundError):
    """The files are not available and cannot be downloaded; the message says what to do."""


class CovidRecord(NamedTuple):
    """Daily new cases of the 21 regions."""

    days: tuple[date, ...]
    regions: tuple[str, ...]  # the paper's abbreviations, in the order of its table
    names: tuple[str, ...]
    cases: Array  # (days, 21): as recorded, negative corrections included
    latitude: Array  # (21,)
    longitude: Array  # (21,)
    source: str  # "record" or "simulated"
    attribution: str

    def window(self, first: date, last: date) -> Array:
        """Cases from one day to another, both included, (days, 21); every day between them must be there."""
        wanted = days_between(first, last)
        place = {day: k for k, day in enumerate(self.days)}
        missing = [day.isoformat() for day in wanted if day not in place]
        if missing:
            raise ValueError(
                f"days of the record = {first_few(missing)} missing: must have every day from {first} to {last}"
            )
        return self.cases[[place[day] for day in wanted]]


def covid_italy(
    folder: str | os.PathLike[str] | None = None, *, download: bool = True, progress: bool = True
) -> CovidRecord:
    """The record: from `folder`, else from the folder in SPILLOVER_COVID_DATA, else from the user's cache.

    What the cache lacks is downloaded once (unless `download` is False), with a progress bar on stderr where that is a
    terminal. Every file is checked against its SHA-256. `MissingData` is raised where the files cannot be obtained.
    """
    given = folder if folder is not None else os.environ.get(VARIABLE) or None
    if given is not None:
        name = "folder" if folder is not None else VARIABLE
        return parse_record(read_folder(Path(given), name))
    return parse_record(fetch(cache_folder(), download=download, progress=progress))


def cache_folder() -> Path:
    """Return the folder of downloaded files, in the user's cache."""
    import pooch

    return Path(pooch.os_cache("spillover")) / "covid_italy"


@cache
def registry() -> dict[str, str]:
    """SHA-256 of every file by its name, in the order of days (the text is what `sha256sum` writes)."""
    text = resources.files("spillover_studies.covid").joinpath("covid_italy.sha256").read_text(encoding="ascii")
    return {name: digest for digest, name in (line.split() for line in text.splitlines())}


def day_of(name: str) -> date:
    """The day in a file's name."""
    return date.fromisoformat(name.removesuffix(".csv").rpartition("-")[2])


def days_between(first: date, last: date) -> list[date]:
    """All days from the first to the last."""
    return [first + timedelta(k) for k in range((last - first).days + 1)]


def first_few(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def read_folder(folder: Path, name: str = "folder") -> dict[str, bytes]:
    """The files of a folder; all must be there and unchanged."""
    if not folder.is_dir():
        raise ValueError(f"{name} = {str(folder)!r}: must be a folder with the files of {SOURCE}")
    missing = [file for file in registry() if not (folder / file).is_file()]
    if missing:
        raise ValueError(
            f"{name} = {str(folder)!r}: must hold all {len(registry())} files of the record; "
            f"{len(missing)} missing: {first_few(missing)}; they are at {SOURCE}"
        )
    return {file: checked(folder / file) for file in registry()}


def checked(path: Path) -> bytes:
    """The content of a file, or an error if it is not the registered one."""
    content = path.read_bytes()
    found, expected = hashlib.sha256(content).hexdigest(), registry()[path.name]
    if found != expected:
        raise ValueError(
            f"SHA-256 of {path} = {found} ({len(content)} bytes): must be {expected}; "
            f"the file is changed or incomplete; the original is at {SOURCE}"
        )
    return content


def fetch(folder: Path, *, base_url: str = BASE_URL, download: bool = True, progress: bool = True) -> dict[str, bytes]:
    """The files of the cache, after downloading those that are missing or changed."""
    lacking = [file for file in registry() if not intact(folder / file)]
    if lacking and not download:
        raise MissingData(advice(lacking, folder, "downloading is disabled"))
    if lacking:
        try:
            download_files(lacking, folder, base_url, progress)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors; pooch's of a checksum is a ValueError
            still = [file for file in lacking if not intact(folder / file)]
            raise MissingData(advice(still, folder, f"{type(error).__name__}: {error}")) from error
    return {file: checked(folder / file) for file in registry()}


def intact(path: Path) -> bool:
    """Whether a file of the cache is there and complete."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == registry()[path.name]


def advice(files: Sequence[str], folder: Path, reason: str) -> str:
    """Say what is missing, why, where to get it and what to do."""
    return (
        f"{len(files)} of {len(registry())} files of the Covid-19 record are missing or incomplete in {folder} "
        f"({first_few(files)}) and could not be downloaded: {reason}. "
        f"Get them from {SOURCE} and set {VARIABLE} to their folder"
    )


def download_files(files: Sequence[str], folder: Path, base_url: str, progress: bool) -> None:
    """Download into the cache. Pooch names a file only when it is complete and its checksum is right."""
    import pooch
    from tqdm import tqdm

    store = pooch.create(
        path=folder,
        base_url=base_url,
        registry={name: f"sha256:{digest}" for name, digest in registry().items()},
        retry_if_failed=RETRIES,
    )
    downloader = pooch.HTTPDownloader(timeout=TIMEOUT)
    # disable=None: silent when piped
    bar = tqdm(total=len(files), desc="Covid-19 record", unit="file", disable=None if progress else True)

    def one(name: str) -> None:
        store.fetch(name, downloader=downloader)
        bar.update()

    with quiet(pooch.get_logger()), bar:
        one(files[0])  # alone: without a network there is one timeout, not one for each file
        pool = ThreadPoolExecutor(WORKERS)
        try:
            list(pool.map(one, files[1:]))
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def quiet(logger: Any) -> Iterator[None]:
    """Without a line on stderr for every file, as there is a progress bar."""
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def parse_record(files: Mapping[str, bytes]) -> CovidRecord:
    """The record from the content of its files, in the order of days; their checksums say that it is well formed."""
    tables = [
        {row["denominazione_regione"]: row for row in csv.DictReader(content.decode("utf-8-sig").splitlines())}
        for content in files.values()
    ]

    def column(table: Mapping[str, Mapping[str, str]], name: str) -> list[float]:
        return [float(table[region][name]) for region in REGIONS.values()]

    return CovidRecord(
        days=tuple(day_of(name) for name in files),
        regions=tuple(REGIONS),
        names=tuple(REGIONS.values()),
        cases=np.array([column(table, "nuovi_positivi") for table in tables]),  # negative: corrections of earlier days
        latitude=np.array(column(tables[0], "lat")),
        longitude=np.array(column(tables[0], "long")),
        source="record",
        attribution=ATTRIBUTION,
    )


# (latitude, longitude) of the regions' capitals, in the order of REGIONS
PLACES = (
    (42.35, 13.40), (40.64, 15.81), (38.91, 16.59), (40.84, 14.25), (44.49, 11.34), (45.65, 13.77), (41.89, 12.48),
    (44.41, 8.93), (45.47, 9.19), (43.62, 13.52), (41.56, 14.66), (46.50, 11.36), (46.07, 11.12), (45.07, 7.68),
    (41.13, 16.87), (39.22, 9.11), (38.12, 13.36), (43.77, 11.26), (43.11, 12.39), (45.74, 7.32), (45.43, 12.34),
)  # fmt: skip
LOCKDOWN_DAYS = days_between(date(2020, 4, 13), DENSITY_WINDOW[1])
STUDY_DAYS = days_between(date(2020, 7, 24), STUDY_WINDOW[1])
NEIGHBOURS = 3
SIMULATED = "Simulated outbreak (seed {seed}): not real data, except for the names and places of the regions"


class Outbreak(NamedTuple):
    """A simulation with everything known."""

    record: CovidRecord
    adjacency: Array  # (21, 21): the mobility graph; no spill-over in the lockdown window
    specific: Array  # (days, 21): region-specific cases, which the real record does not have


def simulated_outbreak(seed: int = 0, *, noise: float = 0.0) -> tuple[CovidRecord, Array]:
    """A record with source "simulated", and its true adjacency.

    >>> record, adjacency = simulated_outbreak(seed=1)
    >>> record.source, record.cases.shape, adjacency.shape
    ('simulated', (139, 21), (21, 21))
    """
    return outbreak(seed, noise=noise)[:2]


def outbreak(seed: int = 0, *, noise: float = 0.0) -> Outbreak:
    """Simulate both windows: y = b under lockdown, y = (I - A)^-1 (b + e) in the study window.

    noise: standard deviation of e as a share of the region's mean specific cases. Cases are not rounded, so that
    without noise the model holds exactly.
    """
    validate.number("noise", noise, "a finite number >= 0", low=0, high=np.inf)
    rng = Rng(seed)
    a = mobility(rng)
    n, before, after = len(REGIONS), len(LOCKDOWN_DAYS), len(STUDY_DAYS)
    levels = 40.0 * np.exp(rng.at(Purpose.WORLD, 0).normal(n))
    shocks = np.stack([rng.at(Purpose.WORLD, 1 + d).normal(2 * n) for d in range(before + after)])
    specific = levels * np.exp(0.35 * shocks[:, :n] - 0.35**2 / 2)  # mean: levels
    driven = specific[before:] + noise * levels * shocks[before:, n:]
    cases = np.concatenate([specific[:before], np.linalg.solve(np.eye(n) - a, driven.T).T])
    places = np.array(PLACES)
    record = CovidRecord(
        days=(*LOCKDOWN_DAYS, *STUDY_DAYS),
        regions=tuple(REGIONS),
        names=tuple(REGIONS.values()),
        cases=cases,
        latitude=places[:, 0],
        longitude=places[:, 1],
        source="simulated",
        attribution=SIMULATED.format(seed=seed),
    )
    return Outbreak(record, a, specific)


def mobility(rng: Rng) -> Array:
    """Each region is affected by its nearest neighbours, more by nearer ones; rows sum to 0.2 to 0.6."""
    n = len(PLACES)
    far = distances()
    near = np.argsort(far, axis=1)[:, 1 : NEIGHBOURS + 1]
    draws = rng.at(Purpose.START)
    strength = np.zeros((n, n))
    pulls = 0.5 + draws.uniform(n * NEIGHBOURS).reshape(n, NEIGHBOURS)
    np.put_along_axis(strength, near, pulls / np.take_along_axis(far, near, axis=1), axis=1)
    totals = 0.2 + 0.4 * draws.uniform(n)
    return np.asarray(totals[:, None] * strength / strength.sum(axis=1, keepdims=True))


def distances() -> Array:
    """Kilometres between the regions' capitals, on a sphere, (21, 21)."""
    north, east = np.radians(np.array(PLACES).T)
    part = np.sin((north[:, None] - north) / 2) ** 2
    part += np.cos(north[:, None]) * np.cos(north) * np.sin((east[:, None] - east) / 2) ** 2
    return np.asarray(2 * 6371.0 * np.arcsin(np.sqrt(np.clip(part, 0, 1))))
