// What starts the servers of a plan: a target, its text, copied or saved.

import { operate } from "./api.js";
import { button, make, select } from "./dom.js";
import { t } from "./words.js";
import { busy } from "./work.js";

const TARGETS = [
  "vllm",
  "sglang",
  "trtllm",
  "kubernetes",
  "docker-compose",
  "slurm",
  "dynamo",
  "ray",
  "llm-d",
  "chakra",
  "plan.json",
];
const ENDINGS = {
  kubernetes: "yaml",
  "docker-compose": "yaml",
  dynamo: "yaml",
  ray: "yaml",
  "llm-d": "yaml",
  chakra: "json",
};

let target = TARGETS[0];

const copied = async (pre) => {
  try {
    await navigator.clipboard.writeText(pre.textContent);
    return true;
  } catch {
    // Without a secure context the text is marked, and the browser copies what is marked.
    getSelection().selectAllChildren(pre);
    return document.execCommand("copy");
  }
};

const save = (content, name) => {
  const address = URL.createObjectURL(new Blob([content], { type: "text/plain" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};

const textOf = (text, name) => {
  const pre = make("pre", { class: "export", tabindex: 0, "aria-label": name }, text);
  const told = make("span", { role: "status", class: "soft" });
  return make(
    "div",
    {},
    make(
      "div",
      { class: "row" },
      make("b", {}, name),
      button(
        t("copy"),
        async () => {
          told.textContent = (await copied(pre)) ? t("copied") : t("not-copied");
        },
        { class: "copy" },
      ),
      button(t("save"), () => save(text, name)),
      told,
    ),
    pre,
  );
};

// A file of a folder, whose bytes come as base64.
const fileOf = ({ name, data }) =>
  make(
    "div",
    { class: "row" },
    make("b", {}, name),
    button(t("save"), () =>
      save(
        Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0)),
        name.split("/").at(-1),
      ),
    ),
  );

const draw = (found) =>
  [
    ...found.refused.map((line) => make("p", { class: "error" }, line)),
    found.nearest ? make("p", {}, `${t("nearest")}: ${found.nearest}`) : undefined,
    ...found.remarks.map((line) => make("p", { class: "late" }, line)),
    ...(found.text ? [textOf(found.text, `${found.target}.${ENDINGS[found.target] ?? "sh"}`)] : []),
    ...found.files.map((one) => textOf(one.text, one.name)),
    ...found.folder.map(fileOf),
  ].filter(Boolean);

export const exporting = (panel, view) => {
  if (!view.plan) {
    panel.replaceChildren(make("p", { class: "soft" }, t("no-plan-yet")));
    return;
  }
  const place = make("div");
  const choice = select({ id: "target" }, TARGETS, target);
  const run = () => {
    target = choice.value;
    if (target === "plan.json") {
      place.replaceChildren(textOf(`${JSON.stringify(view.plan, null, 2)}\n`, "plan.json"));
      return;
    }
    place.replaceChildren();
    busy(place, async (work) => place.append(...draw(await operate("export", { plan: view.plan, to: target }, work))));
  };
  choice.addEventListener("change", run);
  panel.replaceChildren(
    make(
      "div",
      { class: "row" },
      make("label", { for: "target" }, t("export-to")),
      choice,
      button(t("export"), run, { class: "first", id: "export-run" }),
    ),
    place,
  );
};
