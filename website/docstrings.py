"""Docstrings as Markdown: examples become code, and lines such as `budget: the most arms` a list."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>>.*\n(?:(?!\s*$).*\n?)*", re.MULTILINE)  # up to an empty line
PARAMETER = re.compile(r"^([a-z_]\w*(?:, [a-z_]\w*)*|[A-Z]): (?=\S)", re.MULTILINE)


def as_markdown(text: str) -> str:
    """A docstring of this project as Markdown."""
    parts = []
    end = 0
    for example in EXAMPLE.finditer(text):
        parts += [prose(text[end : example.start()]), f"```pycon\n{example[0].rstrip()}\n```\n"]
        end = example.end()
    return "".join([*parts, prose(text[end:])])


def prose(text: str) -> str:
    """Sentences, with parameters in a list."""
    lines = text.split("\n")
    written = []
    listed = False
    for line in lines:
        if PARAMETER.match(line):
            written += [] if listed else [""]
            written.append(PARAMETER.sub(lambda name: f"- `{name[1]}`: ", line))
            listed = True
        else:
            written.append(f"  {line}" if listed and line else line)
            listed = listed and bool(line)
    return "\n".join(written)


class Docstrings(griffe.Extension):
    """Rewrites every docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
