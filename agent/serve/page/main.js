// The page: a conversation beside the plan that it is about.

import { look, sessions, useToken } from "./api.js";
import { examples, note, recall } from "./chat.js";
import { compare } from "./compare.js";
import { $, button, make, show } from "./dom.js";
import { exporting } from "./exporting.js";
import { findings } from "./findings.js";
import { head, oneLine } from "./head.js";
import { intake } from "./intake.js";
import { memory } from "./memory.js";
import { picture } from "./picture.js";
import { assumptionsOf, catalogue, set } from "./question.js";
import { requestForm } from "./request_form.js";
import { sessionsDialog } from "./sessions_dialog.js";
import { settings } from "./settings.js";
import { enter, forget, learn, onView, sessionBefore, state } from "./state.js";
import { strategies } from "./strategies.js";
import { openSheet, redraw, retitle, sheetNames, tabs } from "./tabs.js";
import { atPlace, atWork, back, give, giveAtPlan, hasBegun, say } from "./turns.js";
import { onLanguage, t, tOr, translate } from "./words.js";
import { stopAll } from "./work.js";

// What the next message is about, where something that was dropped waits for it: {run(text, work)}.
let waiting;

// One change after the other: the next is made to what the one before came to.
const change = (name, value) =>
  giveAtPlan(`${tOr(`field-${name}`, name)}: ${value ?? t("not-stated")}`, () => ({
    fields: set(state.now.asked, name, value),
  }));

const lookAt = (side) => {
  document.body.dataset.view = side;
  $("view-chat").setAttribute("aria-pressed", side === "chat");
  $("view-plan").setAttribute("aria-pressed", side === "plan");
};

const toMessage = () => {
  lookAt("chat");
  $("message").focus();
};

const open = (name, known) => {
  if (known) learn(state.now, known);
  openSheet(name);
  lookAt("plan");
};

const begin = () => {
  stopAll();
  enter(null);
  forget();
  $("talk").replaceChildren();
  lookAt("chat");
};

const forgetWaiting = () => {
  waiting = undefined;
  show($("waiting"), false);
};

// Something that was dropped needs a message to go with it: `run` is given that.
const waitFor = (told, run) => {
  waiting = run;
  $("waiting").replaceChildren(make("span", {}, told), button("×", forgetWaiting, { "aria-label": t("remove") }));
  show($("waiting"), true);
  toMessage();
};

const sayOfWaiting = (text) =>
  atWork(async (work) => {
    await waiting(text, work);
    forgetWaiting();
  });

// A conversation that was read is shown again.
const comeBack = (whole) => {
  enter(whole.id);
  recall(whole);
};

const useModel = (config, name) => {
  note(t("took-config", { name }));
  waitFor(t("model-taken", { name: config._name_or_path || config.model_type || name }), (request, work) =>
    give(`${name}: ${request}`, { fields: { model: config, request } }, work),
  );
};

const send = async (text) => {
  if (!text || $("send").disabled) return;
  $("message").value = "";
  const isDone = await (waiting ? sayOfWaiting(text) : say(text));
  if (!isDone && !$("message").value) $("message").value = text;
};

const drawHead = (view) => {
  show($("sheets"), Boolean(view));
  show($("head"), Boolean(view));
  show($("empty"), !view);
  document.title = view ? `${oneLine(view)} – shardwright` : "shardwright";
  if (!view) examples($("empty"), send);
  else
    $("head").replaceChildren(
      ...(state.before.length ? [button(t("undo"), back, { id: "undo-head" })] : []),
      head(view),
    );
};

tabs({
  picture: { draw: picture, needs: (view) => [view.plan ?? view.document] },
  request: {
    draw: (panel, view) => requestForm(panel, view, change),
    needs: (view) => [view],
    count: (view) => view && assumptionsOf(view).length,
  },
  memory: { draw: memory, needs: (view) => [view.estimate, view.plan] },
  strategies: { draw: (panel, view) => strategies(panel, view, giveAtPlan), needs: (view) => [view] },
  findings: {
    draw: (panel, view) =>
      findings(panel, view, {
        atPlace,
        give,
        learn,
        undo: back,
        canUndo: () => state.before.length > 0,
      }),
    needs: (view) => [view, view.findings],
    count: (view) => view?.findings?.length,
  },
  compare: {
    draw: (panel, view) => compare(panel, view, { before: () => state.before, take: giveAtPlan, learn }),
    needs: (view) => [view.plan, view.compared],
  },
  export: { draw: exporting, needs: (view) => [view.plan] },
});

onView((view) => {
  drawHead(view);
  retitle();
  redraw();
  // On a narrow screen a new plan is what one waited for.
  if (view && !view.isSeen) {
    view.isSeen = true;
    lookAt("plan");
  }
});
onLanguage(() => {
  drawHead(state.now);
  retitle();
  redraw();
});

$("say").addEventListener("submit", (event) => {
  event.preventDefault();
  send($("message").value.trim());
});
$("message").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send($("message").value.trim());
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]") && stopAll()) event.preventDefault();
});
$("view-chat").addEventListener("click", () => lookAt("chat"));
$("view-plan").addEventListener("click", () => lookAt("plan"));

const keys = Object.fromEntries(
  sheetNames().map((name, place) => [String(place + 1), [`tab-${name}`, () => state.now && open(name)]]),
);
settings({
  "/": ["message", toMessage],
  ...keys,
  u: ["undo", back],
  s: ["sessions", () => $("sessions-open").click()],
  n: [
    "new-session",
    () => {
      begin();
      toMessage();
    },
  ],
});
sessionsDialog({
  open: (whole) => {
    begin();
    comeBack(whole);
  },
  begin,
});
intake({ open, useModel, waitFor });
addEventListener("token-wanted", () => {
  show($("token"), true);
  $("token-field").focus();
});
$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken($("token-field").value.trim());
  show($("token"), false);
  learnNames();
});

// Names to choose from; without them the fields take any.
const learnNames = async () => {
  try {
    const [models, hardware] = await Promise.all([look("models"), look("hardware")]);
    catalogue.models = models.models.map((one) => one.name);
    catalogue.accelerators = hardware.accelerators.map((one) => one.id);
  } catch {
    // Whoever asks next says what is wrong.
  }
};

// The conversation before, unless another was begun while it, or the names, were on their way.
const before = sessionBefore();
const comeBackAlone = (whole) => hasBegun() || comeBack(whole);

translate();
drawHead(null);
await learnNames();
if (before && !hasBegun()) await sessions.read(before).then(comeBackAlone, () => hasBegun() || enter(null));
document.body.dataset.ready = "true";
