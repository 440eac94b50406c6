"""The flow goes only where its table goes, and stops at what does not belong together."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from mcp_client.auth.discovery import ResourceMetadata, ServerMetadata
from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.auth.flow import TABLE, Consent, Event, Flow, Profile, Stage, diagram
from mcp_client.auth.registration import ClientIdentity

URL = "https://mcp.example/mcp"
ISSUER = "https://as.example"
RESOURCE = ResourceMetadata(
    resource="https://mcp.example", authorization_servers=(ISSUER, "https://two.example")
)
SERVER = ServerMetadata(issuer=ISSUER, challenge_methods=("S256",), names_issuer=True)
CLIENT = ClientIdentity(client_id="me", issuer=ISSUER)
CONSENT = Consent(redirect_uri="http://127.0.0.1:1/x", state="s1", verifier="v1")
ANSWER = {"state": "s1", "iss": ISSUER, "code": "c1"}


def challenged(
    *, profile: Profile = Profile.CODE, expected_issuer: str = "", pkce_optional: bool = False
) -> Flow:
    flow = Flow(
        server_url=URL,
        profile=profile,
        expected_issuer=expected_issuer,
        pkce_optional=pkce_optional,
    )
    return flow.challenged(scope="a")


def asking(server: ServerMetadata = SERVER) -> Flow:
    flow = challenged().resource_read(RESOURCE).server_read(server).client_known(CLIENT)
    return flow.asking(CONSENT)


def fault(of: pytest.ExceptionInfo[AuthorizationFailedError]) -> AuthFault:
    return of.value.fault


def test_a_persons_flow_comes_to_its_end():
    flow = asking().consented(ANSWER)

    assert (flow.stage, flow.code, flow.scopes) == (Stage.GRANT, "c1", ("a",))
    assert flow.resource_id == "https://mcp.example"
    assert flow.known_client is CLIENT
    done = flow.granted()
    assert (done.stage, done.code, done.consent) == (Stage.DONE, "", None)


@pytest.mark.parametrize("profile", [Profile.CLIENT_CREDENTIALS, Profile.WORKLOAD])
def test_a_program_needs_nobody(profile: Profile):
    server = ServerMetadata(issuer=ISSUER)
    flow = challenged(profile=profile).resource_read(RESOURCE).server_read(server)

    assert flow.client_known(CLIENT).stage is Stage.GRANT


def test_an_enterprises_flow_waits_for_the_identity_provider():
    flow = challenged(profile=Profile.ENTERPRISE).resource_read(RESOURCE).server_read(SERVER)

    flow = flow.client_known(CLIENT).asserted("jag")

    assert (flow.stage, flow.assertion) == (Stage.GRANT, "jag")


@pytest.mark.requirement("A-10")
def test_a_server_without_any_metadata_is_its_own_issuer():
    flow = challenged().resource_missing()
    assert flow.places == ("https://mcp.example/.well-known/oauth-authorization-server",)

    flow = flow.server_missing()

    assert flow.known_server.token_endpoint == "https://mcp.example/token"
    assert flow.resource_id == URL


def test_each_stage_of_discovery_has_its_places():
    flow = challenged()

    assert flow.places[-1] == "https://mcp.example/.well-known/oauth-protected-resource"
    assert flow.resource_read(RESOURCE).places[0].startswith(ISSUER)


@pytest.mark.requirement("A-34")
def test_a_step_up_asks_for_the_union():
    flow = Flow(server_url=URL).challenged(scope="b", earlier=("a",))

    flow = flow.resource_read(RESOURCE).server_read(SERVER)

    assert flow.scopes == ("a", "b")


def test_a_server_whose_metadata_is_nowhere_is_not_guessed_at():
    with pytest.raises(AuthorizationFailedError) as caught:
        challenged().resource_read(RESOURCE).server_missing()

    assert fault(caught) is AuthFault.METADATA_MISSING


@pytest.mark.requirement("A-2")
@pytest.mark.parametrize("methods", [None, (), ("plain",)])
def test_without_s256_nothing_goes_on(methods: tuple[str, ...] | None):
    with pytest.raises(AuthorizationFailedError) as caught:
        challenged().resource_read(RESOURCE).server_read(
            ServerMetadata(issuer=ISSUER, challenge_methods=methods)
        )

    assert fault(caught) is AuthFault.PKCE


def test_a_servers_entry_may_do_without_the_advertisement():
    flow = challenged(pkce_optional=True).resource_read(RESOURCE)

    assert flow.server_read(ServerMetadata(issuer=ISSUER)).stage is Stage.CLIENT


@pytest.mark.requirement("A-30")
def test_the_metadata_of_another_issuer_is_refused():
    with pytest.raises(AuthorizationFailedError) as caught:
        challenged().resource_read(RESOURCE).server_read(
            replace(SERVER, issuer="https://x.example")
        )

    assert fault(caught) is AuthFault.ISSUER


@pytest.mark.requirement("A-32")
def test_only_the_expected_issuer_is_asked():
    flow = challenged(expected_issuer="https://two.example").resource_read(RESOURCE)
    assert flow.issuer == "https://two.example"

    with pytest.raises(AuthorizationFailedError) as caught:
        challenged(expected_issuer="https://three.example").resource_read(RESOURCE)

    assert fault(caught) is AuthFault.ISSUER


def test_a_resource_without_metadata_does_not_replace_the_expected_issuer():
    with pytest.raises(AuthorizationFailedError) as caught:
        challenged(expected_issuer=ISSUER).resource_missing()

    assert fault(caught) is AuthFault.ISSUER


@pytest.mark.requirement("A-32")
def test_a_client_of_another_issuer_is_not_shown():
    flow = challenged().resource_read(RESOURCE).server_read(SERVER)

    with pytest.raises(AuthorizationFailedError) as caught:
        flow.client_known(replace(CLIENT, issuer="https://two.example"))

    assert fault(caught) is AuthFault.ISSUER


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({**ANSWER, "state": "s2"}, AuthFault.STATE),
        ({"iss": ISSUER, "code": "c1"}, AuthFault.STATE),
        ({**ANSWER, "iss": ISSUER + "/"}, AuthFault.ISSUER),
        ({**ANSWER, "iss": "https://evil.example", "error": "x"}, AuthFault.ISSUER),
        ({"state": "s1", "code": "c1"}, AuthFault.ISSUER),
        ({"state": "s1", "iss": ISSUER, "error": "access_denied"}, AuthFault.DENIED),
        ({"state": "s1", "iss": ISSUER}, AuthFault.DENIED),
    ],
)
@pytest.mark.requirement("A-31")
def test_an_answer_that_is_not_ours_is_refused(answer: dict[str, str], expected: AuthFault):
    with pytest.raises(AuthorizationFailedError) as caught:
        asking().consented(answer)

    assert fault(caught) is expected


@pytest.mark.requirement("A-31")
def test_a_wrong_issuer_is_refused_even_if_none_was_advertised():
    flow = asking(replace(SERVER, names_issuer=False))

    assert flow.consented({"state": "s1", "code": "c1"}).code == "c1"
    with pytest.raises(AuthorizationFailedError):
        flow.consented({**ANSWER, "iss": "https://evil.example"})


def test_an_answer_without_a_question_is_refused():
    with pytest.raises(AuthorizationFailedError) as caught:
        Flow(server_url=URL).consented(ANSWER)

    assert fault(caught) is AuthFault.FLOW


@pytest.mark.parametrize("flow", [Flow(server_url=URL), asking()])
def test_nobody_is_asked_twice_or_out_of_turn(flow: Flow):
    with pytest.raises(AuthorizationFailedError) as caught:
        flow.asking(CONSENT)

    assert fault(caught) is AuthFault.FLOW


@pytest.mark.parametrize("name", ["places", "known_server", "known_client"])
def test_what_is_not_known_yet_cannot_be_asked_for(name: str):
    with pytest.raises(AuthorizationFailedError) as caught:
        getattr(Flow(server_url=URL), name)

    assert fault(caught) is AuthFault.FLOW


def test_what_is_not_in_the_table_is_an_error():
    steps: dict[Event, Callable[[Flow], Flow]] = {
        Event.CHALLENGED: lambda flow: flow.challenged(),
        Event.RESOURCE_READ: lambda flow: flow.resource_read(RESOURCE),
        Event.RESOURCE_MISSING: lambda flow: flow.resource_missing(),
        Event.SERVER_READ: lambda flow: flow.server_read(SERVER),
        Event.SERVER_MISSING: lambda flow: flow.server_missing(),
        Event.CLIENT_NEEDS_PERSON: lambda flow: flow.client_known(CLIENT),
        Event.RENEWED: lambda flow: flow.renewed(),
        Event.CONSENTED: lambda flow: flow.consented(ANSWER),
        Event.ASSERTED: lambda flow: flow.asserted("x"),
        Event.GRANTED: lambda flow: flow.granted(),
        Event.FAILED: lambda flow: flow.failed(),
    }

    for stage, (event, step) in itertools.product(Stage, steps.items()):
        if (stage, event) not in TABLE:
            flow = Flow(server_url=URL, stage=stage, issuer=ISSUER, consent=CONSENT)
            with pytest.raises(AuthorizationFailedError) as caught:
                step(flow)
            assert fault(caught) is AuthFault.FLOW


def test_a_failed_flow_keeps_nothing_that_was_good_once():
    flow = asking().consented(ANSWER).failed()

    assert (flow.stage, flow.code, flow.consent) == (Stage.FAILED, "", None)


def test_a_token_that_was_renewed_needs_nobody():
    flow = challenged().resource_read(RESOURCE).server_read(SERVER)

    assert flow.renewed().stage is Stage.DONE


def test_every_stage_can_be_reached_and_the_diagram_shows_all_of_the_table():
    assert {Stage.START, *TABLE.values()} == set(Stage)
    assert diagram().count("-->") == len(TABLE) + 3


def test_no_secret_is_shown():
    shown = repr(asking().consented(ANSWER))

    assert not any(secret in shown for secret in ("'s1'", "v1", "c1"))
