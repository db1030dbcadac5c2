// Strategies as points: speed for one user against rate per GPU, the Pareto front as a line. Arrow keys go along it.

import { svg } from "./dom.js";
import { digits } from "./units.js";
import { t } from "./words.js";

const [LEAST, MOST, HEIGHT] = [300, 700, 320];
const EDGE = { left: 62, right: 16, top: 14, bottom: 44 };

const ticks = (low, high) => {
  const rough = (high - low) / 6 || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((by) => by * size).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) found.push(at);
  return found;
};

const scale = (values, from, to) => {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = (high - low || high || 1) * 0.08;
  const [start, end] = [Math.max(0, low - room), high + room];
  const place = (value) => from + ((value - start) / (end - start)) * (to - from);
  return { place, ticks: ticks(start, end) };
};

const axes = (across, up, width) => [
  ...across.ticks.flatMap((at) => [
    svg("line", { class: "grid", x1: across.place(at), x2: across.place(at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }),
    svg("text", { x: across.place(at), y: HEIGHT - EDGE.bottom + 16, "text-anchor": "middle" }, digits(at)),
  ]),
  ...up.ticks.flatMap((at) => [
    svg("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: up.place(at), y2: up.place(at) }),
    svg("text", { x: EDGE.left - 6, y: up.place(at) + 4, "text-anchor": "end" }, digits(at)),
  ]),
  svg("text", { x: (width + EDGE.left) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, t("axis-user")),
  svg(
    "text",
    { transform: `translate(14 ${(HEIGHT - EDGE.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
    t("axis-gpu"),
  ),
];

// `points`: [{x, y, label, isFront, isFeasible, isNow}]; `room` is its width in pixels; `pick` is called with the place of the point that
// was chosen.
export const chart = (points, line, room, pick) => {
  const width = Math.min(MOST, Math.max(LEAST, room));
  const across = scale(
    points.map((one) => one.x),
    EDGE.left,
    width - EDGE.right,
  );
  const up = scale(
    points.map((one) => one.y),
    HEIGHT - EDGE.bottom,
    EDGE.top,
  );
  const marks = points.map((one, place) => markOf(one, across.place(one.x), up.place(one.y), () => choose(place)));
  const choose = (place) => {
    marks.forEach((mark, at) => {
      mark.setAttribute("aria-checked", at === place);
      mark.setAttribute("tabindex", at === place ? 0 : -1);
    });
    pick(place);
  };
  const order = points.map((_, place) => place).sort((a, b) => points[a].x - points[b].x);
  const walk = (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const here = order.indexOf(marks.indexOf(event.target.closest(".point")));
    if (here < 0) return;
    if (event.key === "Enter" || event.key === " ") choose(order[here]);
    else if (step && order[here + step] !== undefined) {
      choose(order[here + step]);
      marks[order[here + step]].focus();
    } else return;
    event.preventDefault();
  };
  const first = Math.max(
    0,
    points.findIndex((one) => one.isNow),
  );
  marks.forEach((mark, place) => mark.setAttribute("tabindex", place === first ? 0 : -1));
  const path = line
    .map((place, at) => `${at ? "L" : "M"}${across.place(points[place].x)} ${up.place(points[place].y)}`)
    .join("");
  const drawn = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${HEIGHT}`,
      class: "chart",
      role: "radiogroup",
      "aria-label": t("chart"),
      on: { keydown: walk },
    },
    ...axes(across, up, width),
    svg("path", { class: "front", d: path }),
    ...marks,
  );
  return { drawn, choose };
};

const markOf = (point, x, y, run) =>
  svg(
    "g",
    {
      class: `point${point.isFront ? " on-front" : ""}${point.isNow ? " is-now" : ""}${point.isFeasible ? "" : " fails"}`,
      role: "radio",
      "aria-checked": "false",
      "aria-label": point.label,
      tabindex: -1,
      on: { click: run },
    },
    svg("title", {}, point.label),
    svg("circle", { class: "reach", cx: x, cy: y, r: 14 }),
    svg("circle", { cx: x, cy: y, r: point.isFront ? 6 : 5 }),
  );
