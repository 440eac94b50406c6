"""The two agents as recipes: generators that yield calls and receive results."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any, cast

from orchestrator import AgentTask, AuthorityError, Call, Note

Steps = Generator[Any, Any, object]


def clerk(task: AgentTask) -> Steps:
    """Return the orders that are late."""
    listed = yield Call("orders", "list_orders")
    numbers = json.loads(listed.text)
    results = yield [Call("orders", "get_order", {"order": number}) for number in numbers]
    orders = [json.loads(result.unwrap().text) for result in results]
    late = [order for order in orders if order["days_late"] > task.inputs["days"]]
    yield Note(f"{len(late)} of {len(orders)} orders are late")
    return late


def cashier(task: AgentTask) -> Steps:
    """Pay half of each price back; leave to a person what nobody said yes to."""
    paid: list[int] = []
    left: list[int] = []
    for order in cast("list[dict[str, int]]", task.inputs["clerk"]):
        wanted = {"order": order["order"], "amount": order["price"] // 2}
        try:
            yield Call("orders", "refund", wanted)
            paid.append(order["order"])
        except AuthorityError:
            left.append(order["order"])
    return {"paid": paid, "left to a person": left}
