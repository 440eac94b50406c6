"""The three agents of the demo, as recipes: deterministic models that need no key.

A recipe yields what it wants to call and receives the results. What servers say is read as data:
it is parsed, counted and quoted, and nothing in it can make a recipe call anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import cast

from orchestrator import AgentTask, AuthorityError, Call, CallResult, Note, UntrustedContent

COMMITS = 50
"""How many commits are looked at, where no tag says since when."""
COMMITS_SINCE_TAG_MAX = 100
TOP = 10
TODO_LINES = 40
HISTORY_READ = "history read"
"""What the historian says when it has all it wants. The demo takes git away at this point."""

Steps = Generator[object, object, object]

_COMMIT = re.compile(r"^Commit: (\w+)\nAuthor: (.*)\nDate: (.*)\nMessage: (.*)$", re.MULTILINE)
_CHANGED = re.compile(r"^\+\+\+ b/(.*)$|^--- a/(.*)\n\+\+\+ /dev/null$", re.MULTILINE)
_DATETIME = re.compile(r'"datetime":\s*"([^"]{1,40})"')
_TAGGED = re.compile(
    r"\Acommit (\w+)\nAuthor: .*\nDate:\s+(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) ([+-]\d{4})\n"
)


def historian(task: AgentTask) -> Steps:
    """Read the last commits, or those since a tag, and count by author, area and file."""
    repo, since = str(task.inputs["repo"]), str(task.inputs.get("since", ""))
    arguments: dict[str, object] = {"repo_path": repo, "max_count": COMMITS}
    problem = tagged = ""
    if since:
        tag = cast(
            UntrustedContent,
            (yield Call("git", "git_show", {"repo_path": repo, "revision": since})),
        )
        found = None if tag.is_error else _TAGGED.search(tag.text)
        if found is None:
            problem = f"the tag {since!r} was not found; these are the last {COMMITS} commits"
        else:
            tagged = found[1]
            arguments["start_timestamp"] = f"{found[2]}T{found[3]}{found[4]}"
            arguments["max_count"] = COMMITS_SINCE_TAG_MAX
    log = cast(UntrustedContent, (yield Call("git", "git_log", arguments)))
    logged = [] if log.is_error else [match.groups() for match in _COMMIT.finditer(log.text)]
    commits = [commit for commit in logged if commit[0] != tagged]
    shown: Sequence[CallResult] = []
    if commits:
        wanted = [Call("git", "git_show", {"repo_path": repo, "revision": c[0]}) for c in commits]
        shown = cast(Sequence[CallResult], (yield wanted))
    files = Counter(
        path
        for result in shown
        if result.content is not None and not result.content.is_error
        for path in {a or b for a, b in _CHANGED.findall(result.content.text)}
    )
    yield Note(HISTORY_READ)
    # On purpose: the parent has just taken git away. The call is refused before any byte goes out.
    refused = ""
    try:
        yield Call("git", "git_status", {"repo_path": repo})
    except AuthorityError as error:
        refused = error.reason.value
    return {
        "problem": problem,
        "commits": [
            {"commit": c[0][:10], "author": c[1], "date": c[2][:10], "subject": c[3]}
            for c in commits
        ],
        "authors": Counter(c[1] for c in commits).most_common(TOP),
        "areas": Counter(_area(path) for path in files.elements()).most_common(TOP),
        "files": files.most_common(TOP),
        "refused": refused,
    }


def reader(task: AgentTask) -> Steps:
    """Count the files and find the lines that are marked as open."""
    listed, marked = cast(
        Sequence[CallResult],
        (
            yield [
                Call("files", "list_files"),
                Call("files", "search", {"words": ["TODO", "FIXME"]}),
            ]
        ),
    )
    files = _lines(listed)
    return {
        "files": len(files),
        "kinds": Counter(_kind(name) for name in files).most_common(TOP),
        "todo": _lines(marked),
    }


def writer(task: AgentTask) -> Steps:
    """Write the brief, stamped by the time server; try on purpose to write where it may not."""
    history = cast(Mapping[str, object], task.inputs["historian"])
    looked = cast(Mapping[str, object], task.inputs["reader"])
    clock = cast(UntrustedContent, (yield Call("time", "get_current_time", {"timezone": "UTC"})))
    found = None if clock.is_error else _DATETIME.search(clock.text)
    stamp = found[1] if found else "at an unknown time"
    repo, out = str(task.inputs["repo"]), str(task.inputs["out"])
    # On purpose: the policy lets this agent write below the output folder only.
    denied = ""
    try:
        yield Call("files", "write_file", {"path": f"{repo}/CHANGELOG.md", "content": "rewritten"})
    except AuthorityError as error:
        denied = error.reason.value
    path = f"{out}/brief.md"
    text = _brief(repo, stamp, history, looked)
    written = cast(
        UntrustedContent, (yield Call("files", "write_file", {"path": path, "content": text}))
    )
    if written.is_error:
        message = f"brief.md was not written: {written.text}"
        raise RuntimeError(message)
    return {"brief": path, "denied": denied}


def _brief(
    repo: str, stamp: str, history: Mapping[str, object], looked: Mapping[str, object]
) -> str:
    commits = cast(Sequence[Mapping[str, str]], history["commits"])
    todo = cast(Sequence[str], looked["todo"])
    problem = str(history["problem"])
    name = repo.rstrip("/").rpartition("/")[2] or repo
    parts = [
        f"# Release brief: {_plain(name)}",
        f"Written {_plain(stamp)}. {len(commits)} commits, {looked['files']} files.",
        f"Note: {_plain(problem)}." if problem else "",
        _table("By author", "Author", "Commits", history["authors"]),
        _table("By area", "Area", "Changes", history["areas"]),
        _table("Files most changed", "File", "Commits", history["files"]),
        _table("Files by kind", "Kind", "Files", looked["kinds"]),
        f"## Open marks ({len(todo)})",
        "\n".join(f"- `{_code(line)}`" for line in todo[:TODO_LINES]) or "None.",
        f"… and {len(todo) - TODO_LINES} more." if len(todo) > TODO_LINES else "",
        "## Commits",
        "\n".join(
            f"- `{c['commit']}` {_plain(c['date'])} {_plain(c['author'])}: {_plain(c['subject'])}"
            for c in commits
        )
        or "None.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(title: str, name: str, count: str, rows: object) -> str:
    pairs = cast(Sequence[tuple[str, int]], rows)
    if not pairs:
        return f"## {title}\n\nNone."
    lines = [f"| {_plain(key)} | {number} |" for key, number in pairs]
    return "\n".join([f"## {title}\n", f"| {name} | {count} |", "|---|---:|", *lines])


def _area(path: str) -> str:
    head, slash, _ = path.partition("/")
    return f"{head}/" if slash else "(top)"


def _kind(path: str) -> str:
    name = path.rpartition("/")[2]
    head, dot, ending = name.rpartition(".")
    return f".{ending}" if dot and head else "(none)"


def _lines(result: CallResult) -> list[str]:
    if result.content is None or result.content.is_error:
        return []
    return [line for line in result.content.text.splitlines() if line]


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: what a commit says must not become a link or HTML."""
    return re.sub(r"([\\`*_\[\]<>|#!~])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
