// The head of a plan: its verdict, what was not acted on, and its figures with their ranges and sources.

import { make } from "./dom.js";
import { LIMITED, assumptionsOf } from "./question.js";
import { describe } from "./strategy.js";
import { bytes, digits, ms, range } from "./units.js";
import { t } from "./words.js";

// A limit beside its figure: [how it stands, the text]; `far` is the end of the range that may miss it.
const limitOf = (statistic, figure, far, bound, write, isAtLeast = false) => {
  const misses = (value) => (isAtLeast ? value < bound : value > bound);
  const kind = misses(figure) ? "missed" : far === undefined || misses(far) ? "may-be-missed" : "held";
  const key = isAtLeast ? "of-at-least" : "of-at-most";
  const text = t(key, { statistic, figure: write(figure), bound: write(bound) });
  return [kind, kind === "held" ? text : `${text} · ${t(kind)}`];
};

// The limits of a load by the names of their figures. What a percentile may come to is carried over from the mean.
const limitsOf = (workload, { latency, throughput, ranges }) => {
  const found = {};
  for (const [name] of LIMITED) {
    const bound = workload?.[`${name}_max`];
    const statistic = workload?.[`${name.replace("_ms", "")}_statistic`] ?? "mean";
    const figure = statistic === "mean" ? latency[name] : latency.percentiles?.[name]?.[statistic];
    if (typeof bound !== "number" || figure === undefined) continue;
    const far = ranges?.[name] && (ranges[name][1] * figure) / latency[name];
    found[name] = limitOf(statistic, figure, far ?? undefined, bound, ms);
  }
  const least = workload?.min_tokens_per_second;
  const rate = "dp_scaled_tokens_per_s";
  if (typeof least === "number")
    found[rate] = limitOf("", throughput[rate], ranges?.[rate]?.[0], least, digits, true);
  return found;
};

// The figures of an estimate: [key of its name, value as text, range as text, where it comes from, its limit].
export const figuresOf = (estimate, workload) => {
  const { latency, throughput, ranges = {}, cost } = estimate;
  const limits = limitsOf(workload, estimate);
  const row = (key, value, write, name) => [
    key,
    write(value),
    range(ranges?.[name], write),
    ranges?.[name] ? "from-run" : "from-run-alone",
    limits[name],
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

const sources = (estimate, limits = []) => {
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
    ...limits.map((line) => [t("limit"), line]),
    ...(estimate.notes ?? []).map((note) => [t("note"), note]),
  ];
  return rows.filter(([, text]) => text).flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]);
};

const figures = ({ estimate, plan, report }) => [
  make(
    "dl",
    { class: "figures" },
    ...figuresOf(estimate, plan?.workload).map(([key, value, between, source, limit]) =>
      make(
        "div",
        { class: "figure" },
        make("dt", {}, t(key)),
        make(
          "dd",
          {},
          make("b", {}, value),
          limit && make("span", { class: `limit ${limit[0]}` }, limit[1]),
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
    make("dl", { class: "facts" }, ...sources(estimate, report?.limits)),
  ),
];

export const errorsIn = (count) => (count === 1 ? t("not-valid-one") : t("not-valid", { count }));

const verdictOf = (view) => {
  const errors = (view.findings ?? []).filter((one) => one.severity === "error").length;
  if (!view.plan && !view.document) return ["bad", t("no-plan")];
  if (view.valid) return ["good", t("valid")];
  return ["bad", errors ? errorsIn(errors) : t("not-valid-plain")];
};

// "TP2 · 2 of 2 GPUs · Llama-3.1-8B on 1 × 2 h100-sxm", as far as a document says so.
const subject = (view) => {
  const { plan } = view;
  if (!plan) return view.infeasible?.reason ?? view.name ?? "";
  const { hardware, strategy, model } = plan;
  const kind = typeof hardware?.accelerator === "string" ? hardware.accelerator : hardware?.accelerator?.id;
  const words = [
    strategy && describe(strategy),
    model?.name,
    hardware && `${hardware.nodes} × ${hardware.gpus_per_node} ${kind}`,
  ];
  return words.filter(Boolean).map(String).join(" · ");
};

const workloadOf = (asked) => {
  const { workload, precision } = asked ?? {};
  if (!workload) return "";
  const load = t("workload", {
    input: digits(workload.input_tokens),
    output: digits(workload.output_tokens),
    concurrency: digits(workload.concurrency ?? 1),
    objective: t(`for-${workload.objective ?? "latency"}`),
  });
  const rate = workload.request_rate && t("rate", { rate: digits(workload.request_rate) });
  const formats = precision && [...new Set(Object.values(precision))].join("/");
  return [rate, load, formats].filter(Boolean).join(" · ");
};

// What a plan made unasked of degrees that were asked for.
const notKept = ({ report }) =>
  report?.why_not_kept && report.stated
    ? t("not-kept", { asked: report.stated.summary, why: report.why_not_kept })
    : undefined;

// What a text says of the options of a command, as the page has them.
export const inPage = (text) =>
  text?.replace(/(?:--engine|engine:) (\w+)/g, (_, name) => t("choose-engine", { name, field: t("field-engine") }));

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

// What each of the strategies does that the question weighs, and which is ahead.
const weighed = (found) => {
  const figured = (one) =>
    [
      one.ttft_ms === undefined ? "" : `${t("ttft")} ${ms(one.ttft_ms)}`,
      one.tpot_ms === undefined ? "" : `${t("tpot")} ${ms(one.tpot_ms)}`,
      one.output_tokens_per_s === undefined ? "" : `${digits(one.output_tokens_per_s)} ${t("tokens-per-s")}`,
      one.reason,
    ].filter(Boolean);
  return found ? [...found.strategies.map((one) => `${one.summary}: ${figured(one).join(", ")}`), found.verdict].filter(Boolean) : [];
};

// The verdict with its subject, on one line.
export const oneLine = (view) => `${verdictOf(view)[1]}: ${subject(view)}`;

// The first lines of what is told of a view.
export const leads = (view) => [notKept(view), oneLine(view)].filter(Boolean);

export const head = (view) => {
  const [kind, verdict] = verdictOf(view);
  return make(
    "div",
    {},
    make("h2", { class: "verdict" }, make("span", { class: `badge ${kind}` }, verdict), " ", subject(view)),
    make("p", { class: "soft" }, workloadOf(view.plan ?? view.asked)),
    list(t("not-as-asked"), [notKept(view)].filter(Boolean), "late"),
    list(t("not-acted-on"), view.report?.not_acted_on, "late"),
    list(t("weighed"), weighed(view.report?.compared), "plain"),
    list(t("left-out"), view.report?.left_out, "late"),
    list(t("readings"), [...namesReadAs(view), ...(view.report?.readings ?? view.readings ?? [])], "plain"),
    list(t("caveats"), view.caveats, "late"),
    infeasible(view.infeasible),
    ...(view.estimate
      ? figures(view)
      : view.plan || view.document
        ? [make("p", { class: "soft" }, view.why_not_estimated ?? t("no-estimate"))]
        : []),
    view.report?.explanation && view.plan ? make("p", { class: "why" }, make("b", {}, `${t("why-this")}: `), inPage(view.report.explanation)) : undefined,
  );
};
