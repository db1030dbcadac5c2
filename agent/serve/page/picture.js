// The plan as `show --html` draws it, in a frame of its own that may run nothing but its own script.

import { operate } from "./api.js";
import { make } from "./dom.js";
import { inEnglish, languageNow, t } from "./words.js";
import { busy } from "./work.js";

// Links within a page of a frame are those of the page around it, unless they say that they are not.
const withOwnLinks = (html) =>
  html.replace(/<nav[\s\S]*?<\/nav>/, (nav) => nav.replaceAll('href="#', 'href="about:srcdoc#'));

export const picture = (panel, view) => {
  const plan = view.plan ?? view.document;
  if (!plan) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  panel.replaceChildren();
  panel.shows = view;
  const frame = make("iframe", {
    id: "picture",
    sandbox: "allow-scripts",
    title: t("picture"),
    referrerpolicy: "no-referrer",
  });
  busy(panel, async (work) => {
    const language = languageNow();
    view.pages ??= {};
    view.pages[language] ??= withOwnLinks((await operate("show", { plan, form: "html", language }, work)).text);
    if (panel.shows !== view) return;
    frame.srcdoc = view.pages[language];
    panel.replaceChildren(...inEnglish(), frame);
  });
};
