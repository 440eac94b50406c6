"""An authorization server's protocol, by authlib's server side, over a realm; it serves no HTTP."""

# authlib has no types: what its classes hand over is not known to a type checker
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
# pyright: reportUntypedBaseClass=false, reportUnknownParameterType=false
# pyright: reportMissingParameterType=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

from authlib.oauth2.rfc6749 import (
    AuthorizationServer,
    InvalidRequestError,
    JsonRequest,
    OAuth2Request,
    ResourceProtector,
)
from authlib.oauth2.rfc6749.grants import (
    AuthorizationCodeGrant,
    ClientCredentialsGrant,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenValidator
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9207 import IssuerParameter

from tests.servers.oauth.realm import USER, Client, Code, Realm, TokenRecord

__all__ = ["Answer", "Asked", "Issuing", "judging"]


@dataclass(slots=True)
class Answer:
    """What is answered, before it is a response of HTTP."""

    status: int
    body: object
    headers: dict[str, str]

    @property
    def location(self) -> str | None:
        return self.headers.get("Location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["Location"] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request of HTTP, as the library wants it."""

    method: str
    url: str
    headers: Mapping[str, str]
    form: Mapping[str, str]
    json: Mapping[str, object]


class _Request(OAuth2Request):
    def __init__(self, asked: Asked) -> None:
        # the library refuses http, which on loopback is all there is
        super().__init__(asked.method, asked.url.replace("http:", "https:", 1), None, asked.headers)
        self._args = dict(parse_qsl(urlsplit(asked.url).query))
        self._form = dict(asked.form)
        self.payload = BasicOAuth2Payload({**self._args, **self._form})

    @property
    def args(self) -> dict[str, str]:
        return self._args

    @property
    def form(self) -> dict[str, str]:
        return self._form


class _Json:
    def __init__(self, data: Mapping[str, object]) -> None:
        self.data = dict(data)


class Issuing(AuthorizationServer):
    """Authorization server over a realm."""

    def __init__(self, realm: Realm) -> None:
        super().__init__(scopes_supported=list(realm.settings.scopes))
        self.realm = realm
        self.register_grant(_CodeGrant, [CodeChallenge(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_grant(_ClientGrant)
        self.register_endpoint(_Registration)
        if realm.settings.names_issuer:
            self.register_extension(_Issuer(realm))
        self.register_token_generator("default", cast("Any", self._new_token))

    def query_client(self, client_id: str) -> Client | None:
        return self.realm.client(client_id)

    def create_oauth2_request(self, request: Asked) -> OAuth2Request:
        return _Request(request)

    def create_json_request(self, request: Asked) -> JsonRequest:
        made = JsonRequest(request.method, request.url, request.headers)
        made.payload = cast("Any", _Json(request.json))
        return made

    def handle_response(self, status: int, body: object, headers: Any) -> Answer:
        return Answer(status, body, dict(headers))

    def send_signal(self, name: str, *args: object, **kwargs: object) -> None:
        """Nobody listens."""

    def save_token(self, token: object, request: object) -> None:
        """It was kept when it was made."""

    def authorize(self, asked: Asked) -> Answer:
        """Answer an authorization request as a person would who says yes."""
        request = self.create_oauth2_request(asked)
        grant = self.get_consent_grant(asked, USER)
        return cast("Answer", self.create_authorization_response(request, USER, grant))

    def token(self, asked: Asked) -> Answer:
        """Answer a token request."""
        return cast("Answer", self.create_token_response(asked))

    def register(self, asked: Asked) -> Answer:
        """Answer a registration."""
        return cast("Answer", self.create_endpoint_response("client_registration", asked))

    def _new_token(self, **asked: Any) -> dict[str, object]:
        client = cast("Client", asked["client"])
        record = self.realm.grant(
            client_id=client.client_id,
            scope=asked.get("scope") or "",
            resource=self.resource,
            family=self.family,
        )
        token: dict[str, object] = {
            "token_type": "Bearer",
            "access_token": record.access,
            "expires_in": self.realm.settings.access_seconds,
        }
        if asked.get("include_refresh_token"):
            token["refresh_token"] = record.refresh
        if record.scope:
            token["scope"] = record.scope
        return token

    resource = ""
    family = ""
    """Of the token that is made in this very step: requests are answered one after the other."""

    def making(self, *, resource: str, family: str = "") -> None:
        """Say what the token that is made next is for."""
        self.resource, self.family = resource, family


class _Issuer(IssuerParameter):
    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def get_issuer(self) -> str:
        return self._realm.issuer


def _named_resource(grant: Any) -> str:
    resource = grant.request.payload.data.get("resource", "")
    if not resource:
        raise InvalidRequestError("no resource is named")
    return resource


class _CodeGrant(AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        self.server.realm.codes[code] = Code(
            code=code,
            client_id=request.client.client_id,
            redirect_uri=request.payload.redirect_uri,
            scope=request.scope or "",
            resource=_named_resource(self),
            code_challenge=data.get("code_challenge", ""),
            code_challenge_method=data.get("code_challenge_method", ""),
        )

    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = self.server.realm.codes.get(code)
        return found if found is not None and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.realm.codes[authorization_code.code]

    def authenticate_user(self, authorization_code: Code) -> str:
        if _named_resource(self) != authorization_code.resource:
            raise InvalidRequestError("the code is for another resource")
        self.server.making(resource=authorization_code.resource)
        return USER


class _RefreshGrant(RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ("none", "client_secret_basic", "client_secret_post")

    def authenticate_refresh_token(self, refresh_token: str) -> TokenRecord | None:
        return self.server.realm.by_refresh(refresh_token)

    def authenticate_user(self, refresh_token: TokenRecord) -> str:
        if _named_resource(self) != refresh_token.resource:
            raise InvalidRequestError("the token is for another resource")
        self.server.making(resource=refresh_token.resource, family=refresh_token.family)
        return USER

    def revoke_old_credential(self, refresh_token: TokenRecord) -> None:
        self.server.realm.spend(refresh_token)


class _ClientGrant(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def validate_token_request(self) -> None:
        super().validate_token_request()
        self.server.making(resource=_named_resource(self))


class _Registration(ClientRegistrationEndpoint):
    def authenticate_token(self, request: object) -> bool:
        return True  # anybody may

    def get_server_metadata(self) -> dict[str, object]:
        return self.server.realm.metadata()

    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any
    ) -> Client:
        return self.server.realm.register(
            Client(
                client_id=client_info["client_id"],
                secret=client_info["client_secret"],
                method=client_metadata.get("token_endpoint_auth_method", "client_secret_basic"),
                redirect_uris=tuple(client_metadata.get("redirect_uris", ())),
                grants=tuple(client_metadata.get("grant_types", ("authorization_code",))),
                metadata=dict(request.payload.data),
            )
        )


class _Bearer(BearerTokenValidator):
    def __init__(self, realm: Realm, resource: str) -> None:
        super().__init__()
        self._realm = realm
        self._resource = resource

    def authenticate_token(self, token_string: str) -> TokenRecord | None:
        found = self._realm.by_access(token_string)
        # another resource's token is none
        return found if found is not None and found.resource == self._resource else None


def judging(realm: Realm, resource: str) -> Callable[[Sequence[str], object], None]:
    """Return what judges the requests of a resource server: it raises an OAuth2Error or returns."""
    made = ResourceProtector()
    made.register_token_validator(_Bearer(realm, resource))

    def judge(scopes: Sequence[str], request: object) -> None:
        made.validate_request(scopes, request)

    return judge
