"""Purchases at a supermarket's till: which brands were promoted, and which one was bought."""

import pandas as pd
from estimates import Estimate, clustered, difference_of_means, regression


def promoted(table: pd.DataFrame, brands: list[str], kinds: list[str]) -> pd.DataFrame:
    """1 where a brand was promoted in any of the ways (on display, featured in the paper)."""
    return pd.DataFrame({brand: table[[f"{kind}.{brand}" for kind in kinds]].max(axis=1) for brand in brands})


def bought(table: pd.DataFrame, brands: list[str]) -> pd.DataFrame:
    """1 for the brand that was bought, 0 for the others."""
    return pd.DataFrame({brand: (table["choice"] == brand).astype(int) for brand in brands})


def within_households(values: pd.DataFrame, households: pd.Series) -> pd.DataFrame:
    """Deviations from each household's average: what a household always buys says nothing about promotions."""
    return values - values.groupby(households).transform("mean")


def effects(sold: pd.DataFrame, promotions: pd.DataFrame, households: pd.Series) -> dict[tuple[str, str], Estimate]:
    """Estimate what promoting a brand does to the purchases of each, by (promoted, bought), within households."""
    return pooled_effects(within_households(sold, households), within_households(promotions, households), households)


def pooled_effects(
    sold: pd.DataFrame, promotions: pd.DataFrame, households: pd.Series
) -> dict[tuple[str, str], Estimate]:
    """Estimate these effects with all purchases compared, whoever made them."""
    rows = {brand: regression(sold[brand], promotions, clustered(households)) for brand in sold}
    return {(str(arm), str(brand)): rows[brand][str(arm)] for arm in promotions for brand in sold}


def written(table: pd.DataFrame, promotions: pd.DataFrame, sold: pd.DataFrame) -> pd.DataFrame:
    """A row for each purchase: the decisions, what came out, and the prices."""
    purchase = pd.Series(range(1, len(table) + 1), name="purchase")
    prices = table.filter(regex=r"^price\.").rename(columns=lambda name: name.replace(".", "_"))
    return pd.concat([purchase, promotions.add_prefix("promoted_"), sold.add_prefix("bought_"), prices], axis=1)


def shown(sold: pd.DataFrame, promotions: pd.DataFrame, households: pd.Series) -> str:
    """The analyst's table: the raw difference of means, and the estimate within households with its 95% interval."""
    found = effects(sold, promotions, households)
    lines = [f"{'promoted':<9}{'bought':<9}{'raw':>7}  within households [95%]"]
    for arm in promotions:
        for brand in sold:
            raw = difference_of_means(sold[brand], promotions[arm])
            lines.append(f"{arm:<9}{brand:<9}{raw:>+7.3f}  {found[str(arm), str(brand)].text()}")
    return "\n".join(lines)
