// Work that takes its time: words on what is done, a way to stop it, and one line where it comes to nothing.

import { Refusal } from "./api.js";
import { button, make } from "./dom.js";
import { t } from "./words.js";

const running = new Set();

// Stop everything that runs; whether anything did.
export const stopAll = () => {
  running.forEach((one) => one.abort());
  return running.size > 0;
};

export const stoppable = () => {
  const stopper = new AbortController();
  running.add(stopper);
  return { stopper, over: () => running.delete(stopper) };
};

// The one line of an error; a fault of this page is also told to the console.
export const lineOf = (error) => {
  if (error.name === "AbortError") return t("stopped");
  if (!(error instanceof Refusal)) console.error(error);
  return error.message;
};

// Run work at `place`: `run` is given the signal that stops it, and who is told what it does. False where it failed.
export const busy = async (place, run) => {
  const { stopper, over } = stoppable();
  const words = make("span", {}, t("working"));
  const line = make(
    "p",
    { class: "doing", role: "status" },
    words,
    button(t("stop"), () => stopper.abort()),
  );
  place.querySelectorAll(":scope > .error").forEach((one) => one.remove());
  place.prepend(line);
  try {
    await run({
      signal: stopper.signal,
      doing: (text) => {
        words.textContent = text;
      },
    });
    return true;
  } catch (error) {
    place.prepend(make("p", { class: "error", role: "alert" }, lineOf(error)));
    return false;
  } finally {
    over();
    line.remove();
  }
};
