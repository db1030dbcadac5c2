"""All legal strategies screened in NumPy columns, the leading ones simulated and ranked; how much hardware it takes.

    SearchRequest
      │  space        degrees of a stage that the rules allow           ReplicaKind, one by one
      │  replicas     every number of stages in the best cuts           Replicas: P pipelines with S stages in all
      │               every number of replicas under L loads            Shares: requests, memory_bytes    [E]
      │  times        stage_times, phase_times                          seconds of stages [S, L], pipelines [P, L]
      │
      ├─ colocated         prefill and decode on the same replicas ──────────────┐
      └─ phase_replicas    replicas of one phase: PhaseRows [R]                  │
           └─ disaggregated    pairs of what is not dominated, x : y ────────────┤
                                                                                 ▼
         screen       StrategyRows: ttft_s, tpot_s, tokens_per_s, memory_bytes, excess, cost [R], up to millions
           │ order    best first; the front; the best of each family
           ▼
         simulated    Candidate, some dozens: the simulated run of the load (`performance/planned_run`) has the figures
           │          and the last word, `single` works one of them out
           ▼
         search       SearchResult: ranked candidates, and what was rejected, pruned or left out, all counted

The columns only screen: a closed form of the mean (`performance/service`), from the functions that time one plan, asked
with an array of batch sizes. Nothing of it is shown. What ends in `_s` are seconds, what ends in `_bytes` bytes, and
`rows`, `pipelines` and the like in brackets the length of an array. `sizing` and `kinds` search for hardware, `mix`
for several loads, `sensitivity` for what flips the answer, each by searches of this kind; `load_room` for how much more
load a plan takes, by runs of it.
"""
