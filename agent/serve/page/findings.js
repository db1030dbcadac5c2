// What the rules find in a plan; a rule explained; a broken plan repaired, with its changes.

import { look, operate } from "./api.js";
import { $, button, make } from "./dom.js";
import { inEnglish, t } from "./words.js";
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

const repair = (panel, view, atPlace, give) =>
  atPlace(panel, async (work) => {
    const result = await operate("fix", { proposal: documentOf(view) }, work);
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
    const { violations } = await operate("validate", { plan: result.plan }, work);
    await give(t("fixed", { count: result.fixes.length }), { plan: result.plan }, work, {
      findings: violations,
      fixes: result.fixes,
      changes: [...(result.load_changes ?? []), ...(result.strategy_changes ?? [])],
    });
  });

const documentOf = (view) => view.document ?? view.plan;

// The sheet of findings; they are looked for when it is first opened. `learn` keeps what was found, `give` makes a plan
// the current one.
export const findings = (panel, view, { atPlace, give, learn, undo, canUndo }) => {
  if (!documentOf(view)) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  if (view.findings === null) {
    panel.replaceChildren();
    busy(panel, async (work) =>
      learn(view, { findings: (await operate("validate", { plan: documentOf(view) }, work)).violations }),
    );
    return;
  }
  const broken = !view.valid;
  panel.replaceChildren(
    make(
      "div",
      { class: "row" },
      broken ? button(t("fix"), () => repair(panel, view, atPlace, give), { class: "first", id: "fix" }) : undefined,
      canUndo() ? button(t("undo"), undo, { id: "undo" }) : undefined,
    ),
    ...changes(view),
    ...(view.findings.length
      ? [...inEnglish(), make("ul", { class: "findings" }, ...view.findings.slice(0, MOST_SHOWN).map(finding))]
      : [make("p", { class: "good" }, t("no-findings"))]),
    ...(view.findings.length > MOST_SHOWN
      ? [make("p", { class: "soft" }, t("more-rows", { count: view.findings.length - MOST_SHOWN }))]
      : []),
  );
};
