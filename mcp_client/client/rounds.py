"""Requests whose answers are questions first (MCP 2026-07-28): round after round, each under leave of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from mcp_client.ports import SendGuard
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import Delivery, LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.modern.caching import CACHEABLE
from mcp_client.protocol.modern.errors import InputRefusedError
from mcp_client.protocol.modern.metadata import ResultType, lowered, read_result_type
from mcp_client.protocol.modern.mrtr import (
    InputRequest,
    InputRequired,
    InputRequiredError,
    check_declared,
    read_input_required,
    retry_params,
)
from mcp_client.protocol.owners import Owner
from mcp_client.protocol.peer.requests import Refusal
from mcp_client.protocol.progress import Progress
from mcp_client.protocol.surfaces.tasks import TaskShape, read_task
from mcp_client.session import ClientSession, ask

__all__ = [
    "Exchange",
    "answer_inputs",
    "check_owner",
    "continue_exchange",
    "read_outcome",
    "run_exchange",
]


# one for each request, and frozen it takes three times as long: the type checker keeps it as it is
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class Exchange:
    """How a request and its retries are made: see `ClientSession.start`."""

    guard: SendGuard | None = None
    seconds: float | None = None
    on_progress: Callable[[Progress], object] | None = None
    declares: ClientCapabilities | None = None


async def run_exchange(session: ClientSession, method: str, params: bytes, how: Exchange) -> object:
    """Return the result of a request, or the `Task` that became of it.

    Under the connection's own guard the server's questions are answered by the handlers, and the
    request made again, `input_rounds_max` times at most. A guard of its own is good for one frame:
    then InputRequiredError says what to go on with. Raises InputRefusedError if a question was not
    answered, UndeclaredInputError, and what `ask` raises.
    """
    asked = None
    if method in CACHEABLE:
        # what goes under leave of its own is always sent: the leave is for that
        kept = _recall(session, method, params) if how.guard is None else None
        if kept is not None:
            return kept
        asked = session.recall.asking(method, params)
    declares = how.declares
    # what `_round` does, without a coroutine for each request
    outcome = await ask(
        session,
        method,
        params,
        guard=how.guard,
        seconds=how.seconds,
        on_progress=how.on_progress,
        declares=declares,
    )
    if not session.connection.has_rounds:
        return outcome
    outcome = read_outcome(session, method, params, outcome, declares=declares)
    if asked is not None:
        # an unfinished answer is none, and what came of its retry depended on more than the params
        session.recall.keep(asked, outcome)
    # hardly ever is there more to do
    return await _finish(session, outcome, how) if isinstance(outcome, InputRequired) else outcome


async def continue_exchange(
    session: ClientSession, required: InputRequired, answers: Mapping[str, object], how: Exchange
) -> object:
    """Make a request again with answers to the server's questions; see `run_exchange`.

    It is a request of its own, with a new id. Raises LocalProtocolError if an answer is missing or
    too many, or the questions are another server's.
    """
    check_owner(session, required.owner)
    params = retry_params(required, answers, session.limits)
    outcome = await _round(session, required.method, params, how, required)
    return await _finish(session, outcome, how)


async def answer_inputs(
    session: ClientSession, requests: Mapping[str, InputRequest], declared: ClientCapabilities
) -> Mapping[str, object]:
    """Return an answer of the handlers for every question, one after the other.

    Raises UndeclaredInputError, or InputRefusedError if one was not answered: then nothing is sent.
    """
    check_declared(requests, declared, server=session.server)
    answers: dict[str, object] = {}
    for key, request in requests.items():
        params = request.params
        if params.get("mode") == "url":
            # in this version a visit has no name of its own, and nobody tells its end
            params = {"elicitationId": key, **params}
        outcome = await session.desk.resolve(request.kind.value, params, declared)
        if isinstance(outcome, Refusal):
            raise InputRefusedError(
                f"a question of the server was not answered: {outcome.message}",
                server=session.server,
                stage="receive",
                delivery=Delivery.ANSWERED,
            )
        answers[key] = outcome
    return answers


def check_owner(session: ClientSession, owner: Owner) -> None:
    """Raise LocalProtocolError for what belongs to another server, configuration or login."""
    if owner != session.owner:
        raise LocalProtocolError(
            "what one server sent under one login is not for another",
            server=session.server,
            stage="send",
        )


def _recall(session: ClientSession, method: str, params: bytes) -> object:
    if not isinstance(session.connection, ModernConnection):
        return None
    kept = session.recall.find(method, params)
    if kept is not None:
        session.guard.check()  # what the connection may no longer ask it may not be told either
    return kept


async def _finish(session: ClientSession, outcome: object, how: Exchange) -> object:
    while isinstance(outcome, InputRequired):
        if how.guard is not None:
            raise InputRequiredError(outcome, server=session.server)
        if outcome.round > session.bounds.input_rounds_max:
            raise RemoteProtocolError(
                f"a request came to no end in {session.bounds.input_rounds_max} rounds",
                server=session.server,
                stage="receive",
                delivery=Delivery.ANSWERED,
            )
        answers = await answer_inputs(session, outcome.requests, outcome.declared)
        if not outcome.requests:
            # a server that asks nothing is asked again soon, and less and less often
            await anyio.sleep(session.bounds.input_pause_seconds * 2 ** (outcome.round - 1))
        params = retry_params(outcome, answers, session.limits)
        outcome = await _round(session, outcome.method, params, how, outcome)
    return outcome


async def _round(
    session: ClientSession,
    method: str,
    params: bytes,
    how: Exchange,
    before: InputRequired,
) -> object:
    """Ask once more, with the answers to what was asked `before`."""
    result = await ask(
        session,
        method,
        params,
        guard=how.guard,
        seconds=how.seconds,
        on_progress=how.on_progress,
        declares=before.declared,
    )
    return read_outcome(session, method, params, result, declares=before.declared, before=before)


def read_outcome(
    session: ClientSession,
    method: str,
    params: bytes,
    result: object,
    *,
    declares: ClientCapabilities | None = None,
    before: InputRequired | None = None,
) -> object:
    """Return what a result is: itself where it is complete, else `InputRequired` or a `Task`.

    `params` and `declares` are what the request was made with, `before` the questions that it
    answered. Raises RemoteProtocolError for a result that the server may not send, and
    UndeclaredInputError.
    """
    connection = session.connection
    if not isinstance(connection, ModernConnection):
        return result
    match read_result_type(method, result, connection.extensions, server=session.server):
        case ResultType.COMPLETE:
            return result
        case ResultType.TASK:
            return read_task(
                result,
                TaskShape.EXTENSION,
                session.limits,
                session.bounds,
                owner=session.owner,
            )
        case ResultType.INPUT_REQUIRED:
            requests, state = read_input_required(result, session.bounds, server=session.server)
    ours = connection.negotiated
    declared = ours if declares is None else lowered(ours, declares)
    check_declared(requests, declared, server=session.server)
    return InputRequired(
        owner=session.owner,
        method=method,
        params=params if before is None else before.params,
        declared=declared,
        requests=requests,
        state=state,
        round=1 if before is None else before.round + 1,
    )
