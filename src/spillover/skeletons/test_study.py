"""ExampleStudy runs as a whole, recognises its results and writes its page."""

from pathlib import Path

from spillover.skeletons.study import ExampleStudy
from spillover.studies import Request


def test_it_runs_and_writes_its_page(tmp_path: Path) -> None:
    study = ExampleStudy()
    found = study.prepare(Request(output=tmp_path, replications=2))()
    assert study.owns(found["results"])
    assert 'id="answer"' in Path(found["report"]).read_text("utf-8")
    assert len(study.summary(found).rows) == 2
