"""A recipe that makes a child of the definition `reviewer`, and that definition.

The file that it is written into imports `AuthorityError` and `Call`.
"""

from __future__ import annotations

REVIEWER = "---\nname: reviewer\n---\nYou review."
MAKES = """
def makes(task):
    if "/" in task.agent:
        yield []
        return task.prompt
    wanted = {"name": "helper", "prompt": "Now.", "definition": "reviewer"}
    try:
        made = yield Call("remit", "spawn_subagent", wanted)
    except AuthorityError as error:
        return error.message
    return made.text
"""
