"""vLLM: its load generator, and what it keeps of a GPU's memory."""

from __future__ import annotations

from .load import LoadToSend
from .memory import GIB, Batch, MemoryUse
from .release import Release

# `max_num_batched_tokens` and `max_num_seqs` of a server that states none, on GPUs of 70 GiB and more other than the
# A100, and elsewhere (`EngineArgs.get_batch_defaults`).
_LARGE, _SMALL = Batch(8192, 1024), Batch(2048, 256)
_LARGE_GIB = 70
# The first release whose sampler needs no sorted copies: 5.64 and 2.23 GiB of activations with Qwen3-14B before and
# after, on one machine. Both figures per sequence and vocabulary entry: starts with 32,768 to 256,000 entries and 128
# to 1,024 sequences agree within 5%.
_UNSORTED: Release = (0, 17)
_SORTING_LOGIT_BYTES, _LOGIT_BYTES = 38.4, 14.0
# Non-torch memory by the same logs: from 0.12 on, workspaces of the all-reduce on linked GPUs.
_WORKSPACES: Release = (0, 12)
_ALONE_BYTES, _GROUP_BYTES = 0.2 * GIB, 0.3 * GIB
_EARLIER_LINKED_BYTES, _LINKED_BYTES = 0.55 * GIB, 2.1 * GIB
# The first release that takes an estimate of its CUDA graphs off the cache (pull request 38284); of a layer and batch
# size as 0.19 estimates them (0.5 to 1.9 GiB for 26 to 80 layers).
_GRAPHS_COUNTED: Release = (0, 21)
_GRAPH_BYTES = 0.0004 * GIB


def memory_use(release: Release | None, total_bytes: float, *, is_ampere: bool) -> MemoryUse:
    """What `release` (the newest where it is not known) keeps of a GPU of `total_bytes`."""
    newest = release is None
    is_large = total_bytes >= _LARGE_GIB * GIB and not is_ampere and (newest or release >= (0, 8))
    return MemoryUse(
        batch=_LARGE if is_large else _SMALL,
        alone_bytes=_ALONE_BYTES,
        group_bytes=_GROUP_BYTES,
        linked_bytes=_LINKED_BYTES if newest or release >= _WORKSPACES else _EARLIER_LINKED_BYTES,
        logit_bytes=_LOGIT_BYTES if newest or release >= _UNSORTED else _SORTING_LOGIT_BYTES,
        graph_bytes=_GRAPH_BYTES if newest or release >= _GRAPHS_COUNTED else 0.0,
    )


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`vllm bench serve` (its documentation, 0.11): without a range ratio all lengths are those stated."""
    return (
        "vllm", "bench", "serve", "--model", load.model, "--dataset-name", "random",
        "--random-input-len", str(load.input_tokens), "--random-output-len", str(load.output_tokens), "--ignore-eos",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
