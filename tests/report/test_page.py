"""The first section of a page: three or four sentences, then the main numbers."""

import pandas as pd
import pytest

from spillover.report.page import short_body

NUMBERS = pd.DataFrame({"policy": ["NDC-SEM"], "regret": ["1,234 [1,000, 1,468]"]})


def test_three_sentences_and_a_table_with_numbers_on_the_right() -> None:
    page = short_body(("One & one.", "Two.", "Three."), NUMBERS, "regret")
    assert page.startswith("<p>One &amp; one. Two. Three.</p>")
    assert '<th scope="col" style="text-align:left">policy' in page
    assert '<th scope="col" style="text-align:right' in page
    assert "<caption>regret</caption>" in page


@pytest.mark.parametrize(
    "sentences", [("One.", "Two."), ("One.", "Two.", "Three.", "Four.", "Five."), ("One.", "Two", "Three.")]
)
def test_neither_fewer_nor_more(sentences) -> None:
    with pytest.raises(ValueError, match=r"sentences = .*: must be three"):
        short_body(sentences, NUMBERS)
