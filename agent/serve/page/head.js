// The head of a plan: its verdict, what was not acted on, and its figures with their ranges and sources.

import { make } from "./dom.js";
import { assumptionsOf } from "./question.js";
import { describe } from "./strategy.js";
import { bytes, digits, ms, range } from "./units.js";
import { t } from "./words.js";

// The figures of an estimate: [key of its name, value as text, range as text, where it comes from].
export const figuresOf = (estimate) => {
  const { latency, throughput, ranges = {}, cost } = estimate;
  const row = (key, value, write, name) => [
    key,
    write(value),
    range(ranges?.[name], write),
    ranges?.[name] ? "from-run" : "from-run-alone",
  ];
  const rows = [
    row("ttft", latency.ttft_ms, ms, "ttft_ms"),
    row("tpot", latency.tpot_ms, ms, "tpot_ms"),
    row("end-to-end", latency.end_to_end_ms, ms, "end_to_end_ms"),
    row("tokens-per-s", throughput.dp_scaled_tokens_per_s, digits, "dp_scaled_tokens_per_s"),
    row("per-gpu", throughput.output_tokens_per_s_per_gpu, digits, "output_tokens_per_s_per_gpu"),
  ];
  if (!cost) return rows;
  const unit = cost.unit === "usd" ? "cost-usd" : "cost-gpu-s";
  return [
    ...rows,
    [
      unit,
      digits(cost.per_million_output_tokens),
      range(cost.per_million_output_tokens_range, digits),
      cost.unit === "usd" ? "from-price" : "from-run-alone",
    ],
  ];
};

const sources = (estimate) => {
  const { calibration, load, cost, memory } = estimate;
  const rows = [
    [
      t("load"),
      load && `${load.load}; ${t("requests", { count: load.requests })}${load.saturated ? `; ${t("saturated")}` : ""}`,
    ],
    [
      t("times"),
      calibration &&
        `${calibration.profile}${calibration.error_band_pct ? ` (± ${digits(calibration.error_band_pct)}%)` : ""}`,
    ],
    [t("ranges"), calibration?.note],
    [t("price"), cost?.price_source],
    [t("usable"), memory?.usable_from && `${bytes(memory.per_device[0]?.usable_bytes ?? 0)}: ${memory.usable_from}`],
    [t("check-with"), estimate.benchmark?.command],
    ...(estimate.notes ?? []).map((note) => [t("note"), note]),
  ];
  return rows.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]);
};

const figures = (estimate) => [
  make(
    "dl",
    { class: "figures" },
    ...figuresOf(estimate).map(([key, value, between, source]) =>
      make(
        "div",
        { class: "figure" },
        make("dt", {}, t(key)),
        make(
          "dd",
          {},
          make("b", {}, value),
          make("span", { class: "soft" }, between ?? t("no-range")),
          make("span", { class: "soft source" }, t(source)),
        ),
      ),
    ),
  ),
  make(
    "details",
    { class: "sources" },
    make("summary", {}, t("where-from")),
    make("dl", { class: "facts" }, ...sources(estimate)),
  ),
];

export const errorsIn = (count) => (count === 1 ? t("not-valid-one") : t("not-valid", { count }));

const verdictOf = (view) => {
  const errors = (view.findings ?? []).filter((one) => one.severity === "error").length;
  if (!view.plan) return ["bad", t("no-plan")];
  if (view.valid) return ["good", t("valid")];
  return ["bad", errors ? errorsIn(errors) : t("not-valid-plain")];
};

// "TP2 · 2 of 2 GPUs · Llama-3.1-8B on 1 × 2 h100-sxm", as far as a document says so.
const subject = (view) => {
  const { plan } = view;
  if (!plan) return view.infeasible?.reason ?? "";
  const { hardware, strategy, model } = plan;
  const kind = typeof hardware?.accelerator === "string" ? hardware.accelerator : hardware?.accelerator?.id;
  const words = [
    strategy && describe(strategy),
    model?.name,
    hardware && `${hardware.nodes} × ${hardware.gpus_per_node} ${kind}`,
  ];
  return words.filter(Boolean).map(String).join(" · ");
};

const workloadOf = (plan) => {
  const { workload, precision } = plan ?? {};
  if (!workload) return "";
  const load = t("workload", {
    input: digits(workload.input_tokens),
    output: digits(workload.output_tokens),
    concurrency: digits(workload.concurrency ?? 1),
    objective: t(`for-${workload.objective ?? "latency"}`),
  });
  return precision ? `${load} · ${[...new Set(Object.values(precision))].join("/")}` : load;
};

const list = (title, lines, kind) =>
  lines?.length
    ? make(
        "div",
        { class: `notice ${kind}` },
        make("b", {}, title),
        make("ul", {}, ...lines.map((line) => make("li", {}, line))),
      )
    : undefined;

const infeasible = (found) => {
  if (!found) return undefined;
  const { needs } = found;
  const least =
    needs && [needs.gpus && `${digits(needs.gpus)} GPUs`, needs.accelerator, needs.note].filter(Boolean).join(", ");
  return list(
    t("what-would-do"),
    [
      least && t("least", { what: least }),
      found.rule && t("binds", { rule: found.rule }),
      ...(found.other_ways ?? []),
    ].filter(Boolean),
    "plain",
  );
};

// That a model's name was mended or completed.
const namesReadAs = (view) =>
  assumptionsOf(view).filter((one) => one.field === "model" && one.value).map((one) => one.reason);

// The verdict with its subject, on one line.
export const oneLine = (view) => `${verdictOf(view)[1]}: ${subject(view)}`;

export const head = (view) => {
  const [kind, verdict] = verdictOf(view);
  return make(
    "div",
    {},
    make("h2", { class: "verdict" }, make("span", { class: `badge ${kind}` }, verdict), " ", subject(view)),
    make("p", { class: "soft" }, workloadOf(view.plan)),
    list(t("not-acted-on"), [...(view.report?.not_acted_on ?? []), ...(view.report?.left_out ?? [])], "late"),
    list(t("readings"), [...namesReadAs(view), ...(view.report?.readings ?? view.readings ?? [])], "plain"),
    list(t("caveats"), view.caveats, "late"),
    infeasible(view.infeasible),
    ...(view.estimate
      ? figures(view.estimate)
      : view.plan
        ? [make("p", { class: "soft" }, view.why_not_estimated ?? t("no-estimate"))]
        : []),
    view.report?.explanation && view.plan ? make("p", { class: "why" }, view.report.explanation) : undefined,
  );
};
