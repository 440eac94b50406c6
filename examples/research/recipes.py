"""The four agents as recipes. Each could be a language model: only `model` in the pipeline would change."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Generator
from typing import Any, cast

from orchestrator import AgentTask, Call, Note

Steps = Generator[Any, Any, object]
Incident = dict[str, Any]


def librarian(task: AgentTask) -> Steps:
    """Return the names of all documents."""
    listed = yield Call("documents", "list_files")
    names = [file["path"] for file in json.loads(listed.text)]
    yield Note(f"{len(names)} documents")
    return names


def reader(task: AgentTask) -> Steps:
    """Return what one document tells, with the line that names the cause.

    A document that does not say it has no such answer: it does not fit the schema, and is counted
    as unreadable. What else a document says, or asks for, is text and nothing more.
    """
    name = str(task.inputs["item"])
    document = yield Call("documents", "read_file", {"path": name})
    told: Incident = {"document": name}
    for number, line in enumerate(document.text.splitlines(), start=1):
        key, colon, value = line.partition(": ")
        if colon and key in ("Service", "Minutes", "Cause"):
            told[key.lower()] = int(value) if key == "Minutes" else value
            if key == "Cause":
                told |= {"line": number, "quote": line}
    return told


def analyst(task: AgentTask) -> Steps:
    """Return the causes that come up often enough, the most costly first, with their citations."""
    yield []
    reports = cast("list[Incident | None]", task.inputs["reader"])
    read = [report for report in reports if report is not None]
    by_cause: dict[str, list[Incident]] = defaultdict(list)
    for incident in read:
        by_cause[incident["cause"]].append(incident)
    findings: list[dict[str, Any]] = [
        {
            "cause": cause,
            "incidents": len(incidents),
            "minutes": sum(incident["minutes"] for incident in incidents),
            "citations": [
                {key: incident[key] for key in ("document", "line", "quote")}
                for incident in incidents
            ],
        }
        for cause, incidents in by_cause.items()
        if len(incidents) >= cast("int", task.inputs["least"])
    ]
    findings.sort(key=lambda finding: finding["minutes"], reverse=True)
    return {"read": len(read), "unreadable": len(reports) - len(read), "findings": findings}


def checker(task: AgentTask) -> Steps:
    """Read every cited line once more, and return which citations are wrong: there must be none."""
    findings = cast("dict[str, list[Any]]", task.inputs["analyst"])["findings"]
    citations = [citation for finding in findings for citation in finding["citations"]]
    calls = [Call("documents", "read_file", {"path": item["document"]}) for item in citations]
    results = yield calls
    wrong = [
        citation
        for citation, result in zip(citations, results, strict=True)
        if result.unwrap().text.splitlines()[citation["line"] - 1] != citation["quote"]
    ]
    yield Note(f"{len(citations)} citations, {len(wrong)} wrong")
    worst = {key: findings[0][key] for key in ("cause", "minutes", "incidents")}
    return {"citations": len(citations), "wrong": wrong, "worst": worst}
