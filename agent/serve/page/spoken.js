// What was done beside the conversation, in words that it reads: so that it goes on from the plan that is shown.

import { LIMITS, limitOf } from "./limits.js";
import { describe } from "./strategy.js";

const place = ({ nodes, gpus_per_node, accelerator }) => {
  const kind = typeof accelerator === "string" ? accelerator : accelerator?.id;
  return nodes === 1 ? `${gpus_per_node} ${kind}` : `${nodes} nodes of ${gpus_per_node} ${kind}`;
};

const FIELDS = {
  model: "model",
  concurrency: "concurrency",
  objective: "objective",
  "precision.weights": "weights in",
  "precision.kv_cache": "kv cache",
  "precision.activations": "activations",
  memory_utilization: "memory utilization",
  engine: "engine",
};

// One field of the form as it says now; null where no words say that.
export const phraseOf = (name, value, hardware) => {
  if (name.startsWith("hardware.")) return `on ${place({ ...hardware, [name.slice(9)]: value })}`;
  const limit = limitOf(name)?.name;
  if (limit) return value === undefined ? `drop the limit on ${limit}` : `${limit} at most ${value} ms`;
  if (value === undefined) return null;
  if (name.endsWith("_tokens")) return `${name.slice(0, -7)} ${value} tokens`;
  return FIELDS[name] ? `${FIELDS[name]} ${value}` : null;
};

export const phraseOfStrategy = (strategy) =>
  `use ${strategy.prefill.replicas ? "disaggregated " : ""}${describe(strategy).replaceAll("one device", "TP1")}`;

// A whole plan as a request of its own; with its strategy where that was chosen by whoever made it.
export const requestOf = (plan, isPinned) => {
  const { model, hardware, workload, precision, policy, serving, strategy } = plan;
  const limit = (name, ms, statistic) => ms && `${name} ${statistic ?? "mean"} at most ${ms} ms`;
  const parts = [
    `${model.name} on ${place(hardware)}`,
    phraseOf("input_tokens", workload.input_tokens),
    phraseOf("output_tokens", workload.output_tokens),
    workload.request_rate
      ? `${workload.request_rate} requests per second`
      : phraseOf("concurrency", workload.concurrency ?? 1),
    ...LIMITS.map((one) => limit(one.name, workload[one.most], workload[one.statistic])),
    phraseOf("objective", workload.objective ?? "latency"),
    ...Object.entries(precision ?? {}).map(([name, format]) => phraseOf(`precision.${name}`, format)),
    policy?.memory_utilization && phraseOf("memory_utilization", policy.memory_utilization),
    serving?.engine && phraseOf("engine", serving.engine),
    isPinned && phraseOfStrategy(strategy),
  ];
  return parts.filter(Boolean).join("; ");
};
