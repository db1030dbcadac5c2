"""Whether the processes of a server on several nodes meet: each rank is started once, and all name one master.

vLLM: `config/parallel.py` (the default master is 127.0.0.1), `entrypoints/cli/serve.py` (`run_headless`: a further node
of one group runs it in place of an API server); SGLang: `model_executor/model_runner.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ..engines.vocabulary import Vocabulary, is_open
from .launch import DIALECTS, Command, Launch

# A head may name itself so; others find it under its real address.
_OWN_ADDRESSES = ("0.0.0.0", "127.0.0.1", "localhost")
_Ordinal = Literal["node_rank", "rank", "first_rank"]


class _Share(Struct, frozen=True):
    """The ranks that a command starts, out of `count` of its server.

    Concepts of flags: `ordinal` numbers the node or rank, `total` counts them, `masters` are the meeting place.
    """

    ranks: range
    count: int
    ordinal: _Ordinal
    total: Literal["nodes", "dp"]
    masters: tuple[str, ...]


def _share(command: Command) -> _Share | None:
    """The share of a command; `None` if it starts the whole server, or runs on each node with its numbers filled in."""
    flags, process = command.flags, command.process
    if process.nodes or process.is_spread or process.copies > 1 or flags.text("executor") == "ray":
        return None
    if any(is_open(flags.values.get(name, "")) for name in ("nodes", "node_rank", "dp", "local", "rank", "first_rank")):
        return None
    nodes = flags.degree("nodes")
    if nodes > 1:
        first = flags.count("node_rank") or 0
        return _Share(range(first, first + 1), nodes, "node_rank", "nodes", ("master", "master_port"))
    dp, ordinal = flags.degree("dp"), "rank" if "rank" in flags.values else "first_rank"
    local = flags.count("local") if ordinal == "first_rank" else 1
    if local is None or local >= dp:
        return None
    first = flags.count(ordinal) or 0
    return _Share(range(first, first + local), dp, ordinal, "dp", ("dp_master", "dp_port"))


def is_one_server(head: Command, other: Command) -> bool:
    """Whether two commands start parts of one server: they meet at the same place."""
    share, other_share = _share(head), _share(other)
    if share is None or other_share is None or share.total != other_share.total or head.phase != other.phase:
        return False
    return all(head.flags.values.get(name) == other.flags.values.get(name) for name in share.masters)


def apart(launch: Launch, commands: Sequence[Command]) -> Iterator[str]:
    """Why the commands of one server do not meet."""
    shares = [share for command in commands if (share := _share(command)) is not None]
    if len(shares) < len(commands):
        return
    first, vocabulary = shares[0], DIALECTS[launch.engine].engine.vocabulary
    if len(commands) > 1:
        yield from _ranks(shares, vocabulary)
        yield from _masters(commands, first, vocabulary)
    switch = DIALECTS[launch.engine].of_further_nodes
    for command, share in zip(commands, shares, strict=True):
        is_further = share.ordinal == "node_rank" and share.ranks.start > 0 and command.flags.degree("dp") == 1
        if switch is not None and is_further and not command.flags.on(switch):
            yield (
                f"{command.flags.written['node_rank']} {share.ranks.start} without {vocabulary.flag(switch)}: a node "
                "but the first takes requests of none, and does not start without it; add it"
            )


def _ranks(shares: Sequence[_Share], vocabulary: Vocabulary) -> Iterator[str]:
    """Ranks that are started twice, not at all, or beyond the total."""
    flag, count = vocabulary.flag(shares[0].ordinal), shares[0].count
    started = Counter(rank for share in shares for rank in share.ranks)
    of = f"of {count} ({flag}, {vocabulary.flag(shares[0].total)} {count})"
    mend = f"give each command ranks of its own, 0 to {count - 1}"
    if beyond := [rank for rank in started if rank >= count]:
        yield f"there is no rank {min(beyond)} {of}: it does not start; {mend}"
    elif twice := [rank for rank, times in started.items() if times > 1]:
        yield f"{started[min(twice)]} commands start rank {min(twice)} {of}: they hang or fail; {mend}"
    elif missing := [rank for rank in range(min(count, len(started) + 1)) if rank not in started]:
        yield f"no command starts rank {min(missing)} {of}: the others wait for it; {mend}"


def _masters(commands: Sequence[Command], share: _Share, vocabulary: Vocabulary) -> Iterator[str]:
    """Nodes that look for the first one at different places, or on themselves."""
    for place, concept in enumerate(master for master in share.masters if master in vocabulary.spelled):
        flag = vocabulary.flag(concept)
        named = [command.flags.values.get(concept) for command in commands]
        # A head's name for itself, or a variable, may be the address that others name.
        known = {
            address
            for address in named
            if address is not None and not is_open(address) and not address.startswith(_OWN_ADDRESSES)
        }
        if len(known) > 1:
            yield (
                f"nodes of one server name different masters ({flag} {', '.join(sorted(known)[:4])}): they wait for "
                "each other; name that of rank 0 in all of them"
            )
        elif place == 0 and any(address is None for address in named[1:]):
            yield (
                f"a further node names no {flag}: it looks for the first one on itself (127.0.0.1) and waits; name the "
                "address of rank 0 in all of them"
            )


def given_alone(launch: Launch, commands: Sequence[Command]) -> Iterator[str]:
    """Notes on a server of several nodes of which the text gives the command of one alone."""
    share = _share(commands[0]) if len(commands) == 1 else None
    if share is not None:
        flag = DIALECTS[launch.engine].engine.vocabulary.flag(share.ordinal)
        yield (
            f"of the {share.count} ranks of its server the command of {share.ranks.start} alone is given ({flag}): it "
            "waits until the others are started too"
        )
