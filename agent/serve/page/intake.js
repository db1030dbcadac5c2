// What is dropped, pasted or opened goes where its content belongs.

import { operate } from "./api.js";
import { note } from "./chat.js";
import { $, show } from "./dom.js";
import { isDocument, recognise } from "./recognise.js";
import { put, state } from "./state.js";
import { atWork, give } from "./turns.js";
import { t } from "./words.js";

const MOST_BYTES = 32 * 2 ** 20;
// What is wrong with a document that cannot be read as a plan.
const OF_FORMAT = "ST001";

// A document becomes the current plan, with what the rules find in it. One that cannot be is shown as what it is.
const openDocument = async (value, name, work) => {
  const { valid, violations: findings } = await operate("validate", { plan: value }, work);
  let why_not_estimated;
  if (!findings.some((one) => one.rule === OF_FORMAT)) {
    try {
      await give(t("took-plan", { name }), { plan: value }, work, { findings });
      return;
    } catch (error) {
      if (error.kind !== "input") throw error;
      why_not_estimated = error.message;
    }
  }
  note(t("took-broken", { name }));
  put({ plan: null, document: value, name, valid, findings, why_not_estimated, changes: [] });
};

// What is known of a plan that was read off what runs, beside the plan.
const knownOf = (found) => ({
  findings: found.findings,
  why_not_estimated: found.why_not_estimated,
  assumptions: found.assumptions,
  readings: found.readings,
  caveats: [
    ...found.refused,
    ...found.remarks,
    ...(found.not_understood.length ? [`${t("not-understood")}: ${found.not_understood.join(", ")}`] : []),
  ],
});

const command = async (source, name, work, { open, waitFor }) => {
  const { plan } = state.now ?? {};
  const read = (known, doing) => operate("import", { source, ...known }, doing);
  const stand = (found, doing, on = "") =>
    give(`${t("took-command", { name })} ${on}`.trim(), { plan: found.plan }, doing, knownOf(found));
  if (plan) {
    const found = await read({ hardware: plan.hardware, workload: plan.workload }, work);
    const compared = await operate("compare", { a: plan, b: found.plan }, work);
    note(t("compared-command", { name }));
    open("compare", { compared, instead: [t("took-command", { name }), { plan: found.plan }, knownOf(found)] });
    return;
  }
  try {
    await stand(await read({}, work), work);
  } catch (error) {
    if (error.kind !== "input") throw error;
    waitFor(t("command-waits"), async (hardware, doing) => stand(await read({ hardware }, doing), doing, hardware));
    throw error;
  }
};

const kinds = ({ open, useModel, waitFor }) => ({
  plan: async ({ value, name }, work) => {
    await openDocument(value, name, work);
    open(state.now.valid ? "picture" : "findings");
  },
  config: async ({ value, name }) => useModel(value, name),
  command: async ({ value, name }, work) => command(value, name, work, { open, waitFor }),
  brief: async ({ value, name }, work) => {
    const brief = typeof value === "string" ? { [name]: value } : value;
    await give(t("took-brief", { name }), { fields: { brief } }, work);
  },
});

// `open` shows a sheet and may teach the view more, `useModel` takes a config as the model of the next request, and
// `waitFor` keeps something until a message says the rest.
export const intake = (page) => {
  const run = kinds(page);
  const take = (name, text, found = recognise(text)) =>
    atWork((work) => run[found.kind]({ ...found, name }, work));
  const takeFiles = async (files) => {
    for (const file of files) if (file.size > MOST_BYTES) note(t("too-large", { name: file.name }));
    const texts = await Promise.all(
      files.filter((file) => file.size <= MOST_BYTES).map(async (file) => [file.name, await file.text()]),
    );
    const briefs = texts.filter(([, text]) => recognise(text).kind === "brief");
    // Texts of one deployment belong together.
    if (briefs.length > 1)
      await take(briefs.map(([name]) => name).join(", "), "", { kind: "brief", value: Object.fromEntries(briefs) });
    for (const [name, text] of texts)
      if (briefs.length < 2 || !briefs.some(([brief]) => brief === name)) await take(name, text);
  };
  const takeData = (data, isInField) => {
    if (data.files.length) return takeFiles([...data.files]);
    const text = data.getData("text/plain");
    return text && (!isInField || isDocument(text)) ? take(t("pasted"), text) : undefined;
  };
  addEventListener("dragover", (event) => {
    event.preventDefault();
    show($("drop"), true);
  });
  addEventListener("dragleave", (event) => !event.relatedTarget && show($("drop"), false));
  addEventListener("drop", (event) => {
    event.preventDefault();
    show($("drop"), false);
    takeData(event.dataTransfer, false);
  });
  addEventListener("paste", (event) => {
    const isInField = event.target.matches?.("input, textarea");
    if (isInField && event.target.id !== "message") return;
    if (takeData(event.clipboardData, isInField)) event.preventDefault();
  });
  $("open-file").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => {
    await takeFiles([...$("file").files]);
    $("file").value = "";
  });
};
