// The conversations that there are: go to one, begin one, end one.

import { sessions } from "./api.js";
import { $, button, complain, make } from "./dom.js";
import { state } from "./state.js";
import { languageNow, t } from "./words.js";
import { lineOf } from "./work.js";

const when = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString(languageNow(), { hour: "2-digit", minute: "2-digit" });

const told = async (run) => {
  complain($("sessions-error"), "");
  try {
    await run();
  } catch (error) {
    complain($("sessions-error"), lineOf(error));
  }
};

const line = (one, { open, list, begin }) => {
  const end = () =>
    told(async () => {
      await sessions.end(one.id);
      if (one.id === state.session) begin();
      await list();
    });
  const title = one.first || t("nothing-said");
  return make(
    "li",
    { class: "row" },
    button(
      title,
      () =>
        told(async () => {
          open(await sessions.read(one.id));
          $("sessions").close();
        }),
      { class: "link grow", "aria-current": one.id === state.session ? "true" : undefined },
    ),
    make("span", { class: "soft" }, `${t("turns", { count: one.turns })} · ${when(one.used)}`),
    button(t("delete"), end, { "aria-label": `${t("delete")}: ${title}` }),
  );
};

// `open` shows a conversation that was read, `begin` an empty one.
export const sessionsDialog = ({ open, begin }) => {
  const list = () =>
    told(async () => {
      const found = await sessions.list();
      $("session-list").replaceChildren(
        ...(found.sessions.length
          ? found.sessions.map((one) => line(one, { open, list, begin }))
          : [make("li", { class: "soft" }, t("no-sessions"))]),
      );
    });
  $("sessions-open").addEventListener("click", () => {
    $("sessions").showModal();
    list();
  });
  $("session-new").addEventListener("click", () => {
    begin();
    $("sessions").close();
    $("message").focus();
  });
};
