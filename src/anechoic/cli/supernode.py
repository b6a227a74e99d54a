"""``anechoic supernode``: a machine's process in a Flower federation, for no code but what its owner approved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = (
    "Examples: anechoic supernode --app spring-app --superlink server:9443 --root-certificates ca.pem "
    "--auth-supernode-private-key machine.key --node-config 'state-dir=\"/var/lib/anechoic/spring\"'   |   "
    "anechoic supernode --app spring.fab --digest"
)

CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True}
"""What is not an option of this command is one of flower-supernode."""


def command(
    context: typer.Context,
    apps: Annotated[
        list[Path], typer.Option("--app", help="An approved app: its directory, or its .fab file. May be repeated.")
    ],
    digest: Annotated[bool, typer.Option("--digest", help="Print the digests of the apps, and start nothing.")] = False,
) -> None:
    """Run Flower's SuperNode for a machine, and refuse every app but those that its owner has approved.

    Flower brings an app's code from the server. Here it runs only if it is, byte for byte, the code in --app: read that
    before you name it. All other options are those of flower-supernode.
    """
    from anechoic.flower import approved

    for app in apps:
        print(f"approved: {app}, sha256 {approved.digest_of(app)}", flush=True)
    if not digest:
        approved.run(apps, context.args)
