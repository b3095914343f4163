"""The answer of the service is that of `spillover next` on the stream's export, reasons included."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spillover.service import Service, decisions
from tests.cli.calls import call
from tests.properties import COMMON, examples
from tests.service.memory_log import MemoryLog
from tests.service.stories import Story


def same_as_next(folder, service: Service, stream: str, label: str, form: str) -> None:
    """Export what a decision was made from, ask `spillover next`, and compare."""
    export = service.export(stream, form, round=label)
    path = folder / f"export.{form}"
    path.write_bytes(export.content)
    (folder / "limits.toml").write_text(export.limits)
    options = [str(folder / text) if text == "limits.toml" else text for text in export.options]
    printed = call("next", path, "--json", "--quiet", *options)
    assert printed.exit_code == 0, printed.output
    answer = json.loads(printed.stdout)
    assert answer.pop("file") == str(path)
    expected = service.explain(stream, label)
    assert expected.pop("file") == "-"
    assert answer == expected
    event = service.decision(stream, label).event
    assert list(event.chosen) == answer["choose"]
    parts = ("direct", "spilled_over", "exploration", "score")
    for arm in answer["reasons"]["arms"]:
        assert {name: event.scores[arm["arm"]][name] for name in parts} == {name: arm[name] for name in parts}


def story_is_told_alike(folder, seed: int, rounds: int, checks: int) -> None:
    service = Service(MemoryLog())
    story = Story(service, "shop", seed)
    with pytest.MonkeyPatch.context() as patch:
        if seed % 4:  # otherwise short streams are learned from scratch each time
            patch.setattr(decisions, "NOTICEABLE", -1.0)
        story.live(rounds)
    for k, label in enumerate(story.rng.choice(story.decided, checks, replace=False)):
        same_as_next(folder, service, "shop", str(label), "csv" if k % 2 == 0 else "parquet")
    same_as_next(folder, service, "shop", story.decided[-1], "csv")
    same_as_next(folder, service, "shop", story.decided[0], "csv")
    service.close()


@examples(15)
@given(seed=st.integers(0, 2**32 - 1))
def test_random_streams_are_decided_as_next_decides_their_exports(tmp_path_factory, seed) -> None:
    story_is_told_alike(tmp_path_factory.mktemp("story"), seed, 12, 1)


@pytest.mark.long
@settings(COMMON, max_examples=10_000, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), rounds=st.integers(3, 30))
def test_ten_thousand_streams_are_decided_as_next_decides_their_exports(tmp_path_factory, seed, rounds) -> None:
    story_is_told_alike(tmp_path_factory.mktemp("story"), seed, rounds, 1)
