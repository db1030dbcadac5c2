// How the page looks and speaks: light or dark, English or Chinese, and the keys that do things.

import { $, make } from "./dom.js";
import { languageNow, onLanguage, speak, t } from "./words.js";

const KEPT = "shardwright-theme";
const THEMES = ["system", "light", "dark"];
const SIGNS = { system: "◐", light: "☀", dark: "☾" };

const put = (name) => {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  $("theme").textContent = SIGNS[name];
  const label = t("theme-now", { name: t(`theme-${name}`) });
  $("theme").setAttribute("aria-label", label);
  $("theme").title = label;
};

const themeNow = () => (THEMES.includes(localStorage.getItem(KEPT)) ? localStorage.getItem(KEPT) : "system");

const nextTheme = () => {
  const name = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
  localStorage.setItem(KEPT, name);
  put(name);
};

const otherLanguage = () => speak(languageNow() === "en" ? "zh" : "en");

const label = () => {
  $("language").textContent = languageNow() === "en" ? "中文" : "English";
  $("language").lang = languageNow() === "en" ? "zh" : "en";
};

// `keys`: by key, [name of what it does, what to run]. They do nothing while something is being written.
export const settings = (keys) => {
  $("theme").addEventListener("click", nextTheme);
  $("language").addEventListener("click", otherLanguage);
  const all = {
    ...keys,
    t: ["theme", nextTheme],
    l: ["language", otherLanguage],
    "?": ["shortcuts", () => $("help").showModal()],
  };
  const list = () =>
    $("keys").replaceChildren(
      ...[
        ["Enter", "key-send"],
        ["Shift+Enter", "key-line"],
        ["Escape", "key-stop"],
        ["← →", "key-walk"],
        ...Object.entries(all).map(([key, [name]]) => [key, name]),
      ].flatMap(([key, name]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, t(name))]),
    );
  $("help-open").addEventListener("click", () => $("help").showModal());
  for (const one of document.querySelectorAll("dialog .close"))
    one.addEventListener("click", () => one.closest("dialog").close());
  addEventListener("keydown", (event) => {
    const isWriting = event.target.matches?.("input, textarea, select") || document.querySelector("dialog[open]");
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !(event.key in all)) return;
    event.preventDefault();
    all[event.key][1]();
  });
  onLanguage(() => {
    put(themeNow());
    label();
    list();
  });
  put(themeNow());
  label();
  list();
};
