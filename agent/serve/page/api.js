// Asks the server: operations, catalogues, sessions. What it refuses is a `Refusal` with one line and its kind.

const BASE = "api/v1/";
const KEPT = "shardwright-token";

export class Refusal extends Error {
  constructor(message, kind) {
    super(message);
    this.kind = kind;
  }
}

// The token comes in the fragment, which no server and no log sees, and leaves the address bar at once.
const inFragment = /[#&]token=([^&]+)/.exec(location.hash);
if (inFragment) {
  sessionStorage.setItem(KEPT, decodeURIComponent(inFragment[1]));
  history.replaceState(null, "", location.pathname + location.search);
}

export const useToken = (token) => sessionStorage.setItem(KEPT, token);

const ask = async (path, { method = "GET", body, accept = "application/json", signal } = {}) => {
  const headers = { Accept: accept };
  const token = sessionStorage.getItem(KEPT);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(BASE + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("the server does not answer; is it still running?", "network");
  }
  if (!answer.ok) throw await refusalOf(answer);
  return answer;
};

const refusalOf = async (answer) => {
  let error;
  try {
    ({ error } = await answer.json());
  } catch {
    error = undefined;
  }
  const refusal = new Refusal(error?.message ?? `the server answered ${answer.status}`, error?.kind ?? "service");
  if (refusal.kind === "unauthorized") dispatchEvent(new Event("token-wanted"));
  return refusal;
};

// The events of an answer, each with its name and data, as they come.
const eventsOf = async function* (answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r\n\r\n|\n\n/);
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split(/\r?\n/);
      const text = lines
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trimStart())
        .join("\n");
      const name =
        lines
          .find((line) => line.startsWith("event:"))
          ?.slice(6)
          .trim() ?? "message";
      if (text) yield [name, JSON.parse(text)];
    }
  }
};

// Ask and read events: `on` has what to do with each kind; gives back the data of `answer`.
const stream = async (path, { body, signal, on = {} }) => {
  const answer = await ask(path, { method: "POST", body, accept: "text/event-stream", signal });
  if (!answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return answer.json();
  for await (const [name, data] of eventsOf(answer)) {
    if (name === "answer") return data;
    if (name === "error") throw new Refusal(data.error?.message ?? data.message, data.error?.kind ?? data.kind);
    on[name]?.(data);
  }
  throw new Refusal("the answer broke off; ask again", "network");
};

// One operation; `doing` is told what it does while it works.
export const operate = (name, fields, { signal, doing } = {}) =>
  stream(name, { body: fields, signal, on: { progress: (data) => doing?.(data.doing) } });

export const look = async (name, query = {}) => (await ask(`${name}?${new URLSearchParams(query)}`)).json();

export const sessions = {
  list: async () => (await ask("sessions")).json(),
  begin: async () => (await ask("sessions", { method: "POST", body: {} })).json(),
  read: async (id) => (await ask(`sessions/${encodeURIComponent(id)}`)).json(),
  end: (id) => ask(`sessions/${encodeURIComponent(id)}`, { method: "DELETE" }),
  turn: (id, body, { signal, text, doing }) =>
    stream(`sessions/${encodeURIComponent(id)}/turns`, {
      body,
      signal,
      on: { text: (data) => text(data.delta), progress: (data) => doing(data.doing) },
    }),
};
