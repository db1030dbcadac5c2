// The conversation as it is shown: what is said, what is answered, what is done beside it.

import { $, button, make } from "./dom.js";
import { put, viewOf } from "./state.js";
import { t } from "./words.js";

const SHORT = 700;

export const toEnd = () => {
  $("talk").scrollTop = $("talk").scrollHeight;
};

export const said = (text) => {
  $("talk").append(make("div", { class: "turn mine" }, make("p", {}, text)));
  toEnd();
};

// A line of the page itself: what was changed beside the conversation.
export const note = (text) => {
  $("talk").append(make("p", { class: "turn note" }, text));
  toEnd();
};

const first = (text) => text.trimStart().split("\n")[0];

// An answer: a plan's as its first lines (`leads`) with the report to open, any other as it is.
export const answered = (place, { text, kind, changes = [] }, leads = [first(text)]) => {
  const isPlan = kind === "plan" && text.length > SHORT;
  place.replaceChildren(
    ...(isPlan
      ? leads.map((line) => make("p", { class: "lead" }, line))
      : [make("pre", { tabindex: 0 }, text.trimEnd())]),
    ...(changes.length && isPlan ? [make("ul", {}, ...changes.map((line) => make("li", {}, line)))] : []),
    ...(isPlan
      ? [make("details", {}, make("summary", {}, t("whole-answer")), make("pre", { tabindex: 0 }, text.trimEnd()))]
      : []),
  );
};

export const bubble = () => {
  const place = make("div", { class: "turn theirs" });
  $("talk").append(place);
  toEnd();
  return place;
};

// What was said in a conversation, shown again.
export const recall = (whole) => {
  $("talk").replaceChildren();
  for (const one of whole.said) {
    if (one.input === "/undo") {
      note(t("undone"));
      continue;
    }
    (one.is_given ? note : said)(one.input);
    answered(bubble(), one);
  }
  if (whole.current) put(viewOf(whole));
};

// Requests to begin with.
export const examples = (place, run) => {
  place.replaceChildren(
    make(
      "div",
      { class: "empty" },
      make("h2", {}, t("empty-title")),
      make("p", { class: "soft" }, t("empty-text")),
      make(
        "ul",
        { class: "examples" },
        ...["example-1", "example-2", "example-3"].map((key) =>
          make(
            "li",
            {},
            button(t(key), () => run(t(key))),
          ),
        ),
      ),
      make("p", { class: "soft" }, t("empty-drop")),
    ),
  );
};
