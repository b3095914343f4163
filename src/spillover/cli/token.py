"""`spillover token`: who may use a service, and for what."""

from pathlib import Path

import click

from spillover.cli.app import Group, note
from spillover.cli.output import json_option, print_json, print_table, say
from spillover.cli.service_options import TOKEN, database_option, tokens_file, tokens_option

SCOPES = click.Choice(["read", "write", "admin"])
EXAMPLES = (
    "spillover token create ann --scope admin               # prints the token, once",
    "spillover token create till --scope write --stream shop",
    "spillover token list",
    "spillover token revoke till                            # a running server stops accepting it at once",
)


@click.group(cls=Group, examples=EXAMPLES, short_help="Create, list and revoke the tokens of a service.")
def token() -> None:
    """Tokens of a service. The file keeps only hashes of them; a running server reads it again when it changes."""


@token.command(examples=EXAMPLES[:2], short_help="Create a token, and print it.")
@click.argument("name")
@click.option("--scope", type=SCOPES, default="read", show_default=True, help="Each includes those before it.")
@click.option("--stream", "streams", multiple=True, help="For this stream alone; repeatable.  [default: all]")
@database_option
@tokens_option
def create(name: str, scope: str, streams: tuple[str, ...], database: str | None, tokens: Path | None) -> None:
    """Create a token with the name NAME, under which its holder's requests are recorded; print it.

    read: all that is known. write: also decide, report, correct. admin: also create streams and change settings.
    """
    from spillover.http.tokens import create_token

    path = tokens_file(tokens, database)
    secret = create_token(path, name, scope, streams or None)
    note(f"this is printed once; give it to programs as the environment variable {TOKEN} (hash kept in {path})")
    click.echo(secret)


@token.command("list", examples=EXAMPLES[2:3], short_help="List the tokens.")
@database_option
@tokens_option
@json_option
def show(database: str | None, tokens: Path | None, as_json: bool) -> None:
    """List names, scopes and streams of all tokens."""
    from spillover.http.tokens import read_tokens

    path = tokens_file(tokens, database)
    known = read_tokens(path) if path.exists() else []
    if as_json:
        print_json([{"name": one.name, "scope": one.scope, "streams": one.streams} for one in known])
    elif known:
        rows = [[one.name, one.scope, "all" if one.streams is None else ", ".join(one.streams)] for one in known]
        print_table(["token", "scope", "streams"], rows)
    elif path.exists():
        say(f"no tokens in {path}: nobody can use the service")
    else:
        say(f"no tokens in {path}: only this machine can use the service, and everybody on it may do everything")


@token.command(examples=EXAMPLES[3:], short_help="Revoke a token.")
@click.argument("name")
@database_option
@tokens_option
def revoke(name: str, database: str | None, tokens: Path | None) -> None:
    """Revoke the token NAME; a running server stops accepting it at once. Without any token nobody is let in."""
    from spillover.http.tokens import revoke_token

    path = tokens_file(tokens, database)
    if not revoke_token(path, name):
        note(f"that was the last token in {path}: nobody is let in until `spillover token create` has made another one")
    say(f"revoked {name}")
