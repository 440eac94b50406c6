"""Faults that other clients shipped, kind by kind: which tests show that this one has none of them.

The table names tests of the whole suite; those that stand nowhere else stand here. Each judges by
what crossed the wire, by what is alive afterwards, or by what a person and a model get to see.
"""

from __future__ import annotations

import ast
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from mcp_client.client import ServerSpec, connect
from mcp_client.ports import UNGUARDED, Handlers
from mcp_client.protocol.peer.elicitation import (
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
)
from mcp_client.testing import ScriptedServer, text_result
from tests.mcp_client.peer_kit import ELICIT, answer_to

TESTS: Final = Path(__file__).parents[1]

KINDS: Final[dict[str, tuple[str, ...]]] = {
    "stdout noise and stderr": (
        "mcp_client/test_faults.py::test_noise_before_and_between_all_messages_costs_no_second_start",
        "hostile/test_hostile_servers.py::test_noise_on_stdout_is_skipped_and_the_answer_found",
        "hostile/test_hostile_servers.py::test_a_server_of_nothing_but_noise_is_ended_at_the_bound",
        "hostile/test_hostile_servers.py::test_a_flood_on_stderr_delays_no_answer",
        "mcp_client/stdio/test_transport.py::test_a_flood_on_stderr_holds_up_nobody_and_only_its_end_is_kept",
        "mcp_client/stdio/test_transport.py::test_the_end_of_stderr_is_a_field_of_the_error_without_control_characters",
    ),
    "server death": (
        "hostile/test_hostile_servers.py::test_a_server_that_dies_within_a_call_ends_it_with_status_and_stderr",
        "hostile/test_hostile_servers.py::test_a_server_that_is_killed_within_a_call_ends_every_pending_call",
        "hostile/test_hostile_servers.py::test_a_server_that_closes_its_output_is_gone_within_a_second",
        "mcp_client/stdio/test_transport.py::test_the_death_of_a_server_is_told_within_a_second_with_its_status",
        "hostile/test_hostile_http.py::test_over_http_sse_a_stream_that_breaks_ends_every_call",
        "hostile/test_hostile_http.py::test_a_connection_that_breaks_off_leaves_the_outcome_unknown",
    ),
    "process tree": (
        "mcp_client/stdio/test_process_tree.py::test_after_close_no_descendant_is_alive_however_it_was_started",
        "mcp_client/stdio/test_process_tree.py::test_after_close_the_children_of_a_wrapper_are_dead",
        "mcp_client/stdio/test_process_tree.py::test_what_a_server_leaves_behind_when_it_exits_is_ended_soon_and_without_a_close",
        "mcp_client/stdio/test_process_tree.py::test_when_the_host_is_killed_nothing_of_its_servers_is_alive_two_seconds_later",
        "mcp_client/stdio/test_transport.py::test_a_start_that_is_cancelled_at_any_turn_leaves_no_process",
        "hostile/test_hostile_servers.py::test_a_server_that_dies_and_leaves_a_deaf_child_leaves_nothing",
        "mcp_client/stdio/test_escapes.py::test_a_server_that_kills_supervisor_and_keeper_is_dead_at_once_with_all_its_processes",
    ),
    "environment and secrets": (
        "mcp_client/stdio/test_environment.py::test_nothing_else_is_inherited",
        "mcp_client/stdio/test_transport.py::test_a_server_gets_the_allow_list_and_the_declared_variables_only",
        "mcp_client/stdio/test_breaking.py::test_declared_values_are_hidden_in_the_stderr_of_an_error",
        "mcp_client/stdio/test_hardening.py::test_a_command_shows_neither_its_arguments_nor_its_environment",
        "mcp_client/test_client.py::test_a_spec_never_shows_its_arguments_and_the_values_of_its_variables",
        "mcp_client/http/test_front.py::test_a_server_shows_neither_its_url_nor_its_headers",
        "mcp_client/http/test_replies.py::test_the_session_id_goes_on_everything_after_and_is_shown_nowhere",
        "mcp_client/net/http/test_httpx_transport.py::test_no_url_is_logged",
    ),
    "lost session": (
        "mcp_client/http/test_front.py::test_a_lost_session_begins_anew_and_the_call_is_sent_once_more",
        "mcp_client/http/test_front.py::test_a_second_404_is_an_error_and_not_a_loop",
        "mcp_client/http/test_front.py::test_all_who_find_out_at_once_share_one_handshake",
        "mcp_client/http/test_front.py::test_a_400_for_a_dead_session_begins_anew_but_the_call_is_not_sent_again",
        "mcp_client/http/test_sessions.py::test_a_new_initialize_begins_a_session_without_the_old_id",
        "orchestrator/broker/test_lost_session.py",
    ),
    "origins": (
        "mcp_client/http/test_own_stream.py::test_nothing_is_sent_to_another_origin_whatever_a_redirect_says",
        "mcp_client/http/test_own_stream.py::test_redirects_that_turn_in_a_circle_end",
        "mcp_client/http/test_replies.py::test_a_post_is_never_sent_elsewhere",
        "mcp_client/http/test_http_sse.py::test_nothing_is_sent_to_an_endpoint_of_another_origin",
        "hostile/test_hostile_http.py::test_a_call_is_never_sent_elsewhere",
        "hostile/test_hostile_http.py::test_over_http_sse_a_stream_that_is_sent_elsewhere_without_end_is_given_up",
        "mcp_client/net/http/test_httpx_transport.py::test_a_redirect_has_no_guard_of_its_own_and_is_not_followed",
    ),
    "no double execution": (
        "hostile/test_hostile_http.py::test_what_is_no_answer_is_a_typed_error_and_nothing_is_sent_again",
        "mcp_client/http/test_streams.py::test_a_stream_that_ends_after_an_event_id_is_resumed_by_get_and_the_call_is_not_resent",
        "mcp_client/http/test_streams.py::test_a_response_cut_at_any_byte_is_the_answer_or_an_unknown_outcome",
        "mcp_client/http/test_streams.py::test_since_2026_a_broken_stream_is_not_resumed",
        "mcp_client/test_outbox.py::test_after_a_write_of_unknown_outcome_nothing_is_written_again",
    ),
    "authorization and elicitation URLs": (
        "mcp_client/protocol/test_urls.py::test_every_other_url_is_refused",
        "mcp_client/protocol/test_urls.py::test_https_and_this_machine_may_be_shown_with_their_host",
        "mcp_client/test_server_words.py::test_no_address_that_a_server_names_is_ever_visited",
        "fuzz/test_targets.py::test_nothing_is_found",
    ),
    "one bad item": (
        "mcp_client/test_client.py::test_a_bad_tool_is_quarantined_with_a_reason_and_the_others_are_listed",
        "mcp_client/test_listing.py::test_bad_entries_are_set_apart_with_reasons_and_the_others_work",
        "mcp_client/protocol/surfaces/test_results.py::test_a_malformed_block_is_replaced_where_it_stood_and_harms_no_other",
        "mcp_client/protocol/surfaces/test_listed_items.py::test_a_bad_part_of_a_resource_is_set_apart_and_the_others_are_read",
        "mcp_client/test_client.py::test_a_result_that_is_none_fails_its_call_and_no_other",
        "interaction/test_surfaces.py::test_tools_are_listed_over_pages_and_broken_ones_are_set_apart",
    ),
    "names": (
        "mcp_client/test_client.py::test_of_two_definitions_under_one_name_neither_wins",
        "orchestrator/catalog/test_names.py::test_names_are_unique_short_and_of_the_alphabet",
        "orchestrator/catalog/test_names.py::test_names_do_not_depend_on_the_order",
        "orchestrator/catalog/test_names.py::test_two_tools_with_one_plain_name_both_get_a_suffix",
        "orchestrator/catalog/test_names.py::test_a_name_never_moves_to_a_tool_that_appears",
    ),
    "pinning": (
        "orchestrator/catalog/test_pins.py::test_a_silent_change_is_found_with_both_digests",
        "orchestrator/catalog/test_pins.py::test_a_tool_that_comes_back_is_shown_again",
        "orchestrator/catalog/test_listing.py::test_every_change_of_a_definition_changes_its_digest",
        "orchestrator/sessions/test_pinning.py::test_what_has_changed_since_it_was_shown_is_a_question",
        "orchestrator/sessions/test_opening.py::test_a_server_that_changed_is_not_started_again",
        "mcp_client/protocol/surfaces/test_tools.py::test_any_change_of_a_definition_changes_its_digest",
    ),
    "subagents": (
        "orchestrator/authority/test_admission.py::test_no_child_exceeds_its_policy_its_grant_or_what_any_agent_above_may_hand_on",
        "orchestrator/authority/test_ledger.py::test_a_revocation_kills_every_descendant_and_tells_it_the_cause",
        "orchestrator/authority/test_ledger.py::test_no_child_is_born_under_a_dead_parent",
        "orchestrator/sessions/test_parent_agents.py::test_the_children_of_a_cancelled_agent_end_and_are_told_why",
        "orchestrator/sessions/test_parent_agents.py::test_a_child_gets_no_more_than_its_parent_may_delegate",
        "orchestrator/broker/test_frozen_view.py",
    ),
    "a bad message fails only its own call": (
        "hostile/test_hostile_servers.py::test_answers_to_ids_that_were_not_asked_reach_nobody",
        "hostile/test_hostile_servers.py::test_an_answer_that_cannot_be_read_fails_its_own_call_at_once",
        "mcp_client/protocol/test_jsonrpc.py::test_a_malformed_answer_names_the_one_request_that_it_fails",
    ),
    "the deadline covers the write": (
        "hostile/test_hostile_servers.py::test_a_server_that_reads_no_more_does_not_hold_up_a_call_past_its_deadline",
        "mcp_client/net/http/test_engine.py::test_the_deadline_covers_the_write",
        "hostile/test_hostile_http.py::test_a_reply_that_never_ends_ends_the_call_at_its_deadline",
    ),
    "decoded bytes are bounded": (
        "hostile/test_hostile_http.py::test_a_content_coding_that_was_not_asked_for_is_refused_before_it_is_inflated",
        "hostile/test_hostile_http.py::test_a_flood_ends_at_its_bound_and_not_at_the_deadline",
        "hostile/test_costs.py::test_a_bomb_over_http_costs_no_more_than_a_frame",
        "hostile/test_costs.py::test_a_frame_without_an_end_costs_no_more_than_a_frame",
        "hostile/test_costs.py::test_8_mib_of_brackets_or_names_are_refused_at_no_great_cost",
    ),
    "reconnect bounds survive a clean close": (
        "mcp_client/http/test_own_stream.py::test_a_server_that_closes_its_own_stream_at_once_is_not_asked_for_ever",
        "mcp_client/http/test_streams.py::test_a_stream_that_cannot_be_resumed_ends_after_so_many_attempts",
        "mcp_client/test_client_modern.py::test_a_server_that_ends_every_stream_is_listened_to_no_more",
    ),
    "a reply belongs to the stream of its own request": (
        "hostile/test_hostile_http.py::test_no_answer_reaches_another_caller_whatever_comes_in_whose_reply",
        "hostile/test_hostile_http.py::test_bytes_behind_an_answer_are_nobodys_answer",
        "hostile/test_hostile_http.py::test_over_http_sse_every_caller_gets_its_own_answer_in_any_order",
        "mcp_client/test_client.py::test_many_callers_get_their_own_answers_when_these_come_in_any_order",
    ),
    "no server's regular expression runs, no reference is fetched": (
        "mcp_client/test_faults.py::test_regular_expressions_of_a_server_run_nowhere",
        "mcp_client/protocol/surfaces/test_listed_items.py::test_references_and_regular_expressions_of_a_schema_stay_words",
        "mcp_client/test_server_words.py::test_no_address_that_a_server_names_is_ever_visited",
        "mcp_client/protocol/surfaces/test_templates.py::test_a_template_made_to_be_slow_takes_time_in_proportion",
    ),
    "no lock is held across a request": (
        "mcp_client/test_client.py::test_a_call_that_gets_no_answer_ends_at_its_deadline_while_others_go_on",
        "mcp_client/test_faults.py::test_while_one_call_hangs_every_other_request_goes_through",
    ),
    "no hidden requests": (
        "mcp_client/test_faults.py::test_nothing_crosses_the_wire_that_nobody_asked_for",
        "orchestrator/sessions/test_parent.py::test_nothing_is_asked_of_a_server_beyond_the_handshake_and_its_list",
        "hostile/test_hostile_http.py::test_a_storm_of_401_costs_one_request_for_each_call",
    ),
    "a flood of notices": (
        "mcp_client/test_news.py::test_24000_notifications_around_one_reply_cost_at_most_two_refreshes",
        "interaction/test_surfaces.py::test_a_flood_of_changes_costs_at_most_two_refreshes",
        "hostile/test_hostile_servers.py::test_a_server_that_asks_without_end_gets_its_answers_bounded",
    ),
}


@cache
def functions_in(path: str) -> frozenset[str]:
    tree = ast.parse((TESTS / path).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, functions))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_shown_by_tests_that_there_are(kind: str) -> None:
    assert KINDS[kind]
    for named in KINDS[kind]:
        path, _, name = named.partition("::")
        found = functions_in(path)
        assert (name in found) if name else any(each.startswith("test_") for each in found), named


# ------------------------------------------------------------------- those that stand only here

NOISY: Final = """
import json, os, sys
open(sys.argv[1], "a").write("started\\n")
os.write(2, b"\\x1b[31mwarming up\\n" * 5000)
def say(text): os.write(1, text)
say(b"\\xef\\xbb\\xbfServer v1 listening\\r\\n\\r\\n  \\n{oops\\n")
for line in sys.stdin:
    message = json.loads(line)
    say(b"DEBUG: got a line\\n\\xff\\xfe\\n[]\\n\\x00\\n")
    if "id" in message:
        result = {"content": [{"type": "text", "text": "fine"}]}
        if message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                      "serverInfo": {"name": "n", "version": "1"}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        say(b"\\xef\\xbb\\xbf" + json.dumps(answer).encode() + b"\\r\\nDEBUG: done\\n")
"""


@pytest.mark.subprocess
@pytest.mark.requirement("T-3")
async def test_noise_before_and_between_all_messages_costs_no_second_start(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    arguments = ("-I", "-S", "-c", NOISY, str(starts))
    spec = ServerSpec(name="noisy", command=sys.executable, args=arguments)
    with anyio.fail_after(10):
        async with connect(spec, guard=UNGUARDED) as client:
            texts = [(await client.call_tool("any", {})).text for _ in range(20)]
            counted = sum(client.session.violations.values())

    assert texts == ["fine"] * 20
    assert counted >= 22 * 4
    assert await anyio.Path(starts).read_text() == "started\n"


NO_ARGUMENTS: Final[dict[str, object]] = {}
BACKTRACKS: Final = "^(([a-z])+.)+[A-Z]([a-z])+$"
VICTIM: Final = "a" * 60


@pytest.mark.requirement("S-15")
async def test_regular_expressions_of_a_server_run_nowhere() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": BACKTRACKS}},
        "patternProperties": {BACKTRACKS: {"type": "string"}},
    }
    server = ScriptedServer()
    server.add_definition({"name": "slow", "inputSchema": schema, "outputSchema": schema})
    result_of_all: Any = {"content": [], "structuredContent": {"a": VICTIM, VICTIM: "x"}}
    server.on("tools/call", lambda request: request.answer(result_of_all))
    asked: list[FormElicitation] = []

    async def fill_in(request: FormElicitation) -> ElicitationAnswer:
        asked.append(request)
        return ElicitationAnswer(ElicitationAction.ACCEPT, {"a": VICTIM})

    before = time.process_time()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=Handlers(elicitation_form=fill_in)
        ) as client:
            listing = await client.list_tools()
            result = await client.call_tool("slow", {"a": VICTIM, VICTIM: "x"})
            server.ask("q", ELICIT, {"message": "?", "requestedSchema": schema})
            await answer_to(server, "q")

    assert [tool.name for tool in listing.tools] == ["slow"]
    assert result.structured == {"a": VICTIM, VICTIM: "x"}
    assert time.process_time() - before < 3  # each of them alone takes years


async def test_while_one_call_hangs_every_other_request_goes_through() -> None:
    server = ScriptedServer()
    server.add_tool("hangs")
    server.add_tool("works", lambda _: text_result("fine"))
    with anyio.fail_after(30):
        async with (
            connect(server, guard=UNGUARDED) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(client.call_tool, "hangs", NO_ARGUMENTS)
            await server.until(lambda: len(server.received) == 3)
            await client.list_tools()
            await client.call_tool("works", {})
            await client.ping()
            group.cancel_scope.cancel()

    assert [message["method"] for message in server.received[3:6]] == [
        "tools/list",
        "tools/call",
        "ping",
    ]


async def test_nothing_crosses_the_wire_that_nobody_asked_for() -> None:
    server = ScriptedServer()
    server.add_tool("works", lambda _: text_result("fine"))
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            await client.call_tool("works", {})
            await anyio.wait_all_tasks_blocked()

    assert [message.get("method") for message in server.received] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
