// Draws the report's pictures from the JSON in the page and keeps them, the tables and the address on one interval.
// The address' fragment is the only state: `#from=300000&to=370000` (milliseconds) or `#wait=0`, so it can be pasted.
// Text from the run reaches the page through textContent only, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const length = Math.max(data.length, 1);
  const byId = (id) => document.getElementById(id);
  const view = { from: 0, to: length, wait: null };
  let cursor = null;

  // ---- words ----------------------------------------------------------------------------------------------------
  const two = (n) => String(n).padStart(2, "0");
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
  // A moment counted from the start: 15:00 in runs of up to two hours, else 14h20m or 2d 14:20.
  function moment(ms) {
    const [d, h, m, s] = [Math.floor(ms / 86400000), Math.floor(ms / 3600000) % 24, Math.floor(ms / 60000) % 60, Math.floor(ms / 1000) % 60];
    if (length <= 7200000) return `${Math.floor(ms / 60000)}:${two(s)}`;
    return d ? `${d}d ${two(h)}:${two(m)}` : `${h}h${two(m)}m`;
  }
  const number = (n) => n.toLocaleString("en-US", { maximumFractionDigits: 1 });

  // ---- elements -------------------------------------------------------------------------------------------------
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const text = (x, y, words, attributes = {}) => svg("text", { x, y, ...attributes }, words);

  // ---- scales ---------------------------------------------------------------------------------------------------
  const margin = (width) => ({ left: width < 720 ? 44 : 150, right: 14 });
  function timeScale(width) {
    const { left, right } = margin(width);
    const inner = width - left - right;
    const x = (ms) => left + (inner * (ms - view.from)) / (view.to - view.from);
    x.invert = (px) => Math.min(view.to, Math.max(view.from, view.from + ((px - left) / inner) * (view.to - view.from)));
    x.left = left;
    x.right = left + inner;
    return x;
  }
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];
  function timeTicks(x) {
    const most = Math.max(2, Math.floor((x.right - x.left) / 90));
    const least = (view.to - view.from) / most / 1000;
    const step = (STEPS.find((s) => s >= least) || Math.ceil(least / 2592000) * 2592000) * 1000;
    const ticks = [];
    for (let t = Math.ceil(view.from / step) * step; t <= view.to && ticks.length < 100; t += step) ticks.push(t);
    return ticks;
  }
  function roundTicks(max, count) {
    if (max <= 0) return [0];
    const rough = max / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, [1, 2, 5, 10].find((f) => f * power >= rough) * power);
    const ticks = [];
    for (let v = 0; v <= max; v += step) ticks.push(v);
    return ticks;
  }

  // ---- step functions -------------------------------------------------------------------------------------------
  function valueAt(points, t) {
    let low = 0;
    let high = points.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (points[middle][0] <= t) low = middle;
      else high = middle - 1;
    }
    return points.length && points[low][0] <= t ? points[low][1] : 0;
  }
  // The part inside the view, beginning exactly where the view does.
  function visible(points) {
    const inside = points.filter(([t]) => t > view.from && t < view.to);
    return [[view.from, valueAt(points, view.from)], ...inside];
  }
  const maxOf = (points) => visible(points).reduce((max, [, v]) => Math.max(max, v), 0);
  function stepLine(points, x, y) {
    const shown = visible(points);
    let path = "";
    shown.forEach(([t, v], i) => {
      path += `${i ? "H" + x(t).toFixed(1) : "M" + x(t).toFixed(1) + " " + y(v).toFixed(1)}V${y(v).toFixed(1)}`;
    });
    return `${path}H${x(view.to).toFixed(1)}`;
  }
  const stepArea = (points, x, y) => `${stepLine(points, x, y)}V${y(0)}H${x(view.from).toFixed(1)}Z`;
  // Adds or subtracts step functions.
  function combine(curves, of) {
    const times = [...new Set(curves.flatMap((points) => points.map(([t]) => t)))].sort((a, b) => a - b);
    return times.map((t) => [t, of(curves.map((points) => valueAt(points, t)))]);
  }
  const plus = (values) => values.reduce((a, b) => a + b, 0);
  const stacks = data.groups.map((_, i) => combine(data.groups.slice(0, i + 1).map(([, points]) => points), plus));
  const total = stacks.length ? stacks[stacks.length - 1] : [[0, 0]];
  const busy = combine([total, data.empty], ([all, empty]) => all - empty);
  const groupClass = (i) => `g${Math.min(i, 5)}`;

  // ---- the picture ----------------------------------------------------------------------------------------------
  const LANES = { marks: 18, pods: 130, gap: 16, nodes: 104, axis: 24 };
  const height = LANES.marks + LANES.pods + LANES.gap + LANES.nodes + LANES.axis;

  function lane(root, x, top, tall, max) {
    const y = (v) => top + tall - (tall - 6) * (max ? v / max : 0);
    for (const tick of roundTicks(max, 3)) {
      root.append(svg("line", { class: tick ? "grid" : "base", x1: x.left, x2: x.right, y1: y(tick), y2: y(tick) }));
      root.append(text(x.left - 8, y(tick) + 4, number(tick), { "text-anchor": "end" }));
    }
    return y;
  }
  function pattern(id, lineClass) {
    const attributes = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
    return svg("defs", {}, svg("pattern", attributes, svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: lineClass })));
  }
  function legendItems() {
    const groups = data.groups.slice(0, 6).map(([name], i) => [name, groupClass(i)]);
    const pods = [["running pods", "running"], ["pending pods", "pending"]];
    return { pods, nodes: data.groups.length === 1 ? [[`${groups[0][0]} nodes`, "g0"]] : groups };
  }
  function sideLegend(root, items, top, room) {
    items.slice(0, Math.floor(room / 17)).forEach(([words, kind], i) => {
      const y = top + 4 + i * 17;
      const short = words.length > 14 ? `${words.slice(0, 13)}…` : words;
      root.append(svg("rect", { x: 0, y, width: 10, height: 10, rx: 2, class: kind }));
      root.append(text(16, y + 9, short, { class: "strong" }), svg("title", {}, words));
    });
  }
  function drawMarks(root, x) {
    const shown = data.marks.filter(([t]) => t >= view.from && t <= view.to);
    const crowded = shown.length > 30;
    let free = x.left;
    for (const [t, label] of shown) {
      const at = x(t);
      const wide = label.length * 7.5;
      const left = Math.min(at, x.right - wide);
      const fits = left >= free;
      if (fits || !crowded) {
        const bottom = crowded ? LANES.marks + 5 : height - LANES.axis;
        root.append(svg("line", { class: "mark-line", x1: at, x2: at, y1: LANES.marks - 2, y2: bottom }));
      }
      if (!fits) continue;
      root.append(text(left, LANES.marks - 6, label, { class: "mark-label" }));
      free = left + wide + 8;
    }
    if (data.marks.length && x.left > 100) {
      const name = data.marked.length > 20 ? `${data.marked.slice(0, 19)}…` : data.marked;
      root.append(text(0, LANES.marks - 6, name, { class: "mark-owner" }));
    }
  }
  function drawAxis(root, x, top) {
    for (const t of timeTicks(x)) {
      const anchor = x(t) > x.right - 16 ? "end" : "middle";
      root.append(svg("line", { class: "base", x1: x(t), x2: x(t), y1: top, y2: top + 4 }));
      root.append(text(Math.max(x(t), x.left), top + 17, t === 0 ? "0" : span(t), { "text-anchor": anchor }));
    }
  }
  function drawPicture() {
    const box = byId("picture");
    const width = box.clientWidth;
    const x = timeScale(width);
    const root = svg("svg", { width, height, "aria-hidden": "true" }, pattern("empty", "hatch-line"));
    const podsTop = LANES.marks;
    const nodesTop = podsTop + LANES.pods + LANES.gap;
    const yPods = lane(root, x, podsTop, LANES.pods, Math.max(maxOf(data.running), maxOf(data.pending)));
    root.append(svg("path", { class: "running area", d: stepArea(data.running, x, yPods) }));
    root.append(svg("path", { class: "running edge", d: stepLine(data.running, x, yPods) }));
    // A few among thousands must not vanish: two pixels at least.
    const ySeen = (v) => (v > 0 ? Math.min(yPods(v), yPods(0) - 2) : yPods(0));
    root.append(svg("path", { class: "pending area", d: stepArea(data.pending, x, ySeen) }));
    const yNodes = lane(root, x, nodesTop, LANES.nodes, maxOf(total));
    for (let i = stacks.length - 1; i >= 0; i--) {
      root.append(svg("path", { class: `group area ${groupClass(i)}`, d: stepArea(stacks[i], x, yNodes) }));
    }
    const back = visible(busy).reverse();
    let hole = stepLine(total, x, yNodes);
    let right = view.to;
    for (const [t, v] of back) {
      hole += `L${x(right).toFixed(1)} ${yNodes(v).toFixed(1)}H${x(t).toFixed(1)}`;
      right = t;
    }
    root.append(svg("path", { fill: "url(#empty)", d: `${hole}Z` }));
    const legend = legendItems();
    if (x.left > 100) {
      sideLegend(root, legend.pods, podsTop, LANES.pods);
      sideLegend(root, legend.nodes, nodesTop, LANES.nodes - 17);
      root.append(text(0, nodesTop + LANES.nodes - 2, "hatched: empty"));
      byId("legend").replaceChildren();
    } else {
      const items = [...legend.pods, ...legend.nodes].map(([words, kind]) =>
        html("span", {}, html("span", { class: "swatch", style: `background: var(--${kind})` }), words));
      byId("legend").replaceChildren(...items, html("span", {}, "hatched: empty"));
    }
    drawMarks(root, x);
    drawAxis(root, x, height - LANES.axis);
    if (cursor !== null) root.append(svg("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: podsTop, y2: height - LANES.axis }));
    box.replaceChildren(root);
    box.setAttribute("aria-label",
      `Running pods up to ${maxOf(data.running)}, pending up to ${maxOf(data.pending)}, nodes up to ${maxOf(total)}, from ${moment(view.from)} to ${moment(view.to)}`);
    return x;
  }

  // ---- pointing, dragging, keys ---------------------------------------------------------------------------------
  const tip = html("div", { class: "tip", hidden: "" });
  function showTip(x) {
    tip.hidden = cursor === null;
    if (cursor === null) return;
    const clock = new Date(data.start + cursor).toISOString().replace("T", " ").slice(0, 19);
    const rows = [["running", valueAt(data.running, cursor)], ["pending", valueAt(data.pending, cursor)]];
    rows.push(["nodes", valueAt(total, cursor)], ["of them empty", valueAt(data.empty, cursor)]);
    if (data.groups.length > 1) data.groups.slice(0, 8).forEach(([name, points]) => rows.push([name, valueAt(points, cursor)]));
    const lines = rows.map(([name, value]) => html("div", {}, html("span", {}, name), html("span", {}, number(value))));
    tip.replaceChildren(html("b", {}, moment(cursor)), html("span", {}, `${clock} UTC`), ...lines);
    const room = byId("picture").clientWidth;
    const left = x(cursor) + 26;
    tip.style.left = `${left + tip.offsetWidth > room ? x(cursor) - tip.offsetWidth + 2 : left}px`;
    tip.style.top = "34px";
  }
  function pointer() {
    const box = byId("picture");
    let begun = null;
    let x = timeScale(box.clientWidth);
    const px = (event) => event.clientX - box.getBoundingClientRect().left;
    box.after(tip);
    box.addEventListener("pointerdown", (event) => {
      begun = timeScale(box.clientWidth).invert(px(event));
      box.setPointerCapture(event.pointerId);
    });
    box.addEventListener("pointermove", (event) => {
      cursor = timeScale(box.clientWidth).invert(px(event));
      x = drawPicture();
      if (begun !== null) {
        const [a, b] = [x(Math.min(begun, cursor)), x(Math.max(begun, cursor))];
        box.firstChild.append(svg("rect", { class: "chosen", x: a, width: b - a, y: 0, height: height - LANES.axis }));
      }
      showTip(x);
    });
    box.addEventListener("pointerup", () => {
      if (begun !== null && cursor !== null && Math.abs(x(begun) - x(cursor)) > 4) zoom(Math.min(begun, cursor), Math.max(begun, cursor));
      begun = null;
    });
    box.addEventListener("pointerleave", () => {
      if (begun === null) { cursor = null; showTip(drawPicture()); }
    });
    box.addEventListener("dblclick", () => zoom(0, length));
    box.addEventListener("keydown", (event) => {
      const wide = view.to - view.from;
      const at = cursor === null ? view.from + wide / 2 : cursor;
      const moves = { ArrowLeft: -1, ArrowRight: 1 };
      if (event.key in moves) cursor = Math.min(view.to, Math.max(view.from, at + (moves[event.key] * wide) / 96));
      else if (event.key === "+" || event.key === "=") zoom(at - wide / 4, at + wide / 4);
      else if (event.key === "-") zoom(at - wide, at + wide);
      else if (event.key === "Escape" || event.key === "0") { cursor = null; zoom(0, length); }
      else return;
      event.preventDefault();
      showTip(drawPicture());
    });
  }

  // ---- nodes ----------------------------------------------------------------------------------------------------
  // Up to 60 nodes have a row with their name; more become thin rows, by group, with the group's name beside the first.
  function drawNodes() {
    const box = byId("nodes");
    const width = box.clientWidth;
    const x = timeScale(width);
    const shown = data.nodes.filter((node) => node.created <= view.to && (node.deleted ?? Infinity) >= view.from);
    const dense = shown.length > 60;
    if (dense) shown.sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : a.created - b.created));
    const row = dense ? 6 : 16;
    const tall = shown.length * row;
    const root = svg("svg", { width, height: tall + LANES.axis, role: "img", "aria-label": `${shown.length} nodes and their load` });
    root.append(pattern("idle", "idle-line"));
    shown.forEach((node, i) => {
      const first = i === 0 || shown[i - 1].group !== node.group;
      root.append(nodeRow(node, x, i * row, row, dense ? (first ? node.group : "") : node.name));
    });
    root.append(svg("line", { class: "base", x1: x.left, x2: x.right, y1: tall + 2, y2: tall + 2 }));
    drawAxis(root, x, tall + 2);
    box.replaceChildren(root);
  }
  function nodeRow(node, x, y, row, label) {
    const group = svg("g", {});
    const most = x.left > 100 ? 20 : 5;
    const name = label.length > most ? `…${label.slice(1 - most)}` : label;
    if (name) group.append(text(x.left - 8, y + 12, name, { "text-anchor": "end" }));
    const life = `${moment(node.created)}–${node.deleted === null ? "end" : moment(node.deleted)}`;
    group.append(svg("title", {}, `${node.name} · ${node.group} · ${life} · empty ${node.empty}`));
    const bar = (from, to, attributes) => {
      const [a, b] = [Math.max(from, view.from), Math.min(to, view.to)];
      if (b > a) group.append(svg("rect", { x: x(a), y: y + 1, width: Math.max(x(b) - x(a), 0.5), height: row > 8 ? row - 4 : row - 1, ...attributes }));
    };
    if (node.ready === null || node.ready > node.created) bar(node.created, node.ready ?? node.deleted ?? length, { class: "starting" });
    const part = length / node.loads.length;
    const born = node.ready ?? Infinity;
    const died = node.deleted ?? length;
    for (let i = 0; i < node.loads.length; i++) {
      const load = node.loads[i];
      if (load === null) continue;
      let end = i + 1;
      while (end < node.loads.length && node.loads[end] === load) end++;
      const look = load === 0 ? { class: "load idle" } : { class: "load", "fill-opacity": 0.15 + 0.85 * Math.min(load, 100) / 100 };
      bar(Math.max(i * part, born), Math.min(end * part, died), look);
      i = end - 1;
    }
    return group;
  }
  function drawScale() {
    const shades = [20, 40, 60, 80, 100].map((load) => html("span", { style: `opacity: ${0.15 + 0.85 * load / 100}` }));
    byId("scale").append(html("span", { class: "idle-key" }), html("i", {}, "empty"), ...shades, html("i", {}, "20% … 100%"));
  }

  // ---- start latency --------------------------------------------------------------------------------------------
  function drawLatency() {
    if (!data.latency.length) { byId("latency-section").hidden = true; return; }
    const box = byId("latency");
    const width = box.clientWidth;
    const tall = 150;
    const { left, right } = margin(width);
    const most = data.latency[100] || 1;
    const x = (s) => left + ((width - left - right) * s) / most;
    const y = (p) => 8 + (tall - 8) * (1 - p / 100);
    const root = svg("svg", { width, height: tall + LANES.axis });
    for (const p of [0, 50, 90, 99]) {
      root.append(svg("line", { class: p ? "grid" : "base", x1: left, x2: width - right, y1: y(p), y2: y(p) }));
      if (p < 99) root.append(text(left - 8, y(p) + 4, `${p}%`, { "text-anchor": "end" }));
    }
    const step = (STEPS.find((s) => s >= most / 8) || most / 8);
    for (let s = 0; s <= most && step > 0; s += step) root.append(text(x(s), tall + 17, span(s * 1000), { "text-anchor": s ? "middle" : "start" }));
    let path = `M${x(0)} ${y(0)}`;
    data.latency.forEach((s, p) => { path += `H${x(s).toFixed(1)}V${y(p).toFixed(1)}`; });
    root.append(svg("path", { class: "curve", d: path }));
    let lowest = -16;
    for (const p of [99, 90, 50]) {
      const at = x(data.latency[p]);
      root.append(svg("circle", { class: "running", cx: at, cy: y(p), r: 3.5 }));
      const below = Math.max(y(p) + 4, lowest + 16);
      const flip = at > width - 160;
      root.append(text(at + (flip ? -10 : 10), below, `p${p} ${span(data.latency[p] * 1000)}`, { class: "strong", "text-anchor": flip ? "end" : "start" }));
      lowest = below;
    }
    box.replaceChildren(root);
  }

  // ---- tables that follow the interval --------------------------------------------------------------------------
  const FIRST_WAITS = 5;
  const ROWS_MAX = 200;
  const zoomed = () => view.wait !== null || view.from > 0 || view.to < length;
  function followWaits() {
    let shown = 0;
    for (const row of document.querySelectorAll("tr[data-wait]")) {
      const wait = data.waits[row.dataset.wait];
      const outside = wait.to < view.from || wait.from > view.to;
      row.classList.toggle("outside", outside);
      row.classList.toggle("more", !outside && shown >= FIRST_WAITS);
      row.classList.toggle("chosen-row", Number(row.dataset.wait) === view.wait);
      if (!outside) shown++;
    }
  }
  // The same answer to several pods at the same moment is one row.
  function alike(decisions) {
    const rows = [];
    const known = new Map();
    for (const [t, , pod, node, message] of decisions) {
      const key = `${Math.floor(t / 1000)} ${node} ${message}`;
      if (!known.has(key)) {
        known.set(key, { t, pods: [], node, message });
        rows.push(known.get(key));
      }
      known.get(key).pods.push(pod);
    }
    return rows;
  }
  function followDecisions() {
    const inside = data.decisions.filter(([t, wait]) => (view.wait === null ? t >= view.from && t <= view.to : wait === view.wait));
    byId("decisions").hidden = !zoomed() || !inside.length;
    if (byId("decisions").hidden) return;
    const rows = alike(inside).slice(0, ROWS_MAX).map(({ t, pods, node, message }) =>
      html("tr", {},
        html("td", {}, moment(t)),
        html("td", { title: pods.slice(0, 50).join("\n") }, pods.length > 1 ? `${pods.length} pods like ${pods[0]}` : pods[0]),
        html("td", { class: node === null ? "no" : "yes" }, node === null ? "no node fits" : `to ${node}`),
        html("td", {}, message === null ? "" : data.messages[message])));
    byId("decisions-rows").replaceChildren(...rows);
    const whose = view.wait === null ? "about pods that waited" : `about ${data.waits[view.wait].owner}`;
    byId("decisions-count").textContent = `${inside.length} ${whose}, ${moment(view.from)}–${moment(view.to)}; all are in decisions.parquet`;
  }

  // ---- one interval for everything ------------------------------------------------------------------------------
  function zoom(from, to) {
    const least = Math.min(1000, length);
    const a = Math.max(0, Math.min(from, length - least));
    const b = Math.min(length, Math.max(to, a + least));
    const all = a <= 0 && b >= length;
    history.replaceState(null, "", all ? location.pathname + location.search : `#from=${Math.round(a)}&to=${Math.round(b)}`);
    follow();
  }
  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const place = asked.has("wait") ? Number(asked.get("wait")) : NaN;
    const wait = data.waits[place];
    let [from, to] = [Number(asked.get("from") ?? 0), Number(asked.get("to") ?? length)];
    if (wait) {
      const room = Math.max((wait.to - wait.from) / 2, 1000);
      [from, to] = [wait.from - room, wait.to + room];
    }
    const sound = Number.isFinite(from) && Number.isFinite(to) && from < to;
    view.from = sound ? Math.max(0, Math.min(from, length - 1)) : 0;
    view.to = sound ? Math.min(length, Math.max(to, view.from + 1)) : length;
    view.wait = wait ? place : null;
    draw();
  }
  function draw() {
    drawPicture();
    drawNodes();
    drawLatency();
    followWaits();
    followDecisions();
    byId("whole").hidden = !zoomed();
  }

  byId("whole").addEventListener("click", () => zoom(0, length));
  byId("more-waits")?.addEventListener("click", (event) => {
    byId("waits").querySelector("table").classList.add("all");
    event.currentTarget.hidden = true;
  });
  addEventListener("hashchange", follow);
  addEventListener("resize", draw);
  addEventListener("beforeprint", draw);
  drawScale();
  pointer();
  follow();
})();
