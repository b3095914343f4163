"""Texts of a study's page from a TOML file, with places for values as `str.format` has them."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Formatter
from typing import Any

from spillover.metrics import Interval
from spillover.report.claims import Claim, Variant, by_measures, format_ci


@cache
def read_texts(package: str) -> dict[str, Any]:
    """Read `texts.toml` of a package."""
    return tomllib.loads(files(package).joinpath("texts.toml").read_text("utf-8"))


class Texts(Formatter):
    """The texts of a package by dotted keys; `common` are values that every text may use.

    A line break in the file is a space. An `Interval` is written with its ends: `{gain:2}` has two decimals.
    """

    def __init__(self, package: str, **common: Any) -> None:
        self.found, self.common = read_texts(package), common

    def format_field(self, value: Any, format_spec: str) -> str:
        is_interval = isinstance(value, Interval)
        return format_ci(value, int(format_spec or 0)) if is_interval else str(super().format_field(value, format_spec))

    def fill(self, text: str, values: dict[str, Any]) -> str:
        return self.vformat(re.sub(r" *\n *", " ", text.strip("\n")), (), self.common | values)

    def entry(self, key: str) -> Any:
        found: Any = self.found
        for part in key.split("."):
            found = found[part]
        return found

    def __call__(self, key: str, **values: Any) -> str:
        """Return a text with its values."""
        return self.fill(self.entry(key), values)

    def points(self, key: str, **values: Any) -> str:
        """Write a list of pairs, a head and what it is about, as the points of a page."""
        pairs = ([escape(self.fill(text, values)) for text in pair] for pair in self.entry(key))
        return "<ul>" + "".join(f"<li><b>{head}</b> {body}</li>" for head, body in pairs) + "</ul>"

    def claim(self, key: str, verdict: str, variants: Any = (), one: str = "", **values: Any) -> Claim:
        """Make a claim: `source`, `claim`, `finding` and, if there is one, `bar` are the texts of its key."""
        texts = {name: self.fill(text, values) for name, text in self.entry(f"claims.{key}").items()}
        return Claim(**texts, verdict=verdict, variants=tuple(variants), one=one)

    def measured_claim(self, key: str, measures: Sequence[Variant], others: Any = (), **values: Any) -> Claim:
        """Make a claim that is judged by several measures, the first rows below it."""
        verdicts, ones = zip(*((measure.verdict, measure.one) for measure in measures), strict=True)
        return self.claim(key, by_measures(*verdicts), (*measures, *others), by_measures(*ones), **values)

    def variant(self, key: str, verdict: str = "", one: str = "", **values: Any) -> Variant:
        """Make a row below a claim from a pair of texts: the conditions, and the finding."""
        conditions, finding = (self.fill(text, values) for text in self.entry(f"variants.{key}"))
        return Variant(conditions, finding, verdict, one)
