// A strategy in the field's shorthand: DP2 of PP2 × TP4, each phase apart where they differ.

const NAMES = {
  pp: "PP",
  sp: "SP",
  ep: "EP",
  attention_dp: "attention-DP",
  kv_sp: "KV-SP",
  tp: "TP",
  tp_expert: "expert-TP",
};

const phaseOf = (phase = {}) => {
  const parts = Object.entries(NAMES)
    .filter(([name]) => phase[name] > 1)
    .map(([name, short]) => `${short}${phase[name]}`);
  if (phase.tp_ffn > 1 && phase.tp_ffn !== phase.tp) parts.push(`FFN-TP${phase.tp_ffn}`);
  return parts.join(" × ") || "one device";
};

export const describe = (strategy) => {
  if (typeof strategy !== "object" || strategy === null) return "";
  const [prefill, decode] = [phaseOf(strategy.prefill ?? undefined), phaseOf(strategy.decode ?? undefined)];
  if (strategy.prefill?.replicas && strategy.decode?.replicas)
    return `${strategy.prefill.replicas} prefill of ${prefill} + ${strategy.decode.replicas} decode of ${decode}`;
  const shape = prefill === decode ? prefill : `prefill ${prefill}, decode ${decode}`;
  return strategy.dp > 1 ? `DP${strategy.dp} of ${shape}` : shape;
};
