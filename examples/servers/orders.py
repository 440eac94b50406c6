"""An MCP server over stdio for a small shop's orders, with Python's standard library alone.

    python3 orders.py ORDERS.json REFUNDS.jsonl

It reads orders from the first file and appends refunds to the second. One JSON object on a line is
one message, in both directions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "2025-11-25"
NUMBER = {"type": "integer"}

TOOLS: list[dict[str, Any]] = [
    {
        "name": "list_orders",
        "description": "The numbers of all orders.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "get_order",
        "description": "One order: what it cost, and how many days it is late.",
        "inputSchema": {"type": "object", "properties": {"order": NUMBER}, "required": ["order"]},
    },
    {
        "name": "refund",
        "description": "Pay back an amount for an order.",
        "inputSchema": {
            "type": "object",
            "properties": {"order": NUMBER, "amount": NUMBER},
            "required": ["order", "amount"],
        },
    },
]


def main() -> None:
    """Answer requests until the input ends."""
    shop = Shop(Path(sys.argv[1]), Path(sys.argv[2]))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:  # what has no id wants no answer
            print(json.dumps(answer(message, shop)), flush=True)


def answer(message: dict[str, Any], shop: Shop) -> dict[str, Any]:
    """Return the answer to one request."""
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        capabilities: dict[str, Any] = {"tools": {}}
        result = {
            "protocolVersion": VERSION,
            "capabilities": capabilities,
            "serverInfo": {"name": "orders", "version": "1"},
        }
        return {**head, "result": result}
    if method == "tools/list":
        return {**head, "result": {"tools": TOOLS}}
    if method == "tools/call":
        return {**head, "result": call(params["name"], params.get("arguments", {}), shop)}
    if method == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": -32601, "message": "no such method"}}


def call(name: str, arguments: dict[str, Any], shop: Shop) -> dict[str, Any]:
    """Return a tool's result; what goes wrong in a tool is a result as well."""
    tools: dict[str, Callable[..., object]] = {
        "list_orders": shop.list_orders,
        "get_order": shop.get_order,
        "refund": shop.refund,
    }
    try:
        text = json.dumps(tools[name](**arguments))
    except (KeyError, TypeError, ValueError, OSError) as error:
        return {"content": [{"type": "text", "text": repr(error)}], "isError": True}
    return {"content": [{"type": "text", "text": text}]}


class Shop:
    """The orders, and the book of refunds."""

    def __init__(self, orders: Path, refunds: Path) -> None:
        self.orders: dict[str, Any] = json.loads(orders.read_text("utf-8"))
        self.refunds = refunds

    def list_orders(self) -> list[int]:
        return [int(number) for number in self.orders]

    def get_order(self, order: int) -> dict[str, Any]:
        return {"order": order, **self.orders[str(order)]}

    def refund(self, order: int, amount: int) -> dict[str, Any]:
        booked = {"order": order, "customer": self.orders[str(order)]["customer"], "amount": amount}
        with self.refunds.open("a", encoding="utf-8") as book:
            book.write(json.dumps(booked) + "\n")
        return booked


if __name__ == "__main__":
    main()
