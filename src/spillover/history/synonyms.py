"""Names of columns that people give to rounds, arms, decisions and outcomes."""

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
