// The question behind a plan: what was stated stays stated, what was assumed stays open, one field is changed at a time.

import { limitOf } from "./limits.js";

export const assumptionsOf = (view) => view.report?.assumptions ?? view.assumptions ?? [];

const assumedOf = (view) => new Set(assumptionsOf(view).map((one) => one.field));

const hardwareOf = (plan, report) => {
  const open = (report?.assumptions ?? []).find((one) => one.field === "hardware");
  if (!open) return plan.hardware;
  // What was assumed is the number alone, or the kind as well.
  return String(open.value).includes(":") ? undefined : plan.hardware.accelerator;
};

const precisionOf = (plan, assumed) => {
  if (assumed.has("precision")) return undefined;
  const stated = Object.entries(plan.precision).filter(([name]) => !assumed.has(`precision.${name}`));
  return stated.length ? Object.fromEntries(stated) : undefined;
};

// A model by its name where the catalogue has it, else by its config.
const modelOf = (plan, names) =>
  names.has(plan.model.name) ? plan.model.name : { ...plan.model.config, _name_or_path: plan.model.name };

const engineOf = (serving) =>
  serving?.engine ? [serving.engine, serving.engine_version].filter(Boolean).join("==") : undefined;

// The fields of `POST plan` that state what `view` holds and nobody assumed.
export const statedBy = (view, names) => {
  const { plan, report } = view;
  const assumed = assumedOf(view);
  const workload = Object.fromEntries(Object.entries(plan.workload).filter(([name]) => !assumed.has(name)));
  const relaxations = assumed.has("relaxations") ? [] : (plan.policy.relaxations ?? []);
  return defined({
    model: view.question?.model ?? modelOf(plan, names),
    hardware: hardwareOf(plan, report),
    workload,
    precision: precisionOf(plan, assumed),
    memory_utilization: assumed.has("memory_utilization") ? undefined : plan.policy.memory_utilization,
    relaxations: relaxations.length ? relaxations : undefined,
    constraints: plan.policy.constraints,
    engine: engineOf(plan.serving) ?? view.question?.engine,
    disaggregated: view.question?.disaggregated,
    usd_per_gpu_hour: view.question?.usd_per_gpu_hour,
  });
};

const defined = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

// `question` with what one field of the form says now; an emptied field is not stated any more.
export const changed = (question, plan, name, value) => {
  const next = { ...question };
  const state = (key, said) => {
    if (said === undefined) delete next[key];
    else next[key] = said;
  };
  if (name.startsWith("hardware.")) {
    state("hardware", {
      ...plan.hardware,
      ...(typeof question.hardware === "object" ? question.hardware : {}),
      [name.slice(9)]: value,
    });
  } else if (name.startsWith("precision.")) {
    const formats = { ...(typeof question.precision === "object" ? question.precision : {}), [name.slice(10)]: value };
    state("precision", defined(formats));
  } else {
    if (next.workload) next.workload = defined({ ...next.workload, [limitOf(name)?.most ?? name]: undefined });
    state(name, value);
  }
  return next;
};

// Whether a field can only be emptied by leaving out the words that state it.
export const isOfWords = (question) => Boolean(question?.request || question?.brief);

// `question` that only the strategy of `candidate` answers.
export const pinned = (question, candidate, concurrency_open) => {
  const { strategy } = candidate;
  const lines = ["prefill", "decode"].flatMap((phase) => {
    const degrees = strategy[phase];
    const stated = ["tp", "tp_ffn", "pp", "ep", "sp", "attention_dp"].filter((name) => Number.isInteger(degrees[name]));
    const bounds = stated.map((name) => `${phase} ${name} = ${degrees[name]}`);
    return degrees.replicas ? [...bounds, `${phase} replicas = ${degrees.replicas}`] : bounds;
  });
  const whole = strategy.prefill.replicas ? [] : [`replicas = ${strategy.dp}`];
  return defined({
    ...question,
    constraints: [...(unpinned(question.constraints) ?? []), ...lines, ...whole],
    concurrency: concurrency_open ? candidate.concurrency : question.concurrency,
    disaggregated: strategy.prefill.replicas ? true : question.disaggregated,
    precision: candidate.precision ?? question.precision,
  });
};

// The constraints without those that pinned a strategy before.
const PIN = /^(prefill |decode )(tp|tp_ffn|pp|ep|sp|attention_dp) = \d+$|^((prefill|decode) )?replicas = \d+$/;
export const unpinned = (constraints) =>
  constraints?.filter((one) => !PIN.test(typeof one === "string" ? one : (one.words ?? "")));
