"""Step tables that tests share: a plausible large engine, and small ones drawn at random."""

from __future__ import annotations

from msgspec.structs import replace

from shardwright.tools.performance.serving.load import Arrivals, Lengths, ServingTimes
from shardwright.tools.performance.serving.policy import Policy
from shardwright.tools.performance.serving.simulate import outcome_of_run
from shardwright.tools.performance.serving.step_table import StepTable
from shardwright.tools.performance.serving.summary import times_of

TOKENS = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0]
SEQUENCES = TOKENS[:6]

# About a dense 70B model in FP8 on two H100: 8 ms to read the weights, 30 us a token once arithmetic binds.
ENGINE = StepTable(
    tokens=TOKENS,
    linear_s=[max(8e-3, 3e-5 * tokens) for tokens in TOKENS],
    sequences=SEQUENCES,
    decode_base_s=[1e-4 + 1e-7 * sequences for sequences in SEQUENCES],
    decode_per_token_s=[3e-9] * len(SEQUENCES),
    head_s=[3e-4 + 1e-6 * sequences for sequences in SEQUENCES],
    chunk_tokens=TOKENS,
    prefill_fixed_s=[1e-4] * len(TOKENS),
    prefill_per_pair_s=[2e-11] * len(TOKENS),
    host_fixed_s=1e-3,
    host_per_sequence_s=5e-6,
    host_per_prefill_s=1e-3,
)
# Half of the layers see only the last 40 tokens.
WINDOWED = replace(
    ENGINE,
    window_tokens=40,
    decode_per_window_token_s=[2e-6] * len(SEQUENCES),
    prefill_per_window_pair_s=[1e-8] * len(TOKENS),
)
# Groups that meet: half of what counts tokens is done by all of them together. Beside prompts decode takes longer.
MEETING = replace(
    WINDOWED,
    beside_base_s=[2e-4 + 3e-7 * sequences for sequences in SEQUENCES],
    beside_per_token_s=[4e-8] * len(SEQUENCES),
    beside_per_window_token_s=[5e-6] * len(SEQUENCES),
    linear_s=[0.5 * seconds for seconds in WINDOWED.linear_s],
    met_tokens=TOKENS,
    met_s=[max(4e-3, 4e-6 * tokens) for tokens in TOKENS],
)
# With some eight sequences the host is the slower of the two until their contexts are long.
BUSY_HOST = replace(WINDOWED, hidden_fixed_s=2e-3, hidden_per_sequence_s=1e-3)
MEETING_BUSY_HOST = replace(MEETING, hidden_fixed_s=2e-3, hidden_per_sequence_s=1e-3)
ROOMY = Policy(token_budget=8192, max_sequences=1024, kv_tokens=10_000_000)


def simulate(table: StepTable, policy: Policy, arrivals: Arrivals, lengths: Lengths) -> ServingTimes:
    """Times that the users of one replica see."""
    return times_of([(outcome_of_run(table, policy, arrivals, lengths), 1)])
