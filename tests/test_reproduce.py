"""The reproduction on a small scale: what it writes, and what it says when it cannot."""

import pytest

from spillover import reproduce


def test_it_writes_a_table_and_a_picture(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(reproduce, "DELAYS", (50, 200))
    assert reproduce.main(["--output", str(tmp_path / "out"), "--replications", "2"]) == 0
    rows = (tmp_path / "out" / "regret.csv").read_text().splitlines()
    assert rows[0].startswith("delay,policy,final_regret")
    assert [row.split(",")[:2] for row in rows[1:5]] == [
        ["50", name] for name in ("random", "NDC-SEM", "delayed oracle", "oracle")
    ]
    assert float(rows[4].split(",")[2]) == 0.0  # the oracle's regret
    assert (tmp_path / "out" / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--replications", "0"], "replications = 0: must be"), (["--seed", "-1"], "seed = -1: must be")],
)
def test_bad_input_is_refused_and_nothing_is_written(arguments, message, tmp_path, capsys) -> None:
    assert reproduce.main(["--output", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_is_named(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert reproduce.main(["--output", str(tmp_path / "file" / "below")]) == 2
    assert "file" in capsys.readouterr().err
