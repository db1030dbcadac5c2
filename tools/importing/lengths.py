"""The longest request that servers take, against the load, the model's positions, and the room of the KV cache."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from ..catalog.architecture import Architecture
from ..engines.names import ENGINES, EngineName
from ..plan.document import WorkloadBlock
from ..plan.load import longest_stated, shortest_request, spread_of
from .caveats import Caveat
from .flags import LEFT_OPEN, Flags, most_tokens_taken
from .launch import Launch

_CHANGES_CONFIG = "a changed model config"
# Flags that change the model's positions, the cache, or what a request keeps in it, against the plan.
_CHANGES = frozenset(
    {_CHANGES_CONFIG, "weights kept in CPU memory", "a KV cache of a stated size", "an attention window of its own"}
)
# Nine in ten predicted cache sizes lie within this share of what engines logged (`benchmarks/kv_capacity.py`).
_CACHE_ERROR = 0.12
_ROUND_FROM = 5000


class LongestTaken(Struct, frozen=True):
    """The `tokens` of the longest request that a server takes, and the source of that limit in `words`."""

    tokens: int
    words: str


def all_too_long(launch: Launch, load: WorkloadBlock, assumed: Collection[str]) -> Iterator[str]:
    """That each request of the load exceeds every stated limit; of an `assumed` length one token is certain.

    A load without any stated length is no reason to refuse servers.
    """
    sides = {"input_tokens": load.input_tokens, "output_tokens": load.output_tokens}
    unsure = [tokens - 1 for name, tokens in sides.items() if name in assumed]
    limits = {
        limit: command.flags for command in launch.commands if (limit := most_tokens_taken(command.flags)) is not None
    }
    limit = max(limits, default=None)
    if limit is not None and len(unsure) < len(sides) and shortest_request(load) - sum(unsure) > limit:
        yield (
            f"every request is longer than {limits[limit].written['max_tokens']} {limit:,}: {_lengths(load)}; set it "
            f"to {sum(longest_stated(load)):,} or more"
        )


def prompts_too_long(launch: Launch, load: WorkloadBlock, assumed: Collection[str]) -> Iterator[Caveat]:
    """Caveats on prompts that servers refuse because they cut none; an `assumed` length is no reason to refuse any."""
    engine, longest = ENGINES[launch.engine], longest_stated(load)[0]
    are_all = spread_of(load) is None and "input_tokens" not in assumed
    for flags in (command.flags for command in launch.commands if command.phase != "decode"):
        if not engine.cuts_prompts_by or flags.on("cuts_prompts"):
            continue
        tokens = flags.count("token_budget") or engine.memory_use(None, "", 0.0).batch.tokens
        if longest > tokens:
            limit = f"{engine.vocabulary.flag('token_budget')} {tokens:,}"
            why = f"without {engine.cuts_prompts_by} those longer than {limit} are refused"
            yield "refused" if are_all else "remark", f"prompts of {longest:,} tokens: {why}"


def _lengths(load: WorkloadBlock) -> str:
    """How long requests are: `2,048 + 256 tokens`, `1,200 to 2,304 tokens`."""
    shortest, longest = shortest_request(load), sum(longest_stated(load))
    if shortest == longest:
        return f"{load.input_tokens:,} + {load.output_tokens:,} tokens"
    return f"{shortest:,} to {longest:,} tokens"


def some_too_long(launch: Launch, load: WorkloadBlock) -> Iterator[str]:
    """Notes that requests of the load exceed a stated limit."""
    for flags in (command.flags for command in launch.commands):
        limit = most_tokens_taken(flags)
        if limit is not None and sum(longest_stated(load)) > limit:
            yield (
                f"requests of {_lengths(load)}: the engine refuses those longer than {flags.written['max_tokens']} "
                f"{limit:,}"
            )


def longest_taken(launch: Launch, architecture: Architecture) -> LongestTaken | None:
    """The longest request that decoding servers take, as stated or by the engine's default.

    `None` if the engine fits it to the cache, or if flags change the cache or the model's positions.
    """
    decoding = [command.flags for command in launch.commands if command.phase != "prefill"]
    if any(_CHANGES.intersection(flags.unplanned) or _leaves_open(flags) for flags in decoding):
        return None
    limits = ((most_tokens_taken(flags), flags.written.get("max_tokens", "")) for flags in decoding)
    stated = {limit: flag for limit, flag in limits if limit is not None}
    positions = architecture.max_position_embeddings
    if stated:
        most = max(stated)
        return LongestTaken(min(most, positions), f"{stated[most]} {most:,}")
    if not ENGINES[launch.engine].refuses_unheld_length:
        return None
    flag = ENGINES[launch.engine].vocabulary.flag("max_tokens")
    return LongestTaken(positions, f"no {flag}, so that requests may have all {positions:,} positions of the model")


def uncut(launch: Launch, architecture: Architecture) -> Iterator[Caveat]:
    """Why servers that cut no prompt are refused: a step takes fewer tokens than a request may have."""
    for flags in (command.flags for command in launch.commands if command.flags.on("whole_prompts")):
        longest, tokens = most_tokens_taken(flags), flags.count("token_budget")
        limit = f"{flags.written.get('max_tokens')} {longest or 0:,}"
        if "max_tokens" not in flags.values and _CHANGES_CONFIG not in flags.unplanned:
            longest = architecture.max_position_embeddings
            limit = f"the model's {longest:,} positions"
        if tokens is not None and longest is not None and tokens < longest:
            names = flags.written["token_budget"], flags.written["whole_prompts"]
            yield "refused", f"{names[0]} {tokens:,} is less than {limit}, and {names[1]} lets no prompt be cut"


def _leaves_open(flags: Flags) -> bool:
    """Whether the longest request follows from the cache, or is left to a variable."""
    open_length = "max_tokens" in flags.values and flags.text("max_tokens") in LEFT_OPEN
    return open_length or ("memory_share" in flags.values and flags.text("memory_share") is None)


def unheld(engine: EngineName, taken: LongestTaken, held_tokens: int) -> Iterator[Caveat]:
    """Caveats if the cache has room for `held_tokens` of one request and the engine takes longer ones."""
    if held_tokens >= taken.tokens:
        return
    facts = ENGINES[engine]
    rounded = held_tokens // 1000 * 1000 if held_tokens > _ROUND_FROM else held_tokens // 10 * 10
    room = f"the KV cache has room for one request of about {rounded:,} tokens" if rounded else "no KV cache is left"
    more = "more GPUs, or a larger share of their memory"
    mend = f"{facts.vocabulary.flag('max_tokens')} {rounded} fits, or take {more}" if rounded else f"take {more}"
    if not facts.refuses_unheld_length:
        yield "remark", f"{taken.words}: {room}, and longer ones are not served; {mend}"
    elif held_tokens * (1 + _CACHE_ERROR) < taken.tokens:
        yield "refused", f"{taken.words}: {room}; {mend}"
    else:
        yield "unknown", f"{taken.words} ({room}, which is sure to {_CACHE_ERROR:.0%}; {mend})"


def stated_positions(launch: Launch) -> int | None:
    """The positions that commands give the model in its config, or by YaRN; `None` if they leave it its own."""
    for flags in (command.flags for command in launch.commands):
        factor, original = flags.figure("rope_factor"), flags.count("rope_original")
        if (stated := flags.count("positions")) is not None:
            return stated
        if factor and original and "yarn" in (flags.text("rope_type") or ""):
            return round(factor * original)
    return None


def beyond_positions(launch: Launch, architecture: Architecture, *, is_its_checkpoint: bool) -> Iterator[Caveat]:
    """Caveats if servers take requests longer than the model has positions.

    Another checkpoint of the model's shape may have more.
    """
    positions = architecture.max_position_embeddings
    for flags in (command.flags for command in launch.commands):
        limit = most_tokens_taken(flags)
        if limit is not None and limit > positions and _CHANGES_CONFIG not in flags.unplanned:
            more = (
                f"{flags.written['max_tokens']} {limit:,} is more than the model's {positions:,} positions "
                "(max_position_embeddings)"
            )
            if is_its_checkpoint and ENGINES[launch.engine].refuses_beyond_positions:
                yield "refused", f"{more}; {positions} is the most, unless the engine is told of another rope scaling"
            else:
                yield "remark", f"{more}: the engine refuses it, or answers beyond what the model was made for"
