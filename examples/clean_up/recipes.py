"""The two agents as recipes: one plans and may only look, the other acts and may only move."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any, cast

from orchestrator import AgentTask, AuthorityError, Call, Note

Steps = Generator[Any, Any, object]


def scout(task: AgentTask) -> Steps:
    """Return what is older than the year, and what looks like rubbish."""
    listed = yield Call("folder", "list_files")
    names = [file["path"] for file in json.loads(listed.text)]
    old = [
        name
        for name in names
        if (found := re.search(r"\b(20\d\d)\b", name))
        and int(found[1]) < cast("int", task.inputs["year"])
    ]
    rubbish = [name for name in names if name.endswith(".tmp")]
    yield Note(f"{len(old)} of {len(names)} files are old, {len(rubbish)} are rubbish")
    return {"moves": old, "rubbish": rubbish}


def mover(task: AgentTask) -> Steps:
    """Move what was planned. It tries to delete the rubbish as well, and is not let."""
    plan = cast("dict[str, list[str]]", task.inputs["scout"])
    inbox = f"{task.inputs['out']}/inbox"
    done: dict[str, list[str]] = {"moved": [], "left": [], "not deleted": []}
    for name in plan["moves"]:
        move = {"path": f"{inbox}/{name}", "to": f"{inbox}/archive/{name}"}
        try:
            yield Call("folder", "move_file", move)
            done["moved"].append(name)
        except AuthorityError:
            done["left"].append(name)
    for name in plan["rubbish"]:
        try:
            yield Call("folder", "delete_file", {"path": f"{inbox}/{name}"})
        except AuthorityError:
            done["not deleted"].append(name)
    return done
