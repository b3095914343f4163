"""The options that say how a table is read."""

import click
import pytest
from click.testing import CliRunner

from spillover.cli.options import next_context_option, read_pairs, reading_options, table_options
from spillover.history import read_history
from tests.cli.calls import call
from tests.history.tables import WIDE, csv_text


@click.command()
@click.argument("file")
@table_options
@next_context_option
def shown(file, **options):
    history = read_history(file, **reading_options(options))
    assert options == {}
    click.echo(f"{history.arms} {history.context_names} {history.next_context} {history.minimise}")


def test_options_reach_the_reader(tmp_path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(csv_text(WIDE))
    options = ["--columns", "chosen=promo_*", "--context", "temp", "--next-context", "temp=9", "--minimise"]
    result = CliRunner().invoke(shown, [str(path), *options])
    assert result.output == "('north', 'south') ('temp',) [9.] True\n"
    assert CliRunner().invoke(shown, [str(path), "--dates", "year-first"]).exit_code == 2
    assert CliRunner().invoke(shown, ["-"], input=csv_text(WIDE)).output.startswith("('north', 'south')")


@pytest.mark.parametrize("text", ["price", "price=", "=2", "a=1,a=2"])
def test_pairs_that_are_none(text) -> None:
    with pytest.raises(ValueError, match=r"must be pairs such as price=2\.5"):
        read_pairs(text)


@pytest.mark.parametrize("command", ["check", "evaluate"])
def test_commands_that_do_not_decide_take_no_coming_context(command) -> None:
    assert call(command, "-", "--next-context", "temp=9").exit_code == 2
    assert "--next-context" not in call(command, "--help").output
