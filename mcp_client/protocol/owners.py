"""Whose something is that a server sent: which server's, under which configuration and login; no state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["NOBODY", "Owner"]


@dataclass(frozen=True, slots=True)
class Owner:
    """To whom a server's questions, tasks and kept answers may be given back: to nobody else.

    The host's label alone does not say it: a configuration that is loaded anew may give the label
    to another server, and a login to another person.

    Attributes:
        server: the host's label of the server.
        credential: stands for the login; never the credential itself.
        configuration: whatever tells one configuration of the label from another, by equality.
    """

    server: str = ""
    credential: str = field(default="", repr=False)
    configuration: object = field(default=None, repr=False, hash=False)

    @property
    def place(self) -> Owner:
        """The server under this configuration, whoever is logged in."""
        return Owner(self.server, "", self.configuration)


NOBODY: Final = Owner()
"""The owner of what no connection has."""
