"""A stream as a file, with the options with which `spillover next` reads it as the service does."""

import csv
import io
import json
import shlex
from dataclasses import dataclass
from typing import Any

from spillover.service.errors import require
from spillover.service.ledger import Ledger
from spillover.service.settings import Settings
from spillover.service.table import Coming, columns_option, table_of

FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "jsonl": "application/x-ndjson"}
LIMITS = "limits.toml"


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file, its media type, the options for `spillover next`, and the content of the limits file if they name one."""

    content: bytes
    media_type: str
    options: tuple[str, ...]
    limits: str
    seq: int  # the last entry that it contains

    @property
    def command(self) -> str:
        """The command that decides the next round from the file."""
        return f"spillover next FILE {shlex.join(self.options)}"


def exported(ledger: Ledger, form: str = "csv", coming: Coming | None = None) -> Export:
    """The rounds of a stream as a file. coming: the round to decide, for the options and, with context, the table."""
    require(form in FORMATS, "format", form, f"one of {', '.join(FORMATS)}")
    content = {"csv": as_csv, "parquet": as_parquet, "jsonl": as_lines}[form](table_of(ledger, coming))
    return Export(
        content=content,
        media_type=FORMATS[form],
        options=tuple(next_options(ledger.settings, coming)),
        limits=limits_file(ledger.settings),
        seq=ledger.head.seq,
    )


def next_options(settings: Settings, coming: Coming | None = None) -> list[str]:
    """The options of `spillover next` that stand for the settings."""
    found = ["--budget", str(settings.budget)]
    found += ["--policy", settings.policy] if settings.policy is not None else []
    for text in settings.set:
        found += ["--set", text]
    for name, given in (("--range", settings.reward_range), ("--overall-range", settings.overall_range)):
        found += [name, *(repr(float(end)) for end in given)] if given is not None else []
    if (columns := columns_option(settings)) is not None:
        found += ["--columns", columns]
    found += ["--context", ",".join(quoted_name(name) for name in settings.context)] if settings.context else []
    found += ["--minimise"] if settings.minimise else []
    found += ["--limits", LIMITS] if settings.limits else []
    found += ["--effort", str(settings.effort)] if settings.effort is not None else []
    found += [] if settings.greedy else ["--explore"]
    found += ["--seed", str(settings.seed)]
    if coming is not None:
        for arm in coming.unavailable:
            found += ["--unavailable", arm]
        found += ["--round", coming.label] if coming.label is not None else []
    return found


def quoted_name(name: str) -> str:
    """A name for an option: in double quotes if it would be split."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',;="*') else name


def as_csv(table: Any) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return text.getvalue().encode()


def as_lines(table: Any) -> bytes:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in table.to_pylist()).encode()


def as_parquet(table: Any) -> bytes:
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue()


def limits_file(settings: Settings) -> str:
    """The limits as TOML."""
    parts = []
    for entry in settings.limits:
        parts.append("\n".join(["[[limits]]", *(f"{toml(name)} = {toml(value)}" for name, value in entry.items())]))
    return "\n\n".join(parts) + "\n" if parts else ""


def toml(value: Any) -> str:
    """A value in TOML, on one line.

    >>> print(toml({"a b": [1, 2.5, "x", True]}))
    {"a b" = [1, 2.5, "x", true]}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
