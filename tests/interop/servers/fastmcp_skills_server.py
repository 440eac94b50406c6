"""A server of FastMCP that offers the skills below a folder, over stdio. The argument is the folder."""
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.skills.provider import SkillsDirectoryProvider

server = FastMCP("skills")
server.add_provider(SkillsDirectoryProvider(sys.argv[1]))


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    server.run(show_banner=False)
