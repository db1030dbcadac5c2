"use strict";
// Shows the data that is in the page; what a plan contains is put in as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  // A text in the language of the page, part by part; its numbers stay as they are.
  const labels = new Map(Object.entries(data.labels ?? {}));
  const byParts = (text) => text.split(/( [·×] )/).map((part) => {
    const numbers = [], key = part.trim().replace(/\d+(?:[–.,]\d+)*/g, (number) => { numbers.push(number); return "{}"; });
    const label = labels.get(part.trim()) ?? labels.get(key);
    return label === undefined ? part : part.replace(part.trim(), () => label.replace(/\{\}/g, () => numbers.shift()));
  }).join("");
  const translated = (child) => (typeof child === "string" ? labels.get(child) ?? byParts(child) : child);
  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
      else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== undefined && child !== "").map(translated));
    return element;
  };
  const svg = (name, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = translated(text);
    return element;
  };
  const digits = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString());
  const ms = (value) => (value === 0 ? "0" : value >= 10000 ? `${digits(value / 1000)} s` : value < 0.1 ? `${digits(value * 1000)} µs` : `${digits(value)} ms`);
  const scaled = (value, units) => {
    let place = 0;
    while (value >= 999.5 && place < units.length - 1) [value, place] = [value / 1000, place + 1];
    return `${digits(value)} ${units[place]}`;
  };
  const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);
  const flops = (value) => scaled(value, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
  // "47.6–166 ms", or with both units where they differ.
  const between = (range, write) => {
    if (!range) return "";
    const [low, high] = range.map((end) => write(end).split(" "));
    return `${low[1] === high[1] ? low[0] : low.join(" ")}–${high.join(" ")}`;
  };
  const facts = (rows) => make("dl", { class: "facts" }, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  const keyOf = (name, colour) => { const key = make("i", { class: "area" }); key.style.background = colour; return make("span", { class: "key" }, key, name); };
  const bar = (parts, whole) => make("div", { class: "bar", role: "img", "aria-label": parts.map(([name, value, , text]) => `${name} ${text ?? digits(value)}`).join(", ") },
    ...parts.map(([name, value, colour, text]) => {
      const piece = make("i", { title: `${name}: ${text ?? digits(value)}` });
      piece.style.cssText = `width:${(100 * value) / whole}%;background:${colour}`;
      return piece;
    }));

  for (const part of document.querySelectorAll("nav a, h2, button, label")) for (const child of part.childNodes) if (child.nodeType === 3) child.data = translated(child.data);

  // The head of the page.
  const { figures } = data;
  const errors = data.findings.filter((finding) => finding.severity === "error").length;
  $("strategy").append(data.strategy ? `${data.strategy} · ` : "", make("b", { class: data.valid ? "good" : "bad" }, data.valid ? "valid" : `not valid: ${errors} error${errors === 1 ? "" : "s"}`), data.note ? ` · ${data.note}` : "");
  const cost = figures && figures.cost;
  const shown = figures ? [
    ...[["TTFT", "ttft_ms"], ["TPOT", "tpot_ms"], ["end to end", "end_to_end_ms"]].map(([name, field]) => [name, ms(figures.latency[field]), between(figures.ranges[field], ms)]),
    ...[["tokens/s", "dp_scaled_tokens_per_s"], ["tokens/s per GPU", "output_tokens_per_s_per_gpu"]].map(([name, field]) => [name, digits(figures.throughput[field]), between(figures.ranges[field], digits)]),
    ...(cost ? [["million tokens", `${digits(cost.per_million_output_tokens)} ${cost.unit === "usd" ? "USD" : "GPU-s"}`, between(cost.per_million_output_tokens_range, digits)]] : []),
  ] : [["estimate", data.no_figures]];
  $("figures").append(...shown.map(([name, value, range]) => make("div", {}, make("dt", {}, name), make("dd", {}, value, range ? make("span", {}, range) : ""))));
  if (shown.some(([, , range]) => range)) $("ranges").append(translated("Below a figure its 90% range: 90% of the measured runs of such deployments lay as near to their predictions."));
  // In a frame the page around it says the figures.
  document.body.classList.toggle("framed", window !== window.parent);

  // The plan: a box is made when the box around it is opened.
  const parents = new Map();
  const elements = new Map();
  const inside = (number) => data.boxes[number].parts.flat(2);
  data.boxes.forEach((box, number) => inside(number).forEach((child) => parents.set(child, number)));
  const leafGroup = (box) => !box.parts.length && box.members.length > 1;
  const canOpen = (number) => data.boxes[number].parts.length > 0 || leafGroup(data.boxes[number]);
  const deviceNames = (box) => box.devices.map((place) => data.devices[place]);
  const titled = (box) => `${box.title || "Plan"}${box.times > 1 ? ` × ${box.times}` : ""}`;
  let chosen = 0;

  const phaseOf = (number) => {
    for (let at = number; at !== undefined; at = parents.get(at)) if (data.boxes[at].kind === "phase") return data.boxes[at].title.toLowerCase();
    return undefined;
  };
  // Share of the critical path of its phase, in per cent.
  const partOf = (number) => {
    const timeline = data.timelines.find((candidate) => candidate.phase === phaseOf(number));
    return timeline && data.boxes[number].critical_ms ? (100 * data.boxes[number].critical_ms) / timeline.ms : undefined;
  };

  const boxElement = (number) => {
    if (elements.has(number)) return elements.get(number);
    const box = data.boxes[number];
    const turn = !canOpen(number) ? "" : make("button", { type: "button", class: "turn", tabindex: -1, "aria-hidden": true, on: { click: (event) => { event.stopPropagation(); turnBox(number); } } }, "▸");
    const worst = box.findings.some((place) => data.findings[place].severity === "error") ? "" : "warning";
    const part = partOf(number);
    const badge = box.findings.length ? make("span", { class: `badge ${worst}`, title: "findings here" }, `${box.findings.length}`)
      : box.findings_inside ? make("span", { class: "badge within", title: "findings inside" }, `${box.findings_inside}`) : "";
    const share = part === undefined || part < 0.05 || box.kind === "phase" ? "" : make("span", { class: "share", title: "of the critical path" }, `${part.toFixed(1)}%`);
    const label = [`${titled(box)}`, ...box.lines, box.findings.length ? `${box.findings.length} findings` : "", box.critical_ms ? `${ms(box.critical_ms)} on the critical path` : ""];
    const element = make("div", {
      class: `box kind-${box.kind}${box.findings.length ? " faulty" : ""}${box.critical_ms && !box.parts.length ? " critical" : ""}`,
      role: "treeitem", tabindex: -1, "aria-label": label.filter(Boolean).join(", "), "aria-expanded": canOpen(number) ? "false" : undefined, id: `box-${number}`,
    }, make("div", { class: "head", on: { click: () => choose(number, true), dblclick: () => turnBox(number) } }, turn,
      make("span", {}, make("b", {}, titled(box)), make("span", { class: "lines" }, box.lines.join(" · ")), share), badge));
    elements.set(number, element);
    return element;
  };

  const openBox = (number) => {
    const element = boxElement(number);
    const box = data.boxes[number];
    if (!canOpen(number) || element.classList.contains("open")) return;
    element.classList.add("open");
    element.setAttribute("aria-expanded", "true");
    element.querySelector(".turn").textContent = "▾";
    if (!element.querySelector(":scope > .inside, :scope > .more")) {
      if (leafGroup(box)) element.append(make("div", { class: "more" }, box.members.slice(0, 200).map((member) => data.nodes[member].devices.map((place) => data.devices[place]).join(" ") || data.nodes[member].id).join(", "), box.members.length > 200 ? ` and ${box.members.length - 200} more` : ""));
      else {
        const wires = svg("svg", { class: "wires", "aria-hidden": "true" });
        const space = make("div", { class: `inside${box.goes_down ? " down" : ""}`, role: "group" }, wires,
          ...box.parts.map((part) => make("div", { class: "part" }, ...part.map((column) => make("div", { class: "column" }, ...column.map(boxElement))))));
        element.append(space);
        new ResizeObserver(() => draw(space, wires, box.links)).observe(space);
      }
    }
  };
  const foldBox = (number) => {
    const element = elements.get(number);
    if (!element || !element.classList.contains("open") || number === 0) return;
    element.classList.remove("open");
    element.setAttribute("aria-expanded", "false");
    element.querySelector(".turn").textContent = "▸";
    element.querySelectorAll(":scope > .inside, :scope > .more").forEach((child) => child.remove());
    // What was inside is made anew when it is opened again.
    const forget = (box) => inside(box).forEach((child) => { forget(child); elements.delete(child); });
    forget(number);
  };
  const turnBox = (number) => (elements.get(number).classList.contains("open") ? foldBox(number) : openBox(number));

  const draw = (space, wires, links) => {
    // Also told when it is folded and gone.
    if (!space.isConnected) return;
    const base = space.getBoundingClientRect();
    const spot = (number) => {
      const rect = elements.get(number).getBoundingClientRect();
      return { left: rect.left - base.left, right: rect.right - base.left, top: rect.top - base.top, bottom: rect.bottom - base.top, x: (rect.left + rect.right) / 2 - base.left, y: (rect.top + rect.bottom) / 2 - base.top };
    };
    wires.replaceChildren(...links.flatMap((link) => {
      const [from, to] = [spot(link.source), spot(link.target)];
      let path, end, label;
      if (to.left >= from.right - 1) {
        const middle = (from.right + to.left) / 2;
        const [y, to_y] = [Math.min(from.y, from.top + 120), Math.min(to.y, to.top + 120)];
        path = `M${from.right} ${y}C${middle} ${y} ${middle} ${to_y} ${to.left} ${to_y}`;
        end = `M${to.left - 5} ${to_y - 4}L${to.left} ${to_y}L${to.left - 5} ${to_y + 4}`;
        label = [middle, y - 6];
      } else if (to.top >= from.bottom - 1) {
        const overlaps = to.left < from.right && from.left < to.right;
        const [start, x] = overlaps ? Array(2).fill(Math.max(from.left, to.left) + 24) : [from.x, to.x];
        const middle = (from.bottom + to.top) / 2;
        path = `M${start} ${from.bottom}C${start} ${middle} ${x} ${middle} ${x} ${to.top}`;
        end = `M${x - 4} ${to.top - 5}L${x} ${to.top}L${x + 4} ${to.top - 5}`;
        label = [x + 8, (from.bottom + to.top) / 2 + 4];
      } else {
        const low = Math.max(from.bottom, to.bottom) + 14;
        path = `M${from.x} ${from.bottom}C${from.x} ${low} ${to.x} ${low} ${to.x} ${to.bottom}`;
        end = `M${to.x - 4} ${to.bottom + 5}L${to.x} ${to.bottom}L${to.x + 4} ${to.bottom + 5}`;
        label = [(from.x + to.x) / 2, low];
      }
      const line = svg("path", { d: path + end, class: `link-${link.kind}${link.is_faulty ? " faulty" : ""}` });
      // Between boxes side by side there is room for a label from the top down.
      const turned = to.left >= from.right - 1 ? { transform: `rotate(90 ${label[0]} ${label[1]})`, dx: 14, dy: -2 } : {};
      return link.label ? [line, svg("text", { x: label[0], y: label[1], ...turned }, link.label)] : [line];
    }));
  };

  const reveal = (number) => {
    const way = [];
    for (let at = parents.get(number); at !== undefined; at = parents.get(at)) way.unshift(at);
    way.forEach(openBox);
  };
  const choose = (number, keepsPlace = false) => {
    reveal(number);
    const before = elements.get(chosen);
    if (before) { before.classList.remove("chosen"); before.tabIndex = -1; before.removeAttribute("aria-selected"); }
    chosen = number;
    const element = boxElement(number);
    element.classList.add("chosen");
    element.tabIndex = 0;
    element.setAttribute("aria-selected", "true");
    $("details").hidden = false;
    element.focus({ preventScroll: keepsPlace });
    if (!keepsPlace) element.scrollIntoView({ block: "center", inline: "nearest" });
    showDetails(number);
  };

  const memoryOf = (names) => {
    const gpus = data.racks.flatMap((rack) => rack.nodes).flatMap((node) => node.gpus).filter((gpu) => gpu.memory_bytes && names.has(data.devices[gpu.device]));
    const used = (gpu) => gpu.memory_bytes.reduce((a, b) => a + b, 0);
    return gpus.sort((a, b) => used(b) / b.usable_bytes - used(a) / a.usable_bytes).map((gpu) => `${bytes(used(gpu))} of ${bytes(gpu.usable_bytes)} (${data.devices[gpu.device]}${gpus.length > 1 ? ", the fullest" : ""})`)[0];
  };
  const showDetails = (number) => {
    const box = data.boxes[number];
    const devices = new Set(deviceNames(box));
    const rows = [["what", box.type || "the whole plan"], ...box.lines.map((line) => ["", line]),
      ...(box.members.length ? [["name", box.members.slice(0, 12).map((member) => data.nodes[member].id).join(", ") + (box.members.length > 12 ? ` and ${box.members.length - 12} more` : "")]] : []),
      ["GPUs", devices.size ? `${devices.size}: ${[...devices].slice(0, 16).join(" ")}${devices.size > 16 ? " …" : ""}` : "none named"],
      ...(memoryOf(devices) ? [["memory", memoryOf(devices)]] : []),
      ...(box.critical_ms ? [["critical path", `${ms(box.critical_ms)}${partOf(number) !== undefined ? `, ${digits(partOf(number))}% of the ${phaseOf(number) === "prefill" ? "pass" : "step"}` : ", both phases"}`]] : []),
      ...(box.flops ? [["computes", flops(box.flops)]] : []), ...(box.bytes ? [["reads, writes", bytes(box.bytes)]] : []), ...(box.sent_bytes ? [["sends", bytes(box.sent_bytes)]] : [])];
    const boxFindings = box.findings.map((place) => data.findings[place]);
    const broken = new Set(boxFindings.map((finding) => finding.rule));
    const rules = (data.judged[box.type] ?? []).map((place) => data.rules[place]);
    const close = make("button", { type: "button", class: "close", on: { click: () => { $("details").hidden = true; } } }, "Close");
    $("details").replaceChildren(close, make("h3", {}, titled(box)), facts(rows),
      ...(boxFindings.length ? [make("h3", { class: "bad" }, "Findings"), make("ul", {}, ...boxFindings.map((finding) => make("li", {}, make("b", {}, finding.rule), ` ${finding.message}. `, make("span", { class: "soft" }, finding.remedy))))] : []),
      ...(rules.length ? [make("h3", {}, `Rules that look at it (${rules.length})`), make("ul", {}, ...rules.map((rule) => make("li", {}, make("b", { class: broken.has(rule.id) ? "bad" : "good" }, `${rule.id} ${broken.has(rule.id) ? "✗" : "✓"}`), ` ${rule.requirement}`)))] : []));
  };

  // Keys of a tree: https://www.w3.org/WAI/ARIA/apg/patterns/treeview/.
  const visible = () => [...$("tree").querySelectorAll(".box")].map((box) => Number(box.id.slice(4)));
  $("tree").addEventListener("keydown", (event) => {
    const order = visible();
    const at = order.indexOf(chosen);
    const isOpen = elements.get(chosen).classList.contains("open");
    const moves = {
      ArrowDown: () => order[at + 1], ArrowUp: () => order[at - 1], Home: () => order[0], End: () => order[order.length - 1],
      ArrowRight: () => { if (!isOpen) { openBox(chosen); return chosen; } return inside(chosen)[0]; },
      ArrowLeft: () => { if (isOpen && chosen !== 0) { foldBox(chosen); return chosen; } return parents.get(chosen); },
      Enter: () => { turnBox(chosen); return chosen; }, " ": () => { turnBox(chosen); return chosen; },
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    const next = moves[event.key]();
    if (next !== undefined) choose(next);
  });

  // At first so much is open as can be taken in at a glance.
  const openTo = (most) => {
    let level = [0];
    let count = 1;
    while (level.length) {
      const next = level.flatMap((number) => inside(number));
      if ((count += next.length) > most) break;
      level.filter((number) => data.boxes[number].parts.length).forEach(openBox);
      level = next;
    }
  };
  $("tree").append(boxElement(0));
  openBox(0);
  openTo(120);
  $("open-all").addEventListener("click", () => data.boxes.slice(0, 3000).forEach((box, number) => { if (box.parts.length) { reveal(number); openBox(number); } }));
  $("fold-all").addEventListener("click", () => { inside(0).forEach(foldBox); choose(0, true); });
  const lit = () => document.body.classList.toggle("lit", $("lit").checked);
  $("lit").addEventListener("change", lit);
  lit();
  const linkNames = { data: "data", synchronization: "collective", pipeline: "pipeline send/recv", kv_cache: "KV cache", stray: "edge across boxes" };
  const drawn = new Set(data.boxes.flatMap((box) => box.links.map((link) => link.kind)));
  $("legend").append(...Object.entries(linkNames).filter(([kind]) => drawn.has(kind)).map(([kind, name]) => make("span", { class: "key" }, make("i", { class: `fill-${kind}` }), name)), make("span", { class: "key" }, make("i", { class: "frame" }), "on the critical path"), make("span", { class: "key" }, "× N: N alike, the first is drawn"));

  // Search: all words have to stand in what a box says, in the names of its nodes, or in its GPUs.
  let texts, hits = [], hit = -1;
  const layersOf = (box) => { const span = /layers? (\d+)(?:–(\d+))?/i.exec([box.title, ...box.lines].join(" ")); return span ? [Number(span[1]), Number(span[2] ?? span[1])] : undefined; };
  const search = () => {
    texts ??= data.boxes.map((box) => [box.title, box.type, ...box.lines, ...box.members.map((member) => data.nodes[member].id), ...(box.parts.length && box.members.length < 2 ? [] : deviceNames(box))].join("\n").toLowerCase());
    const query = $("search").value.trim().toLowerCase();
    const layer = /^layer (\d+)$/.exec(query);
    const words = query.split(/\s+/).filter(Boolean);
    hits = !words.length ? [] : data.boxes.flatMap((box, number) => {
      const span = layer && (box.kind === "block" || (box.kind === "stage" && box.times > 1)) ? layersOf(box) : undefined;
      const fits = layer ? span && span[0] <= Number(layer[1]) && Number(layer[1]) <= span[1] : words.every((word) => texts[number].includes(word));
      return fits ? [number] : [];
    });
    hit = -1;
    document.querySelectorAll(".hit").forEach((box) => box.classList.remove("hit"));
    $("hits").textContent = words.length ? `${hits.length} box${hits.length === 1 ? "" : "es"}` : "";
    hits.slice(0, 200).forEach((number) => elements.get(number)?.classList.add("hit"));
  };
  const nextHit = () => {
    if (!hits.length) return;
    hit = (hit + 1) % hits.length;
    choose(hits[hit]);
    elements.get(hits[hit]).classList.add("hit");
    $("hits").textContent = `${hit + 1} of ${hits.length}`;
  };
  $("search").addEventListener("input", search);
  $("search").addEventListener("keydown", (event) => { if (event.key === "Enter") nextHit(); });
  $("next").addEventListener("click", nextHit);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); $("search").focus(); }
  });
  const find = (words) => { $("search").value = words; search(); nextHit(); };

  // Findings.
  $("findings-list").append(...(data.findings.length ? data.findings.map((finding) => make("button", { type: "button", class: "finding", on: { click: () => choose(finding.boxes[0] ?? 0) } },
    make("span", {}, make("b", { class: finding.severity === "error" ? "bad" : "late" }, `${finding.rule} ${finding.severity}`), ` ${finding.message}`), make("span", { class: "soft" }, finding.remedy))) : [make("p", {}, "None: every rule holds.")]));

  // The timeline: a canvas a phase, which zooms by wheel, buttons and keys.
  const colours = { compute: "--compute", links: "--communication", critical: "--lit" };
  const timelineOf = (timeline) => {
    const [row, top, side] = [26, 22, 150];
    const canvas = make("canvas", { class: "lane", tabindex: 0, role: "img", "aria-label": `${timeline.phase}: ${timeline.lanes.length} lanes over ${ms(timeline.ms)}. Plus and minus zoom, arrows move.` });
    const hint = make("p", { class: "soft" }, "Point at an operator; wheel or + and − zoom, arrows move, 0 shows all.");
    const whole = timeline.ms * 1000;
    let from = 0, span = whole;
    const paint = () => {
      const style = getComputedStyle(document.documentElement);
      const colour = (name) => style.getPropertyValue(name);
      const [width, height, dots] = [canvas.clientWidth, top + timeline.lanes.length * row + 4, devicePixelRatio];
      canvas.style.height = `${height}px`;
      [canvas.width, canvas.height] = [width * dots, height * dots];
      const pen = canvas.getContext("2d");
      pen.scale(dots, dots);
      pen.font = "11px system-ui,sans-serif";
      pen.textBaseline = "middle";
      const scale = (width - side) / span;
      const step = 10 ** Math.floor(Math.log10(span / 3));
      for (let tick = Math.ceil(from / step) * step; tick <= from + span; tick += step * ((width - side) / (span / step) < 60 ? 2 : 1)) {
        pen.fillStyle = colour("--soft");
        pen.fillText(ms(tick / 1000), side + (tick - from) * scale + 3, top / 2);
        pen.fillStyle = colour("--rule");
        pen.fillRect(side + (tick - from) * scale, 4, 1, height);
      }
      timeline.lanes.forEach((lane, number) => {
        const y = top + number * row;
        const names = lane.devices.map((place) => data.devices[place]);
        pen.fillStyle = colour("--ink");
        pen.fillText(`${names[0]}${names.length > 1 ? ` +${names.length - 1}` : ""} ${lane.name}`, 2, y + row / 2, side - 8);
        pen.save();
        pen.beginPath();
        pen.rect(side, y, width - side, row);
        pen.clip();
        for (let at = 0; at < lane.events.length; at += 5) {
          const [name, , start, length, critical] = lane.events.slice(at, at + 5);
          if (start + length < from || start > from + span) continue;
          const [x, wide] = [side + (start - from) * scale, Math.max(length * scale, 0.5)];
          pen.fillStyle = colour(lane.name.startsWith("links") ? colours.links : colours.compute);
          pen.fillRect(x, y + 3, wide > 3 ? wide - 0.7 : wide, row - 8);
          if (critical) { pen.fillStyle = colour(colours.critical); pen.fillRect(x, y + row - 5, wide, 3); }
          if (wide > 46) { pen.fillStyle = colour("--paper"); pen.fillText(timeline.names[name], x + 3, y + row / 2 - 1, wide - 6); }
        }
        pen.restore();
      });
    };
    const look = (start, length) => {
      span = Math.min(whole, Math.max(length, whole / 1e5));
      from = Math.min(Math.max(0, start), whole - span);
      requestAnimationFrame(paint);
    };
    const zoom = (factor, at = from + span / 2) => look(at - (at - from) / factor, span / factor);
    const timeAt = (event) => from + (span * (event.offsetX - side)) / (canvas.clientWidth - side);
    canvas.addEventListener("wheel", (event) => { if (event.ctrlKey || event.shiftKey || event.altKey || document.activeElement === canvas) { event.preventDefault(); zoom(event.deltaY < 0 ? 1.4 : 1 / 1.4, timeAt(event)); } }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const keys = { "+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5), 0: () => look(0, whole), ArrowLeft: () => look(from - span / 4, span), ArrowRight: () => look(from + span / 4, span) };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
    let drag;
    canvas.addEventListener("pointerdown", (event) => { drag = [event.offsetX, from]; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { drag = undefined; });
    canvas.addEventListener("pointermove", (event) => {
      if (drag) { look(drag[1] - ((event.offsetX - drag[0]) * span) / (canvas.clientWidth - side), span); return; }
      const lane = timeline.lanes[Math.floor((event.offsetY - top) / row)];
      const at = timeAt(event);
      if (!lane || event.offsetX < side) return;
      for (let place = 0; place < lane.events.length; place += 5) {
        const [name, layer, start, length, critical] = lane.events.slice(place, place + 5);
        if (start <= at && at < start + length) {
          hint.textContent = `${timeline.names[name]}${layer >= 0 ? `, layer ${layer}` : ""}: ${ms(length / 1000)} from ${ms(start / 1000)} on ${lane.devices.length} GPU${lane.devices.length > 1 ? "s" : ""}${critical ? ", on the critical path" : ""}`;
          return;
        }
      }
    });
    new ResizeObserver(() => requestAnimationFrame(paint)).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
    const button = (text, run) => make("button", { type: "button", on: { click: run } }, text);
    return make("div", {}, make("h3", {}, `${timeline.phase === "prefill" ? "One prefill pass" : "One decode step"}: ${ms(timeline.ms)} on the GPUs${timeline.is_folded ? ", like layers as one" : ""}`),
      make("div", { class: "tools" }, button("Zoom in", () => zoom(2)), button("Zoom out", () => zoom(0.5)), button("All", () => look(0, whole)), button("◂", () => look(from - span / 4, span)), button("▸", () => look(from + span / 4, span))), canvas, hint);
  };
  $("timelines").append(...(data.timelines.length ? data.timelines.map(timelineOf) : [make("p", {}, data.no_figures)]));

  // The cluster.
  const terms = [["weights", "--weights"], ["KV cache", "--kv-cache"], ["activations", "--activation"], ["communication", "--communication"]];
  const gpuElement = (gpu) => {
    const used = gpu.memory_bytes ? gpu.memory_bytes.reduce((a, b) => a + b, 0) : 0;
    return make("button", { type: "button", class: "gpu", title: "Show its boxes", on: { click: () => find(data.devices[gpu.device]) } }, make("b", {}, data.devices[gpu.device]),
      ...(gpu.memory_bytes ? [bar(terms.map(([name, colour], place) => [name, gpu.memory_bytes[place], `var(${colour})`, bytes(gpu.memory_bytes[place])]), gpu.usable_bytes), make("span", { class: used > gpu.usable_bytes ? "bad" : "soft" }, `${bytes(used)} of ${bytes(gpu.usable_bytes)}`)] : []),
      ...gpu.holds.map((line) => make("span", {}, line)));
  };
  const nodes = data.racks.flatMap((rack) => rack.nodes);
  const nodeElement = (node) => {
    const element = make("details", { class: "node" }, make("summary", {}, `${node.name}: ${node.gpus.length} GPU${node.gpus.length === 1 ? "" : "s"}${node.idle ? `, ${node.idle} idle` : ""}`));
    element.addEventListener("toggle", () => { if (element.open && !element.querySelector(".gpus")) element.append(make("div", { class: "gpus" }, ...node.gpus.map(gpuElement))); });
    element.open = nodes.length <= 16;
    return element;
  };
  $("racks").append(make("p", { class: "soft" }, ...terms.map(([name, colour]) => keyOf(name, `var(${colour})`))),
    ...data.racks.map((rack) => make("div", {}, make("h3", {}, rack.name), make("div", { class: "nodes" }, ...rack.nodes.map(nodeElement)))));

  // Where the time goes.
  const breakdown = (name, parts, explained) => {
    const kinds = [["compute", parts.compute_ms], ["memory", parts.memory_ms], ["communication", parts.communication_ms], ["bubble", parts.bubble_ms]];
    const whole = kinds.reduce((sum, [, value]) => sum + value, 0);
    return make("div", {}, make("h3", {}, `${name}: ${ms(whole)}`), bar(kinds.map(([kind, value]) => [kind, value, `var(--${kind})`, ms(value)]), whole),
      make("p", { class: "soft" }, ...kinds.filter(([, value]) => value > 0).map(([kind, value]) => keyOf(`${kind} ${ms(value)}`, `var(--${kind})`))),
      ...(explained ? [make("div", { class: "wide" }, make("table", {}, make("tr", {}, ...["largest costs", "layers", "time", "share", "waits for"].map((head) => make("th", {}, head))),
        ...explained.largest.map((row) => make("tr", {}, make("td", {}, row.what), make("td", { class: "n" }, row.layers ? `${row.layers}` : ""), make("td", { class: "n" }, ms(row.ms)), make("td", { class: "n" }, `${digits(row.share_pct)}%`), make("td", {}, row.resource)))))] : []));
  };
  if (figures) {
    const { latency, explanation } = figures;
    $("breakdown").append(facts([["TTFT", `${ms(latency.ttft_ms)}, of it the prefill pass ${ms(latency.prefill_ms)}; a request alone ${ms(latency.alone.ttft_ms)}`], ["TPOT", `${ms(latency.tpot_ms)}; a request alone ${ms(latency.alone.tpot_ms)}`], ["end to end", `${ms(latency.end_to_end_ms)}, after the first token ${ms(latency.decode_ms)}`], ["load", figures.load.load],
      ...(explanation && explanation.kv_transfer_ms ? [["KV cache", `${ms(explanation.kv_transfer_ms)} on its way from prefill to decode`]] : [])]),
      make("div", { class: "pair" }, breakdown("One prefill pass", latency.prefill, explanation && explanation.prefill), breakdown("One decode step", latency.decode_step, explanation && explanation.decode)));
  } else $("breakdown").append(make("p", {}, data.no_figures));

  const fromHash = () => { const name = /^#box-(\d+)$/.exec(location.hash); if (name && data.boxes[name[1]]) choose(Number(name[1])); };
  addEventListener("hashchange", fromHash);
  chosen = 0;
  elements.get(0).tabIndex = 0;
  showDetails(data.findings.length ? data.findings[0].boxes[0] ?? 0 : 0);
  if (data.findings.length && data.findings[0].boxes.length) data.findings.slice(0, 20).forEach((finding) => finding.boxes.slice(0, 4).forEach(reveal));
  // On a narrow page the details cover the plan: they come with the first box that is chosen.
  $("details").hidden = matchMedia("(max-width:900px)").matches;
  fromHash();
})();
