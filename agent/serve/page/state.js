// What the page shows now, what it showed before, and who wants to know when that changes.
//
// A view: {plan, valid, estimate, findings, report, infeasible, asked, changes, version, document}. `asked` is what is
// asked for, also where there is no plan. A view has the `version` that the conversation gave it; what has none is a
// `document` that no conversation can be about, since it cannot be read as a plan.

const watchers = [];
const MOST_KEPT = 50;
const KEPT = "shardwright-session";

export const state = { now: null, before: [], session: null };

// The conversation that this tab was in when it was loaded, if any.
export const sessionBefore = () => sessionStorage.getItem(KEPT);

// Go to a conversation, or to none.
export const enter = (id) => {
  state.session = id;
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

// The view before in place of the one that is shown; where the conversation went back too, with what that came to.
export const goBack = (known = {}) => {
  state.now = Object.assign(state.before.pop(), known);
  tell();
};

export const forget = () => {
  [state.now, state.before] = [null, []];
  tell();
};

// No conversation has the views that are kept any more.
export const loseVersions = () => [...state.before, state.now].forEach((view) => view && delete view.version);

// The view of what a turn came to.
export const viewOf = ({ current, asked, version, changes }, more = {}) => ({
  plan: current.plan ?? null,
  valid: current.valid,
  estimate: current.estimate ?? null,
  report: current.report ?? null,
  infeasible: current.infeasible ?? null,
  findings: null,
  asked,
  changes: changes ?? [],
  version,
  ...more,
});
