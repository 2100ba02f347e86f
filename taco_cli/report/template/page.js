"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const SVG = "http://www.w3.org/2000/svg";
  const COLOURS = 7;
  const DASHES = ["", "7 4", "2 4"];
  const UNITS = { steps: "steps", tokens: "tokens", seconds: "training time", flops: "FLOP" };
  const byId = (id) => document.getElementById(id);
  const host = byId("chart");
  const state = { metric: data.metric, axis: data.axis, log: false, whole: false, singles: false,
    noArms: new Set(), noSeeds: new Set(), cursor: null };
  let view = null; // what was drawn last: curves, scales, reading positions

  // ---------------------------------------------------------------- numbers

  const minus = (text) => text.replace("-", "−");
  function number(value, digits = 4) {
    if (value === null || !Number.isFinite(value)) return "–";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size < -4 || size > 8) return minus(value.toExponential(digits - 2));
    const places = Math.max(digits - 1 - size, 0);
    return minus(value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places }));
  }
  function time(seconds) {
    if (seconds < 120) return `${+seconds.toPrecision(3)} s`;
    return seconds < 7200 ? `${+(seconds / 60).toPrecision(3)} min` : `${+(seconds / 3600).toPrecision(3)} h`;
  }
  function position(value, axis) {
    if (axis === "seconds") return time(value);
    if (axis === "flops") return `${value.toExponential(2)} FLOP`;
    if (axis === "steps") return `step ${Math.round(value).toLocaleString("en")}`;
    for (const [size, suffix] of [[1e9, "B"], [1e6, "M"], [1e3, "k"]])
      if (value >= size) return `${+(value / size).toPrecision(4)} ${suffix} tokens`;
    return `${Math.round(value)} tokens`;
  }
  function tickText(value, axis) {
    if (value === 0) return "0";
    if (axis === "seconds") return time(value);
    for (const [size, suffix] of [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "B"], [1e6, "M"]])
      if (Math.abs(value) >= size) return `${+(value / size).toPrecision(3)} ${suffix}`;
    return value.toLocaleString("en");
  }

  // ---------------------------------------------------------------- curves

  const colour = (arm) => data.baseline < 0 ? 1 + arm % (COLOURS - 1) : arm === 0 ? 0 : 1 + (arm - 1) % (COLOURS - 1);
  const dash = (arm) => DASHES[Math.floor(Math.max(arm - (data.baseline < 0 ? 0 : 1), 0) / (COLOURS - 1)) % DASHES.length];
  const metric = () => data.metrics.find((entry) => entry.name === state.metric);

  function clock(series, row, i) {
    if (state.axis === "steps") return series.steps[i];
    if (state.axis === "seconds") return series.seconds[row][i];
    const tokens = typeof series.tokens === "number" ? series.tokens * series.steps[i] : series.tokens[row][i];
    return state.axis === "tokens" ? tokens : tokens * series.flopsPerToken[row];
  }
  /* Mean and interval over the seeds shown, at steps where every seed that gets that far has a value. */
  function curveOf(series) {
    const rows = series.seeds.map((seed, row) => row).filter((row) => !state.noSeeds.has(series.seeds[row]));
    const last = series.seeds.map((_, row) => series.values[row].findLastIndex((value) => value !== null));
    const points = [];
    for (let i = 0; i < series.steps.length && rows.length; i++) {
      const here = rows.filter((row) => series.values[row][i] !== null);
      if (!here.length || rows.some((row) => series.values[row][i] === null && last[row] > i)) continue;
      const n = here.length;
      const mean = here.reduce((sum, row) => sum + series.values[row][i], 0) / n;
      const square = here.reduce((sum, row) => sum + (series.values[row][i] - mean) ** 2, 0);
      const half = n > 1 ? data.t[n] * Math.sqrt(square / (n - 1) / n) : null;
      const x = here.reduce((sum, row) => sum + clock(series, row, i), 0) / n;
      points.push({ x, mean, half, n, step: series.steps[i] });
    }
    const singles = rows.map((row) => series.steps.map((_, i) => ({ x: clock(series, row, i), y: series.values[row][i] }))
      .filter((point) => point.y !== null));
    return { arm: series.arm, name: data.arms[series.arm].name, points, singles, most: rows.length };
  }

  // ---------------------------------------------------------------- scales

  function ticks(low, high, count) {
    const rough = (high - low) / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * .999) * power;
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(+(i * step).toPrecision(12));
    return found;
  }
  function timeTicks(high, count) {
    const unit = high < 120 ? 1 : high < 7200 ? 60 : 3600;
    return ticks(0, high / unit, count).map((value) => value * unit);
  }
  const TIMES = [1, 2, 5, 10, 20, 30, ...[1, 2, 5, 10, 20, 30].map((minutes) => 60 * minutes),
    ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((hours) => 3600 * hours)];
  function logTicks(low, high) {
    if (state.axis === "seconds" && low >= .5) return TIMES.filter((value) => value >= low && value <= high);
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const factor of [1, 2, 5]) {
        const value = factor * 10 ** power;
        if (value >= low * .999 && value <= high * 1.001) found.push(value);
      }
    return found.length > 9 ? found.filter((value) => /^1/.test(value.toExponential())) : found;
  }
  function xScale(curves, left, right) {
    const all = curves.flatMap((curve) => curve.points.map((point) => point.x));
    const high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    const positive = all.reduce((a, b) => b > 0 ? Math.min(a, b) : a, Infinity);
    if (state.log && positive < high) {
      const a = Math.log(positive), b = Math.log(high);
      const at = (x) => left + (right - left) * (Math.log(Math.max(x, positive)) - a) / (b - a);
      return { at, low: positive, high, ticks: logTicks(positive, high) };
    }
    const count = Math.max(2, Math.floor((right - left) / 90));
    return { at: (x) => left + (right - left) * x / high, low: 0, high,
      ticks: state.axis === "seconds" ? timeTicks(high, count) : ticks(0, high, count) };
  }
  /* Means and seeds fit into the frame; of the bands, which two seeds make enormous, what fits. */
  function extent(curves, from) {
    const values = [];
    for (const curve of curves) {
      for (const point of curve.points) if (point.x >= from) values.push(point.mean);
      for (const single of curve.singles) for (const point of single) if (point.x >= from) values.push(point.y);
    }
    return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
  }
  function yScale(curves, x, top, bottom) {
    let [low, high] = extent(curves, -Infinity), cut = false;
    if (!state.whole && !state.log) {
      const [nearLow, nearHigh] = extent(curves, x.high * .1);
      cut = nearHigh > nearLow && nearHigh - nearLow < .75 * (high - low);
      if (cut) [low, high] = [nearLow, nearHigh];
    }
    const margin = (high - low) * .07 || Math.abs(high) * .05 || 1;
    low -= margin; high += margin;
    const named = state.noArms.has(data.baseline) ? 0 : Math.min(meets(x).length, 2);
    low -= (high - low) * 17 * named / (bottom - top); // room for the names of the places where arms match the baseline
    return { at: (y) => bottom - (bottom - top) * (y - low) / (high - low), low, high, cut,
      ticks: ticks(low, high, Math.floor((bottom - top) / 60)) };
  }

  // ---------------------------------------------------------------- drawing

  function make(name, attributes = {}, parent = null, text = null) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }
  const round = (value) => Math.round(value * 10) / 10;
  const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join("");

  function draw() {
    const width = Math.max(host.clientWidth, 240), narrow = width < 560;
    const height = narrow ? Math.min(340, width * .95) : Math.min(520, Math.max(380, width * .58));
    const curves = metric().series.filter((series) => !state.noArms.has(series.arm)).map(curveOf)
      .filter((curve) => curve.points.length);
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    host.replaceChildren(svg);
    if (!curves.length) {
      make("text", { class: "empty", x: width / 2, y: height / 2 }, svg, "Nothing is selected.");
      view = null;
      return finish();
    }
    const names = labels(curves, narrow, width);
    const frame = { left: narrow ? 38 : 46, right: width - names.room, top: 26, bottom: height - 40 };
    const x = xScale(curves, frame.left, frame.right), y = yScale(curves, x, frame.top, frame.bottom);
    view = { svg, curves, frame, x, y, width, height, names, narrow, stops: stops(curves) };
    axes();
    const clip = make("clipPath", { id: "frame" }, make("defs", {}, svg));
    make("rect", { x: frame.left, y: frame.top, width: frame.right - frame.left + 3, height: frame.bottom - frame.top }, clip);
    const plot = make("g", { "clip-path": "url(#frame)", class: curves.length > 8 ? "crowded" : "" }, svg);
    const order = [...curves].sort((a, b) => (b.arm === data.baseline) - (a.arm === data.baseline));
    for (const curve of order) band(curve, plot);
    for (const curve of order) lines(curve, plot);
    target();
    endLabels();
    view.overlay = make("g", {}, svg);
    finish();
  }
  function stops(curves) {
    return [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b);
  }
  function axes() {
    const { svg, frame, x, y } = view;
    const places = Math.max(...y.ticks.map((value) => (String(value).split(".")[1] ?? "").length));
    for (const value of y.ticks) {
      const at = y.at(value), text = Math.abs(value) < 1e5 ? value.toFixed(Math.min(places, 6)) : tickText(value, "");
      make("line", { class: "grid-line", x1: frame.left, x2: frame.right, y1: at, y2: at }, svg);
      make("text", { class: "tick", x: frame.left - 8, y: at + 4, "text-anchor": "end" }, svg, minus(text));
    }
    let free = -Infinity;
    for (const value of x.ticks) {
      const at = x.at(value), text = tickText(value, state.axis), half = text.length * 3.4;
      if (at - half < free) continue;
      free = at + half + 10;
      make("line", { class: "grid-line", x1: at, x2: at, y1: frame.bottom, y2: frame.bottom + 4 }, svg);
      make("text", { class: "tick", x: at, y: frame.bottom + 19, "text-anchor": "middle" }, svg, text);
    }
    make("text", { class: "axis-name", x: frame.right, y: frame.bottom + 35, "text-anchor": "end" }, svg, UNITS[state.axis]);
    make("text", { class: "axis-name", x: 0, y: 10 }, svg, state.metric);
  }
  function band(curve, plot) {
    const { x, y } = view;
    const group = make("g", { class: `arm-${colour(curve.arm)}` }, plot);
    for (const part of runs(curve.points, (point) => point.half !== null)) {
      const up = part.map((point) => [x.at(point.x), y.at(point.mean + point.half)]);
      const down = part.map((point) => [x.at(point.x), y.at(point.mean - point.half)]).reverse();
      make("path", { class: "band", d: `${path([...up, ...down])}Z` }, group);
    }
  }
  function lines(curve, plot) {
    const { x, y } = view;
    const group = make("g", { class: `arm-${colour(curve.arm)}${curve.arm === data.baseline ? " baseline" : ""}` }, plot);
    if (state.singles)
      for (const single of curve.singles)
        make("path", { class: "single", d: path(single.map((point) => [x.at(point.x), y.at(point.y)])) }, group);
    const whole = curve.points.filter((point) => point.n === curve.most);
    const rest = curve.points.slice(Math.max(whole.length - 1, 0));
    const at = (points) => path(points.map((point) => [x.at(point.x), y.at(point.mean)]));
    if (whole.length > 1) make("path", { class: "curve", d: at(whole), "stroke-dasharray": dash(curve.arm) }, group);
    if (rest.length > 1) make("path", { class: "curve thin", d: at(rest) }, group);
    if (curve.points.length === 1)
      make("circle", { class: "at", cx: x.at(curve.points[0].x), cy: y.at(curve.points[0].mean), r: 4 }, group);
  }
  function runs(points, keep) {
    const parts = [[]];
    for (const point of points) keep(point) ? parts.at(-1).push(point) : parts.push([]);
    return parts.filter((part) => part.length > 1);
  }
  /* The baseline's final value, and where each arm reaches it. */
  function target() {
    const { svg, frame, x, y } = view;
    const goal = metric().target;
    if (goal === null || state.noArms.has(data.baseline) || goal < y.low || goal > y.high) return;
    const level = y.at(goal), group = make("g", {}, svg);
    make("line", { class: "target", x1: frame.left, x2: frame.right, y1: level, y2: level }, group);
    const falls = view.curves[0].points[0].mean > goal;
    make("text", { class: "target-name halo", x: frame.left + 6, y: level + (falls ? 16 : -8) }, group,
      `final ${data.arms[data.baseline].name}`);
    const ends = [];
    for (const match of meets(x)) {
      const at = x.at(match.at[state.axis]), own = make("g", { class: `arm-${colour(match.arm)}` }, group);
      let line = 0;
      while (ends[line] > at) line++;
      ends[line] = at + 46;
      const foot = frame.bottom - 7 - 15 * line;
      make("line", { class: "drop", x1: at, x2: at, y1: level, y2: frame.bottom }, own);
      make("circle", { class: "meet", cx: at, cy: level, r: 4.5 }, own);
      const edge = Math.min(Math.max(at, frame.left + 20), frame.right - 18);
      make("text", { class: "meet-name halo", x: edge, y: foot }, own, match.ratio[state.axis]);
    }
  }
  const meets = (x) => metric().matches.filter((match) => !state.noArms.has(match.arm) && match.ratio[state.axis]
    && match.at[state.axis] >= x.low && match.at[state.axis] <= x.high)
    .sort((a, b) => a.at[state.axis] - b.at[state.axis]);

  // ---------------------------------------------------------------- labels at the curves' ends

  const pen = document.createElement("canvas").getContext("2d");
  function measure(text, bold) {
    pen.font = `${bold ? 600 : 400} 12px ${getComputedStyle(document.body).fontFamily}`;
    return pen.measureText(text).width;
  }
  function shorten(text, most) {
    if (measure(text, true) <= most) return text;
    while (text.length > 3 && measure(`${text}…`, true) > most) text = text.slice(0, -1);
    return `${text}…`;
  }
  function labels(curves, narrow, width) {
    const most = narrow ? Math.min(104, width * .32) : Math.min(170, width * .22);
    const texts = new Map(curves.map((curve) => [curve.arm, shorten(curve.name, most)]));
    const longest = Math.max(...[...texts.values()].map((text) => measure(text, true)));
    return { texts, room: longest + (narrow ? 18 : 62) };
  }
  function endLabels() {
    const { svg, curves, frame, y, x, names, narrow } = view;
    const gap = 16, most = Math.floor((frame.bottom - frame.top) / gap);
    const last = (curve) => curve.points.at(-1);
    let placed = curves.map((curve) => ({ curve, want: Math.min(Math.max(y.at(last(curve).mean), frame.top), frame.bottom) }));
    placed.sort((a, b) => a.want - b.want);
    if (placed.length > most) { // too many to label: the first, the last and the baseline, the rest in the legend
      placed = placed.filter((item, i) => i === 0 || i === placed.length - 1 || item.curve.arm === data.baseline);
    }
    placed.forEach((item, i) => { item.y = i ? Math.max(item.want, placed[i - 1].y + gap) : item.want; });
    for (let i = placed.length - 1, floor = frame.bottom + 4; i >= 0; i--) {
      placed[i].y = Math.min(placed[i].y, floor);
      floor = placed[i].y - gap;
    }
    view.amounts = new Map();
    for (const { curve, want, y: at } of placed) {
      const group = make("g", { class: `arm-${colour(curve.arm)}` }, svg);
      const from = x.at(last(curve).x);
      make("path", { class: "leader", fill: "none", d: path([[Math.min(from + 3, frame.right), want], [frame.right + 3, want], [frame.right + 9, at]]) }, group);
      const text = make("text", { class: "end", x: frame.right + 12, y: at + 4 }, group, names.texts.get(curve.arm));
      if (!narrow) view.amounts.set(curve.arm, make("tspan", { class: "amount", dx: 6 }, text, number(last(curve).mean)));
    }
  }

  // ---------------------------------------------------------------- reading position

  function nearest(points, x) {
    let low = 0, high = points.length - 1;
    if (x > points[high].x) return null;
    while (low < high) {
      const middle = (low + high) >> 1;
      points[middle].x < x ? low = middle + 1 : high = middle;
    }
    return low && x - points[low - 1].x < points[low].x - x ? points[low - 1] : points[low];
  }
  function finish() {
    caption();
    read();
  }
  /* Show the values at the reading position, or the last ones where there is no position. */
  function read() {
    const stop = view && state.cursor !== null ? view.stops[Math.min(state.cursor, view.stops.length - 1)] : null;
    const found = new Map();
    for (const curve of view ? view.curves : [])
      found.set(curve.arm, stop === null ? curve.points.at(-1) : nearest(curve.points, stop));
    if (view) mark(stop, found);
    byId("reading").textContent = stop === null ? "At the end" : `At ${position(stop, state.axis)}`;
    fillReadout(found);
    describe(stop, found);
  }
  function mark(stop, found) {
    const { overlay, x, y, frame, amounts } = view;
    overlay.replaceChildren();
    for (const [arm, node] of amounts) node.textContent = number(found.get(arm)?.mean ?? null);
    if (stop === null) return;
    const at = x.at(stop);
    make("line", { class: "cursor", x1: at, x2: at, y1: frame.top, y2: frame.bottom }, overlay);
    const name = position(stop, state.axis), half = measure(name, true) / 2;
    const centre = Math.min(Math.max(at, frame.left + half), view.width - half - 2);
    make("text", { class: "cursor-name halo", x: centre, y: frame.top - 8, "text-anchor": "middle" }, overlay, name);
    for (const [arm, point] of found)
      if (point && point.mean >= y.low && point.mean <= y.high)
        make("circle", { class: `at arm-${colour(arm)}`, cx: x.at(point.x), cy: y.at(point.mean), r: 4.5 }, overlay);
  }
  function fillReadout(found) {
    for (const row of byId("readout").tBodies[0].rows) {
      const arm = Number(row.dataset.arm), point = found.get(arm) ?? null;
      row.classList.toggle("off", state.noArms.has(arm));
      row.cells[1].textContent = point ? number(point.mean) : "–";
      row.cells[2].textContent = point && point.half !== null ? `± ${number(point.half, 2)}` : "–";
      row.cells[3].textContent = point ? point.n : "–";
    }
  }
  let speak = 0;
  function describe(stop, found) {
    const values = [...found].filter(([, point]) => point).map(([arm, point]) => `${data.arms[arm].name} ${number(point.mean)}`);
    const text = `${stop === null ? "at the end" : position(stop, state.axis)}: ${values.join(", ")}`;
    const last = view ? view.stops.length - 1 : 0;
    host.setAttribute("aria-valuemax", last);
    host.setAttribute("aria-valuenow", state.cursor ?? last);
    host.setAttribute("aria-valuetext", text);
    clearTimeout(speak);
    if (stop !== null) speak = setTimeout(() => { byId("live").textContent = text; }, 400);
  }
  function caption() {
    const parts = [`Mean over seeds with ${data.interval} interval.`];
    if (view?.y.cut) parts.push("The first tenth runs out of the frame; “full height” shows it.");
    if (view?.curves.some((curve) => curve.points.some((point) => point.n < curve.most)))
      parts.push("Dotted: fewer seeds get that far.");
    if (view && !state.noArms.has(data.baseline) && meets(view.x).length) parts.push("Rings: where an arm first reaches the baseline’s final value.");
    byId("caption").textContent = parts.join(" ");
  }

  // ---------------------------------------------------------------- the curves as a table

  function fillTable() {
    const table = byId("values").querySelector("table");
    if (!byId("values").open || !view) return table.replaceChildren();
    const { stops: all, curves } = view, count = Math.min(all.length, 20);
    const chosen = Array.from({ length: count }, (_, i) => all[Math.round(i * (all.length - 1) / Math.max(count - 1, 1))]);
    const head = document.createElement("thead"), body = document.createElement("tbody");
    const row = (parent, cells, tag) => {
      const line = parent.insertRow();
      cells.forEach((text, i) => {
        const cell = document.createElement(i && !tag ? "td" : "th");
        cell.scope = tag ? "col" : "row";
        cell.textContent = text;
        line.append(cell);
      });
    };
    row(head, [UNITS[state.axis], ...curves.map((curve) => curve.name)], true);
    for (const stop of chosen) row(body, [position(stop, state.axis), ...curves.map((curve) => {
      const point = nearest(curve.points, stop);
      return point ? `${number(point.mean)}${point.half === null ? "" : ` ± ${number(point.half, 2)}`}` : "–";
    })]);
    table.replaceChildren(head, body);
  }

  // ---------------------------------------------------------------- controls

  function update() {
    draw();
    fillTable();
    for (const part of document.querySelectorAll("[data-metric]")) part.hidden = part.dataset.metric !== state.metric;
  }
  function check(parent, text, changed, classes = "") {
    const label = document.createElement("label"), box = document.createElement("input"), name = document.createElement("span");
    box.type = "checkbox";
    box.checked = true;
    label.className = classes;
    name.textContent = text;
    label.append(box, name);
    box.addEventListener("change", () => { changed(box.checked); update(); });
    parent.append(label);
    return label;
  }
  const flip = (set, item, on) => on ? set.delete(item) : set.add(item);

  data.arms.forEach((entry, arm) => {
    const row = byId("readout").tBodies[0].insertRow(), head = document.createElement("th");
    row.dataset.arm = arm;
    head.scope = "row";
    row.append(head);
    check(head, entry.name, (on) => flip(state.noArms, arm, on), `arm-${colour(arm)}`);
    for (let i = 0; i < 3; i++) row.insertCell().className = i ? "fine" : "";
  });
  const seeds = [...new Set(data.arms.flatMap((entry) => entry.seeds))].sort((a, b) => a - b);
  if (seeds.length > 1) for (const seed of seeds) check(byId("seeds"), String(seed), (on) => flip(state.noSeeds, seed, on));
  else byId("seeds").hidden = true;

  byId("metric").value = state.metric;
  byId("metric").addEventListener("change", (event) => { state.metric = event.target.value; state.cursor = null; update(); });
  for (const radio of document.querySelectorAll("input[name=axis]")) {
    radio.checked = radio.value === state.axis;
    radio.addEventListener("change", () => { state.axis = radio.value; state.cursor = null; update(); });
  }
  for (const key of ["log", "whole", "singles"]) {
    byId(key).checked = false;
    byId(key).addEventListener("change", (event) => { state[key] = event.target.checked; update(); });
  }
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  byId("values").addEventListener("toggle", fillTable);

  function point(event) {
    if (!view) return;
    const at = (event.clientX - host.getBoundingClientRect().left) * view.width / host.clientWidth;
    if (at < view.frame.left - 12) return;
    let best = 0;
    view.stops.forEach((stop, i) => { if (Math.abs(view.x.at(stop) - at) < Math.abs(view.x.at(view.stops[best]) - at)) best = i; });
    state.cursor = best;
    read();
  }
  host.addEventListener("pointermove", point);
  host.addEventListener("pointerdown", point);
  host.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") { state.cursor = null; read(); } });
  host.addEventListener("keydown", (event) => {
    if (!view) return;
    const last = view.stops.length - 1, here = state.cursor ?? last, step = event.shiftKey ? Math.ceil(last / 20) : 1;
    const to = { ArrowLeft: here - step, ArrowDown: here - step, ArrowRight: here + step, ArrowUp: here + step, PageDown: here - Math.ceil(last / 10),
      PageUp: here + Math.ceil(last / 10), Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    state.cursor = to === null ? null : Math.min(Math.max(to, 0), last);
    read();
  });
  new ResizeObserver(() => { if (!view || Math.abs(view.width - host.clientWidth) > 1) draw(); }).observe(host);
  update();
})();
