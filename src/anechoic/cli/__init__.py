"""The command line: one file a command."""

from __future__ import annotations

import sys

import typer

from anechoic.cli import algorithms, bounds, epsilon, evaluate, ledger, report, reproduce, study, train
from anechoic.errors import AnechoicError

COMMANDS = (algorithms, train, evaluate, report, reproduce, study, epsilon, bounds)

app = typer.Typer(
    name="anechoic",
    help="Private federated convex optimisation for when nobody is trusted and not everyone shows up.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in COMMANDS:
    app.command(module.__name__.rpartition(".")[2], epilog=module.EXAMPLES)(module.command)


app.add_typer(ledger.app, name="ledger")


def main() -> None:
    """Run the command line; exit with 0 when done, 1 on a failed check, 2 on bad input."""
    try:
        app(prog_name="anechoic")
    except AnechoicError as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except KeyboardInterrupt:
        print("anechoic: stopped; what was finished is kept, and the same command resumes", file=sys.stderr)
        sys.exit(130)


def _stop(message: str) -> None:
    print(f"anechoic: {message}", file=sys.stderr)
    sys.exit(2)
