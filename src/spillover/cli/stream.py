"""`spillover stream`: use a running service from the command line."""

from pathlib import Path
from typing import Any

import click

from spillover.cli.app import Group
from spillover.cli.options import (
    context_in,
    given_settings,
    names_in,
    numbers_by_name,
    range_options,
    service_client,
    url_option,
)
from spillover.cli.output import json_option, print_json, print_table, say

EXAMPLES = (
    "spillover stream create shop --arms radio,video,social --budget 2",
    "spillover stream decide shop 2026-10-12",
    "spillover stream execute shop 2026-10-12",
    "spillover stream report shop 2026-10-12 --z radio=0.4,video=0.7 --y radio=0.5,video=0.9,social=0.2",
    "spillover stream correct shop 2026-10-12 --arm video --y 0.8 --revision 2",
    "spillover stream show shop",
)
FILE = click.Path(path_type=Path)


@click.group(cls=Group, examples=EXAMPLES, short_help="Use a running service: decide, report, correct ...")
def stream() -> None:
    """Use a running service (`spillover serve`): create streams, decide, say what was done, report what came out."""


@stream.command(examples=EXAMPLES[:1], short_help="Create a stream.")
@click.argument("name")
@click.option("--arms", required=True, multiple=True, metavar="NAME,...", help="What can be chosen; repeatable.")
@click.option("--budget", type=int, required=True, help="How many arms may be chosen, at most.")
@click.option(
    "--observes",
    type=click.Choice(["both", "own", "overall", "payoff"]),
    help="What is reported: z and y, z, y, or one number for the round.  [default: both]",
)
@click.option("--policy", help="Policy that decides; see `spillover policies`.")
@click.option("--set", multiple=True, metavar="NAME=VALUE", help="A parameter of the policy; repeatable.")
@range_options
@click.option("--context", metavar="NAMES", help="What is known before each decision; also month, weekday ...")
@click.option("--minimise", is_flag=True, help="Smaller outcomes are better.")
@click.option("--doses", is_flag=True, help="What is executed are amounts (money, hours), not yes or no.")
@click.option("--limits", type=FILE, help="TOML file of constraints.")
@click.option("--effort", type=int, help="Maximal number of search steps under constraints.")
@click.option("--greedy", is_flag=True, help="Choose by what is known alone, without exploration.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of ties and random draws.  [default: 0]")
@click.option("--max-age-rounds", type=int, help="Outcomes that come after that many later rounds are not learned.")
@url_option
def create(name: str, url: str | None, arms: tuple[str, ...], budget: int, **options: Any) -> None:
    """Create the stream NAME. The same again changes nothing."""
    settings = given_settings(options)
    with service_client(url) as client:
        client.create_stream(name, arms=names_in(arms), budget=budget, **settings)
    say(f"created {name}; now run: spillover stream decide {name} ROUND")


@stream.command("list", examples=["spillover stream list --json"], short_help="List the streams.")
@url_option
@json_option
def list_streams(url: str | None, as_json: bool) -> None:
    """List the names of all streams."""
    with service_client(url) as client:
        names = list(client.streams())
    if as_json:
        print_json(names)
    else:
        for name in names:
            say(name)


@stream.command(examples=EXAMPLES[5:], short_help="Show a stream.")
@click.argument("name")
@url_option
@json_option
def show(name: str, url: str | None, as_json: bool) -> None:
    """Show the state of the stream NAME: counts, pending rounds, the latest rounds."""
    with service_client(url) as client:
        found = client.stream(name).overview()
    if as_json:
        print_json(found)
        return
    counts = found["counts"]
    say(f"{name}: {len(found['settings']['arms'])} arms, budget {found['settings']['budget']}, {found['seq']} entries")
    words = {"rounds": "round"} if counts["rounds"] == 1 else {}
    say(", ".join(f"{count} {words.get(what, what)}" for what, count in counts.items()))
    lines = [
        [line["round"], line["status"], ", ".join(line["chosen"] or line["proposed"] or []), amount(line["payoff"])]
        for line in found["rounds"][-20:]
    ]
    if lines:
        print_table(["round", "status", "arms", "payoff"], lines)


def amount(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


@stream.command(examples=EXAMPLES[1:2], short_help="Decide a round.")
@click.argument("name")
@click.argument("round")
@click.option("--unavailable", multiple=True, metavar="ARM,...", help="Arms not available this time; repeatable.")
@click.option("--context", metavar="PAIRS", help="What is known of the round: price=2.5,temp=20.")
@url_option
@json_option
def decide(
    name: str, round: str, unavailable: tuple[str, ...], context: str | None, url: str | None, as_json: bool
) -> None:
    """Decide ROUND of the stream NAME; a round is decided once, and whoever asks again gets the same decision."""
    with service_client(url) as client:
        found = client.stream(name).choose(round, unavailable=names_in(unavailable), context=context_in(context))
    if as_json:
        print_json(found.entry)
    else:
        again = " (decided before)" if found.again else ""
        say(f"{found.round}: {', '.join(found.chosen)}{again}")


@stream.command(examples=["spillover stream explain shop 2026-10-12"], short_help="Print the reasons for a decision.")
@click.argument("name")
@click.argument("round", required=False)
@url_option
def explain(name: str, round: str | None, url: str | None) -> None:
    """Print, as JSON, the reasons for the decision of ROUND as they were then; without ROUND: what would be next."""
    with service_client(url) as client:
        print_json(client.stream(name).explain(round))


@stream.command(examples=EXAMPLES[2:3], short_help="Say what was done in a round.")
@click.argument("name")
@click.argument("round")
@click.option("--chosen", multiple=True, metavar="ARM,...", help="The arms that were executed instead; repeatable.")
@click.option("--amounts", metavar="PAIRS", help="Amounts of the arms, where the stream has them: radio=120,video=80.")
@click.option("--cancelled", is_flag=True, help="The round did not take place.")
@click.option("--context", metavar="PAIRS", help="The context as it turned out: price=2.5.")
@click.option("--revision", type=int, default=1, show_default=True, help="2 corrects what was recorded first.")
@click.option("--reason", default="", help="Why it is corrected; kept in the log.")
@url_option
@json_option
def execute(
    name: str,
    round: str,
    chosen: tuple[str, ...],
    amounts: str | None,
    cancelled: bool,
    context: str | None,
    revision: int,
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Say what was done in ROUND of the stream NAME: the decision as issued, unless options say otherwise."""
    with service_client(url) as client:
        found = client.stream(name).play(
            round,
            names_in(chosen) if chosen else None,
            amounts=None if amounts is None else numbers_by_name("amounts", amounts),
            cancelled=cancelled,
            context=None if context is None else context_in(context),
            revision=revision,
            reason=reason,
        )
    event = found["event"]
    print_json(found) if as_json else say(f"{event['round']}: {event['how']} {', '.join(event['chosen'])}".rstrip())


@stream.command(examples=EXAMPLES[3:4], short_help="Report outcomes.")
@click.argument("name")
@click.argument("round")
@click.option("--z", metavar="PAIRS", help="Own rewards of executed arms: radio=0.4,video=0.7.")
@click.option("--y", metavar="PAIRS", help="Overall outcomes by arm, or one number for the round.")
@url_option
@json_option
def report(name: str, round: str, z: str | None, y: str | None, url: str | None, as_json: bool) -> None:
    """Report outcomes of ROUND of the stream NAME, all of them or a part."""
    overall = one_number(y)
    with service_client(url) as client:
        given = overall if overall is not None else numbers_by_name("y", y)
        statuses = client.stream(name).report(round, numbers_by_name("z", z) or None, given)
    if as_json:
        print_json(statuses)
        return
    counts = [status["status"] for status in statuses]
    say(f"{round}: " + ", ".join(f"{counts.count(kind)} {kind}" for kind in dict.fromkeys(counts)))
    if refused := [status["reason"] for status in statuses if status["status"] == "refused"]:
        raise ValueError("; ".join(refused))


def one_number(text: str | None) -> float | None:
    if text is None or "=" in text:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"y = {text!r}: must be a number, or pairs such as radio=0.5,video=0.2") from None


@stream.command(examples=EXAMPLES[4:5], short_help="Correct an outcome.")
@click.argument("name")
@click.argument("round")
@click.option("--arm", help="The arm; left out where there is one outcome for all.")
@click.option("--revision", type=int, required=True, help="One more than the last; the first report is 1.")
@click.option("--z", type=float, help="Its own reward.")
@click.option("--y", type=float, help="Its overall outcome.")
@click.option("--withdraw", type=click.Choice(["z", "y"]), multiple=True, help="A value that is not known after all.")
@click.option("--reason", default="", help="Why; kept in the log.")
@url_option
@json_option
def correct(
    name: str,
    round: str,
    arm: str | None,
    revision: int,
    z: float | None,
    y: float | None,
    withdraw: tuple[str, ...],
    reason: str,
    url: str | None,
    as_json: bool,
) -> None:
    """Correct an outcome of ROUND of the stream NAME that was reported before."""
    values = {what: value for what, value in (("z", z), ("y", y)) if value is not None} | dict.fromkeys(withdraw)
    with service_client(url) as client:
        found = client.stream(name).correct(round, arm, values, revision=revision, reason=reason)
    print_json(found) if as_json else say(f"{found['event']['round']}: corrected, revision {revision}")


@stream.command(
    examples=["spillover stream expire shop 2026-10-12 --reason 'the shop was closed'"],
    short_help="Say that nothing more of a round will arrive.",
)
@click.argument("name")
@click.argument("round")
@click.option("--reason", default="", help="Why; kept in the log.")
@url_option
def expire(name: str, round: str, reason: str, url: str | None) -> None:
    """Say that nothing more of ROUND of the stream NAME will arrive; later outcomes are recorded, but not learned."""
    with service_client(url) as client:
        found = client.stream(name).expire(round, reason=reason)
    say(f"{found['event']['round']}: expired")
