"""Calls whose answers are questions first (MCP 2026-07-28): each round is decided and admitted anew. It sends nothing."""

from __future__ import annotations

import anyio

from mcp_client.client.rounds import answer_inputs, check_owner, read_outcome
from mcp_client.protocol.errors import Delivery, McpError, RemoteProtocolError
from mcp_client.protocol.modern.mrtr import InputRequired, retry_params
from orchestrator.broker.failing import failed
from orchestrator.broker.wire import Link
from orchestrator.broker.wish import Wish

__all__ = ["MoreInputError", "answer_round", "read_round"]


class MoreInputError(Exception):
    """The server answered with questions: the call has to go the whole road again to answer them."""

    def __init__(self, required: InputRequired, link: Link) -> None:
        super().__init__("the server needs input before it answers")
        self.required = required
        self.link = link


def read_round(wish: Wish, link: Link, result: object) -> object:
    """Return a result that is complete. For connections whose answers may be questions first.

    Raises MoreInputError if it is questions; CallFailedError if it cannot be used. That a call
    became a task cannot be: no session declares that it follows one.
    """
    session = link.session
    try:
        outcome = read_outcome(session, wish.method, wish.params, result, before=wish.required)
    except McpError as error:
        raise failed(wish, error) from error
    if isinstance(outcome, InputRequired):
        raise MoreInputError(outcome, link)
    return outcome


async def answer_round(wish: Wish, more: MoreInputError) -> None:
    """Have the questions answered by the session's handlers, and the wish hold the answers.

    What is wished for stays the same: only then is it decided again, and a permit made for it.
    Raises CallFailedError if a question is not answered, or the rounds have no end.
    """
    required, session = more.required, more.link.session
    try:
        if required.round > session.bounds.input_rounds_max:
            raise RemoteProtocolError(
                f"a call came to no end in {session.bounds.input_rounds_max} rounds",
                server=session.server,
                stage="receive",
                delivery=Delivery.ANSWERED,
            )
        with more.link.observer.answering(wish.id, wish.view):
            answers = await answer_inputs(session, required.requests, required.declared)
        if not required.requests:
            # a server that asks nothing is asked again soon, and less and less often
            await anyio.sleep(session.bounds.input_pause_seconds * 2 ** (required.round - 1))
        check_owner(session, required.owner)
        wish.take_round(required, retry_params(required, answers, session.limits))
    except McpError as error:
        raise failed(wish, error, Delivery.ANSWERED) from error
