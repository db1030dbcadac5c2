// The question as a form: what was assumed, with the reason, and what was stated. A changed field plans again.

import { make, option } from "./dom.js";
import { inPage } from "./head.js";
import { LIMITED, assumptionsOf, catalogue } from "./question.js";
import { inEnglish, t, tOr } from "./words.js";

const FORMATS = ["bf16", "fp16", "fp8", "int8", "int4", "fp4"];
const WHOLE = { type: "number", min: 1, step: 1 };
const LIMIT = { type: "number", min: 0, step: "any" };

// Each field: its name in assumptions, its value in what is asked for, and how it is entered.
const FIELDS = [
  ["model", (asked) => asked.model.name, { type: "text", list: "model-names" }],
  ["hardware.accelerator", (asked) => asked.hardware?.accelerator, { type: "text", list: "accelerator-names" }],
  ["hardware.nodes", (asked) => asked.hardware?.nodes, WHOLE],
  ["hardware.gpus_per_node", (asked) => asked.hardware?.gpus_per_node, WHOLE],
  ["input_tokens", (asked) => asked.workload.input_tokens, WHOLE],
  ["output_tokens", (asked) => asked.workload.output_tokens, WHOLE],
  ["concurrency", (asked) => asked.workload.concurrency ?? 1, WHOLE],
  ...LIMITED.map(([name]) => [name, (asked) => asked.workload[`${name}_max`], LIMIT]),
  ["objective", (asked) => asked.workload.objective, ["latency", "throughput", "cost"]],
  ["precision.weights", (asked) => asked.precision.weights, FORMATS],
  ["precision.kv_cache", (asked) => asked.precision.kv_cache, FORMATS],
  ["precision.activations", (asked) => asked.precision.activations, FORMATS],
  ["memory_utilization", (asked) => asked.policy.memory_utilization, { type: "number", min: 0.01, max: 1, step: 0.01 }],
  ["engine", (asked) => asked.serving?.engine, ["", "vllm", "sglang", "trtllm", "none"]],
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
  const value = read(view.asked);
  const statistic = value && view.asked.workload[`${name.replace("_ms", "")}_statistic`];
  const id = `field-${name}`;
  const attributes = { id, name, "aria-describedby": `${id}-why` };
  const choices = Array.isArray(kind)
    ? [...new Set([...kind, ...(value === undefined || value === null ? [] : [String(value)])])]
    : undefined;
  const element = choices
    ? make(
        "select",
        attributes,
        ...choices.map((one) =>
          option(one, one ? tOr(`choice-${one}`, one) : t("not-stated"), one === String(value ?? "")),
        ),
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
    ? [make("span", { class: "tag" }, t("assumed")), " ", inPage(assumed.reason)]
    : [value === undefined || value === null || value === "" ? t("not-stated") : t("stated")];
  return make(
    "div",
    { class: `field${assumed ? " assumed" : ""}` },
    make("label", { for: id }, `${tOr(`field-${name}`, name)}${statistic ? ` · ${statistic}` : ""}`),
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
export const requestForm = (panel, view, change) => {
  if (!view.asked) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  const reasons = reasonsOf(view);
  const known = new Set(FIELDS.map(([name]) => name));
  const other = assumptionsOf(view).filter((one) => !known.has(one.field) && !(one.field in WHOLES));
  // A card of one's own has no name to change.
  const isOwn = typeof view.asked.hardware?.accelerator === "object";
  const rows = FIELDS.filter(([name]) => name !== "hardware.accelerator" || !isOwn).map((field) =>
    fieldOf(field, view, reasons.get(field[0]), change),
  );
  const first = (one) => (one.classList.contains("assumed") ? 0 : 1);
  rows.sort((a, b) => first(a) - first(b));
  const kept = beingWritten(panel);
  panel.replaceChildren(
    make("p", { class: "soft" }, t("request-hint")),
    ...inEnglish(),
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
                inPage(one.reason),
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
