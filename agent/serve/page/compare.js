// The plan beside another one: what differs, which is better.

import { operate } from "./api.js";
import { button, make, option } from "./dom.js";
import { errorsIn } from "./head.js";
import { describe } from "./strategy.js";
import { inUnit } from "./units.js";
import { inEnglish, t } from "./words.js";
import { busy } from "./work.js";

const cell = (text, wins) =>
  make(
    "td",
    { class: `n${wins ? " wins" : ""}` },
    text,
    wins ? make("span", { class: "unseen" }, ` (${t("better")})`) : undefined,
  );

const side = (one, letter) =>
  make(
    "th",
    { scope: "col" },
    `${letter}: ${one.summary}`,
    make("span", { class: "soft" }, `${one.gpus} GPUs · ${one.valid ? t("valid") : errorsIn(one.errors)}`),
  );

const plain = (value) => (value === null || value === undefined ? "–" : String(value));

const table = (found) =>
  make(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": t("compare") },
    make(
      "table",
      { class: "compared" },
      make(
        "thead",
        {},
        make("tr", {}, make("td", {}), side(found.a, "A"), side(found.b, "B"), make("th", { scope: "col" }, "B / A")),
      ),
      make(
        "tbody",
        {},
        ...found.changes.map((one) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, one.what),
            make("td", { class: "n" }, plain(one.a)),
            make("td", { class: "n" }, plain(one.b)),
            make("td", {}),
          ),
        ),
        ...found.figures.map((one) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, one.title),
            cell(inUnit(one.a, one.unit), one.better === "a"),
            cell(inUnit(one.b, one.unit), one.better === "b"),
            make("td", { class: "n soft" }, one.ratio === undefined ? "" : `${one.ratio.toPrecision(3)}×`),
          ),
        ),
      ),
    ),
  );

const verdict = (found) => {
  if (found.better === "a" || found.better === "b")
    return t("which-better", {
      which: found.better.toUpperCase(),
      summary: found[found.better].summary,
      objective: t(`for-${found.objective ?? "latency"}`),
    });
  if (found.better === "undecided") return t("not-told-apart");
  return found.better === "same" ? t("as-good") : t("not-comparable");
};

export const draw = (found) => [
  make("p", { class: "verdict" }, verdict(found)),
  ...inEnglish(),
  ...found.verdict.map((line) => make("p", { class: "soft" }, line)),
  ...(found.question.length
    ? [
        make(
          "div",
          { class: "notice late" },
          make("b", {}, t("asked-differently")),
          make(
            "ul",
            {},
            ...found.question.map((one) => make("li", {}, `${one.what}: ${plain(one.a)} | ${plain(one.b)}`)),
          ),
        ),
      ]
    : []),
  ...["a", "b"].flatMap((letter) =>
    (found[letter].caveats ?? []).map((line) => make("p", { class: "late" }, `${letter.toUpperCase()}: ${line}`)),
  ),
  table(found),
];

// The sheet of comparisons. `before` are views that were shown; `take` shows a plan in place of the current one.
export const compare = (panel, view, { before, take, learn }) => {
  if (!view.plan) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  const place = make("div", { "aria-live": "polite" });
  const kept = view.other ?? { words: "", earlier: "" };
  const words = make("textarea", { id: "other", rows: 3, placeholder: t("compare-hint") }, kept.words);
  const run = (b, other) =>
    busy(place, async (work) =>
      learn(view, { compared: await operate("compare", { a: view.plan, b }, work), instead: undefined, other }),
    );
  const earlier = before()
    .filter((one) => one.plan && one.plan !== view.plan)
    .reverse();
  const choice = make(
    "select",
    { id: "earlier" },
    option("", t("an-earlier-plan")),
    ...earlier.map((one, at) => option(at, describe(one.plan.strategy), String(at) === kept.earlier)),
  );
  choice.addEventListener(
    "change",
    () => choice.value !== "" && run(earlier[choice.value].plan, { words: "", earlier: choice.value }),
  );
  panel.replaceChildren(
    make(
      "form",
      {
        on: {
          submit: (event) => {
            event.preventDefault();
            if (words.value.trim()) run(words.value.trim(), { words: words.value, earlier: "" });
          },
        },
      },
      make("label", { for: "other" }, t("compare-with")),
      words,
      make(
        "div",
        { class: "row" },
        make("button", { type: "submit", class: "first" }, t("compare")),
        ...(earlier.length ? [make("label", { class: "unseen", for: "earlier" }, t("an-earlier-plan")), choice] : []),
      ),
    ),
    place,
  );
  if (view.compared)
    place.replaceChildren(
      ...draw(view.compared),
      ...(view.instead ? [button(t("show-instead"), () => take(...view.instead))] : []),
    );
};
