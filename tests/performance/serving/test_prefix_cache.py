"""The prefix cache of a scheduler: examples worked by hand, and the same cache block by block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field

from shardwright.tools.performance.serving.host_tier import HostTier
from shardwright.tools.performance.serving.policy import HostMemory
from shardwright.tools.performance.serving.prefix_cache import PrefixCache, PrefixTree

from ...examples import examples


def cache_of(tree: PrefixTree, kv_tokens: int, leaves: list[int], host_memory: HostMemory | None = None) -> PrefixCache:
    host = None if host_memory is None else HostTier(host_memory, tree.block_tokens, [0] * len(leaves))
    return PrefixCache(tree, kv_tokens, leaves, [-1] * len(leaves), [], host)


def test_an_example_worked_by_hand() -> None:
    # Blocks of 4 tokens, room for 40: 10 blocks. All prompts begin with the same 9 tokens: 2 whole blocks.
    tree = PrefixTree(4)
    system = tree.add(-1, 0, 9)
    # a: prompt 15, answer 6. Of its 21 tokens the last is never put into the model: 20 are, 5 blocks, 2 of them shared.
    # b: prompt 12, answer 2: 13 are put into the model, 3 blocks, 2 of them shared.
    # c: the next turn of a: it begins with the 20 tokens of a; prompt 24, answer 3: 26, 6 blocks, 5 of them shared.
    a = tree.add(system, 9, 20)
    b = tree.add(system, 9, 13)
    c = tree.add(a, 20, 26)
    cache = cache_of(tree, 40, [a, b, c])
    # a comes first: nothing is there, nothing is in use. It takes 15 tokens and the one that it makes.
    assert (cache.found(0, 15, 0), cache.in_use(0, 15)) == (0, 0)
    cache.take(0, 15)
    # b finds 2 blocks, 8 tokens, which a has in use: of its 12 + 1 tokens it takes room for 5.
    assert (cache.found(1, 12, 16), cache.in_use(1, 12)) == (8, 8)
    cache.take(1, 12)
    # b is done with 14 tokens: the 8 that a shares stay in use, 6 do not. Its own whole block, 8 to 12, stays as free.
    assert cache.give_back(1, 14, 13, 16 + 6) == 6
    assert cache.free_blocks == 1
    # a is done with 21 tokens: all are given back, and 3 blocks of its own and 2 of the system prompt are free too.
    assert cache.give_back(0, 21, 20, 21) == 21
    assert cache.free_blocks == 6
    # c finds 20 of its 24 tokens. Of a prompt of just these 20 the last block is computed, for its last token.
    assert (cache.found(2, 24, 0), cache.found(2, 20, 0)) == (20, 16)
    # Somebody else uses 25 tokens: 15 are left, 3 blocks. The oldest goes first: that of b, then the last 2 of a.
    assert cache.found(2, 24, 25) == 12
    assert cache.match(cache.path_of(1), 25) == 8
    # Of 36 tokens in use 1 block is left: the system prompt's first.
    assert cache.found(1, 12, 36) == 4


@pytest.mark.parametrize(
    ("memory", "before", "found", "loaded", "after"),
    [
        # Blocks that the GPU evicted: the last of a. It comes back, and the last of b goes.
        (HostMemory(20, 0.5, takes_evicted=True), {0: (2, 3)}, 12, 4, {1: (2, 3)}),
        # Copies of all that was computed: the one of a is read, and both stay.
        (HostMemory(24, 0.5, takes_evicted=False), {0: (0, 3), 1: (0, 3)}, 12, 4, {1: (0, 3), 0: (0, 3)}),
        # Room for 5 of the 6: the oldest's end goes, of a, so that the host has nothing beyond the GPU's, then of b.
        (HostMemory(20, 0.5, takes_evicted=False), {0: (0, 2), 1: (0, 3)}, 8, 0, {1: (0, 2), 0: (0, 3)}),
    ],
)
def test_two_tiers_worked_by_hand(
    memory: HostMemory,
    before: dict[int, tuple[int, int]],
    found: int,
    loaded: int,
    after: dict[int, tuple[int, int]],
) -> None:
    # Blocks of 4 tokens, and room for 24 tokens on the GPU. Prompts a and b of 13 tokens, 3 whole blocks each, share
    # nothing; a is asked for, then b, then a again, one at a time.
    tree = PrefixTree(4)
    a, b = tree.add(-1, 0, 13), tree.add(-1, 0, 13)
    cache = cache_of(tree, 24, [a, b, a], memory)
    host = cache.host
    assert host is not None
    # While b uses 14 tokens, room for 2 of a's blocks is left: the last one goes.
    for request in (0, 1):
        assert cache.found(request, 13, 0) == 0
        cache.take(request, 13)
        assert cache.give_back(request, 14, 13, 14) == 14
    assert dict(host.spans) == before and cache.held == {a: 2, b: 3}
    assert cache.found(2, 13, 0) == found and cache.load_s(2) == 0.5 * loaded
    cache.take(2, 13)
    cache.give_back(2, 14, 13, 14)
    assert [*host.spans.items()] == [*after.items()] and cache.held == {a: 3, b: 2}
    assert host.loaded == [0, 0, loaded]


class BlockByBlock(Struct):
    """The same cache block by block: uses of each, the unused ones oldest first, and the host's, oldest first."""

    kv_tokens: int
    block: int
    memory: HostMemory | None = None
    uses: dict[tuple[int, ...], int] = field(default_factory=dict)
    line: list[tuple[int, ...]] = field(default_factory=list)
    host: list[tuple[int, ...]] = field(default_factory=list)

    def found(self, prompt: tuple[int, ...], goal: int, used: int) -> tuple[int, int]:
        self.give_way(used)
        blocks = loaded = 0
        while blocks < (goal - 1) // self.block:
            name = self.name(prompt, blocks)
            if name not in self.uses and name not in self.line:
                if name not in self.host:
                    break
                loaded += 1
            blocks += 1
        return blocks * self.block, loaded * self.block

    def keep(self, name: tuple[int, ...], *, is_evicted: bool) -> None:
        if self.memory is not None and self.memory.takes_evicted == is_evicted:
            self.host = [*(other for other in self.host if other != name), name]
            while len(self.host) > self.memory.tokens // self.block:
                self.host.pop(0)

    def name(self, prompt: tuple[int, ...], place: int) -> tuple[int, ...]:
        """A block is what it and all before it hold, as engines hash them."""
        return prompt[: (place + 1) * self.block]

    def take(self, prompt: tuple[int, ...], goal: int) -> None:
        for place in range(goal // self.block):
            name = self.name(prompt, place)
            self.uses[name] = self.uses.get(name, 0) + 1
            if name in self.line:
                self.line.remove(name)
            if self.memory is not None and self.memory.takes_evicted and name in self.host:
                self.host.remove(name)

    def give_back(self, prompt: tuple[int, ...], goal: int, computed: int, used: int) -> None:
        self.give_way(used)
        # Blocks that were computed after admission became whole in the meantime.
        for place in range(goal // self.block, computed // self.block):
            self.uses[self.name(prompt, place)] = 1
        for place in reversed(range(computed // self.block)):
            name = self.name(prompt, place)
            self.uses[name] -= 1
            if not self.uses[name]:
                del self.uses[name]
                self.line.append(name)
                self.keep(name, is_evicted=False)

    def give_way(self, used: int) -> None:
        while len(self.line) * self.block > self.kv_tokens - used:
            self.keep(self.line.pop(0), is_evicted=True)


REQUESTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 30), st.integers(1, 12), st.integers(1, 8)), min_size=1, max_size=10
)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60)


@examples(300)
@given(
    REQUESTS,
    STEPS,
    st.sampled_from([1, 4]),
    st.sampled_from([60, 100, 1000]),
    st.sampled_from([None, *(HostMemory(size, 0.5, evicted) for size in (7, 40, 900) for evicted in (False, True))]),
)
def test_nodes_are_blocks_that_have_one_age(
    asked: list[tuple[int, int, int, int]],
    steps: list[tuple[int, int]],
    block: int,
    kv_tokens: int,
    memory: HostMemory | None,
) -> None:
    # Each request shares some tokens of the prompt of one before it; tokens are numbers that nobody else has.
    tree, leaves, prompts, texts = PrefixTree(block), list[int](), list[int](), list[tuple[int, ...]]()
    for number, (earlier, shared, fresh, answer) in enumerate(asked):
        earlier = earlier % number if number else -1
        shared = min(shared, prompts[earlier]) if number else 0
        prompt = shared + fresh
        text = (
            (*texts[earlier][:shared], *(1000 * (number + 1) + place for place in range(fresh + answer)))
            if number
            else ()
        )
        texts.append(text or tuple(1000 + place for place in range(fresh + answer)))
        prompts.append(prompt)
        leaves.append(tree.add(leaves[earlier] if number else -1, shared, prompt + answer - 1))
    cache, plain = cache_of(tree, kv_tokens, leaves, memory), BlockByBlock(kv_tokens, block, memory)
    # Tokens that each has to prefill when it comes next: its prompt, and what it had made before it was put back.
    goals, done = list(prompts), set[int]()
    running: set[int] = set()
    used = 0
    for number, more in steps:
        request = number % len(asked)
        text, goal = texts[request], goals[request]
        if request in running:
            # It is done, all but its last token computed, or is put back after the first token that it made.
            is_done = more % 2 == 1 or goal == len(text) - 1
            computed = len(text) - 1 if is_done else goal
            plain.give_back(text, goal, computed, used)
            used -= cache.give_back(request, len(text), computed, used)
            running.remove(request)
            goals[request] = computed + 1
            done |= {request} if is_done else set()
        elif request not in done:
            hit, loaded = plain.found(text, goal, used)
            assert cache.found(request, goal, used) == hit < goal
            assert cache.load_s(request) == 0.5 * loaded
            # Room is taken for the whole answer.
            need = len(text) - cache.in_use(request, goal)
            if used + need > kv_tokens:
                continue
            pinned = set(cache.pins)
            cache.take(request, goal)
            plain.take(text, goal)
            used += need
            running.add(request)
            assert pinned <= set(cache.pins)
        assert not set(cache.pins) & set(cache.free)
        assert cache.free_blocks == sum(cache.held[node] for node in cache.free) >= 0
    cache.give_way(used)
    plain.give_way(used)
    assert used + cache.free_blocks * block <= kv_tokens
    assert cache.free_blocks == len(plain.line)
    # No block is lost, or in two places that have it once.
    assert (0 if cache.host is None else cache.host.used) == len(plain.host)
    assert memory is None or not memory.takes_evicted or not {*plain.host} & {*plain.line, *plain.uses}
    for request in running:
        used -= cache.give_back(request, len(texts[request]), goals[request], used)
    assert used == 0 and not cache.pins


HOSTS = (None, HostMemory(28, 0.5, takes_evicted=True), HostMemory(28, 0.5, takes_evicted=False))


@examples(300)
@given(
    # Each request: its conversation, new tokens of its prompt, and tokens of its answer.
    asked=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 15), st.integers(1, 6)), max_size=25),
    used=st.integers(0, 30),
    host=st.sampled_from(HOSTS),
)
def test_a_conversation_in_one_node_is_found_as_its_turns_in_nodes_of_their_own(
    asked: list[tuple[int, int, int]], used: int, host: HostMemory | None
) -> None:
    nodes = leaves_of(asked, joined=False), leaves_of(asked, joined=True)
    caches = [cache_of(tree, 120, leaves, host) for tree, leaves in nodes]
    tokens = dict.fromkeys(range(4), 9)
    for request, (talk, more, answer) in enumerate(asked):
        prompt = tokens[talk] + more
        tokens[talk] = prompt + answer - 1
        if prompt + answer + used > 120:
            break
        first, second = ((cache.found(request, prompt, used), cache.load_s(request)) for cache in caches)
        assert first == second
        for cache in caches:
            cache.take(request, prompt)
            cache.give_back(request, prompt + answer, tokens[talk], used + prompt + answer)
        assert caches[0].free_blocks == caches[1].free_blocks


def leaves_of(asked: list[tuple[int, int, int]], *, joined: bool) -> tuple[PrefixTree, list[int]]:
    """The tree of the requests, turns of conversations behind 9 tokens, and the node of each."""
    tree = PrefixTree(4)
    system, leaves, last = tree.add(-1, 0, 9), list[int](), dict[int, tuple[int, int]]()
    for talk, more, answer in asked:
        before, shared = last.get(talk, (system, 9))
        goes_on = tree.go_on if joined and talk in last else tree.add
        leaves.append(goes_on(before, shared, shared + more + answer - 1))
        last[talk] = leaves[-1], shared + more + answer - 1
    return tree, leaves
