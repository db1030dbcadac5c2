// What is asked for as fields: what was stated stays stated, what was assumed stays open, one field is set at a time.

// Names to choose from, as far as they are known.
export const catalogue = { models: [], accelerators: [] };

export const assumptionsOf = (view) => view.report?.assumptions ?? view.assumptions ?? [];

// Times that may be limited: [the name of the field that limits it, the name of its figure in an estimate].
export const LIMITED = [
  ["ttft_ms", "ttft"],
  ["tpot_ms", "tpot"],
  ["end_to_end_ms", "end-to-end"],
];

const defined = (fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

const hardwareOf = ({ hardware }, assumptions) => {
  if (!hardware) return undefined;
  const { accelerator, nodes, gpus_per_node } = hardware;
  const assumed = (field) => assumptions.find((one) => one.field === field);
  const open = assumed("hardware");
  // What was assumed is the number alone, or the kind as well.
  if (open) return String(open.value).includes(":") ? undefined : accelerator;
  const isCounted = assumed("hardware.nodes") && typeof accelerator === "string";
  return isCounted ? `${nodes * gpus_per_node}x${accelerator}` : defined(hardware);
};

const precisionOf = (asked, assumed) => {
  if (assumed.has("precision")) return undefined;
  const stated = Object.entries(asked.precision).filter(([name]) => !assumed.has(`precision.${name}`));
  return stated.length ? Object.fromEntries(stated) : undefined;
};

// A model by its name where the catalogue has it, else by its config.
const modelOf = ({ model }) =>
  catalogue.models.includes(model.name) ? model.name : { ...model.config, _name_or_path: model.name };

const engineOf = (serving) =>
  serving?.engine ? [serving.engine, serving.engine_version].filter(Boolean).join("==") : undefined;

// The fields that state what is asked for in `view` and nobody assumed.
export const statedBy = (view) => {
  const { asked } = view;
  const assumed = new Set(assumptionsOf(view).map((one) => one.field));
  if (asked.concurrency_open) assumed.add("concurrency");
  const { relaxations, memory_utilization, constraints } = asked.policy;
  return defined({
    model: modelOf(asked),
    hardware: hardwareOf(asked, assumptionsOf(view)),
    workload: Object.fromEntries(Object.entries(asked.workload).filter(([name]) => !assumed.has(name))),
    precision: precisionOf(asked, assumed),
    memory_utilization: assumed.has("memory_utilization") ? undefined : memory_utilization,
    relaxations: relaxations?.length && !assumed.has("relaxations") ? relaxations : undefined,
    constraints,
    engine: engineOf(asked.serving),
    disaggregated: asked.disaggregated,
    usd_per_gpu_hour: asked.usd_per_gpu_hour,
  });
};

// What a turn is given where the field `name` of the form says `value` now; an emptied field is left open again.
export const set = (asked, name, value) => {
  const [block, part] = name.split(".");
  if (block === "precision") return { precision: { [part]: value } };
  if (block !== "hardware") return { [name]: value ?? null };
  const hardware = defined({ ...asked.hardware, [part]: value });
  // Without a number of nodes it is the fewest that do.
  return { hardware: part === "nodes" && value === undefined ? hardware.accelerator : hardware };
};
