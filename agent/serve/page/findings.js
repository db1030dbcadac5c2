// What the rules find in a plan; a rule explained; a broken plan repaired, with its changes.

import { look, operate } from "./api.js";
import { $, button, make } from "./dom.js";
import { t } from "./words.js";
import { busy, lineOf } from "./work.js";

const MOST_SHOWN = 200;
const MOST_PATCH = 4000;

const explain = async (id) => {
  const [title, text] = [$("rule-title"), $("rule-text")];
  title.textContent = id;
  text.replaceChildren(make("p", { class: "doing" }, t("working")));
  $("rule").showModal();
  try {
    const rule = await look("rules", { id });
    title.textContent = `${rule.id} ${rule.name}`;
    const found = rule.bad?.found?.[0]?.message;
    text.replaceChildren(
      make("p", {}, rule.requirement),
      make("p", { class: "soft" }, rule.rationale),
      make(
        "dl",
        { class: "facts" },
        ...[
          [t("to-mend"), rule.remedy],
          [t("taught-in"), rule.taught_in],
          [t("example"), found],
        ]
          .filter(([, value]) => value)
          .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]),
      ),
    );
  } catch (error) {
    text.replaceChildren(make("p", { class: "error" }, lineOf(error)));
  }
};

const places = (one) =>
  [one.path, ...one.nodes.slice(0, 4), ...one.edges.slice(0, 2).map((edge) => edge.join(" → "))]
    .filter(Boolean)
    .join(" · ");

const finding = (one) =>
  make(
    "li",
    { class: `finding at-${one.severity}` },
    button(one.rule, () => explain(one.rule), { class: "link", "aria-label": t("explain-rule", { rule: one.rule }) }),
    make("span", { class: `tag ${one.severity === "error" ? "bad" : "late"}` }, t(one.severity)),
    make("p", {}, one.message),
    make("p", { class: "soft" }, places(one)),
    one.remedy ? make("p", { class: "soft" }, `${t("to-mend")}: ${one.remedy}`) : undefined,
  );

const patchOf = (fix) =>
  JSON.stringify(
    fix.patch.filter((step) => step.op !== "test"),
    null,
    1,
  ).slice(0, MOST_PATCH);

const changes = (view) =>
  view.fixes?.length
    ? [
        make("h3", {}, t("changes")),
        make(
          "ol",
          { class: "changes" },
          ...view.fixes.map((fix) =>
            make(
              "li",
              {},
              button(fix.rule, () => explain(fix.rule), { class: "link" }),
              ` ${fix.description}`,
              make("details", {}, make("summary", {}, "JSON Patch"), make("pre", { tabindex: 0 }, patchOf(fix))),
            ),
          ),
        ),
      ]
    : [];

// The view that `fix` makes of a broken plan.
const fixed = (view, result, findings, estimate) => ({
  ...view,
  plan: result.plan ?? view.plan,
  valid: result.valid,
  findings,
  estimate,
  fixes: result.fixes,
  isPinned: true,
  version: undefined,
  base: undefined,
  words: undefined,
  searched: undefined,
  compared: undefined,
  changes: result.strategy_changes ?? [],
});

const repair = (panel, view, put) =>
  busy(panel, async (work) => {
    const result = await operate(
      "fix",
      { proposal: view.plan, ...(view.question?.request ? { request: view.question.request } : {}) },
      work,
    );
    if (!result.plan) {
      panel.prepend(
        make(
          "p",
          { class: "error", role: "alert" },
          result.infeasible?.reason ?? result.unfixed?.[0]?.message ?? t("not-fixed"),
        ),
      );
      return;
    }
    const [report, estimate] = [
      await operate("validate", { plan: result.plan }, work),
      result.valid ? await operate("estimate", { plan: result.plan }, work) : null,
    ];
    put(fixed(view, result, report.violations, estimate));
  });

// The sheet of findings; they are looked for when it is first opened. `learn` keeps what was found.
export const findings = (panel, view, { put, learn, undo, canUndo }) => {
  if (!view.plan) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  if (view.findings === null) {
    panel.replaceChildren();
    busy(panel, async (work) =>
      learn(view, { findings: (await operate("validate", { plan: view.plan }, work)).violations }),
    );
    return;
  }
  const broken = !view.valid;
  panel.replaceChildren(
    make(
      "div",
      { class: "row" },
      broken ? button(t("fix"), () => repair(panel, view, put), { class: "first", id: "fix" }) : undefined,
      canUndo() ? button(t("undo"), undo, { id: "undo" }) : undefined,
    ),
    ...changes(view),
    ...(view.findings.length
      ? [make("ul", { class: "findings" }, ...view.findings.slice(0, MOST_SHOWN).map(finding))]
      : [make("p", { class: "good" }, t("no-findings"))]),
    ...(view.findings.length > MOST_SHOWN
      ? [make("p", { class: "soft" }, t("more-rows", { count: view.findings.length - MOST_SHOWN }))]
      : []),
  );
};
