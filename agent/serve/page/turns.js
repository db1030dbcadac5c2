// Turns of the conversation, one after the other: words, fields that are set, plans that are opened. What is shown is
// what the last of them came to, so that the conversation and the page are about the same.

import { Refusal, sessions } from "./api.js";
import { answered, bubble, note, said, toEnd } from "./chat.js";
import { $, complain, make, show } from "./dom.js";
import { leads } from "./head.js";
import { statedBy } from "./question.js";
import { enter, goBack, loseVersions, put, state, viewOf } from "./state.js";
import { t } from "./words.js";
import { busy, lineOf, stoppable } from "./work.js";

const [TRIES, BETWEEN_MS] = [20, 150];

let last = Promise.resolve();
let [begun, ended] = [0, 0];

// Whether anything was said or set since the page was loaded.
export const hasBegun = () => begun > 0;

// Run what changes what is shown when all that was begun before it is done; nothing can be sent meanwhile.
const inTurn = (run) => {
  begun += 1;
  $("send").disabled = true;
  const done = last.then(run).finally(() => {
    ended += 1;
    $("send").disabled = begun > ended;
  });
  last = done.catch(() => {});
  return done;
};

// Work of the message field: words on what is done, Stop, and one line where it comes to nothing. False where it failed.
export const atWork = (run) => {
  const { stopper, over } = stoppable();
  const stop = () => stopper.abort();
  const doing = (text) => complain($("doing"), text);
  complain($("say-error"), "");
  doing(t("working"));
  show($("stop"), true);
  $("stop").addEventListener("click", stop);
  return inTurn(async () => {
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
    }
  });
};

const pause = (signal) =>
  new Promise((done, stop) => {
    setTimeout(done, BETWEEN_MS);
    signal.addEventListener("abort", () => stop(signal.reason), { once: true });
  });

// A turn that was stopped just now may still be on its way out, and the next waits for it.
const patiently = async (body, work) => {
  for (let tried = 1; ; tried += 1) {
    try {
      return await sessions.turn(state.session, body, { text: () => {}, ...work });
    } catch (error) {
      if (error.kind !== "busy" || tried === TRIES) throw error;
      await pause(work.signal);
    }
  }
};

const beginSession = async () => enter((await sessions.begin()).id);

// A conversation that the server has no more is begun anew, from what is asked for in the view that is shown.
const beginAnew = async (work) => {
  const { now } = state;
  loseVersions();
  await beginSession();
  if (!now?.asked) return;
  note(t("goes-on"));
  await patiently({ text: t("goes-on"), ...(now.report ? { fields: statedBy(now) } : { plan: now.plan }) }, work);
};

const ask = async (body, work) => {
  if (!state.session) await beginSession();
  try {
    return await patiently(body, work);
  } catch (error) {
    if (error.kind !== "not_found") throw error;
    await beginAnew(work);
    return patiently(body, work);
  }
};

// One turn; what is current after it is shown, with `more` that is known of it.
const turn = async (body, work, more) => {
  const answer = await ask(body, work);
  if (answer.current && answer.version !== state.now?.version) put(viewOf(answer, more));
  return answer;
};

// A turn that is no words of the person: `fields` that are set, or a `plan`. What it came to stands in the conversation.
export const give = async (text, given, work, more) => {
  note(text);
  const answer = await turn({ text, ...given }, work, more);
  answered(bubble(), answer, answer.current ? leads(state.now) : undefined);
  toEnd();
  if (answer.error) throw new Refusal(answer.error, "input");
};

// Run work at `place` in its turn.
export const atPlace = (place, run) => inTurn(() => busy(place, run));

// `give` of the plan's side of the page; what depends on what is current then is `given` as a function.
export const giveAtPlan = (text, given, more) =>
  atPlace($("plan-work"), async (work) => {
    // Another conversation may have been begun meanwhile.
    if (state.now?.asked) await give(text, typeof given === "function" ? given() : given, work, more);
  });

export const say = async (text) => {
  said(text);
  const place = bubble();
  const pre = make("pre", { tabindex: 0 });
  const hear = (delta) => {
    if (!pre.isConnected) place.replaceChildren(pre);
    pre.append(delta);
    toEnd();
  };
  const isDone = await atWork(async (work) => {
    const answer = await turn({ text }, { ...work, text: hear });
    answered(place, answer, answer.current ? leads(state.now) : undefined);
    toEnd();
  });
  if (!isDone) {
    if (!pre.isConnected) place.remove();
    else place.append(make("p", { class: "soft" }, t("stopped")));
  }
  return isDone;
};

const isSame = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

// Back to what was shown before; the conversation goes back with the page, where it was about both.
export const back = () =>
  atPlace($("plan-work"), async (work) => {
    const before = state.before.at(-1);
    if (!before) return;
    if (state.now.version && before.version) {
      const answer = await ask({ text: "/undo" }, work);
      if (answer.error) throw new Refusal(answer.error, "input");
      const now = viewOf(answer);
      goBack(isSame([now.plan, now.asked], [before.plan, before.asked]) ? { version: now.version } : now);
    } else goBack();
    note(t("undone"));
  });
