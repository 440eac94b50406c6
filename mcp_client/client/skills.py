"""Skills that a server offers (SEP-2640): listed, loaded, read, each file held against its digest.

Nothing is read before a skill is loaded, nothing is run, and nothing that a skill says grants
anything: what is returned is text of one server, for whoever shows it with its origin.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.extensions import SKILLS
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.skills import Skill, check_file, read_file, read_skill

__all__ = ["LoadedSkill", "SkillListing", "SkillSurface"]


@dataclass(frozen=True, slots=True)
class SkillListing:
    """The skills that a server lists, and those that cannot be used. There may be more of them."""

    skills: tuple[Skill, ...]
    quarantined: tuple[Quarantined, ...]


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill whose SKILL.md was read and is what the server had listed.

    Attributes:
        skill: the entry that it was held against.
        text: the whole of SKILL.md: the server's word, untrusted, to be shown with its origin.
    """

    skill: Skill
    text: str


class SkillSurface(Surface):
    """The part of `Client` that deals with skills: off unless the `Dialect` turns it on."""

    async def list_skills(self) -> SkillListing:
        """Return the skills that the server lists. None of their files is read.

        An entry that is malformed, or lists no digests, is quarantined. Raises LocalProtocolError
        if skills are off, or the server has none.
        """
        self._check_on()
        found = await self._list(
            "skills/list",
            "skills",
            self._read,
            lambda skill: skill.uri,
            count_max=self.session.bounds.skills_max,
        )
        return SkillListing(found.items, found.quarantined)

    async def get_skill(self, uri: str, *, guard: SendGuard | None = None) -> Skill | Quarantined:
        """Return the entry of one skill by the URI of its SKILL.md, listed or not."""
        self._check_on()
        result = as_object(await self._ask("skills/get", {"uri": uri}, guard=guard)) or {}
        skill = self._read(result.get("skill"), self.session.limits)
        if isinstance(skill, Skill) and skill.uri != uri:
            raise self._broken("the server answered about another skill")
        return skill

    async def load_skill(self, skill: Skill, *, guard: SendGuard | None = None) -> LoadedSkill:
        """Read the SKILL.md of a skill. Whether it may be loaded was decided by whoever calls.

        Raises SkillVerificationError if it is not what the entry says: nothing of it is returned.
        """
        data = await self.read_skill_file(skill, skill.uri, guard=guard)
        return LoadedSkill(skill, data.decode())

    async def read_skill_file(
        self, skill: Skill, uri: str, *, guard: SendGuard | None = None
    ) -> bytes:
        """Read one file of a skill, from the skill's own server and from nowhere else.

        Args:
            skill: the skill, which lists the file.
            uri: the file; `Skill.resolve` makes it of a relative path.
            guard: leave to send this one frame; the connection's if None.

        Raises SkillVerificationError for a file that the skill does not list, before anything is
        sent, and for one that is not what the skill lists.
        """
        self._check_on()
        if skill.server != self.server:
            raise self._wrong("the files of one server are not read from another")
        skill.check_listed(uri)
        result = await self._ask("resources/read", {"uri": uri}, guard=guard)
        bounds = self.session.bounds
        data = read_file(result, uri, bounds, server=self.server)
        check_file(skill, uri, data, bounds)
        return data

    def _read(self, entry: object, limits: ClientLimits) -> Skill | Quarantined:
        return read_skill(entry, limits, self.session.bounds, server=self.server)

    def _check_on(self) -> None:
        if SKILLS not in self.session.connection.extensions:
            raise LocalProtocolError(
                "skills are off, or the server has none", server=self.server, stage="send"
            )
