// What both pages share: words, elements, step functions, scales and the time axis.
// Drawn by hand as SVG: the pictures are step functions with hatching and marks, must print sharply, follow the colour
// scheme by CSS and carry labels for screen readers. A plotting library draws on a canvas, which does none of that, and
// would be most of the page's script. Text from a run reaches the page through textContent only, never as markup.
const byId = (id) => document.getElementById(id);

// ---- words ------------------------------------------------------------------------------------------------------
const two = (n) => String(n).padStart(2, "0");
const number = (n) => n.toLocaleString("en-US", { maximumFractionDigits: 1 });
const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
function span(ms) {
  const s = Math.abs(ms) / 1000;
  if (s === 0) return "0s";
  if (s < 1) return `${Math.round(s * 1000)}ms`;
  if (s < 10) return `${Math.round(s * 10) / 10}s`;
  const [d, h, m, r] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60, Math.floor(s) % 60];
  if (d) return h ? `${d}d${two(h)}h` : `${d}d`;
  if (h) return m ? `${h}h${two(m)}m` : `${h}h`;
  if (m) return r ? `${m}m${two(r)}s` : `${m}m`;
  return `${r}s`;
}
// A length of time to the second or to the minute, so that neighbouring ticks never read alike.
function exactly(ms, step) {
  const s = Math.round(ms / 1000);
  const parts = [[Math.floor(s / 86400), "d"], [Math.floor(s / 3600) % 24, "h"], [Math.floor(s / 60) % 60, "m"], [s % 60, "s"]];
  const units = step < 60000 ? 4 : step < 3600000 ? 3 : step < 86400000 ? 2 : 1;
  const shown = parts.slice(0, units).filter(([n]) => n > 0).map(([n, unit]) => `${n}${unit}`);
  return shown.length ? shown.join("") : "0";
}
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const dayOf = (date) => `${MONTHS[date.getUTCMonth()]} ${date.getUTCDate()}`;
// The wall clock in UTC, as exact as the ticks are apart; with the day where a view has several.
function clockTick(ms, step, withDay) {
  const date = new Date(ms);
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}${step < 60000 ? ":" + two(date.getUTCSeconds()) : ""}`;
  if (step >= 86400000) return dayOf(date);
  return withDay ? `${dayOf(date)} ${time}` : time;
}

// ---- elements ---------------------------------------------------------------------------------------------------
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);
const cut = (words, most) => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

// ---- step functions: [[from when, value], …] ----------------------------------------------------------------------
function placeAt(points, t) {
  let low = 0;
  let high = points.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (points[middle][0] <= t) low = middle;
    else high = middle - 1;
  }
  return low;
}
function valueAt(points, t) {
  const place = placeAt(points, t);
  return points.length && points[place][0] <= t ? points[place][1] : 0;
}
// The part inside the view, beginning exactly where the view does.
function visible(points, view) {
  const shown = [[view.from, valueAt(points, view.from)]];
  for (let i = points.length ? placeAt(points, view.from) : 0; i < points.length && points[i][0] < view.to; i++) {
    if (points[i][0] > view.from) shown.push(points[i]);
  }
  return shown;
}
const maxOf = (points, view) => visible(points, view).reduce((max, [, v]) => Math.max(max, v), 0);
function integral(points, view) {
  const shown = visible(points, view);
  return shown.reduce((sum, [t, v], i) => sum + v * ((i + 1 < shown.length ? shown[i + 1][0] : view.to) - t), 0);
}
// Several points of one pixel column become their peak and their last value: no peak is lost, and no screen shows more.
function stepPath(points, x, y, view) {
  let path = "";
  let column = null;
  let peak = 0;
  const shown = visible(points, view);
  shown.forEach(([t, v], i) => {
    const px = x(t).toFixed(1);
    peak = px === column ? Math.max(peak, v) : v;
    column = px;
    const next = i + 1 < shown.length ? x(shown[i + 1][0]).toFixed(1) : null;
    if (i === 0) path = `M${px} ${y(v).toFixed(1)}`;
    else if (next !== px) path += `H${px}${peak > v ? "V" + y(peak).toFixed(1) : ""}V${y(v).toFixed(1)}`;
  });
  return `${path}H${x(view.to).toFixed(1)}`;
}
const stepArea = (points, x, y, view) => `${stepPath(points, x, y, view)}V${y(0).toFixed(1)}H${x(view.from).toFixed(1)}Z`;
// Two step functions made one, in one pass over both.
function merge(a, b, of) {
  const merged = [];
  let [i, j, left, right] = [0, 0, 0, 0];
  while (i < a.length || j < b.length) {
    const t = Math.min(i < a.length ? a[i][0] : Infinity, j < b.length ? b[j][0] : Infinity);
    if (i < a.length && a[i][0] === t) left = a[i++][1];
    if (j < b.length && b[j][0] === t) right = b[j++][1];
    merged.push([t, of(left, right)]);
  }
  return merged;
}

// ---- scales and the time axis -------------------------------------------------------------------------------------
const margin = (width) => ({ left: width < 720 ? 44 : 150, right: 14 });
function timeScale(width, view) {
  const { left, right } = margin(width);
  const inner = Math.max(width - left - right, 1);
  const x = (ms) => left + (inner * (ms - view.from)) / (view.to - view.from);
  x.invert = (px) => Math.min(view.to, Math.max(view.from, view.from + ((px - left) / inner) * (view.to - view.from)));
  x.left = left;
  x.right = left + inner;
  return x;
}
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];
function stepFor(view, most) {
  const least = (view.to - view.from) / Math.max(most, 1) / 1000;
  return (STEPS.find((s) => s >= least) || Math.ceil(least / 2592000) * 2592000) * 1000;
}
function ticks(from, to, step) {
  const found = [];
  for (let t = Math.ceil(from / step) * step; t <= to && found.length < 200; t += step) found.push(t);
  return found;
}
function roundTicks(max, count) {
  if (max <= 0) return [0];
  const rough = max / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].find((f) => f * power >= rough) * power);
  return ticks(0, max, step);
}
const AXIS = 38;
// Two rows: the wall clock in UTC, and the time since the run's start.
function drawAxis(root, x, top, view, start) {
  const wide = x.right - x.left;
  const withDay = new Date(start + view.from).toDateString() !== new Date(start + view.to).toDateString();
  const step = stepFor(view, Math.floor(wide / (withDay ? 110 : 80)));
  const row = (at, y, words, kind) => {
    const half = words.length * 3.4;
    const left = Math.min(Math.max(at, x.left + half), x.right - half);
    root.append(text(left, y, words, { "text-anchor": "middle", class: kind }));
  };
  for (const t of ticks(start + view.from, start + view.to, step)) {
    const at = x(t - start);
    root.append(svg("line", { class: "base", x1: at, x2: at, y1: top, y2: top + 4 }));
    row(at, top + 16, clockTick(t, step, withDay), "tick clock");
  }
  const since = stepFor(view, Math.floor(wide / 80));
  for (const t of ticks(view.from, view.to, since)) row(x(t), top + 31, `+${exactly(t, since)}`, "tick since");
  if (x.left > 100) root.append(text(0, top + 16, "UTC"), text(0, top + 31, "since the start"));
}
function lane(root, x, top, tall, max) {
  const y = (v) => top + tall - (tall - 6) * (max ? v / max : 0);
  for (const tick of roundTicks(max, 3)) {
    root.append(svg("line", { class: tick ? "grid" : "base", x1: x.left, x2: x.right, y1: y(tick), y2: y(tick) }));
    root.append(text(x.left - 8, y(tick) + 4, number(tick), { "text-anchor": "end" }));
  }
  return y;
}

// ---- one interval for everything: dragging, keys, the address ------------------------------------------------------
// `box` is drawn by `draw`; `zoom` is told which interval was chosen; `say` is told where the cursor is.
function makeZoomable(box, view, length, { draw, zoom, point }) {
  let begun = null;
  let cursor = null;
  const px = (event) => event.clientX - box.getBoundingClientRect().left;
  const scale = () => timeScale(box.clientWidth, view);
  const show = () => { draw(cursor, begun); point(cursor); };
  box.addEventListener("pointerdown", (event) => {
    begun = scale().invert(px(event));
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    cursor = scale().invert(px(event));
    show();
  });
  box.addEventListener("pointerup", () => {
    const x = scale();
    const [from, to] = [Math.min(begun ?? 0, cursor ?? 0), Math.max(begun ?? 0, cursor ?? 0)];
    const far = begun !== null && cursor !== null && x(to) - x(from) > 4;
    begun = null;
    if (far) zoom(from, to);
  });
  box.addEventListener("pointerleave", () => {
    if (begun === null) { cursor = null; show(); }
  });
  box.addEventListener("dblclick", () => zoom(0, length));
  box.addEventListener("keydown", (event) => {
    const wide = view.to - view.from;
    const at = cursor === null ? view.from + wide / 2 : cursor;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in moves && event.shiftKey) zoom(view.from + (moves[event.key] * wide) / 4, view.to + (moves[event.key] * wide) / 4);
    else if (event.key in moves) cursor = Math.min(view.to, Math.max(view.from, at + (moves[event.key] * wide) / 96));
    else if (event.key === "+" || event.key === "=") zoom(at - wide / 4, at + wide / 4);
    else if (event.key === "-") zoom(at - wide, at + wide);
    else if (event.key === "Escape" || event.key === "0") { cursor = null; zoom(0, length); }
    else return;
    event.preventDefault();
    show();
  });
}
// An interval inside the run, at least a second long.
function clamped(from, to, length) {
  const least = Math.min(1000, length);
  const wide = Math.min(Math.max(to - from, least), length);
  const a = Math.max(0, Math.min(from, length - wide));
  return [a, a + wide];
}
