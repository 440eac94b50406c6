"""The requirements manifest: what remit must do, line by line, and which lines tests prove.

A test proves a line by carrying `@pytest.mark.requirement("ID")`. A line is PROVEN only when
such tests cover the whole of its sentence; until then it is Open, with the area of work that will
close it. The marks are found by reading the tests' source, so the answer does not depend on which
tests were selected. `python tests/requirements.py --write` renews the page
`docs/reference/requirements.md`.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from tests.marks import Mark, marks_below

__all__ = [
    "MANIFEST",
    "PAGE",
    "PROVEN",
    "Level",
    "Open",
    "Proven",
    "Requirement",
    "Section",
    "Tally",
    "problems",
    "render_page",
    "requirements",
    "tally",
]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "requirements.md"


class Level(Enum):
    """How binding a line is. MCP's own SHOULD and MAY are listed because remit keeps them too."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


@dataclass(frozen=True, slots=True)
class Proven:
    """Tests that carry the line's mark cover its whole sentence."""

    def __str__(self) -> str:
        return "proven"


@dataclass(frozen=True, slots=True)
class Open:
    """Not proven yet. `area` is the work that closes it."""

    area: str

    def __str__(self) -> str:
        return f"open: {self.area}"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the manifest."""

    id: str
    level: Level
    state: Proven | Open
    sentence: str


@dataclass(frozen=True, slots=True)
class Section:
    """Lines that belong together, under one heading of the page."""

    title: str
    lines: tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """How the manifest stands. `closable` are open lines that have tests already."""

    proven: int
    open: int
    closable: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.proven} proven, {self.open} open"
        if self.closable:
            text += f"; open though tested, may be closed: {', '.join(self.closable)}"
        return text


# ------------------------------------------------------------------------------------ the manifest

MUST, SHOULD, MAY = Level.MUST, Level.SHOULD, Level.MAY
PROVEN: Final = Proven()
SPINE = Open("the spine")
CLIENT = Open("the complete client")
MODERN = Open("protocol 2026-07-28")
AUTH = Open("authorization")
POLICY = Open("the policy language")
LEDGER = Open("authority and audit")
SURFACES = Open("surfaces")
AGENTS = Open("subagents and pipelines")
R = Requirement

# One line each, so that a change of state is a change of one word.
# fmt: off
MANIFEST: Final = (
    Section("What remit promises", (
        R("S-1", MUST, PROVEN, "Servers over stdio, Streamable HTTP and legacy HTTP+SSE work for the shell, `ask`, ACP sessions and subagents alike."),
        R("S-2", MUST, PROVEN, "The handshake opens at 2025-11-25 and settles on a version that the transport may speak; any other answer is a typed error and ends the connection."),
        R("S-3", MUST, PROVEN, "Streamable HTTP takes JSON and SSE replies, keeps the assigned session id, starts again on a 404, and retries once after a refresh that answers a 401."),
        R("S-4", MUST, PROVEN, "A legacy connection follows its own version's rules for initialization, sessions, notifications and elicitation."),
        R("S-5", MUST, PROVEN, "Tools are searched, loaded, named by server, bounded both ways, followed by progress, cancellable, and authorized before the transport."),
        R("S-6", MUST, PROVEN, "Resources: paged catalogues and templates, reads by URI, completion, every content type, links, annotations, metadata, icons, bounded caches."),
        R("S-7", MUST, PROVEN, "Prompts: paged discovery, exact server-qualified names without guessing, typed arguments, many messages and content types, completion."),
        R("S-8", MUST, PROVEN, "Completion of template and prompt arguments is bounded, cancellable and timed."),
        R("S-9", MUST, PROVEN, "A server's change notices are followed, and a reconnect recovers what was missed."),
        R("S-10", MUST, PROVEN, "Elicitation by form and by URL can be accepted, declined or cancelled, in `ask` on a terminal too; a URL is opened only after consent, and only https or loopback."),
        R("S-11", MUST, PROVEN, "remit itself never fetches an elicitation's URL or anything about it, before consent or after."),
        R("S-12", MUST, PROVEN, "`ask` without a terminal ends with a typed input-required result and cancels the server's question instead of waiting."),
        R("S-13", MUST, PROVEN, "The servers of an ACP session are told only the elicitation modes that this editor supports."),
        R("S-14", MUST, PROVEN, "An input schema describes an object, in JSON Schema 2020-12 or Draft 7, within bounds; any other quarantines its tool, with a reason, before a model sees it."),
        R("S-15", MUST, PROVEN, "Arguments are a bounded JSON object; checking them and results against a tool's schemas is the server's business; envelopes and content are validated."),
        R("S-16", MUST, PROVEN, "A tool's failure stays a failure in API, audit, span and pipeline, while its content still reaches the model as untrusted."),
        R("S-17", MUST, PROVEN, "A model starts with the built-in tools; `capability_search` and `mcp_select_tool` load further schemas within a budget, and no other schema is in its request."),
        R("S-18", MUST, PROVEN, "Model-facing names are `mcp_<server>_<tool>`, unique by a fixed rule, at most 64 safe characters, and never a built-in's."),
        R("S-19", MUST, PROVEN, "Instructions, descriptions, search results and schemas are bounded before they take room in a context."),
        R("S-20", MUST, PROVEN, "Profile and approved project servers combine and the profile wins; an ACP client's entries win over project ones and inherit no profile; unapproved ones stay disconnected."),
        R("S-21", MUST, PROVEN, "Each subagent, one-off or persistent, gets a frozen view of its parent's capabilities, filtered by policy."),
        R("S-22", MUST, PROVEN, "An agent without an admitted view has no MCP: empty lists, every call refused with a reason of its own, no byte sent, never the parent's view."),
        R("S-23", MUST, PROVEN, "Reload, removal, a change of login, closing and cancelling refuse calls before the transport."),
        R("S-24", MUST, PROVEN, "Everything a server says is bounded, and marked `untrusted_external` with authority `none` for models, audit and `--json`."),
        R("S-25", MUST, PROVEN, "A resource enters a model's context only by an explicit read, and no text can grant a permission."),
        R("S-26", MUST, PROVEN, "Built-in tools and the parent's own agent take the same road as every call: one decision, one gate, one audit."),
        R("S-27", MUST, PROVEN, "Authority is checked again immediately before the transport, so that stale authority reaches no server."),
        R("S-28", MUST, PROVEN, "No health output of any command shows a credential, a secret, a raw response, stderr text or a server's URL."),
        R("S-29", MUST, PROVEN, "A JSON-RPC frame is at most 8 MiB, in either direction."),
        R("S-30", MUST, PROVEN, "A stdio server that ignores the end of its input gets SIGTERM and then SIGKILL."),
        R("S-31", MUST, PROVEN, "The suites drive configuration, framing, all transports, OAuth, ACP and subagents against in-process servers."),
        R("S-40", MUST, PROVEN, "One client and one session per server; nothing of one server, session or conversation reaches another; a stateful server can have one process per agent."),
        R("S-41", MUST, PROVEN, "The model controls tools, the application resources, the user prompts; a model gets the other two only where a rule permits it."),
        R("S-42", MUST, PROVEN, "Only negotiated capabilities are used; an undeclared notification is ignored; a version mismatch ends at initialize."),
        R("S-43", MUST, PROVEN, "Sampling is shown for approval, may be edited or refused, runs on the host's model and account, and leaks no key or provider."),
        R("S-44", MUST, PROVEN, "A server learns no root unless it was granted one, and only file URIs."),
        R("S-45", MUST, PROVEN, "Descriptions are shown and pinned at first use, hidden characters visible; until then, and after a silent change, the tools cannot be called."),
        R("S-46", MUST, PROVEN, "Tool results are trusted no more than descriptions."),
        R("S-47", MUST, PROVEN, "Authority is granted narrowly per server, and the host's own credentials go to no server."),
        R("S-48", MUST, PROVEN, "Consent belongs to the host: without a policy file every call asks, and without a terminal it is refused with the command that mends it."),
    )),
    Section("Laws of authority", (
        R("I1", MUST, PROVEN, "No start after revocation: a frame whose authority was taken back before its first byte never reaches the kernel."),
        R("I2", MUST, PROVEN, "No byte after the receipt: once a revocation is acknowledged, nothing more of a dependent frame leaves."),
        R("I3", MUST, PROVEN, "Frames are atomic: a server sees a dependent frame whole, or sees the connection die."),
        R("I4", MUST, PROVEN, "Death is final: what was revoked never becomes live again; enabling anew makes a new incarnation."),
        R("I5", MUST, PROVEN, "A subtree dies together, children that are being spawned included."),
        R("I6", MUST, PROVEN, "A child's rights are within what its parent may delegate, when it is made and at every later moment."),
        R("I7", MUST, PROVEN, "A snapshot is frozen: nothing added later shows in it or can be called through it; removals do count."),
        R("I8", MUST, PROVEN, "A tool is called only while its definition is the pinned one."),
        R("I9", MUST, PROVEN, "Deny by default: no permit, no policy, a policy that does not parse, or an unknown operation all mean no."),
        R("I10", MUST, PROVEN, "An error restricts: a condition without a value stops a permit and triggers a forbid; an ask then asks about what is let through, and lets nothing through."),
        R("I11", MUST, PROVEN, "Forbid wins, and the order or repetition of rules and files changes nothing."),
        R("I12", MUST, PROVEN, "Adding a forbid or an ask, or removing a permit, never allows more."),
        R("I13", MUST, PROVEN, "What is listed and what can be called are the same set."),
        R("I14", MUST, PROVEN, "Every frame that goes out passes the gate under a stated authority; the clean-up exceptions are few, named, and carry no tool data."),
        R("I15", MUST, PROVEN, "A retry is a new send, authorized anew; a tool call that may have been seen is never resent by itself."),
        R("I16", MUST, PROVEN, "A credential is attached after the check, in its present incarnation; a late token of an older one is not kept."),
        R("I17", MUST, PROVEN, "Cleaning up an old connection cannot close or revoke its successor."),
        R("I18", MUST, PROVEN, "A result that arrives after the revocation is audited and not delivered."),
        R("I19", MUST, PROVEN, "An approval holds once, for one agent, policy, definition and set of arguments, and expires."),
        R("I20", MUST, PROVEN, "Taint only grows: children inherit it, results pass it on, and only an audited act ends it."),
        R("I21", MUST, Open("a host cut off: more than one machine"), "On a host cut off from its parent, no byte leaves later than the lease allows."),
        R("I22", MUST, Open("receipts of hosts: more than one machine"), "A receipt across hosts means that each host acknowledged or its lease ran out."),
        R("I23", MUST, PROVEN, "The decision is on record before the byte, and each frame that carried bytes has exactly one record."),
        R("I24", MUST, PROVEN, "An edit, a gap, a swap or a cut in the audit log before its last checkpoint is found."),
        R("I25", MUST, PROVEN, "A revocation waits for nothing: no lock, no disk, no network."),
        R("I26", MUST, PROVEN, "Cancelling a revocation leaves it done; cancelling a send leaves no half-authorized state."),
        R("I27", MUST, PROVEN, "A server sees only what its own client sent it."),
        R("I28", MUST, PROVEN, "No view, no MCP: an agent without an admitted snapshot reaches nothing."),
    )),
    Section("MCP: JSON-RPC", (
        R("J-1", MUST, PROVEN, "JSON-RPC 2.0 in UTF-8; an id is a string or an integer, and null, booleans and fractions are malformed."),
        R("J-2", MUST, PROVEN, "A request id is never used twice in a session."),
        R("J-3", MUST, PROVEN, "A response has a result or an error, never both; error codes are integers; notifications have no id and no answer."),
        R("J-4", MUST, PROVEN, "An error without an id neither crashes the client nor settles somebody's request."),
        R("J-5", MUST, PROVEN, "Batches are accepted under 2025-03-26 only, initialize is never in one, and elsewhere an array is a violation."),
        R("J-6", MUST, PROVEN, "An absent result type means complete; an unknown one fails the call."),
        R("J-7", MUST, PROVEN, "Reserved error codes are read as specified and no others of their range are sent; a local refusal can never be taken for a server's error."),
        R("J-8", MUST, PROVEN, "Nothing is assumed about reserved `_meta` keys, and our own keys follow the grammar."),
        R("J-9", MUST, PROVEN, "Unknown fields do no harm, and input schemas are kept word for word."),
    )),
    Section("MCP: lifecycle", (
        R("L-1", MUST, PROVEN, "The first message is initialize with version, capabilities and client info, at the newest version spoken."),
        R("L-2", MUST, PROVEN, "`initialized` follows a good answer; before it nothing but ping is sent."),
        R("L-3", SHOULD, PROVEN, "A version that the client does not speak ends the connection."),
        R("L-4", MUST, PROVEN, "Both sides' capabilities are kept to: nothing unadvertised is asked, and undeclared requests are refused."),
        R("L-5", SHOULD, PROVEN, "Every request has a deadline and a cap that progress cannot move; on expiry it is cancelled and no longer awaited."),
        R("L-6", MUST, PROVEN, "initialize is never cancelled by a notification."),
        R("L-7", SHOULD, PROVEN, "Shutdown goes by steps: end of input, SIGTERM, SIGKILL on stdio; closed connections on HTTP."),
        R("L-8", SHOULD, PROVEN, "What a server calls itself is for display, never for a decision."),
        R("L-20", MUST, PROVEN, "Every modern request carries its version and capabilities in `_meta`."),
        R("L-21", MAY, PROVEN, "`server/discover` tells a server's versions, capabilities and instructions."),
        R("L-22", SHOULD, PROVEN, "After a version error a supported version is tried; a modern error never leads back to initialize."),
        R("L-23", MUST, PROVEN, "On stdio a server's era is found by probing, and never by one error code alone."),
        R("L-24", MUST, PROVEN, "On HTTP a server's era is found by the body of the answer, not by its status alone."),
        R("L-25", SHOULD, PROVEN, "The era is remembered per configuration and authority, and probed again after a failure."),
        R("L-26", MUST, PROVEN, "Extensions are off unless both sides name them; otherwise core behaviour or a proper error."),
        R("L-27", SHOULD, PROVEN, "A server process outlives conversations and is restarted after a crash; its requests in flight are lost."),
        R("L-28", MAY, PROVEN, "Capabilities are lowered per request for an agent that has fewer."),
    )),
    Section("MCP: stdio", (
        R("T-1", MUST, PROVEN, "One message per line, no newline within, and nothing else on the server's stdin."),
        R("T-2", SHOULD, PROVEN, "stderr is free text: bounded, no sign of failure, never trusted."),
        R("T-3", SHOULD, PROVEN, "Lines on stdout that are no JSON are skipped and counted, within a bound, and disturb no request."),
        R("T-4", MUST, PROVEN, "A modern server sends no requests and the client no responses; subscription notices name their subscription."),
        R("T-5", MUST, PROVEN, "A modern call over stdio is cancelled by notification."),
        R("T-6", SHOULD, PROVEN, "A server that stays after its stdin closed is ended all the same, and slow leavers get their time."),
        R("T-7", SHOULD, PROVEN, "A configured command is shown whole and approved before it first runs."),
    )),
    Section("MCP: Streamable HTTP and HTTP+SSE, versions with a handshake", (
        R("H-1", MUST, PROVEN, "One POST per message, accepting JSON and SSE."),
        R("H-2", MUST, PROVEN, "JSON and SSE answers are both understood, and 202 for what needs none."),
        R("H-3", MUST, PROVEN, "From 2025-06-18 every request after initialize names the negotiated version in a header."),
        R("H-4", MUST, PROVEN, "An assigned session id goes on everything after, is visible ASCII only, and is kept secret."),
        R("H-5", MUST, PROVEN, "A 404 to a session id starts a new session without it."),
        R("H-6", MAY, PROVEN, "A stream of the server's own is opened by GET, and 405 means that there is none."),
        R("H-7", MAY, PROVEN, "Several streams may be open; a response may come on a resumed one only."),
        R("H-8", MUST, PROVEN, "A lost connection cancels nothing; cancelling is explicit."),
        R("H-9", SHOULD, PROVEN, "A broken stream is resumed by its own last event id and no other's."),
        R("H-10", MUST, PROVEN, "The server's retry time is waited out before reconnecting."),
        R("H-11", MUST, PROVEN, "Empty events and comments are no messages."),
        R("H-12", SHOULD, PROVEN, "A finished session is deleted, and 405 to that is fine."),
        R("H-13", MUST, PROVEN, "401, 403 and 400 each lead to their own handling."),
        R("H-14", MUST, PROVEN, "HTTP+SSE is tried only after the statuses that mean an old server, never after 401, 403, 5xx or a TLS error."),
        R("H-20", MUST, PROVEN, "The endpoint of HTTP+SSE is resolved against the stream's URL and must be of the same origin."),
        R("H-21", SHOULD, PROVEN, "HTTP+SSE is kept for old servers only."),
    )),
    Section("MCP: Streamable HTTP, 2026-07-28", (
        R("N-1", MUST, PROVEN, "POST only, one request or notification each, never a response."),
        R("N-2", MUST, PROVEN, "Headers repeat version, method and name exactly as the body has them."),
        R("N-3", MUST, PROVEN, "Arguments that a tool marks for it are copied to headers, and left out when absent or null."),
        R("N-4", MUST, PROVEN, "Header values that are not plain are encoded, so that nothing can be injected."),
        R("N-5", MUST, PROVEN, "Over HTTP a tool with an unusable header mark is dropped, the others kept."),
        R("N-6", MUST, PROVEN, "Integers in headers stay within what every JSON number can hold."),
        R("N-7", SHOULD, PROVEN, "After a header mismatch the tools are listed again and the call, authorized anew, is retried once."),
        R("N-8", MUST, PROVEN, "Closing the stream cancels; a lost request is sent again only if safe, under a new id."),
        R("N-9", MUST, PROVEN, "SSE comments are ignored."),
        R("N-10", MUST, PROVEN, "Sessions, event ids, GET and DELETE are neither used nor heeded."),
    )),
    Section("MCP: what servers offer", (
        R("F-1", SHOULD, PROVEN, "A person sees the tools and their inputs, can say no, and confirms the sensitive ones."),
        R("F-2", MUST, PROVEN, "Annotations of an untrusted server are untrusted: they may restrict, never permit."),
        R("F-3", SHOULD, PROVEN, "Results are validated and timed, and each call is audited."),
        R("F-4", SHOULD, PROVEN, "Structured content is delivered as sent, whatever its JSON type; the server owns its schema."),
        R("F-5", SHOULD, PROVEN, "A tool's own errors reach the model."),
        R("F-6", MUST, PROVEN, "JSON Schema 2020-12 by default, other dialects respected or refused, no reference fetched, depth and size bounded."),
        R("F-7", SHOULD, PROVEN, "Tool names are case-sensitive, odd ones are survived, and servers are told apart by the host's labels."),
        R("F-8", MUST, PROVEN, "Text, image, audio, embedded resource and resource link are all carried."),
        R("F-9", MUST, PROVEN, "Lists are cached per authorization context."),
        R("F-20", SHOULD, PROVEN, "A read may give several contents, text or base64; remit fetches no URL of a resource itself."),
        R("F-21", MUST, PROVEN, "Both codes for a missing resource are understood."),
        R("F-22", MUST, PROVEN, "Cursors are opaque, an empty one is a cursor, a missing one ends the list, and pages are bounded."),
        R("F-23", MUST, PROVEN, "Prompts are the user's, and what goes in and comes out is validated."),
        R("F-24", MUST, PROVEN, "Completion is used where offered, at most 100 values a time."),
        R("F-25", MUST, PROVEN, "A declared list change is followed, and never widens a running agent's view."),
        R("F-26", MAY, PROVEN, "Single resources are subscribed to where the server offers it."),
        R("F-27", MUST, PROVEN, "Icons are never fetched, or only as safely as the specification demands."),
        R("F-30", MUST, PROVEN, "Cached results are keyed by request and authorization, go stale as told, and exclude unfinished answers."),
        R("F-40", MUST, PROVEN, "A subscription states its filter, is acknowledged first, and tags its messages."),
        R("F-41", MUST, PROVEN, "Every way in which a subscription may end is accepted."),
        R("F-42", MUST, PROVEN, "Subscriptions are made again after a reconnect, and unasked notices ignored."),
        R("F-50", SHOULD, PROVEN, "A server's log lines are untrusted and limited in rate."),
        R("F-51", MUST, PROVEN, "Progress tokens are unique among running requests; unknown and finished ones are ignored."),
        R("F-52", MUST, PROVEN, "Only own running requests are cancelled, late answers are ignored, and the server may cancel its own."),
        R("F-53", MUST, PROVEN, "A ping is answered promptly, during initialize as well."),
    )),
    Section("MCP: what the client offers", (
        R("C-1", MUST, PROVEN, "Roots are checked file URIs; changes are told; undeclared, the request is refused."),
        R("C-10", MUST, PROVEN, "Sampling passes a person, is limited in rate, and keeps to the token bound."),
        R("C-11", MUST, PROVEN, "Tools in sampling only if declared, tool results by themselves, every use answered, rounds bounded."),
        R("C-12", MUST, PROVEN, "A declined round needs no answer: the call is just not retried."),
        R("C-20", MUST, PROVEN, "Elicitation modes are declared as they are supported, and others refused."),
        R("C-21", MUST, PROVEN, "Every form field type of every version is understood, and no other."),
        R("C-22", MUST, PROVEN, "The user sees which server asks, may change, decline or cancel, and is not flooded."),
        R("C-23", MUST, PROVEN, "Answers are accept, decline or cancel; nothing is ever invented for the user."),
        R("C-24", SHOULD, PROVEN, "A fractional number in a form is accepted though one published schema forgot it."),
        R("C-25", MUST, PROVEN, "A URL is shown whole, opened only after consent, out of the model's sight, and never fetched first."),
        R("C-26", MUST, PROVEN, "Completion notices for unknown elicitations are ignored, and a call that needs a URL visited can be retried by hand."),
        R("C-30", MUST, PROVEN, "Only calls, prompts and reads may ask for input in between."),
        R("C-31", MUST, PROVEN, "Every question is answered before the retry, and rounds are bounded."),
        R("C-32", MUST, PROVEN, "The server's state is returned byte for byte, once, and never read."),
        R("C-33", MUST, PROVEN, "Only declared kinds of question are answered, and each retry is authorized anew."),
    )),
    Section("MCP: tasks", (
        R("K-1", MUST, PROVEN, "Tasks of 2025-11-25 are used only as tool and server declare, polled as told, and cancelled in their own way."),
        R("K-2", MUST, PROVEN, "The tasks extension: both result shapes are understood, and its questions are trusted no more than elicitation."),
    )),
    Section("MCP: authorization", (
        R("A-1", MUST, PROVEN, "The token is in the header of every request, never in a URL, and never another server's."),
        R("A-2", MUST, PROVEN, "PKCE with S256, refused where the server does not show that it supports it."),
        R("A-3", MUST, PROVEN, "Redirects go to loopback or https, state is checked, tokens are stored safely."),
        R("A-4", MUST, PROVEN, "Discovery cannot be led astray: https only, no private address, each hop checked, safe browser start."),
        R("A-10", MUST, PROVEN, "2025-03-26: metadata at the server's origin, else the default paths."),
        R("A-11", MUST, PROVEN, "2025-06-18: protected-resource metadata, and the resource named in both requests."),
        R("A-20", MUST, PROVEN, "Protected-resource metadata is sought at the header's URL, the path's, the root's."),
        R("A-21", MUST, PROVEN, "Authorization-server metadata is sought at the well-known places in their order."),
        R("A-22", SHOULD, PROVEN, "Registration: known client, metadata document, dynamic, then the user."),
        R("A-23", MUST, PROVEN, "The challenge's scope is authoritative, then the resource's list, then none."),
        R("A-24", SHOULD, PROVEN, "Insufficient scope leads to a bounded step-up."),
        R("A-30", MUST, PROVEN, "The metadata's issuer equals the one that was asked."),
        R("A-31", MUST, PROVEN, "The issuer is recorded with the request and compared, character for character, with the answer."),
        R("A-32", MUST, PROVEN, "Credentials are keyed by issuer, and a new issuer means a new registration."),
        R("A-33", MUST, PROVEN, "Registration states the application type, and a refusal is handled."),
        R("A-34", MUST, PROVEN, "A step-up asks for the union of old and new scopes."),
        R("A-35", MUST, PROVEN, "A refresh token is never taken for granted."),
        R("A-36", MUST, PROVEN, "The resource matches the server's URL, and the token endpoint's own method is used."),
        R("A-50", MAY, PROVEN, "Client credentials, as an extension that an entry turns on."),
        R("A-51", MAY, PROVEN, "Enterprise-managed authorization, as an extension; its issuer comes from configuration."),
        R("A-52", MAY, PROVEN, "Proof of possession and workload identity, as far as the public suite tests them."),
    )),
    Section("MCP: other extensions", (
        R("X-1", MUST, PROVEN, "MCP Apps are not declared, and their resources are plain untrusted ones."),
        R("X-2", MUST, MODERN, "Skills over MCP: digests verified, unlisted files refused, origin shown, nothing run or fetched unasked, approval bound to the whole set."),
    )),
)
# fmt: on


def requirements() -> Iterator[Requirement]:
    """Every line of the manifest, in order."""
    for section in MANIFEST:
        yield from section.lines


# ------------------------------------------------------------------------------- the two directions


def problems(lines: Iterable[Requirement], marks: Iterable[Mark]) -> list[str]:
    """What is wrong between manifest and tests, a sentence each; empty if nothing is."""
    lines = list(lines)
    known = {line.id for line in lines}
    tests = _tests_by_id(marks := list(marks))
    wrong = [f"{id_} stands in the manifest twice" for id_ in _repeated(lines)]
    for mark in marks:
        where = f"{mark.path}:{mark.line}"
        if mark.id not in known:
            wrong.append(f"{where} marks {mark.id}, which is not in the manifest")
        if not mark.test:
            wrong.append(f"{where} marks {mark.id} on nothing that runs by default")
    wrong += [
        f"{line.id} is called proven, and no test carries its mark"
        for line in lines
        if isinstance(line.state, Proven) and line.id not in tests
    ]
    return wrong


def tally(lines: Iterable[Requirement], marks: Iterable[Mark]) -> Tally:
    """Count the lines by state."""
    tests = _tests_by_id(marks)
    lines = list(lines)
    unproven = [line.id for line in lines if isinstance(line.state, Open)]
    return Tally(
        proven=len(lines) - len(unproven),
        open=len(unproven),
        closable=tuple(id_ for id_ in unproven if id_ in tests),
    )


def _tests_by_id(marks: Iterable[Mark]) -> Mapping[str, list[str]]:
    tests: dict[str, list[str]] = defaultdict(list)
    for mark in marks:
        if mark.test:
            tests[mark.id].append(f"{mark.path}::{mark.test}")
    return dict(tests)


def _repeated(lines: list[Requirement]) -> list[str]:
    ids = [line.id for line in lines]
    return sorted({id_ for id_ in ids if ids.count(id_) > 1})


# ----------------------------------------------------------------------------------------- the page

_INTRODUCTION: Final = """\
# Requirements

What remit must do, line by line, in the project's own words. `S` lines are the product's promises,
`I` lines the laws of authority, the others what the Model Context Protocol asks of a client, over
all of its versions. A line is *proven* when tests that carry
`@pytest.mark.requirement("ID")` cover its whole sentence; until then it is *open*, with the area of
work that closes it.

This page is written by `python tests/requirements.py --write` from the manifest in
`tests/requirements.py`; a test fails if the two disagree, if a mark names no line, or if a line is
called proven without a test.
"""


def render_page(sections: Iterable[Section]) -> str:
    """The text of `docs/reference/requirements.md`."""
    parts = [_INTRODUCTION]
    for section in sections:
        parts += [
            f"\n## {section.title}\n",
            "| id | level | requirement | state |",
            "|---|---|---|---|",
        ]
        parts += [
            f"| {line.id} | {line.level.value} | {line.sentence} | {line.state} |"
            for line in section.lines
        ]
    return "\n".join(parts) + "\n"


def main(arguments: list[str]) -> int:
    """Write the page (`--write`), show each line's tests (`--tests`), or print the counts."""
    marks = marks_below(ROOT / "tests")
    if "--write" in arguments:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(render_page(MANIFEST), "utf-8")
    if "--tests" in arguments:
        for id_, tests in sorted(_tests_by_id(marks).items()):
            sys.stdout.write(f"{id_}\n" + "".join(f"    {test}\n" for test in tests))
    wrong = problems(requirements(), marks)
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"requirements: {tally(requirements(), marks)}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
