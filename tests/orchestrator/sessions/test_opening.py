from __future__ import annotations

import json
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from orchestrator import (
    AgentTask,
    ApprovalRequest,
    AuthorityError,
    Call,
    DenyReason,
    Grant,
    ParentSession,
    PendingApprovalError,
    recipe,
)
from orchestrator.agents.events import AgentEnded, AgentEvent
from orchestrator.audit.read import read_records, verify_file
from orchestrator.core.errors import ConfigError, ServerFailedError
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.approvals import Item
from policies import PolicySet, Source, load

pytestmark = pytest.mark.subprocess

SERVER: Final = Path(__file__).parents[3] / "examples" / "servers" / "orders.py"
POLICY: Final = 'policy p v1 { permit "look" call on shop/{list_orders,get_order} }'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("REMIT_HOME", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "orders.json").write_text('{"7": {"customer": "Ada", "price": 40, "days_late": 3}}')
    (folder / "p.policy").write_text(POLICY)
    write_servers(folder, shop={"args": [str(SERVER), "orders.json", "refunds.jsonl"]})
    return folder


def write_servers(folder: Path, **entries: dict[str, object]) -> None:
    servers = {name: {"command": sys.executable, **entry} for name, entry in entries.items()}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def rules(text: str) -> PolicySet:
    return load([Source("program.policy", text)], {})


async def yes(items: Sequence[Item]) -> bool:
    return True


class Person:
    interactive = True

    def __init__(self, *, answer: bool) -> None:
        self._answer = answer
        self.asked: list[ApprovalRequest] = []

    async def approve(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        return self._answer


async def orders(session: ParentSession) -> str:
    return (await session.view.call(Call("shop", "list_orders"))).text


async def pending(project: Path, **more: Any) -> PendingApprovalError:
    """Open a session that must not open; return what is missing."""
    with anyio.fail_after(30), pytest.raises(PendingApprovalError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", **more):
            pass
    return caught.value


async def test_what_nobody_approved_is_not_started(home: Path, project: Path):
    missing = await pending(project, policy=project / "p.policy")

    assert [item.name for item, _ in missing.items] == ["p.policy", "shop"]
    assert list((home / "state" / "runs").iterdir()) == []


def entries_of(project: Path, **more: object) -> dict[str, dict[str, object]]:
    args = [SERVER, "orders.json", "refunds.jsonl"]
    return {"shop": {"command": sys.executable, "args": args, "cwd": project, **more}}


async def test_entries_of_the_program_need_no_approval_and_their_tools_do(
    home: Path, project: Path
):
    with anyio.fail_after(30), pytest.raises(PendingApprovalError) as caught:
        async with ParentSession.open(servers=entries_of(project), policy=rules(POLICY)):
            pass

    assert [item.name for item, _ in caught.value.items] == ["shop.tools"]


async def test_entries_of_the_program_make_a_session_like_those_of_a_file(
    home: Path, project: Path
):
    trusted = entries_of(project, description_trust="first-use")

    with anyio.fail_after(30):
        async with ParentSession.open(servers=trusted, policy=rules(POLICY)) as session:
            assert await orders(session) == "[7]"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"timeout": float("nan")}, "E-CONFIG-VALUE"),
        ({"args": [b"--root"]}, "E-CONFIG-VALUE"),
        ({"args": [object()]}, "E-CONFIG-VALUE"),
        ({"args": "orders.json"}, "E-CONFIG-TYPE"),
    ],
)
async def test_an_entry_of_the_program_that_no_file_could_hold_is_a_clear_error(
    home: Path, project: Path, more: dict[str, object], code: str
):
    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=entries_of(project, **more), policy=rules(POLICY)):
            pass

    assert caught.value.code == code
    assert "servers" in f"{caught.value.where} {caught.value.message}"


async def test_a_policy_file_that_keeps_argument_values_opens_no_session_and_a_set_does(
    home: Path, project: Path
):
    keeps = POLICY.removesuffix("}") + 'oblige "k" call on shop keep arguments }'
    (project / "p.policy").write_text(keeps)

    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(
            servers=project / ".mcp.json", policy=project / "p.policy", confirm=yes
        ):
            pass
    with anyio.fail_after(10):
        async with ParentSession.open(
            servers=project / ".mcp.json", policy=rules(keeps), confirm=yes
        ) as session:
            await orders(session)

    assert caught.value.code == "E-POLICY-KEEP"


async def test_approvals_of_one_error_lead_to_the_next_and_then_in(home: Path, project: Path):
    files = await pending(project, policy=project / "p.policy")
    tools = await pending(project, policy=project / "p.policy", approve=files.approvals)
    with anyio.fail_after(30):
        async with ParentSession.open(
            servers=project / ".mcp.json",
            policy=project / "p.policy",
            approve={*files.approvals, *tools.approvals},
        ) as session:
            found = await orders(session)

    assert [item.name for item, _ in tools.items] == ["shop.tools"]
    assert found == "[7]"


async def test_a_yes_is_kept_for_the_next_session(home: Path, project: Path):
    with anyio.fail_after(30):
        async with ParentSession.open(
            servers=project / ".mcp.json", policy=project / "p.policy", confirm=yes
        ):
            pass
        async with ParentSession.open(
            servers=project / ".mcp.json", policy=project / "p.policy"
        ) as session:
            assert await orders(session) == "[7]"


async def test_a_server_that_changed_is_not_started_again(home: Path, project: Path):
    async with ParentSession.open(servers=project / ".mcp.json", policy=rules(POLICY), confirm=yes):
        pass
    (project / "orders.json").write_text("{}")

    assert [item.name for item, _ in (await pending(project)).items] == ["shop"]


async def test_without_a_policy_every_call_asks_and_nobody_is_there(home: Path, project: Path):
    async with ParentSession.open(servers=project / ".mcp.json", confirm=yes) as session:
        with pytest.raises(AuthorityError) as refused:
            await orders(session)

    assert refused.value.reason is DenyReason.ASK_UNANSWERED


@pytest.mark.parametrize("answer", [True, False])
async def test_an_approver_is_asked_about_a_call(answer: bool, home: Path, project: Path):
    person = Person(answer=answer)
    async with ParentSession.open(
        servers=project / ".mcp.json", confirm=yes, approver=person
    ) as session:
        try:
            allowed = await orders(session) == "[7]"
        except AuthorityError:
            allowed = False

    assert (len(person.asked), allowed) == (1, answer)


async def test_an_agent_of_the_program_works_within_policy_and_grant(home: Path, project: Path):
    def look(task: AgentTask) -> Generator[Any, Any, object]:
        listed = yield Call("shop", "list_orders")
        try:
            yield Call("shop", "get_order", {"order": 7})
        except AuthorityError as error:
            return [listed.text, error.reason.value]
        return "more than was granted"

    heard: list[AgentEvent] = []
    async with ParentSession.open(
        servers=project / ".mcp.json", policy=rules(POLICY), confirm=yes, on_event=heard.append
    ) as session:
        agent = session.subagent("clerk", model=recipe(look), grant=Grant(("shop/list_orders",)))
        result = await agent.run("Look.")

    assert (result.status, result.answer) == (RunStatus.OK, ["[7]", "not_in_snapshot"])
    assert isinstance(heard[-1], AgentEnded)


async def test_the_log_is_where_it_was_wanted_and_whole(home: Path, project: Path, tmp_path: Path):
    log = tmp_path / "audit.jsonl"
    async with ParentSession.open(
        servers=project / ".mcp.json", policy=rules(POLICY), confirm=yes, audit=log
    ) as session:
        await orders(session)
    found = verify_file(log)

    assert (found.ok, found.complete) == (True, True)
    assert {"decision", "call_ended"} <= {record.kind for record in read_records(log)}


async def test_a_log_of_a_block_that_failed_says_so(home: Path, project: Path, tmp_path: Path):
    log = tmp_path / "audit.jsonl"
    with pytest.raises(LookupError):
        async with ParentSession.open(
            servers=project / ".mcp.json", policy=rules(POLICY), confirm=yes, audit=log
        ):
            raise LookupError
    (*_, last) = read_records(log)

    assert (last.kind, last.fields["status"]) == ("run_ended", "failed")


async def test_a_misspelt_tool_in_a_policy_is_found_before_anything_is_granted(
    home: Path, project: Path
):
    wrong = rules('policy p v1 { permit "look" call on shop/list_ordres }')
    with anyio.fail_after(30), pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", policy=wrong, confirm=yes):
            pass

    assert (caught.value.code, "list_orders" in caught.value.fix) == (
        "E-POLICY-UNKNOWN-TOOL",
        True,
    )


async def test_a_misspelt_server_in_a_policy_is_found_before_anything_starts(
    home: Path, project: Path
):
    wrong = rules('policy p v1 { permit "look" call on shpo/list_orders }')
    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", policy=wrong):
            pass

    assert caught.value.code == "E-POLICY-UNKNOWN-SERVER"


async def test_only_the_servers_that_are_wanted_are_started(home: Path, project: Path):
    write_servers(
        project,
        shop={"args": [str(SERVER), "orders.json", "r"]},
        broken={"args": ["-c", "raise SystemExit(3)"]},
    )
    with anyio.fail_after(30):
        async with ParentSession.open(
            servers=project / ".mcp.json", only=["shop"], confirm=yes
        ) as session:
            assert list(session.servers) == ["shop"]


async def test_a_server_that_cannot_be_connected_is_an_error(home: Path, project: Path):
    words = "import sys; print('a\\n\\nb\\nc\\nd', file=sys.stderr); raise SystemExit(3)"
    write_servers(project, broken={"args": ["-c", words]})
    with anyio.fail_after(30), pytest.raises(ServerFailedError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", confirm=yes):
            pass

    assert "exit status 3" in caught.value.message
    assert caught.value.untrusted_detail == "b | c | d"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"disabled": True}, "E-SERVER-DISABLED"),
        ({"env": {"KEY": "${SECRET}"}}, "E-SERVER-CONFIG"),
    ],
)
async def test_a_wanted_server_that_cannot_be_used_is_an_error(
    entry: dict[str, object], code: str, home: Path, project: Path
):
    write_servers(project, shop=entry)
    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", only=["shop"]):
            pass

    assert caught.value.code == code


async def test_a_disabled_server_is_left_out(home: Path, project: Path):
    write_servers(project, off={"disabled": True})
    async with ParentSession.open(servers=project / ".mcp.json") as session:
        assert dict(session.servers) == {}


async def test_a_server_that_there_is_not_is_named(home: Path, project: Path):
    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", only=["shpo"]):
            pass

    assert (caught.value.code, caught.value.fix) == ("E-SERVER-UNKNOWN", "did you mean 'shop'?")


def answers_at_once(task: AgentTask) -> None:
    """Yield nothing."""


@pytest.mark.parametrize("steps", [answers_at_once, len])
def test_what_is_no_generator_function_is_no_recipe(steps: Any):
    with pytest.raises(ConfigError) as caught:
        recipe(steps)

    assert caught.value.code == "E-RECIPE-FUNCTION"


async def test_an_approval_of_what_there_is_not_is_an_error(home: Path, project: Path):
    with pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=project / ".mcp.json", approve=["shpo@" + "0" * 64]):
            pass

    assert (caught.value.code, caught.value.fix) == ("E-APPROVE-FLAG", "did you mean 'shop'?")


async def test_a_server_is_told_the_output_folder(home: Path, project: Path, tmp_path: Path):
    write_servers(
        project, shop={"args": [str(SERVER), "orders.json", "${REMIT_OUT}/refunds.jsonl"]}
    )
    async with ParentSession.open(
        servers=project / ".mcp.json",
        policy=rules('policy p v1 { permit "pay" call on shop/refund }'),
        confirm=yes,
        out=tmp_path / "out",
    ) as session:
        await session.view.call(Call("shop", "refund", {"order": 7, "amount": 5}))

    assert '"amount": 5' in (tmp_path / "out" / "refunds.jsonl").read_text()


async def test_a_projects_agent_is_made_only_once_its_file_is_approved(
    project: Path, home: Path
) -> None:
    folder = project / ".remit" / "agents"
    folder.mkdir(parents=True)
    (folder / "clerk.md").write_text("---\nname: clerk\ntools: [shop/get_order]\n---\nYou are it.")

    def first(task: AgentTask) -> Generator[object, object, object]:
        yield list[Call]()
        return task.prompt

    async with ParentSession.open(
        servers=project / ".mcp.json", policy=rules(POLICY), confirm=yes
    ) as session:
        (waiting,) = session.definitions.pending
        with pytest.raises(ConfigError) as caught:
            session.defined("clerk", model=recipe(first))
    assert caught.value.code == "E-AGENT-DEFINITION"
    async with ParentSession.open(
        servers=project / ".mcp.json",
        policy=rules(POLICY),
        approve={f"{waiting.name}@{waiting.digest}"},
        confirm=yes,
    ) as session:
        clerk = session.defined("clerk", model=recipe(first))
        assert [tool.tool for tool in clerk.view.tools] == ["get_order"]
        assert (await clerk.run("Go.")).answer == "You are it.\n\nGo."


@pytest.mark.parametrize("of_program", [False, True])
async def test_a_program_too_is_held_to_the_least_sandbox_of_the_settings(
    home: Path, project: Path, *, of_program: bool
):
    (home / "config").mkdir(parents=True, mode=0o700)
    (home / "config" / "config.toml").write_text('[sandbox]\nof = "all"\n')
    servers = entries_of(project) if of_program else project / ".mcp.json"

    with anyio.fail_after(30), pytest.raises(ConfigError) as caught:
        async with ParentSession.open(servers=servers, policy=rules(POLICY)):
            pass

    assert caught.value.code == "E-SERVER-SANDBOX-MINIMUM"
