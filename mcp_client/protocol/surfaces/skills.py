"""Skills that a server offers (SEP-2640): entries, and files held against them; it fetches nothing."""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import unquote

from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.jsonrpc import as_object, canonical
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.errors import SkillFault, SkillVerificationError
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.surfaces.items import Item, Quarantined
from mcp_client.protocol.texts import cut_text

__all__ = ["SKILL_FILE", "Skill", "SkillFile", "check_file", "read_file", "read_skill"]

SKILL_FILE: Final = "SKILL.md"
"""The file at the root of each skill."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}").fullmatch
# https://agentskills.io/specification: lower-case letters, digits and single hyphens
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*").fullmatch
_NAME_CHARS_MAX: Final = 64
_ODD: Final = re.compile(r"[?#\\\x00-\x20\x7f]").search
_ODD_DECODED: Final = re.compile(r"[/\\\x00-\x1f\x7f]").search

_NOTHING: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """One file of a skill, as listed.

    Attributes:
        uri: where it is read.
        digest: `sha256:` and 64 hexadecimal digits.
        size: its bytes; None where the server did not say.
    """

    uri: str
    digest: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(Item):
    """A skill as its server lists it: untrusted, and bounded. Nothing of it has been read.

    Its `digest` covers the origin, the head and every file with its digest: an approval that is
    bound to it ends when any of them changes.

    Attributes:
        server: the host's label of the server: its origin, shown with it wherever it is shown.
        uri: where its SKILL.md is read: its identity. Names need not be unique.
        name: the last part of its path.
        frontmatter: all that the head of SKILL.md says, as listed. None of it grants anything.
        files: its files by their URIs, SKILL.md among them.
    """

    server: str
    uri: str
    name: str
    frontmatter: Mapping[str, object] = field(hash=False, repr=False)
    files: Mapping[str, SkillFile] = field(hash=False, repr=False)

    @property
    def root(self) -> str:
        """The skill's directory, without a slash at its end."""
        return self.uri.removesuffix("/" + SKILL_FILE)

    def resolve(self, path: str) -> str:
        """Return the URI of a file that the skill names by a path relative to its root.

        Raises SkillVerificationError if the skill lists no such file.
        """
        uri = f"{self.root}/{path.removeprefix('./')}"
        self.check_listed(uri)
        return uri

    def check_listed(self, uri: str) -> None:
        """Raise SkillVerificationError for a file that the skill does not list."""
        if uri not in self.files:
            raise _unlisted(self.server)


def read_skill(
    entry: object, limits: ClientLimits, bounds: ModernLimits, *, server: str
) -> Skill | Quarantined:
    """Read one entry. Never raises for what a server sent: one bad skill does not harm the others."""
    members = as_object(entry) or _NOTHING
    uri, frontmatter = members.get("uri"), as_object(members.get("frontmatter"))
    if not isinstance(uri, str) or not uri.endswith("/" + SKILL_FILE) or not _is_plain(uri, limits):
        return Quarantined("", "it has no URI of a SKILL.md")
    if frontmatter is None:
        return Quarantined(uri, "it has no frontmatter")
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or len(name) > _NAME_CHARS_MAX or not _NAME(name):
        return Quarantined(uri, "its name is not one of a skill")
    if not isinstance(description, str) or not description:
        return Quarantined(uri, "it has no description")
    if uri.split("/")[-2] != name:
        return Quarantined(uri, "its directory is not called as it is")
    files = _read_files(members.get("resources"), uri, limits, bounds)
    if isinstance(files, str):
        return Quarantined(uri, files)
    definition = canonical([uri, frontmatter, members.get("resources")])
    return Skill(
        server=server,
        uri=uri,
        name=name,
        description=cut_text(description, limits.description_chars_max),
        frontmatter=frontmatter,
        files=files,
        definition=definition,
        digest=hashlib.sha256(canonical(server) + definition).hexdigest(),
    )


def read_file(result: object, uri: str, bounds: ModernLimits, *, server: str = "") -> bytes:
    """Return the bytes of the one file in a result of `resources/read`.

    Raises SkillVerificationError if it holds something else, or more than the bound.
    """
    contents = (as_object(result) or _NOTHING).get("contents")
    only = cast("list[object]", contents) if isinstance(contents, list) else []
    members = as_object(only[0]) if len(only) == 1 else None
    if members is None or members.get("uri") != uri:
        raise _failed(SkillFault.CONTENT, "the server sent something else than the file", server)
    text, blob = members.get("text"), members.get("blob")
    try:
        if isinstance(text, str):
            data = text.encode()
        elif isinstance(blob, str):
            data = binascii.a2b_base64(blob, strict_mode=True)
        else:
            raise ValueError
    except ValueError:
        message = "a file is a text or base64"
        raise _failed(SkillFault.CONTENT, message, server) from None
    if len(data) > bounds.skill_file_bytes_max:
        raise _failed(SkillFault.SIZE, "a file is over its bound", server)
    return data


def check_file(skill: Skill, uri: str, data: bytes, bounds: ModernLimits) -> None:
    """Hold a file against what the skill lists. Raises SkillVerificationError if it is not that."""
    skill.check_listed(uri)
    listed = skill.files[uri]
    if listed.size is not None and listed.size != len(data):
        raise _failed(SkillFault.SIZE, "a file has another size than listed", skill.server)
    if "sha256:" + hashlib.sha256(data).hexdigest() != listed.digest:
        raise _failed(SkillFault.DIGEST, "a file has another digest than listed", skill.server)
    # the head of a nested skill is ordinary text: only this skill's own has a meaning
    if uri == skill.uri:
        _check_head(skill, data, bounds)


def _check_head(skill: Skill, data: bytes, bounds: ModernLimits) -> None:
    # not before a skill is loaded: a reader of YAML is much for programs without skills
    from mcp_client.protocol.surfaces.frontmatter import FrontmatterError, says_the_same, split_head

    try:
        same = says_the_same(split_head(data), skill.frontmatter, bounds)
    except FrontmatterError as error:
        raise _failed(SkillFault.FRONTMATTER, str(error), skill.server) from None
    if not same:
        raise _failed(
            SkillFault.FRONTMATTER, "SKILL.md says something else than its listing", skill.server
        )


def _read_files(
    value: object, skill_uri: str, limits: ClientLimits, bounds: ModernLimits
) -> Mapping[str, SkillFile] | str:
    """Return the files of a skill, or what is wrong with them."""
    if not isinstance(value, list):
        # SEP-2640: a host may decline it, since nothing could be held against anything
        return "it does not list its files with their digests"
    listed = cast("list[object]", value)
    if len(listed) > bounds.skill_files_max:
        return f"it has more than {bounds.skill_files_max} files"
    root = skill_uri.removesuffix(SKILL_FILE)
    files: dict[str, SkillFile] = {}
    for each in listed:
        file = _read_listed(each, root, limits)
        if file is None or file.uri in files:
            return "a file of it is malformed, outside of it, or listed twice"
        files[file.uri] = file
    return files if skill_uri in files else f"it does not list its {SKILL_FILE}"


def _read_listed(value: object, root: str, limits: ClientLimits) -> SkillFile | None:
    members = as_object(value) or _NOTHING
    uri, digest, size = members.get("uri"), members.get("digest"), members.get("size")
    if not isinstance(uri, str) or not uri.startswith(root) or not _is_plain(uri, limits):
        return None
    if not isinstance(digest, str) or not _DIGEST(digest):
        return None
    if size is not None and (type(size) is not int or size < 0):
        return None
    return SkillFile(uri=uri, digest=digest, size=size)


def _is_plain(uri: str, limits: ClientLimits) -> bool:
    """Return whether a URI means one place to every reader: no dots, queries, blanks, hidden slashes."""
    scheme, separator, path = uri.partition("://")
    if not separator or not scheme or len(uri) > limits.uri_chars_max or _ODD(uri):
        return False
    parts = [unquote(part) for part in path.split("/")]
    return uri.isprintable() and not any(
        part in ("", ".", "..") or _ODD_DECODED(part) for part in parts
    )


def _unlisted(server: str) -> SkillVerificationError:
    return SkillVerificationError(
        SkillFault.UNLISTED,
        "the skill does not list this file",
        server=server,
        delivery=Delivery.NOT_SENT,
    )


def _failed(fault: SkillFault, message: str, server: str) -> SkillVerificationError:
    return SkillVerificationError(fault, message, server=server, delivery=Delivery.ANSWERED)
