"""The grammar of `--columns`: which columns of a table are rounds, arms, decisions, outcomes and context.

    round=week,arm=store,chosen=promo,outcome=sales,context=price;temp     one row for each round and arm
    round=date,chosen=feat.*,outcome=sales.*,context=price.*               one row for each round

Pairs are separated by commas, the columns of a pair by semicolons. An asterisk stands for the arm's name. `tv:spend_1`
names the arm of a column. A name that contains one of , ; = : * " is written in double quotes ("" for a quote in it).
`dose=` stands for `chosen=` where columns hold amounts; `round=` (with nothing) takes the rows in their order.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from spillover.history.naming import did_you_mean
from spillover.validate import shortened

SPECIAL = ',;=:*"'
ACCEPTED = (
    "pairs such as round=day,arm=region or round=day,chosen=promo.*,outcome=sales.*, of round, arm, chosen, dose, z, "
    "outcome (or y) and context"
)
ROLES = ("round", "arm", "chosen", "dose", "z", "y", "outcome", "context")
PLAIN = ("round", "arm", "chosen", "z", "y")  # the columns of the plain form, named so unless they are given
MAY_BE_EMPTY = ("round", "outcome", "y", "z", "context")
NONE = ""  # --columns y= means that there is no y
STAR = "\0"  # the asterisk, in a pattern whose names may contain any other sign


class Item(NamedTuple):
    """One column, or a pattern with an asterisk for the arm's name (`name` then contains STAR)."""

    name: str
    label: str | None = None  # the arm that it belongs to, if it was given

    @property
    def is_pattern(self) -> bool:
        return STAR in self.name

    def names(self, column: str) -> bool:
        """Whether it names a column of a table."""
        return matches(self.name, column) is not None if self.is_pattern else self.name.casefold() == column.casefold()


Wanted = dict[str, tuple[Item, ...]]  # role -> columns


def read_columns(text: str) -> Wanted:
    """The value of `--columns`.

    >>> read_columns("round=day, arm=region")
    {'round': (Item(name='day', label=None),), 'arm': (Item(name='region', label=None),)}
    >>> read_columns('chosen=tv:"spend, tv";ooh')["chosen"]
    (Item(name='spend, tv', label='tv'), Item(name='ooh', label=None))
    """
    found: Wanted = {}
    for part in split(tokens(text), ","):
        before, *after = split(part, "=", most=1)
        role = plain_text(before)
        if not after or role not in ROLES or role in found:
            raise ValueError(f"columns = {shortened(repr(text))}: must be {ACCEPTED}{did_you_mean(role, ROLES)}")
        items = read_items(after[0], ";")
        if (not items and role not in MAY_BE_EMPTY) or (role == "arm" and len(items) != 1):
            raise ValueError(f"columns = {shortened(repr(text))}: must be {ACCEPTED}; {role} has {len(items)} columns")
        found[role] = items
    check_distinct(found, text)
    return found


def check_distinct(found: Wanted, given: object) -> None:
    """Refuse names that give one column two meanings; those of rounds, arms and z may not be those of others."""
    if "y" in found and "outcome" in found:
        raise ValueError(f"columns = {shortened(repr(given))}: must have y= or outcome=, not both: they mean the same")
    meanings: dict[str, list[str]] = {}
    for role in (*PLAIN, "outcome"):
        names = [item.name for item in found.get(role, ())]
        several = [name.casefold() for name in names] if len(set(names)) < len(names) else {*map(str.casefold, names)}
        for name in several:
            meanings.setdefault(name, []).append(role)
    for role in ("round", "arm", "z"):
        for item in found.get(role, ()):
            name = item.name.casefold()
            if name in PLAIN and name not in found and not (name == "y" and "outcome" in found):
                meanings[name].append(name)
    order = [*PLAIN, "outcome"]
    for name, several in meanings.items():
        if len(several) > 1:
            without = "; y= if there is no y" if "y" in several and "y" not in found else ""
            both = " and ".join(sorted(several, key=order.index))
            raise ValueError(
                f"columns = {shortened(repr(given))}: must use each column once, but {name!r} is {both}{without}"
            )


def plain_names(wanted: Wanted) -> dict[str, str] | None:
    """The given names of the columns of the plain form; None if more than that was given."""
    found: dict[str, str] = {}
    for role, items in wanted.items():
        if role not in PLAIN or len(items) > 1 or any(item.label is not None or item.is_pattern for item in items):
            return None
        found[role] = items[0].name if items else NONE
    return found


def any_form(wanted: Wanted) -> Wanted:
    """Columns of any table: y is the outcome."""
    return {"outcome" if role == "y" else role: items for role, items in wanted.items()}


def read_names(text: str) -> tuple[Item, ...]:
    """The value of `--context`: names separated by commas."""
    return read_items(
        [(sign if not (sign == ";" and not quoted) else ",", quoted) for sign, quoted in tokens(text)], ","
    )


def read_items(part: "Tokens", separator: str) -> tuple[Item, ...]:
    found = []
    for piece in split(part, separator):
        label, *rest = split(piece, ":", most=1)
        name = trimmed(rest[0] if rest else label)
        text = "".join(STAR if sign == "*" and not quoted else sign for sign, quoted in name)
        if text.count(STAR) > 1:
            raise ValueError(f"columns: {text.replace(STAR, '*')!r}: must have one asterisk at most")
        if text:
            found.append(Item(text, plain_text(label) if rest else None))
    return tuple(found)


Tokens = list[tuple[str, bool]]  # signs, and whether each is in quotes


def tokens(text: str) -> Tokens:
    """The signs of a text; quotes are removed, and doubled ones inside quotes stand for one."""
    found: Tokens = []
    quoted, place = False, 0
    while place < len(text):
        sign = text[place]
        if sign == '"' and quoted and text[place + 1 : place + 2] == '"':
            found.append((sign, True))
            place += 1
        elif sign == '"':
            quoted = not quoted
        else:
            found.append((sign, quoted))
        place += 1
    if quoted:
        raise ValueError(f"columns = {shortened(repr(text))}: must close every quote that it opens")
    return found


def split(part: Tokens, separator: str, most: int = -1) -> list[Tokens]:
    """Split at a separator that is not in quotes, at most so many times."""
    found: list[Tokens] = [[]]
    for sign, quoted in part:
        if sign == separator and not quoted and (most < 0 or len(found) <= most):
            found.append([])
        else:
            found[-1].append((sign, quoted))
    return found


def trimmed(part: Tokens) -> Tokens:
    """Without blanks at the ends, except those in quotes."""
    kept = [k for k, (sign, quoted) in enumerate(part) if quoted or not sign.isspace()]
    return part[kept[0] : kept[-1] + 1] if kept else []


def plain_text(part: Tokens) -> str:
    return "".join(sign for sign, _ in trimmed(part))


def as_wanted(given: str | Mapping[str, object] | None) -> Wanted:
    """`columns` in any of its forms: text, a mapping to names or lists of names, or what `read_columns` returned."""
    if given is None:
        return {}
    if isinstance(given, str):
        return read_columns(given)
    found: Wanted = {}
    for role, value in given.items():
        if role not in ROLES:
            accepted = f"{', '.join(ROLES)}{did_you_mean(role, ROLES)}"
            raise ValueError(f"columns = {shortened(repr(dict(given)))}: must have keys among {accepted}")
        found[role] = as_items(value)
    check_distinct(found, dict(given))
    return found


def as_items(value: object) -> tuple[Item, ...]:
    """Names of columns as items; an asterisk in a name stands for the arm's name."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Item(value.replace("*", STAR)),)
    if isinstance(value, Mapping):
        return tuple(Item(str(name), str(label)) for label, name in value.items())
    if isinstance(value, Iterable):
        return tuple(one if isinstance(one, Item) else Item(str(one).replace("*", STAR)) for one in value)
    raise ValueError(
        f"columns = {shortened(repr(value))}: must be a name, a list of names, or a mapping from arms to names"
    )


def matches(pattern: str, name: str) -> str | None:
    """What the asterisk of a pattern stands for in a name; None if the name does not match.

    >>> matches("feat." + STAR, "feat.heinz41")
    'heinz41'
    """
    form = "(.+?)".join(re.escape(part) for part in pattern.split(STAR))
    found = re.fullmatch(form, name, re.IGNORECASE | re.DOTALL)
    return found[1] if found else None


def write_columns(found: Mapping[str, Sequence[Item]]) -> str:
    """The text that `read_columns` reads as these columns."""
    pairs = []
    for role in ROLES:
        if role in found:
            pairs.append(f"{role}={';'.join(write_item(item) for item in found[role])}")
    return ",".join(pairs)


def write_item(item: Item) -> str:
    label = "" if item.label is None else f"{quoted_name(item.label)}:"
    return label + "*".join(quoted_name(part) if part else "" for part in item.name.split(STAR))


def quoted_name(name: str) -> str:
    """A name in quotes where it would be misread without them.

    >>> quoted_name("sales"), quoted_name('5" pizza, large')
    ('sales', '"5"" pizza, large"')
    """
    if name and name == name.strip() and not any(sign in SPECIAL for sign in name):
        return name
    return '"' + name.replace('"', '""') + '"'
