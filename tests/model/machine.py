"""Authority as a small machine: all that can happen next in a state, and which law a step breaks. Pure.

A bounded instance: a parent and a child with a frame each on one connection, a frame of the child's on
another host, one server that can be enabled again and connected again, one login, two revocations.
Each mistake of `Mistake` is one that an implementation could make; the machine can be told to make it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["LAW_OF", "START", "Bounds", "Mistake", "State", "Step", "lapsed", "steps"]


class Mistake(Enum):
    """What an implementation might do wrong."""

    CHECKED_ONLY_WHEN_ADMITTED = "the guard is not asked again where the first byte is written"
    RECEIPT_BEFORE_DRAINED = "the receipt comes while a frame that had begun is still being written"
    SPLICED = "a frame begins, or goes on, where another's half frame stands"
    SAME_INCARNATION_AGAIN = "what is enabled again is the same cell"
    CHILD_WITHOUT_A_SECOND_LOOK = "a child is born without a look at its parent in that step"
    LATE_TOKEN_KEPT = "a token that was asked for under an earlier login is kept"
    OLD_ENDING_CLOSES_NEW = "the clean-up of an old connection closes its successor"
    LATE_ANSWER_HANDED_ON = "an answer is handed on although authority has ended"
    LEASE_NOT_LOOKED_AT = "a host that hears nothing goes on after its lease"
    RECEIPT_WITHOUT_HOSTS = "the receipt comes before a host has heard, and within its lease"
    CANCELLING_TAKES_BACK = "cancelling the wait for a receipt brings authority back"
    CANCELLED_FRAME_STAYS = "a cancelled call's frame stays in the queue"


LAW_OF: Final = {
    Mistake.CHECKED_ONLY_WHEN_ADMITTED: "I1",
    Mistake.RECEIPT_BEFORE_DRAINED: "I2",
    Mistake.SPLICED: "I3",
    Mistake.SAME_INCARNATION_AGAIN: "I4",
    Mistake.CHILD_WITHOUT_A_SECOND_LOOK: "I5",
    Mistake.LATE_TOKEN_KEPT: "I16",
    Mistake.OLD_ENDING_CLOSES_NEW: "I17",
    Mistake.LATE_ANSWER_HANDED_ON: "I18",
    Mistake.LEASE_NOT_LOOKED_AT: "I21",
    Mistake.RECEIPT_WITHOUT_HOSTS: "I22",
    Mistake.CANCELLING_TAKES_BACK: "I26",
    Mistake.CANCELLED_FRAME_STAYS: "I26",
}
"""The law that each mistake breaks first, by the shortest way."""

NONE, SPAWNING, LIVE, DEAD = range(4)
IDLE, MINTED, PARTIAL, WHOLE, DELIVERED, DROPPED, CANCELLED = range(7)
PARENT, CHILD, REMOTE = range(3)
NOBODY, THE_PARENT, THE_CHILD, THE_SERVER, THE_LOGIN = range(5)
CALM, FLIPPED, RECEIVED = range(3)
LEASE: Final = 2
"""How long a host may go on without hearing anything, in steps of the clock."""


class Bounds(NamedTuple):
    """How large the instance is."""

    revocations: int = 2
    incarnations: int = 2
    connections: int = 2
    retries: int = 1
    remote: bool = True


class Frame(NamedTuple):
    """A call's frame, and what its permit was stamped with."""

    phase: int = IDLE
    link: int = 0
    connection: int = 0
    login: int = 0


class State(NamedTuple):
    """Everything there is. `ever_dead` and `late` are the observer's; nothing is decided by them."""

    parent: int = LIVE
    child: int = NONE
    link: int = 1
    link_live: bool = True
    connection: int = 1
    closing: int = 0
    login: int = 1
    login_live: bool = True
    cached: int = 1
    fetching: int = 0
    frames: tuple[Frame, Frame, Frame] = (Frame(), Frame(), Frame())
    target: int = NOBODY
    which: int = 0
    stage: int = CALM
    revocations: int = 0
    retries: int = 0
    connected: bool = True
    lease: int = LEASE
    told: bool = False
    late: int = 0
    ever_dead: tuple[str, ...] = ()


START: Final = State()


class Step(NamedTuple):
    """One thing that can happen: what it is, the state after it, and the law that it breaks."""

    what: str
    state: State
    broken: str = ""


def steps(state: State, bounds: Bounds, mistake: Mistake | None = None) -> Iterator[Step]:
    """Yield every step from here. With a mistake some of them break a law."""
    for step in _all_steps(state, bounds, mistake):
        yield step if step.broken else step._replace(broken=_broken_by(step.state))


def _all_steps(state: State, bounds: Bounds, mistake: Mistake | None) -> Iterator[Step]:
    yield from _spawning(state, mistake)
    yield from _revoking(state, bounds, mistake)
    yield from _connecting(state, bounds, mistake)
    yield from _logging_in(state, bounds, mistake)
    owners = (PARENT, CHILD, REMOTE) if bounds.remote else (PARENT, CHILD)
    for owner in owners:
        yield from _sending(state, owner, mistake)
        yield from _ending(state, owner, bounds, mistake)
    if bounds.remote:
        yield from _passing_time(state)


def _broken_by(state: State) -> str:
    """Return the law that a state as such breaks."""
    if state.child == LIVE and state.parent == DEAD:
        return "I5"
    if f"server{state.link}" in state.ever_dead and state.link_live:
        return "I4"
    alive = {"parent": state.parent == LIVE, "child": state.child == LIVE}
    if any(alive.get(name, False) for name in state.ever_dead):
        return "I26"
    if not state.link_live and f"server{state.link}" not in state.ever_dead:
        return "I17"
    if state.cached and (state.cached != state.login or not state.login_live):
        return "I16"
    agents = state.target in (THE_PARENT, THE_CHILD)
    if state.stage == RECEIVED and agents and not state.told and state.lease > 0:
        return "I22"
    return ""


# ------------------------------------------------------------------------------------------ what is in force


def _owner_dead(state: State, owner: int) -> bool:
    return state.parent != LIVE if owner == PARENT else state.child != LIVE


def lapsed(state: State, owner: int, frame: Frame) -> bool:
    """Whether anything that a frame depends on is gone, or has moved on."""
    return (
        _owner_dead(state, owner)
        or not state.link_live
        or state.link != frame.link
        or state.connection != frame.connection
        or not state.login_live
        or state.login != frame.login
    )


def _may_begin(state: State, owner: int, frame: Frame, mistake: Mistake | None) -> bool:
    """What the guard says where the first byte is written."""
    if owner == REMOTE:  # it knows what it was told, and its own clock
        return not state.told and (state.lease > 0 or mistake is Mistake.LEASE_NOT_LOOKED_AT)
    if mistake is Mistake.CHECKED_ONLY_WHEN_ADMITTED:
        return True
    return not lapsed(state, owner, frame) and state.cached == state.login


def _with(state: State, owner: int, frame: Frame) -> State:
    frames = list(state.frames)
    frames[owner] = frame
    return state._replace(frames=(frames[0], frames[1], frames[2]))


# ------------------------------------------------------------------------------------------ what can happen


def _spawning(state: State, mistake: Mistake | None) -> Iterator[Step]:
    if state.child == NONE and state.parent == LIVE:
        yield Step("a child is being made", state._replace(child=SPAWNING))
    if state.child == SPAWNING:
        if state.parent == LIVE or mistake is Mistake.CHILD_WITHOUT_A_SECOND_LOOK:
            yield Step("the child is born", state._replace(child=LIVE))
        else:
            yield Step("the child is not born", state._replace(child=NONE))


def _revoking(state: State, bounds: Bounds, mistake: Mistake | None) -> Iterator[Step]:
    if state.stage != FLIPPED and state.revocations < bounds.revocations:
        for target in (THE_PARENT, THE_CHILD, THE_SERVER, THE_LOGIN):
            flipped = _flip(state, target)
            if flipped is not None:
                yield Step(f"revoke {target}", flipped)
    if state.stage == FLIPPED:
        if _may_receive(state, mistake):
            yield Step("the receipt is given", state._replace(stage=RECEIVED))
        cancelled = state._replace(stage=CALM, target=NOBODY, which=0)
        if mistake is Mistake.CANCELLING_TAKES_BACK and state.target == THE_CHILD:
            cancelled = cancelled._replace(child=LIVE)
        yield Step("the wait for the receipt is cancelled", cancelled)


def _flip(state: State, target: int) -> State | None:
    after = state._replace(
        target=target, which=0, stage=FLIPPED, revocations=state.revocations + 1, late=0, told=False
    )
    dead = state.ever_dead
    if target == THE_PARENT and state.parent == LIVE:
        child = DEAD if state.child == LIVE else state.child
        gone = (*dead, "parent", *(["child"] if child == DEAD and "child" not in dead else []))
        return after._replace(parent=DEAD, child=child, ever_dead=tuple(sorted(gone)))
    if target == THE_CHILD and state.child == LIVE:
        return after._replace(child=DEAD, ever_dead=tuple(sorted((*dead, "child"))))
    if target == THE_SERVER and state.link_live:
        name = f"server{state.link}"
        gone = tuple(sorted((*dead, name)))
        return after._replace(
            link_live=False, which=state.link, told=state.told, late=state.late, ever_dead=gone
        )
    if target == THE_LOGIN and state.login_live:
        return after._replace(
            login_live=False, which=state.login, cached=0, told=state.told, late=state.late
        )
    return None


def _depends(state: State, owner: int, frame: Frame) -> bool:
    """Whether a frame stands under what is being taken back."""
    match state.target:
        case 1:
            return True
        case 2:
            return owner != PARENT
        case 3:
            return owner != REMOTE and frame.link == state.which
        case 4:
            return owner != REMOTE and frame.login == state.which
        case _:
            return False


def _may_receive(state: State, mistake: Mistake | None) -> bool:
    begun = any(
        frame.phase == PARTIAL and _depends(state, owner, frame)
        for owner, frame in enumerate(state.frames)
    )
    if begun and mistake is not Mistake.RECEIPT_BEFORE_DRAINED:
        return False
    if state.target in (THE_PARENT, THE_CHILD):
        heard = state.told or state.lease == 0
        return heard or mistake is Mistake.RECEIPT_WITHOUT_HOSTS
    return True


def _connecting(state: State, bounds: Bounds, mistake: Mistake | None) -> Iterator[Step]:
    if state.link_live and state.connection < bounds.connections:
        after = state._replace(connection=state.connection + 1, closing=state.connection)
        # what had begun on the old connection ends with it; nothing of it goes on
        if mistake is not Mistake.SPLICED:
            after = _aborted(after)
        yield Step("connected or initialized again", after)
    if not state.link_live:
        if mistake is Mistake.SAME_INCARNATION_AGAIN:
            yield Step("the same is enabled again", state._replace(link_live=True))
        elif state.link < bounds.incarnations:
            after = state._replace(link=state.link + 1, link_live=True, closing=state.link)
            yield Step("another is enabled", _aborted(after))
    if state.closing:
        after = state._replace(closing=0)
        if mistake is Mistake.OLD_ENDING_CLOSES_NEW:
            after = after._replace(link_live=False)
        yield Step("the old connection is cleaned up", after)
    if any(frame.phase == PARTIAL for frame in state.frames[:2]) and state.stage == FLIPPED:
        yield Step("the connection is aborted", _aborted(state))


def _aborted(state: State) -> State:
    for owner in (PARENT, CHILD):
        frame = state.frames[owner]
        if frame.phase == PARTIAL:
            state = _with(state, owner, frame._replace(phase=DROPPED))
    return state


def _logging_in(state: State, bounds: Bounds, mistake: Mistake | None) -> Iterator[Step]:
    if not state.login_live and state.login < bounds.incarnations:
        after = state._replace(login=state.login + 1, login_live=True, cached=state.login + 1)
        yield Step("logged in again", after)
    if state.login_live and not state.fetching:
        yield Step("a refresh is asked for", state._replace(fetching=state.login))
    if state.fetching:
        after = state._replace(fetching=0)
        same = state.fetching == state.login and state.login_live
        if same or mistake is Mistake.LATE_TOKEN_KEPT:
            after = after._replace(cached=state.fetching)
        yield Step("the refresh is answered", after)


def _sending(state: State, owner: int, mistake: Mistake | None) -> Iterator[Step]:
    frame = state.frames[owner]
    if frame.phase == IDLE and not _owner_dead(state, owner) and state.link_live:
        stamped = Frame(MINTED, state.link, state.connection, state.login)
        fresh = _with(state, owner, stamped)
        if owner != REMOTE or (not state.told and state.lease > 0):
            yield Step(f"frame {owner} is minted", fresh)
    ready = frame.phase == MINTED or (
        frame.phase == CANCELLED and mistake is Mistake.CANCELLED_FRAME_STAYS
    )
    if ready:
        yield from _beginning(state, owner, frame, mistake)
    if frame.phase == PARTIAL:
        moved = owner != REMOTE and frame.connection != state.connection
        after = _with(state, owner, frame._replace(phase=WHOLE))
        law = "I3" if moved else _late(state, owner, frame)
        yield Step(f"the rest of frame {owner} is written", after, law)


def _beginning(state: State, owner: int, frame: Frame, mistake: Mistake | None) -> Iterator[Step]:
    if not _may_begin(state, owner, frame, mistake):
        yield Step(f"frame {owner} is refused", _with(state, owner, frame._replace(phase=DROPPED)))
        return
    half = owner != REMOTE and any(
        other.phase == PARTIAL for at, other in enumerate(state.frames[:2]) if at != owner
    )
    if half and mistake is not Mistake.SPLICED:
        return
    law = "I3" if half else _late(state, owner, frame)
    if frame.phase == CANCELLED:
        law = "I26"
    if owner != REMOTE and lapsed(state, owner, frame):
        law = "I1"
    for phase, how in ((PARTIAL, "in part"), (WHOLE, "as a whole")):
        after = _with(state, owner, frame._replace(phase=phase))
        yield Step(f"frame {owner} is written {how}", after, law)


def _late(state: State, owner: int, frame: Frame) -> str:
    """Return the law that a byte of this frame breaks by coming now."""
    if owner == REMOTE and state.late >= LEASE and frame.phase == MINTED:
        return "I21"
    if state.stage == RECEIVED and _depends(state, owner, frame):
        return "I22" if owner == REMOTE else "I2"
    return ""


def _ending(state: State, owner: int, bounds: Bounds, mistake: Mistake | None) -> Iterator[Step]:
    frame = state.frames[owner]
    if frame.phase == MINTED:
        yield Step(
            f"call {owner} is cancelled", _with(state, owner, frame._replace(phase=CANCELLED))
        )
    if frame.phase != WHOLE:
        return
    gone = _owner_dead(state, owner) if owner == REMOTE else lapsed(state, owner, frame)
    if gone and mistake is not Mistake.LATE_ANSWER_HANDED_ON:
        yield Step(f"answer {owner} is dropped", _with(state, owner, frame._replace(phase=DROPPED)))
    else:
        after = _with(state, owner, frame._replace(phase=DELIVERED))
        yield Step(f"answer {owner} is delivered", after, "I18" if gone else "")
    if state.retries < bounds.retries:  # turned away: once more, under a permit of its own
        again = state._replace(retries=state.retries + 1)
        yield Step(f"call {owner} is made again", _with(again, owner, Frame()))


def _passing_time(state: State) -> Iterator[Step]:
    taken = state.parent == DEAD or state.child == DEAD
    if state.lease > 0 or state.late < LEASE:
        late = min(state.late + 1, LEASE) if taken else 0
        lease = max(state.lease - 1, 0)
        if (lease, late) != (state.lease, state.late):
            yield Step("time passes", state._replace(lease=lease, late=late))
    if state.connected:
        yield Step("the host is cut off", state._replace(connected=False))
        if taken and not state.told:
            yield Step("the host is told", state._replace(told=True))
        elif not taken and state.lease < LEASE:
            yield Step("the lease is renewed", state._replace(lease=LEASE))
    else:
        yield Step("the host is back", state._replace(connected=True))
