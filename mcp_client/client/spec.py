"""What can be connected to, and what connections share; it starts nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mcp_client.net.reactor import Reactor
from mcp_client.ports import ClientObserver, Transport
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio import StdioTransport, Supervisor

__all__ = ["Host", "ServerSource", "ServerSpec"]


def _from_one() -> Iterator[int]:
    return itertools.count(1)


@dataclass(frozen=True, slots=True)
class Host:
    """What the connections of one program may share: the loop, and the supervisor of servers.

    `epochs` numbers the connections in the order in which they are made.
    """

    reactor: Reactor
    supervisor: Supervisor
    epochs: Iterator[int] = field(default_factory=_from_one, repr=False, compare=False)


class ServerSource(Protocol):
    """A server that can be connected to: a `ServerSpec`, or a scripted one in a test."""

    @property
    def name(self) -> str:
        """The host's label of the server."""
        ...

    def transport(self, host: Host, *, limits: ClientLimits, observer: ClientObserver) -> Transport:
        """Return a transport that was not opened yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A server that is started as a child process and spoken to over its pipes.

    Attributes:
        name: the host's label of it.
        command: the program, by path or by name in its `PATH`. No shell is involved.
        args: its arguments. Never shown: what a variable stood for may be among them.
        env: variables declared for it, beside those that every server gets. Never shown.
        cwd: where it starts; empty means where we are.

    Raises LocalProtocolError if it cannot name a process.
    """

    name: str
    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = ""

    def __post_init__(self) -> None:
        for what, fault in (
            ("a server's name", not self.name or not self.name.isprintable()),
            ("a command", not self.command or "\0" in self.command),
            ("an argument", any("\0" in each for each in self.args)),
            ("a directory", "\0" in self.cwd),
            ("a variable's name", any(not k or "=" in k or "\0" in k for k in self.env)),
            ("a variable's value", any("\0" in value for value in self.env.values())),
        ):
            if fault:
                raise LocalProtocolError(
                    f"{what} is empty or holds a character that it cannot have",
                    server=self.name,
                    stage="start",
                )

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> StdioTransport:
        """Return the transport that will start it."""
        return StdioTransport(
            (self.command, *self.args),
            server=self.name,
            reactor=host.reactor,
            supervisor=host.supervisor,
            observer=observer,
            limits=limits,
            environment=self.env,
            directory=self.cwd,
        )
