"""Names of columns that people give to rounds, arms, decisions and outcomes, and how sure each of them is."""

import re
from functools import lru_cache

# The better the rank of a name (from 0), the surer it is. Names are compared without case, blanks and punctuation.
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


@lru_cache(4096)
def plain(name: str) -> str:
    """A name without case, blanks and punctuation.

    >>> plain("Week-of "), plain("is_treated")
    ('weekof', 'istreated')
    """
    return re.sub(r"[\W_]+", "", name.casefold())


@lru_cache(65536)
def rank(name: str, words: tuple[str, ...]) -> int | None:
    """How sure a name is, from 0 (most sure); None if it is not among the words."""
    folded = plain(name)
    for position, some in enumerate(words):
        if folded in some.split():
            return position
    return None


def is_a(name: str, words: str) -> bool:
    return plain(name) in words.split()


@lru_cache(65536)
def level_of(name: str, some: tuple[str, ...]) -> int:
    """How sure a name is: the whole name is known, or a part of it."""
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
