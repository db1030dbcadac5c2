// A strategy in the field's shorthand: DP2 of PP2 × TP4, each phase apart where they differ.

const NAMES = { pp: "PP", sp: "SP", ep: "EP", attention_dp: "attention-DP", kv_sp: "KV-SP", tp: "TP", tp_expert: "expert-TP" };

const phaseOf = (phase = {}) => {
  const parts = Object.entries(NAMES).filter(([name]) => phase[name] > 1).map(([name, short]) => `${short}${phase[name]}`);
  if (phase.tp_ffn > 1 && phase.tp_ffn !== phase.tp) parts.push(`FFN-TP${phase.tp_ffn}`);
  return parts.join(" × ") || "one device";
};

export const describe = (strategy) => {
  if (typeof strategy !== "object" || strategy === null) return "";
  const [prefill, decode] = [phaseOf(strategy.prefill ?? undefined), phaseOf(strategy.decode ?? undefined)];
  if (strategy.prefill?.replicas && strategy.decode?.replicas) return `${strategy.prefill.replicas} prefill of ${prefill} + ${strategy.decode.replicas} decode of ${decode}`;
  const shape = prefill === decode ? prefill : `prefill ${prefill}, decode ${decode}`;
  return strategy.dp > 1 ? `DP${strategy.dp} of ${shape}` : shape;
};

// A question in words that a conversation reads: what it takes over when the plan was made beside it.
export const inWords = (plan) => {
  const { model, hardware, workload, precision, policy, serving, strategy } = plan;
  const limit = (name, ms, statistic) => ms && `${name} ${statistic ?? "mean"} at most ${ms} ms`;
  const parts = [
    `${model.name} on ${hardware.nodes} nodes of ${hardware.gpus_per_node} ${hardware.accelerator}`,
    `input ${workload.input_tokens} tokens, output ${workload.output_tokens} tokens`,
    workload.request_rate ? `${workload.request_rate} requests per second` : `concurrency ${workload.concurrency ?? 1}`,
    limit("TTFT", workload.ttft_ms_max, workload.ttft_statistic),
    limit("TPOT", workload.tpot_ms_max, workload.tpot_statistic),
    `objective ${workload.objective ?? "latency"}`,
    precision && `weights in ${precision.weights}, kv cache ${precision.kv_cache}, activations ${precision.activations}`,
    policy?.memory_utilization && `memory utilization ${policy.memory_utilization}`,
    serving?.engine && `engine ${serving.engine}`,
    `use ${describe(strategy)}`,
  ];
  return parts.filter(Boolean).join("; ");
};
