// The question as a form: what was assumed, with the reason, and what was stated. A changed field plans again.

import { make, option } from "./dom.js";
import { LIMITS } from "./limits.js";
import { assumptionsOf } from "./question.js";
import { t, tOr } from "./words.js";

const FORMATS = ["bf16", "fp16", "fp8", "int8", "int4", "fp4"];
const WHOLE = { type: "number", min: 1, step: 1 };
const LIMIT = { type: "number", min: 0, step: "any" };

// Each field: its name in assumptions, its value in a plan, and how it is entered.
const FIELDS = [
  ["model", (plan) => plan.model.name, { type: "text", list: "model-names" }],
  [
    "hardware.accelerator",
    (plan) => (typeof plan.hardware.accelerator === "string" ? plan.hardware.accelerator : undefined),
    { type: "text", list: "accelerator-names" },
  ],
  ["hardware.nodes", (plan) => plan.hardware.nodes, WHOLE],
  ["hardware.gpus_per_node", (plan) => plan.hardware.gpus_per_node, WHOLE],
  ["input_tokens", (plan) => plan.workload.input_tokens, WHOLE],
  ["output_tokens", (plan) => plan.workload.output_tokens, WHOLE],
  ["concurrency", (plan) => plan.workload.concurrency ?? 1, WHOLE],
  ...LIMITS.map(({ field, most }) => [field, (plan) => plan.workload[most], LIMIT]),
  ["objective", (plan) => plan.workload.objective, ["latency", "throughput", "cost"]],
  ["precision.weights", (plan) => plan.precision.weights, FORMATS],
  ["precision.kv_cache", (plan) => plan.precision.kv_cache, FORMATS],
  ["precision.activations", (plan) => plan.precision.activations, FORMATS],
  ["memory_utilization", (plan) => plan.policy.memory_utilization, { type: "number", min: 0.01, max: 1, step: 0.01 }],
  ["engine", (plan) => plan.serving?.engine, ["", "vllm", "sglang", "trtllm", "none"]],
];
// An assumption about all of these is one about each.
const WHOLES = {
  hardware: ["hardware.nodes", "hardware.gpus_per_node"],
  precision: ["precision.weights", "precision.kv_cache", "precision.activations"],
};

const reasonsOf = (view) => {
  const reasons = new Map();
  for (const one of assumptionsOf(view))
    for (const name of [one.field, ...(WHOLES[one.field] ?? [])]) reasons.set(name, one);
  return reasons;
};

const entered = (element) => {
  if (element.value === "") return undefined;
  return element.type === "number" ? Number(element.value) : element.value.trim();
};

const fieldOf = ([name, read, kind], view, assumed, change) => {
  const value = read(view.plan) ?? (name === "engine" ? (assumed?.value ?? view.question?.engine) : undefined);
  const id = `field-${name}`;
  const attributes = { id, name, "aria-describedby": `${id}-why` };
  const choices = Array.isArray(kind)
    ? [...new Set([...kind, ...(value === undefined || value === null ? [] : [String(value)])])]
    : undefined;
  const element = choices
    ? make(
        "select",
        attributes,
        ...choices.map((one) => option(one, one || t("not-stated"), one === String(value ?? ""))),
      )
    : make("input", { ...attributes, ...kind, value: value ?? "" });
  element.addEventListener("input", () => {
    element.isSent = false;
  });
  element.addEventListener("change", () => {
    element.isSent = element.reportValidity();
    if (element.isSent) change(name, entered(element));
  });
  const why = assumed
    ? [make("span", { class: "tag" }, t("assumed")), " ", assumed.reason]
    : [value === undefined || value === null || value === "" ? t("not-stated") : t("stated")];
  return make(
    "div",
    { class: `field${assumed ? " assumed" : ""}` },
    make("label", { for: id }, tOr(`field-${name}`, name)),
    element,
    make("p", { class: "soft", id: `${id}-why` }, ...why),
  );
};

const names = (id, values) => make("datalist", { id }, ...values.map((one) => option(one)));

// Where one writes while the form is drawn anew; what is called afterwards goes on there.
const beingWritten = (panel) => {
  const element = panel.contains(document.activeElement) ? document.activeElement : undefined;
  const isChanged = element?.tagName === "INPUT" && element.value !== element.defaultValue && !element.isSent;
  return () => {
    const same = element?.id && document.getElementById(element.id);
    if (!same) return;
    same.focus();
    if (isChanged) same.value = element.value;
  };
};

// Draws the form of a view. `change` is called with the name of a field and what it says now.
export const requestForm = (panel, view, { change, catalogue }) => {
  if (!view.plan?.workload || !view.plan.hardware || !view.plan.precision || !view.plan.policy) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  const reasons = reasonsOf(view);
  const known = new Set(FIELDS.map(([name]) => name));
  const other = assumptionsOf(view).filter((one) => !known.has(one.field) && !(one.field in WHOLES));
  const rows = FIELDS.filter(([name, read]) => name !== "hardware.accelerator" || read(view.plan) !== undefined).map(
    (field) => fieldOf(field, view, reasons.get(field[0]), change),
  );
  const first = (one) => (one.classList.contains("assumed") ? 0 : 1);
  rows.sort((a, b) => first(a) - first(b));
  const kept = beingWritten(panel);
  panel.replaceChildren(
    make("p", { class: "soft" }, t("request-hint")),
    make("form", { class: "fields", on: { submit: (event) => event.preventDefault() } }, ...rows),
    ...(other.length
      ? [
          make("h3", {}, t("also-assumed")),
          make(
            "ul",
            {},
            ...other.map((one) =>
              make(
                "li",
                {},
                make(
                  "b",
                  {},
                  `${tOr(`field-${one.field}`, one.field)}${one.value === null ? "" : ` ${JSON.stringify(one.value)}`}: `,
                ),
                one.reason,
              ),
            ),
          ),
        ]
      : []),
    names("model-names", catalogue.models),
    names("accelerator-names", catalogue.accelerators),
  );
  kept();
};
