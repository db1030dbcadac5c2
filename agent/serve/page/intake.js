// What is dropped, pasted or opened goes where its content belongs.

import { operate } from "./api.js";
import { atWork, note } from "./chat.js";
import { $, show } from "./dom.js";
import { isDocument, recognise } from "./recognise.js";
import { put, state, viewOf } from "./state.js";
import { t } from "./words.js";

const MOST_BYTES = 32 * 2 ** 20;

// A document as it stands: what the rules find in it, and its figures where it has any.
export const viewOfDocument = async (plan, work, more = {}) => {
  const report = await operate("validate", { plan }, work);
  let [estimate, why_not_estimated] = [null, undefined];
  try {
    estimate = await operate("estimate", { plan }, work);
  } catch (error) {
    if (error.kind !== "input") throw error;
    why_not_estimated = error.message;
  }
  return {
    plan,
    valid: report.valid,
    findings: report.violations,
    estimate,
    why_not_estimated,
    report: null,
    infeasible: null,
    question: null,
    changes: [],
    isPinned: true,
    ...more,
  };
};

const viewOfImport = (found) => ({
  plan: found.plan,
  valid: found.valid,
  findings: found.findings,
  estimate: found.estimate ?? null,
  why_not_estimated: found.why_not_estimated,
  report: null,
  infeasible: null,
  question: null,
  changes: [],
  isPinned: true,
  assumptions: found.assumptions,
  readings: found.readings,
  caveats: [
    ...found.refused,
    ...found.remarks,
    ...(found.not_understood.length ? [`${t("not-understood")}: ${found.not_understood.join(", ")}`] : []),
  ],
});

const command = async (text, work, { open, waitFor }) => {
  const now = state.now;
  const beside = now?.plan?.hardware ? { hardware: now.plan.hardware, workload: now.plan.workload } : {};
  const read = async (known, doing) => viewOfImport(await operate("import", { source: text, ...known }, doing));
  if (!now?.plan) {
    try {
      put(await read({}, work));
    } catch (error) {
      if (error.kind !== "input") throw error;
      waitFor(t("command-waits"), async (hardware, doing) => put(await read({ hardware }, doing)));
      throw error;
    }
    return;
  }
  const imported = await read(beside, work);
  const compared = await operate("compare", { a: now.plan, b: imported.plan }, work);
  open("compare", { compared, imported });
};

const kinds = ({ open, useModel, waitFor }) => ({
  plan: async ({ value }, work) => {
    const view = await viewOfDocument(value, work);
    put(view);
    open(view.valid ? "picture" : "findings");
  },
  config: async ({ value, name }) => useModel(value, name),
  command: async ({ value }, work) => command(value, work, { open, waitFor }),
  brief: async ({ value, name }, work) => {
    const fields = { brief: typeof value === "string" ? { [name]: value } : value };
    put(viewOf(await operate("plan", fields, work), fields));
  },
});

// `open` shows a sheet and may teach the view more, `useModel` takes a config as the model of the next request, and
// `waitFor` keeps something until a message says the rest.
export const intake = (page) => {
  const run = kinds(page);
  const take = (name, text, found = recognise(text)) =>
    atWork(async (work) => {
      note(t(`took-${found.kind}`, { name }));
      await run[found.kind]({ ...found, name }, work);
    });
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
