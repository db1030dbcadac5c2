"""vLLM: its load generator, and what it keeps of a GPU's memory."""

from __future__ import annotations

from .load import LoadToSend
from .memory import GIB, Batch, MemoryUse
from .release import Release

# `max_num_batched_tokens` and `max_num_seqs` of a server that states none, on GPUs of 70 GiB and more other than the
# A100, and elsewhere (`EngineArgs.get_batch_defaults`).
_LARGE, _SMALL = Batch(8192, 1024), Batch(2048, 256)
_LARGE_GIB = 70
# Before, every GPU had the smaller batch, and at least as many tokens as a prompt may have.
_CHUNKED: Release = (0, 8)
# What handing a request from prefill to decode adds to its first token beside the way of its cache: the median of TTFT
# measured less predicted, of runs of InferenceX behind dynamo with 1,024 tokens in and at most 16 users (Kimi-K2.5 on
# GB200; 3 runs, 0.165 to 0.214 s).
HANDOFF_S = 0.19
# To what MXFP4 experts are padded: 2,880 to 3,072 and 2,944 in gpt-oss (65.97 GiB of gpt-oss-120b on one GPU).
_MXFP4_TILE = (256, 128)
# The first release whose sampler needs no sorted copies: 5.64 and 2.23 GiB of activations with Qwen3-14B before and
# after, on one machine. Both figures per sequence and vocabulary entry: starts with 32,768 to 256,000 entries and 128
# to 1,024 sequences agree within 5%.
_UNSORTED: Release = (0, 17)
_SORTING_LOGIT_BYTES, _LOGIT_BYTES = 38.4, 14.0
# Memory outside torch by the same logs: the kernels that were loaded (on Blackwell far more), and from 0.12 on
# workspaces of the all-reduce on linked GPUs.
_WORKSPACES: Release = (0, 12)
_ALONE_BYTES, _GROUP_BYTES, _BLACKWELL_BYTES = 0.2 * GIB, 0.3 * GIB, 1.8 * GIB
_EARLIER_LINKED_BYTES, _LINKED_BYTES = 0.55 * GIB, 2.1 * GIB
# The first release that takes an estimate of its CUDA graphs off the cache (pull request 38284): 0.52 GiB for 40 layers
# with 51 batch sizes, 0.32 for 94 with 11.
_GRAPHS_COUNTED: Release = (0, 21)
_GRAPH_BYTES = 0.0003 * GIB


def memory_use(release: Release | None, architecture: str, total_bytes: float) -> MemoryUse:
    """What `release` (the newest where it is not known) keeps of a GPU of an `architecture` with `total_bytes`."""
    at = release or (10**4, 0)
    is_large = total_bytes >= _LARGE_GIB * GIB and architecture != "ampere" and at >= _CHUNKED
    own = _BLACKWELL_BYTES if architecture == "blackwell" else _ALONE_BYTES
    return MemoryUse(
        batch=_LARGE if is_large else _SMALL,
        alone_bytes=own,
        group_bytes=max(own, _GROUP_BYTES),
        linked_bytes=max(own, _LINKED_BYTES if at >= _WORKSPACES else _EARLIER_LINKED_BYTES),
        logit_bytes=_LOGIT_BYTES if at >= _UNSORTED else _SORTING_LOGIT_BYTES,
        graph_bytes=_GRAPH_BYTES if at >= _GRAPHS_COUNTED else 0.0,
        takes_whole_prompts=at < _CHUNKED,
        mxfp4_tile=_MXFP4_TILE,
    )


def load_generator(load: LoadToSend) -> tuple[str, ...]:
    """`vllm bench serve` (its documentation, 0.11): without a range ratio all lengths are those stated."""
    return (
        "vllm", "bench", "serve", "--model", load.model, "--dataset-name", "random",
        "--random-input-len", str(load.input_tokens), "--random-output-len", str(load.output_tokens), "--ignore-eos",
        "--num-prompts", str(load.requests), *load.arrivals,
    )  # fmt: skip
