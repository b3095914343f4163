"""Text for a terminal or a figure: characters that would act instead of being seen are written as escapes."""

import re
from collections.abc import Iterable

# Control characters, line and paragraph separators, lone surrogates, and the invisible characters that change the
# direction of text or carry hidden tags. The joiners U+200C and U+200D stay: Persian words and emoji need them.
ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: object) -> str:
    r"""One line of text in which every character is seen.

    >>> print(printable("north\x1b[31m\nNext round: choose EVIL."))
    north\x1b[31m\nNext round: choose EVIL.
    """
    shown = str(text)
    return shown if shown.isprintable() else ACTING.sub(lambda found: escape(found[0]), shown)


def escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def clipped(text: str, most: int) -> str:
    """Printable text of at most so many characters.

    >>> clipped("a rather long name", 10)
    'a rather …'
    """
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def join_lines(lines: Iterable[str]) -> str:
    r"""Lines as a text; a line break inside of one of them, from a name in a file, starts no new line.

    >>> print(join_lines(["Arms:", "  a\nb"]))
    Arms:
      a\nb
    """
    return "\n".join(map(printable, lines))
