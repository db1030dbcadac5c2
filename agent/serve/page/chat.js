// The conversation: what is said, what is answered, piece by piece, and the plan that comes of it.

import { Refusal, sessions } from "./api.js";
import { $, button, complain, make, show } from "./dom.js";
import { oneLine } from "./head.js";
import { enter, put, state, viewOf } from "./state.js";
import { requestOf } from "./spoken.js";
import { t } from "./words.js";
import { lineOf, stoppable } from "./work.js";

// Turns that may have made another plan the current one.
const OF_PLAN = ["plan", "moved", "model"];
const SHORT = 700;
const [TRIES, BETWEEN_MS] = [20, 150];

const toEnd = () => {
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

// An answer: a plan's as one line (`lead`) with the report to open, any other as it is.
export const answered = (place, text, kind, changes = [], lead = first(text)) => {
  const isPlan = kind === "plan" && text.length > SHORT;
  place.replaceChildren(
    ...(isPlan ? [make("p", { class: "lead" }, lead)] : [make("pre", { tabindex: 0 }, text.trimEnd())]),
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

// Work of the message field: words on what is done, Stop, and one line where it comes to nothing. False where it failed.
export const atWork = async (run) => {
  const { stopper, over } = stoppable();
  const stop = () => stopper.abort();
  const doing = (text) => complain($("doing"), text);
  complain($("say-error"), "");
  doing(t("working"));
  show($("stop"), true);
  $("stop").addEventListener("click", stop);
  $("send").disabled = true;
  try {
    await run({ signal: stopper.signal, doing });
    return true;
  } catch (error) {
    complain($("say-error"), lineOf(error));
    return false;
  } finally {
    over();
    doing("");
    show($("stop"), false);
    $("stop").removeEventListener("click", stop);
    $("send").disabled = false;
  }
};

const pause = (signal) =>
  new Promise((done, stop) => {
    setTimeout(done, BETWEEN_MS);
    signal.addEventListener("abort", () => stop(signal.reason), { once: true });
  });

// A turn; one that was stopped just now may still be on its way out, and the next waits for it.
const turn = async (id, text, work) => {
  for (let tried = 1; ; tried += 1) {
    try {
      return await sessions.turn(id, { text }, work);
    } catch (error) {
      if (error.kind !== "busy" || tried === TRIES) throw error;
      await pause(work.signal);
    }
  }
};

const quietly = (id, text, work) => turn(id, text, { ...work, text: () => {} });

const isSame = (plan, other) =>
  ["strategy", "workload", "hardware", "precision"].every(
    (name) => JSON.stringify(plan?.[name]) === JSON.stringify(other[name]),
  );

// A plan that was made beside the conversation becomes its own before it goes on.
const takeOver = async (id, work) => {
  const view = state.now;
  if (!view?.plan || (view.version && view.version === state.version)) return;
  let answer;
  if (view.base && view.base === state.version) answer = await quietly(id, view.words.join("; "), work);
  if (!isSame(answer?.current?.plan, view.plan))
    answer = await quietly(id, `/new ${requestOf(view.plan, view.isPinned)}`, work);
  if (!answer.current?.plan)
    throw new Refusal(t("not-taken-over", { why: answer.error ?? first(answer.text) }), "input");
  note(t("taken-over", { line: first(answer.text) }));
  view.version = state.version = Symbol("version");
};

// The conversation goes back with the page, where it made both plans.
export const backInTalk = (now, before) => {
  if (!now.version || now.version !== state.version || !before.version) return true;
  return atWork(async (work) => {
    const answer = await quietly(state.session, "/undo", work);
    state.version = isSame(answer.current?.plan, before.plan ?? {}) ? before.version : Symbol("version");
  });
};

const taken = (answer, text) => {
  if (!answer.current || !OF_PLAN.includes(answer.kind)) return;
  const isFirst = answer.turn === 1 && !text.startsWith("/");
  state.version = Symbol("version");
  put(
    viewOf(answer.current, isFirst ? { request: text } : null, {
      version: state.version,
      changes: answer.changes ?? [],
    }),
  );
};

// The answer to a turn, in the conversation of the page or in a new one.
const asked = async (text, work) => {
  if (!state.session) {
    const begun = await sessions.begin();
    enter(begun.id, begun.model);
  }
  if (!/^\/new\b/.test(text)) await takeOver(state.session, work);
  return turn(state.session, text, work);
};

export const say = async (text) => {
  said(text);
  const place = bubble();
  const pre = make("pre", { tabindex: 0 });
  const hear = (delta) => {
    if (!pre.isConnected) place.replaceChildren(pre);
    pre.append(delta);
    toEnd();
  };
  const isDone = await atWork(async ({ signal, doing }) => {
    const work = { signal, doing, text: hear };
    const answer = await asked(text, work).catch((error) => {
      if (error.kind !== "not_found") throw error;
      enter(null);
      return asked(text, work);
    });
    answered(
      place,
      answer.text,
      answer.kind,
      answer.changes,
      answer.current ? oneLine(viewOf(answer.current)) : undefined,
    );
    toEnd();
    taken(answer, text);
  });
  if (!isDone) {
    if (!pre.isConnected) place.remove();
    else place.append(make("p", { class: "soft" }, t("stopped")));
  }
  return isDone;
};

// What was said in a conversation, shown again.
export const recall = (whole) => {
  $("talk").replaceChildren();
  for (const one of whole.said) {
    said(one.input);
    answered(bubble(), one.text, one.kind);
  }
  state.version = Symbol("version");
  if (whole.current) put(viewOf(whole.current, null, { version: state.version }));
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
