"""`remit serve`: a page on this machine that shows what runs and what ran. Only looks, unless it is told."""

from __future__ import annotations

from importlib.util import find_spec

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ConfigError

__all__ = ["serve"]


@click.command(short_help="Show runs on a local page.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="A loopback port; by default any free one.",
)
@click.option("--allow-approve", is_flag=True, help="Let the page answer asks and stop agents.")
@json_option
def serve(port: int, allow_approve: bool, as_json: bool) -> None:
    """Show runs on a page of this machine: agents, timeline, plan, audit log, decisions. Ends by Ctrl-C.

    The address that it prints holds a token; whoever has it sees what the page shows. It listens on
    127.0.0.1 alone, and turns away other pages and other names.
    """
    import os
    import secrets
    import socket

    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise ConfigError(
            "the page needs starlette and uvicorn",
            code="E-SERVE-EXTRA",
            fix='pip install "remit[web]"',
        )
    import uvicorn

    from orchestrator.cli.serving import records
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.serve.door import HOST, Door
    from orchestrator.surfaces.serve.site import site

    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    try:
        listening = socket.create_server((HOST, port), backlog=64)
    except OSError as error:
        raise ConfigError(
            f"port {port} of this machine cannot be used: {error.strerror}",
            code="E-SERVE-PORT",
            fix="choose another with --port, or leave it out",
        ) from error
    token, number = secrets.token_urlsafe(32), listening.getsockname()[1]
    url = f"http://{HOST}:{number}/#{token}"
    if as_json:
        print_json({"url": url, "allow_approve": allow_approve})
    else:
        print_text(url)
    app = Door(site(paths, records(), allow_approve=allow_approve), port=number, token=token)
    uvicorn.Server(
        uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=64,
            timeout_graceful_shutdown=1,
        )
    ).run(sockets=[listening])
