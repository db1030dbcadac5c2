// What the page says, in English and Chinese: the texts of strings.json, put where data-t names them.

import { make } from "./dom.js";

const texts = await (await fetch(new URL("strings.json", import.meta.url))).json();
const KEPT = "shardwright-language";
const watchers = [];

const first = () => {
  const kept = localStorage.getItem(KEPT);
  if (kept in texts) return kept;
  return (navigator.languages ?? [navigator.language]).find((one) => /^(en|zh)/.test(one))?.slice(0, 2) ?? "en";
};

let language = first();

export const languageNow = () => language;

// The text called `key`; `{name}` in it is what `values` has by that name.
export const t = (key, values = {}) => {
  const text = texts[language][key];
  if (text === undefined) throw new Error(`strings.json has no ${key}`);
  return text.replace(/\{(\w+)\}/g, (whole, name) => String(values[name] ?? whole));
};

// The text called `key`, or `other` where there is none: for names that a server gives.
export const tOr = (key, other) => texts[language][key] ?? other;

// That what follows is in English, where the page is not.
export const inEnglish = () => (t("in-english") ? [make("p", { class: "soft" }, t("in-english"))] : []);

export const onLanguage = (run) => watchers.push(run);

export const translate = (root = document) => {
  for (const one of root.querySelectorAll("[data-t]")) one.textContent = t(one.dataset.t);
  for (const one of root.querySelectorAll("[data-t-label]")) {
    one.setAttribute("aria-label", t(one.dataset.tLabel));
    one.title = t(one.dataset.tLabel);
  }
  for (const one of root.querySelectorAll("[data-t-placeholder]")) one.placeholder = t(one.dataset.tPlaceholder);
};

export const speak = (name) => {
  language = name;
  localStorage.setItem(KEPT, name);
  document.documentElement.lang = name;
  translate();
  watchers.forEach((run) => run());
};

document.documentElement.lang = language;
