// What the page shows now, what it showed before, and who wants to know when that changes.
//
// A view: {plan, valid, estimate, findings, report, infeasible, question, changes, version, base, words}. `question` holds
// the fields by which `POST plan` comes to the plan again. `version` is that of the conversation which has this very plan;
// a view that was made beside it is what `words` make of its version `base`.

const watchers = [];
const MOST_KEPT = 50;
const KEPT = "shardwright-session";

export const state = { now: null, before: [], session: null, version: null };

// The conversation that this tab was in when it was loaded, if any.
export const sessionBefore = () => sessionStorage.getItem(KEPT);

// Go to a conversation, or to none; `model` is the language model that answers in it, null where none does.
export const enter = (id, model) => {
  [state.session, state.version, state.model] = [id, null, model];
  if (id) sessionStorage.setItem(KEPT, id);
  else sessionStorage.removeItem(KEPT);
};

export const onView = (run) => watchers.push(run);

const tell = () => watchers.forEach((run) => run(state.now));

export const put = (view) => {
  if (state.now) state.before = [...state.before, state.now].slice(-MOST_KEPT);
  state.now = view;
  tell();
};

// More is known of the view that is shown, such as what the rules find in it.
export const learn = (view, known) => {
  Object.assign(view, known);
  if (view === state.now) tell();
};

export const undo = () => {
  if (!state.before.length) return false;
  state.now = state.before.pop();
  tell();
  return true;
};

export const forget = () => {
  [state.now, state.before, state.version] = [null, [], null];
  tell();
};

// Where a view stands to the conversation that is `words` away from `view`.
export const beside = (view, words) => {
  if (!words || !view) return {};
  if (view.version) return { base: view.version, words: [words] };
  return view.base ? { base: view.base, words: [...view.words, words] } : {};
};

// The view of what `POST plan` or a turn gives back.
export const viewOf = (result, question, more = {}) => ({
  plan: result.plan ?? null,
  valid: result.valid,
  estimate: result.estimate ?? null,
  report: result.report ?? null,
  infeasible: result.infeasible ?? null,
  findings: null,
  question,
  changes: [],
  ...more,
});
