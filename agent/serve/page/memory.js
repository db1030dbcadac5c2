// Memory of each GPU as a bar: weights, KV cache, activations, communication, of what may be used. Like GPUs are one row.

import { make } from "./dom.js";
import { bytes, digits } from "./units.js";
import { t } from "./words.js";

const TERMS = ["weights", "kv_cache", "activation", "communication"];
const MOST_ROWS = 64;

// GPUs that hold the same, in the order in which they come.
const groups = (devices) => {
  const found = new Map();
  for (const one of devices) {
    const key = [...TERMS.map((term) => one[`${term}_bytes`]), one.usable_bytes].join();
    if (!found.has(key)) found.set(key, { one, names: [] });
    found.get(key).names.push(one.device);
  }
  return [...found.values()];
};

const named = (names) => (names.length > 2 ? `${names[0]} … ${names.at(-1)} (${names.length})` : names.join(", "));

const bar = (one) => {
  const whole = Math.max(one.usable_bytes, one.total_bytes);
  const parts = TERMS.map((term) => [t(`memory-${term}`), one[`${term}_bytes`], term]);
  const said = parts.map(([name, value]) => `${name} ${bytes(value)}`).join(", ");
  return make(
    "div",
    {
      class: "bar",
      role: "img",
      "aria-label": `${said}; ${t("of-usable", { total: bytes(one.total_bytes), usable: bytes(one.usable_bytes) })}`,
    },
    ...parts.map(([name, value, term]) => {
      const piece = make("i", { class: `term-${term}`, title: `${name}: ${bytes(value)}` });
      piece.style.width = `${(100 * value) / whole}%`;
      return piece;
    }),
  );
};

export const memory = (panel, view) => {
  const found = view.estimate?.memory;
  if (!found) {
    panel.replaceChildren(
      make("p", { class: "soft" }, view.plan ? (view.why_not_estimated ?? t("no-estimate")) : t("no-plan-yet")),
    );
    return;
  }
  const rows = groups(found.per_device);
  const key = make(
    "p",
    { class: "soft" },
    ...TERMS.map((term) => make("span", { class: "key" }, make("i", { class: `term-${term}` }), t(`memory-${term}`))),
  );
  panel.replaceChildren(
    key,
    ...rows.slice(0, MOST_ROWS).map(({ one, names }) => {
      const over = one.total_bytes > one.usable_bytes;
      return make(
        "div",
        { class: "gpu" },
        make("span", { class: "names" }, named(names)),
        bar(one),
        make(
          "span",
          { class: over ? "bad" : "soft" },
          t("of-usable", { total: bytes(one.total_bytes), usable: bytes(one.usable_bytes) }),
        ),
      );
    }),
    ...(rows.length > MOST_ROWS
      ? [make("p", { class: "soft" }, t("more-rows", { count: digits(rows.length - MOST_ROWS) }))]
      : []),
    make(
      "p",
      { class: "soft" },
      [found.max_concurrency && t("room-for", { count: digits(found.max_concurrency) }), found.usable_from]
        .filter(Boolean)
        .join(" · "),
    ),
  );
};
