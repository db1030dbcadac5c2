// The sheets of a plan under their tabs. A sheet is drawn when it is looked at and what it shows has changed.

import { $, make } from "./dom.js";
import { state } from "./state.js";
import { languageNow, t } from "./words.js";

const sheets = new Map();
let chosen;

const isSame = (a, b) => a && a.length === b.length && a.every((one, place) => one === b[place]);

// Draw the sheet that is open, where what it depends on has changed.
export const redraw = () => {
  const sheet = sheets.get(chosen);
  if (!sheet || !state.now) return;
  const needs = [languageNow(), ...sheet.needs(state.now)];
  if (isSame(sheet.drawn, needs)) return;
  sheet.drawn = needs;
  sheet.draw(sheet.panel, state.now);
};

const title = (name) => {
  const count = sheets.get(name).count?.(state.now);
  return `${t(`tab-${name}`)}${count ? ` ${count}` : ""}`;
};

export const retitle = () =>
  sheets.forEach((sheet, name) => {
    sheet.tab.textContent = title(name);
  });

export const openSheet = (name) => {
  chosen = name;
  for (const [other, { tab, panel }] of sheets) {
    tab.setAttribute("aria-selected", other === name);
    tab.tabIndex = other === name ? 0 : -1;
    panel.hidden = other !== name;
  }
  redraw();
};

const walk = (event) => {
  const names = [...sheets.keys()];
  const steps = {
    ArrowRight: 1,
    ArrowLeft: -1,
    Home: -names.indexOf(chosen),
    End: names.length - 1 - names.indexOf(chosen),
  };
  if (!(event.key in steps)) return;
  event.preventDefault();
  openSheet(names[(names.indexOf(chosen) + steps[event.key] + names.length) % names.length]);
  sheets.get(chosen).tab.focus();
};

// `all`: by name, {draw(panel, view), needs(view), count(view)}.
export const tabs = (all) => {
  for (const [name, sheet] of Object.entries(all)) {
    const tab = make("button", {
      type: "button",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": `sheet-${name}`,
      on: { click: () => openSheet(name) },
    });
    const panel = make("div", { role: "tabpanel", id: `sheet-${name}`, "aria-labelledby": `tab-${name}`, tabindex: 0 });
    sheets.set(name, { ...sheet, tab, panel });
    $("tabs").append(tab);
    $("panels").append(panel);
  }
  $("tabs").addEventListener("keydown", walk);
  retitle();
  openSheet(Object.keys(all)[0]);
};

export const sheetNames = () => [...sheets.keys()];
