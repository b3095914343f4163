"""`--columns`: what is written is read back, whatever the names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillover.history.columns import STAR, Item, as_wanted, read_columns, read_names, write_columns

NAMES = st.text(st.characters(exclude_characters=STAR, exclude_categories=["Cs"]), min_size=1)
ITEMS = st.lists(st.builds(Item, NAMES, st.none() | NAMES), min_size=1, max_size=4).map(tuple)


@given(st.fixed_dictionaries({"chosen": ITEMS, "outcome": ITEMS, "context": ITEMS}), NAMES, NAMES)
def test_any_names_are_read_back(items, start, end) -> None:
    wanted = items | {"dose": (Item(f"{start}{STAR}{end}"),)}
    names = [item.name.casefold() for role in ("chosen", "outcome") for item in wanted[role]]
    if len(set(names)) == len(names):
        assert read_columns(write_columns(wanted)) == {
            role: wanted[role] for role in ("chosen", "dose", "outcome", "context")
        }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rund=day", "did you mean round?"),
        ("day", "must be pairs"),
        ("arm=a;b", "arm has 2 columns"),
        ("arm=", "arm has 0 columns"),
        ("round=a,round=b", "must be pairs"),
        ('round="a', "must close every quote"),
        ("chosen=a*b*", "one asterisk"),
        ("y=a,outcome=b", "not both"),
        ("chosen=a,outcome=A", "'a' is chosen and outcome"),
    ],
)
def test_what_is_wrong_is_said(text, words) -> None:
    with pytest.raises(ValueError, match="columns") as caught:
        read_columns(text)
    assert words in str(caught.value)


def test_other_forms_mean_the_same() -> None:
    expected = read_columns("round=day,chosen=promo.*,outcome=a;b")
    assert as_wanted({"round": "day", "chosen": "promo.*", "outcome": ["a", "b"]}) == expected
    assert as_wanted({"chosen": {"tv": "spend 1"}}) == {"chosen": (Item("spend 1", "tv"),)}
    assert as_wanted(expected) == expected
    assert read_names('price.*,"a, b"; temp') == (Item(f"price.{STAR}"), Item("a, b"), Item("temp"))
