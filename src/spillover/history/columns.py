"""The meaning of columns: the names people give them, the grammar of `--columns`, the reading of a whole table."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from spillover.formatting import first_of
from spillover.validate import shortened

# The better the rank of a name (from 0), the surer it is. Names are compared without case, blanks and punctuation.

if TYPE_CHECKING:
    from spillover.history.frame import Frame


ROUND = (
    "round date datetime timestamp time ds day week month quarter period t step trial epoch yearmonth yearweek "
    "yearquarter datum woche monat fecha wk weekstart weekending weekcommencing weekof",
    "year yr jahr",
)
ARM = (
    "arm channel store brand product region unit action item market sku shop site geo dma",
    "state city country zipcode zip postcode campaign ad keyword firm fcode company district county hospital school "
    "plant branch outlet department segment cohort group location territory banner campaignid storeid unitid "
    "productid regionid itemid firmid stateid cityid",
)
CHOSEN = (
    "chosen treated treatment treat trt active promoted promotion promo on x decision selected played intervention "
    "istreated ischosen ispromoted isactive isontreatment ispromo onpromotion exposed assigned",
    "campaign grant law policy subsidy program programme feat feature featured disp display displayed coupon discount "
    "ad advertised advertising ads email flag switch used open iscampaign adoption adopted spend cost budget s dose "
    "amount media",
)
OUTCOME = (
    "y outcome outcomes reward payoff target response total overall result",
    "sales revenue clicks conversions orders units profit turnover cases deaths visits signups purchases "
    "leads bookings demand share volume quantity sold gmv installs rides choice umsatz",
)
OWN = ("z own ownreward owneffect direct directreward instantaneous instantaneousreward",)
CONTEXT = (
    "holiday weekend weekday season event temperature temp rain weather price month quarter dayofweek isholiday "
    "isweekend isweekday schoolholiday competitor",
)
ROW_NUMBER = ("rownames rowname unnamed0 index row rowid obs observation rownum rownumber no nr level0",)
YEAR = ("year yr jahr",)
PARTS = {"month": "month mon monat mo", "quarter": "quarter qtr q quartal", "week": "week wk woche isoweek kw"}
DAY = "day dom dayofmonth mday"
NAMED, KNOWN, PARTLY, UNNAMED = 30, 20, 10, 0  # levels of names
CALENDAR = (
    "jan feb mar apr may jun jul aug sep oct nov dec january february march april june july august september october "
    "november december mon tue wed thu fri sat sun monday tuesday wednesday thursday friday saturday sunday spring "
    "summer autumn fall winter spr sum q1 q2 q3 q4 christmas xmas easter"
)
TOTAL = "total totals sum all overall grandtotal subtotal gesamt summe"


MOST_ARMS = 100_000


def natural_order(names: list[str]) -> list[int]:
    """Positions of names in natural order: arm 2 before arm 10.

    >>> natural_order(["arm 10", "arm 2", "Arm 1"])
    [2, 1, 0]
    """
    return sorted(range(len(names)), key=lambda k: natural(names[k]))


def natural(name: str) -> tuple[Any, ...]:
    parts = re.split(r"(\d+)", name.casefold())
    return [by_size(part) if k % 2 else part for k, part in enumerate(parts)], name


def by_size(digits: str) -> tuple[int, str]:
    """Sorts digits as the number that they are, however many there are."""
    plain = digits.lstrip("0")
    return len(plain), plain


@lru_cache(4096)
def plain(name: str) -> str:
    """A name without case, blanks and punctuation.

    >>> plain("Week-of "), plain("is_treated")
    ('weekof', 'istreated')
    """
    return re.sub(r"[\W_]+", "", name.casefold())


@lru_cache(65536)
def rank(name: str, words: tuple[str, ...]) -> int | None:
    """Rank a name among its synonyms, from 0 (surest); None if it is none of them."""
    folded = plain(name)
    for position, some in enumerate(words):
        if folded in some.split():
            return position
    return None


def is_a(name: str, words: str) -> bool:
    return plain(name) in words.split()


@lru_cache(65536)
def level_of(name: str, some: tuple[str, ...]) -> int:
    """Rate how well a name is known: as a whole, or in part."""
    position = rank(name, some)
    if position is not None:
        return NAMED if position == 0 else KNOWN
    return (
        PARTLY if parts_of(name) & set(" ".join(some).split()) - {"on", "x", "t", "y", "s", "ad", "open"} else UNNAMED
    )


@lru_cache(65536)
def parts_of(name: str) -> frozenset[str]:
    """The words in a name."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return frozenset(part for part in re.split(r"[\W_\d]+", spaced.casefold()) if part)


@lru_cache(65536)
def is_circumstance(name: str) -> bool:
    """Whether a name is that of a season, a holiday, a price: something that nobody chooses, or context at best."""
    known = set(CONTEXT[0].split())
    return bool(parts_of(name) & (known | set(CALENDAR.split()))) or plain(name) in known


def is_outcome(name: str) -> bool:
    """Whether a name is that of an outcome, and not of a decision."""
    return rank(name, OUTCOME) is not None and rank(name, CHOSEN) is None


def is_total(name: str) -> bool:
    """Whether a name is that of a total.

    >>> is_total("Grand total"), is_total("totality")
    (True, False)
    """
    return is_a(name, TOTAL)


CLOSE = 0.6  # similarity, 0 to 1, from which on a name is suggested: rounds for round, not Datum for arm
SPECIAL = ',;=:*"'
ACCEPTED = (
    "pairs such as round=day,arm=region or round=day,chosen=promo.*,outcome=sales.*, of round, arm, chosen, dose, z, "
    "outcome (or y) and context"
)
ROLES = ("round", "arm", "chosen", "dose", "z", "y", "outcome", "context")
PLAIN_ROLES = ("round", "arm", "chosen", "z", "y")  # the columns of the plain form, named so unless they are given
MAY_BE_EMPTY = ("round", "outcome", "y", "z", "context")
NONE = ""  # --columns y= means that there is no y
STAR = "\0"  # the asterisk, in a pattern whose names may contain any other sign
Tokens = list[tuple[str, bool]]  # signs, and whether each is in quotes
SEPARATOR = re.compile(r"[._\-:/|# ]+")
GIVEN, BY_NAME = "given", "by its name"
ABOUT = {
    "round": "the round: a whole number, a date, a month ...",
    "arm": "the name of the arm",
    "chosen": "whether the arm was chosen",
    "dose": "the amount for the arm",
    "z": "the arm's own reward",
    "outcome": "the outcome",
    "context": "context, known before the decision",
}


def quote_names(names: Sequence[str]) -> str:
    """The first names in quotes, and how many more there are."""
    return first_of(list(map(repr, names)), 12) or "none"


def did_you_mean(given: str, names: Sequence[str] | Mapping[str, str]) -> str:
    """A suggestion of the most similar name, if one is similar enough."""
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(given.casefold(), list(folded), 1, CLOSE)
    return f"; did you mean {folded[close[0]]}?" if close else ""


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
    for role in (*PLAIN_ROLES, "outcome"):
        names = [item.name for item in found.get(role, ())]
        several = [name.casefold() for name in names] if len(set(names)) < len(names) else {*map(str.casefold, names)}
        for name in several:
            meanings.setdefault(name, []).append(role)
    for role in ("round", "arm", "z"):
        for item in found.get(role, ()):
            name = item.name.casefold()
            if name in PLAIN_ROLES and name not in found and not (name == "y" and "outcome" in found):
                meanings[name].append(name)
    order = [*PLAIN_ROLES, "outcome"]
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
        if (
            role not in PLAIN_ROLES
            or len(items) > 1
            or any(item.label is not None or item.is_pattern for item in items)
        ):
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
    """Split at a separator that is not in quotes, at most `most` times."""
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
    """Return what the asterisk of a pattern stands for in a name; None if the name does not match.

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


class Group(NamedTuple):
    """Columns whose names differ in one part only: the arm's name."""

    key: str  # what they have in common, such as feat
    pattern: str  # with STAR for the arm's name
    columns: tuple[str, ...]
    arms: tuple[str, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(Item(column, arm) for column, arm in zip(self.columns, self.arms, strict=True))


def find_groups(names: Sequence[str]) -> list[Group]:
    """Every group of at least two columns, the largest first.

    >>> [(group.key, group.arms) for group in find_groups(["date", "tv_S", "ooh_S", "sales"])]
    [('S', ('tv', 'ooh'))]
    """
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for name in names:
        for match in SEPARATOR.finditer(name):
            before, sign, after = name[: match.start()], match.group(), name[match.end() :]
            if before and after:
                found.setdefault(f"{before}{sign}{STAR}", (before, []))[1].append((name, after))
                found.setdefault(f"{STAR}{sign}{after}", (after, []))[1].append((name, before))
    groups = [
        Group(key, pattern, tuple(name for name, _ in members), tuple(arm for _, arm in members))
        for pattern, (key, members) in found.items()
        if len(members) > 1 and len({arm for _, arm in members}) == len(members)
    ]
    return sorted(groups, key=lambda group: -len(group.columns))


def compact(items: Sequence[Item], names: Sequence[str]) -> tuple[Item, ...]:
    """Items in their shortest form that still names exactly these columns with these arms, among all the names."""
    for group in find_groups([item.name for item in items]):
        if set(group.items) == set(items) and matched(group.pattern, names) == set(items):
            return (Item(group.pattern),)
    return tuple(Item(item.name) if item.label in (None, item.name) else item for item in items)


def matched(pattern: str, names: Sequence[str]) -> set[Item]:
    """All columns that match a pattern."""
    found = ((name, matches(pattern, name)) for name in names)
    return {Item(name, arm) for name, arm in found if arm is not None}


def collapsed(names: Sequence[str], among: Sequence[str]) -> list[str]:
    """Names for a list in a message: price.* for all columns of a group that are there.

    >>> [text.replace(STAR, "*") for text in collapsed(["price.a", "temp", "price.b"], ["price.a", "price.b", "temp"])]
    ['price.*', 'temp']
    """
    left = list(names)
    for group in find_groups(names):
        whole = {item.name for item in matched(group.pattern, among)} == set(group.columns)
        if whole and set(group.columns) <= set(left):
            left[left.index(group.columns[0])] = group.pattern
            left = [name for name in left if name not in group.columns]
    return left


class TakenColumn(NamedTuple):
    """The meaning that a column was given, and why."""

    column: str
    meaning: str
    reason: str


@dataclass(frozen=True, eq=False)
class Reading:
    """The columns of a table by their meaning; with an `arm` column there is one row for each round and arm."""

    round: tuple[str, ...] = ()  # one column, or year and month (quarter, week; day); none: the rows in their order
    arm: str | None = None
    chosen: tuple[Item, ...] = ()  # with arms as labels, if there is one row for each round
    amounts: bool = False  # whether `chosen` holds amounts
    outcome: tuple[Item, ...] = ()
    own: tuple[Item, ...] = ()
    context: tuple[Item, ...] = ()  # columns, or built-in names
    reasons: Mapping[str, str] = field(default_factory=dict)  # role -> why

    @property
    def used(self) -> set[str]:
        """The columns that have a meaning, without context."""
        items = (*self.chosen, *self.outcome, *self.own)
        return {*self.round, *((self.arm,) if self.arm else ()), *(item.name for item in items)}

    def taken(self, names: Sequence[str]) -> tuple[TakenColumn, ...]:
        """List the meaning of each column, in the order of the table."""
        chosen = "dose" if self.amounts else "chosen"
        roles = {name: "round" for name in self.round} | ({self.arm: "arm"} if self.arm else {})
        roles |= {item.name: "context" for item in self.context if item.name in names}
        for role, items in ((chosen, self.chosen), ("outcome", self.outcome), ("z", self.own)):
            roles |= {item.name: role for item in items}
        whole = {"dose": "chosen"}
        reasons = {name: self.reasons.get(whole.get(role, role), GIVEN) for name, role in roles.items()}
        return tuple(TakenColumn(name, roles[name], reasons[name]) for name in names if name in roles)

    def columns(self, names: Sequence[str]) -> str:
        """The text for `--columns` that gives this reading of a table with these columns."""
        left, found = list(names), dict[str, tuple[Item, ...]]()
        found["round"] = tuple(Item(name) for name in self.round)
        if self.arm is not None:
            found["arm"] = (Item(self.arm),)
        parts = {"dose" if self.amounts else "chosen": self.chosen, "z": self.own, "outcome": self.outcome}
        left = [name for name in left if name not in (*self.round, self.arm)]
        for role, items in parts.items():
            if items:
                found[role] = compact(items, left)
                left = [name for name in left if name not in {item.name for item in items}]
        if self.context:
            found["context"] = compact(self.context, left) if len(self.context) > 1 else self.context
        return write_columns(found)


def option_line(columns: str, further: Sequence[str] = ()) -> str:
    """The options to paste on a command line.

    >>> option_line("chosen=feat.*")
    "--columns 'chosen=feat.*'"
    """
    return " ".join(["--columns", shlex.quote(columns), *further])


def resolve(frame: "Frame", wanted: Wanted) -> Wanted:
    """The given columns as they are called in the table; patterns become all columns that match."""
    found: Wanted = {}
    for role in ("round", "arm", "chosen", "dose", "z", "outcome"):
        if role in wanted:
            taken = {item.name for items in found.values() for item in items}
            left = [name for name in frame.names if name not in taken]
            found[role] = tuple(one for item in wanted[role] for one in resolve_item(frame, item, role, left))
    check_used_once(found)
    return found


def resolve_item(frame: "Frame", item: Item, role: str, left: Sequence[str]) -> list[Item]:
    """The columns that an item names; an error if there are none."""
    if item.is_pattern:
        found = [Item(name, arm) for name in left if (arm := matches(item.name, name)) is not None]
    else:
        same = [name for name in frame.names if name == item.name]
        folded = [name for name in frame.names if name.casefold() == item.name.casefold()]
        found = [Item(name, item.label) for name in same or (folded if len(folded) == 1 else [])]
    if not found:
        name = item.name.replace("\0", "*")
        there = f"there are: {quote_names(frame.names)}{did_you_mean(name, frame.names)}"
        raise ValueError(f"{frame.name}: no column {name!r} ({ABOUT[role]}); {there}")
    return found


def check_used_once(found: Wanted) -> None:
    """Refuse one column with two meanings."""
    often = Counter(item.name for items in found.values() for item in items)
    for name, times in often.items():
        if times > 1:
            roles = [role for role, items in found.items() for item in items if item.name == name]
            raise ValueError(f"columns: must use each column once, but {name!r} is {' and '.join(roles)}")
