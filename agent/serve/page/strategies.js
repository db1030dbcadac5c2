// All strategies of the question: the chart, the figures of the one that is chosen, and the list.

import { operate } from "./api.js";
import { chart } from "./chart.js";
import { button, make } from "./dom.js";
import { statedBy } from "./question.js";
import { bytes, digits, ms, range } from "./units.js";
import { t } from "./words.js";
import { busy } from "./work.js";

const TOP = 40;

const speed = (one) => 1000 / one.tpot_ms;

const labelOf = (one) =>
  `${one.summary}: ${t("tpot")} ${ms(one.tpot_ms)}, ${digits(one.output_tokens_per_s_per_gpu)} ${t("per-gpu")}`;

const isOf = (view, one) =>
  JSON.stringify(view.plan?.strategy) === JSON.stringify(one.strategy) &&
  (view.plan.workload.concurrency ?? 1) === one.concurrency;

const facts = (one) => {
  const row = (name, value, ends, write) =>
    value === undefined || value === null ? [] : [[t(name), write(value), range(ends, write) ?? ""]];
  return [
    ...row("ttft", one.ttft_ms, one.ranges?.ttft_ms, ms),
    ...row("tpot", one.tpot_ms, one.ranges?.tpot_ms, ms),
    ...row("end-to-end", one.end_to_end_ms, one.ranges?.end_to_end_ms, ms),
    ...row("tokens-per-s", one.output_tokens_per_s, one.ranges?.dp_scaled_tokens_per_s, digits),
    ...row("per-gpu", one.output_tokens_per_s_per_gpu, one.ranges?.output_tokens_per_s_per_gpu, digits),
    ...row("memory-per-gpu", one.memory_per_gpu_bytes, null, bytes),
    ...row("at-once", one.concurrency, null, digits),
    ...row("gpus-used", one.gpus, null, digits),
  ];
};

const chosenCard = (one, planThis) =>
  make(
    "div",
    { class: "card" },
    make("h3", {}, one.summary),
    make(
      "table",
      {},
      make(
        "tbody",
        {},
        ...facts(one).map(([name, value, between]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, name),
            make("td", { class: "n" }, value),
            make("td", { class: "soft" }, between),
          ),
        ),
      ),
    ),
    ...one.why_not.map((why) => make("p", { class: "bad" }, why)),
    ...one.warnings.map((why) => make("p", { class: "late" }, why)),
    one.feasible ? button(t("plan-this"), planThis, { class: "first" }) : undefined,
  );

const table = (candidates, choose) => {
  const head = ["strategy", "gpus-used", "at-once", "ttft", "tpot", "per-gpu"].map((key) =>
    make("th", { scope: "col" }, t(key)),
  );
  const rows = candidates.map((one, place) =>
    make(
      "tr",
      {},
      make(
        "td",
        {},
        button(one.summary, () => choose(place), { class: "link" }),
      ),
      make("td", { class: "n" }, one.gpus),
      make("td", { class: "n" }, one.concurrency),
      make("td", { class: "n" }, one.ttft_ms ? ms(one.ttft_ms) : "–"),
      make("td", { class: "n" }, one.tpot_ms ? ms(one.tpot_ms) : "–"),
      make("td", { class: "n" }, one.output_tokens_per_s_per_gpu ? digits(one.output_tokens_per_s_per_gpu) : "–"),
    ),
  );
  return make(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": t("all-strategies") },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)),
  );
};

const lost = (families) =>
  families.length
    ? [
        make("h3", {}, t("why-others")),
        make(
          "ul",
          {},
          ...families.map((one) =>
            make(
              "li",
              {},
              make("b", {}, `${one.summary ?? one.family}: `),
              one.reason,
              one.rule ? ` (${one.rule})` : "",
            ),
          ),
        ),
      ]
    : [];

// Whether `one` is ahead of `other` in both figures that are drawn.
const isAhead = (one, other) =>
  speed(one) >= speed(other) &&
  one.output_tokens_per_s_per_gpu >= other.output_tokens_per_s_per_gpu &&
  (speed(one) > speed(other) || one.output_tokens_per_s_per_gpu > other.output_tokens_per_s_per_gpu);

// Draws `answer`, the result of a search, for `view` in so many pixels; `planThis` is called with a candidate.
const draw = (view, answer, room, planThis) => {
  const { candidates } = answer;
  const { objective = "latency" } = view.asked.workload;
  const card = make("div", { "aria-live": "polite" });
  const drawable = candidates
    .map((one, place) => [one, place])
    .filter(([one]) => one.tpot_ms && one.output_tokens_per_s_per_gpu);
  const pick = (one) => card.replaceChildren(chosenCard(one, () => planThis(one, answer)));
  const front = new Set(answer.pareto);
  const now = drawable.find(([one]) => isOf(view, one));
  const ahead = now && answer.pareto.map((place) => candidates[place]).find((one) => isAhead(one, now[0]));
  const points = drawable.map(([one, place]) => ({
    x: speed(one),
    y: one.output_tokens_per_s_per_gpu,
    label: labelOf(one),
    isFront: front.has(place),
    isFeasible: one.feasible,
    isNow: isOf(view, one),
  }));
  const line = answer.pareto
    .map((place) => drawable.findIndex(([, at]) => at === place))
    .filter((place) => place >= 0)
    .sort((a, b) => points[a].x - points[b].x);
  const drawn = points.length ? chart(points, line, room, (place) => pick(drawable[place][0])) : undefined;
  return [
    make(
      "p",
      { class: "soft" },
      t("searched", {
        listed: digits(answer.listed),
        evaluated: digits(answer.evaluated),
        seconds: digits(answer.seconds),
      }),
    ),
    drawn ? drawn.drawn : make("p", {}, t("no-points")),
    make(
      "p",
      { class: "soft" },
      make("span", { class: "dot on-front" }),
      t("on-front"),
      " ",
      make("span", { class: "dot is-now" }),
      t("is-now"),
      " ",
      make("span", { class: "dot fails" }),
      t("fails"),
      " · ",
      t("chart-keys"),
    ),
    ahead
      ? make("p", { class: "notice plain" }, t("below-front", { other: ahead.summary, by: t(`by-${objective}`) }))
      : undefined,
    card,
    make("h3", {}, t("all-strategies")),
    table(candidates, (place) => {
      const at = drawable.findIndex(([, number]) => number === place);
      if (at >= 0) drawn.choose(at);
      else pick(candidates[place]);
      card.scrollIntoView({ block: "nearest" });
    }),
    ...lost(answer.families),
  ].filter(Boolean);
};

// The sheet of strategies; `give` sets fields of what is asked for.
export const strategies = (panel, view, give) => {
  if (!view.asked) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  const place = make("div");
  const planThis = ({ strategy, concurrency, precision, summary }, answer) =>
    give(`${t("plan-this")}: ${summary}`, {
      fields: {
        strategy,
        ...(answer.concurrency_open || answer.request.concurrency_open ? { concurrency } : {}),
        ...(precision ? { precision } : {}),
      },
    });
  const look = async () => {
    await busy(place, async (work) => {
      view.searched = await operate("search", { ...statedBy(view), top: TOP }, work);
      place.replaceChildren(...draw(view, view.searched, panel.clientWidth, planThis));
    });
  };
  panel.replaceChildren(
    make(
      "div",
      { class: "row" },
      button(t("search"), look, { class: "first" }),
      make("p", { class: "soft" }, t("strategies-hint")),
    ),
    place,
  );
  if (view.searched) place.replaceChildren(...draw(view, view.searched, panel.clientWidth, planThis));
};
