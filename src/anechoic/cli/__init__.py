"""The command line: one file a command."""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Annotated, NoReturn

import typer
from click.exceptions import ClickException, NoArgsIsHelpError

from anechoic.cli import (
    algorithms,
    audit,
    bounds,
    certificate,
    compare,
    epsilon,
    evaluate,
    federate,
    ledger,
    plan,
    policy,
    report,
    reproduce,
    study,
    supernode,
    train,
)
from anechoic.cli.output import PlainGroup, PlainHelp
from anechoic.errors import AnechoicError, Stopped

COMMANDS = (
    algorithms,
    plan,
    train,
    federate,
    supernode,
    policy,
    evaluate,
    report,
    certificate,
    reproduce,
    study,
    compare,
    audit,
    epsilon,
    bounds,
)

app = typer.Typer(
    name="anechoic",
    cls=PlainGroup,
    help="Private federated convex optimisation for when nobody is trusted and not everyone shows up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(metadata.version("anechoic"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for module in COMMANDS:
    name, settings = module.__name__.rpartition(".")[2], getattr(module, "CONTEXT", None)
    app.command(name, cls=PlainHelp, epilog=module.EXAMPLES, context_settings=settings)(module.command)

app.add_typer(ledger.app, name="ledger")


STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Run the command line; exit with 0 when done, 1 on a failed check, 2 on bad input."""
    try:
        code = app(prog_name="anechoic", standalone_mode=False)
    except NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except ClickException as error:
        _stop(error.format_message())
    except Stopped as error:
        _stop(str(error), STOPPED)
    except AnechoicError as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    sys.exit(code)


def _stop(message: str, code: int = 2) -> NoReturn:
    print(f"anechoic: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(code)
