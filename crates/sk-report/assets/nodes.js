// Nodes: a heat map of those whose load is known, and a table of all that the page holds.

// Up to 60 nodes have a row with their name; more become thin rows, by group, with the group's name beside the first.
function drawNodes() {
  const box = byId("nodes");
  const width = box.clientWidth;
  const x = timeScale(width, view);
  const shown = [];
  for (let i = 0; i < nodeCount; i++) {
    if (nodes.loads[i] && nodes.created[i] <= view.to && (nodes.deleted[i] ?? Infinity) >= view.from) shown.push(i);
  }
  const dense = shown.length > 60;
  if (dense) shown.sort((a, b) => collator.compare(nodes.group[a], nodes.group[b]) || nodes.created[a] - nodes.created[b]);
  const row = dense ? 6 : 16;
  const tall = shown.length * row;
  const root = svg("svg", { width, height: tall + AXIS, role: "img", "aria-label": `${plural(shown.length, "node")} and the CPU asked of them` });
  root.append(pattern("idle", "idle-line"));
  shown.forEach((node, i) => {
    const first = i === 0 || nodes.group[shown[i - 1]] !== nodes.group[node];
    root.append(nodeRow(node, x, i * row, row, dense ? (first ? nodes.group[node] : "") : nodes.name[node]));
  });
  root.append(svg("line", { class: "base", x1: x.left, x2: x.right, y1: tall + 2, y2: tall + 2 }));
  drawAxis(root, x, tall + 2, view, data.start);
  box.replaceChildren(root);
}
const lifeOf = (i) => `${moment(nodes.created[i])}–${nodes.deleted[i] === null ? "end" : moment(nodes.deleted[i])}`;
function nodeRow(i, x, y, row, label) {
  const group = svg("g", { class: "node-row" });
  const most = x.left > 100 ? 20 : 5;
  const name = label.length > most ? `…${label.slice(1 - most)}` : label;
  if (name) group.append(text(x.left - 8, y + 12, name, { "text-anchor": "end" }));
  group.append(svg("title", {}, `${nodes.name[i]} · ${nodes.group[i]} · ${lifeOf(i)} · empty ${span(nodes.empty[i])}`));
  group.addEventListener("click", () => open({ node: nodes.name[i] }));
  const bar = (from, to, attributes) => {
    const [a, b] = [Math.max(from, view.from), Math.min(to, view.to)];
    if (b > a) group.append(svg("rect", { x: x(a), y: y + 1, width: Math.max(x(b) - x(a), 0.5), height: row > 8 ? row - 4 : row - 1, ...attributes }));
  };
  const [born, died] = [nodes.ready[i] ?? Infinity, nodes.deleted[i] ?? length];
  if (nodes.ready[i] === null || nodes.ready[i] > nodes.created[i]) bar(nodes.created[i], nodes.ready[i] ?? died, { class: "starting" });
  const loads = nodes.loads[i];
  const part = length / loads.length;
  for (let at = 0; at < loads.length; at++) {
    const load = loads[at];
    if (load === null) continue;
    let end = at + 1;
    while (end < loads.length && loads[end] === load) end++;
    const look = load === 0 ? { class: "load idle" } : { class: "load", "fill-opacity": 0.15 + 0.85 * Math.min(load, 100) / 100 };
    bar(Math.max(at * part, born), Math.min(end * part, died), look);
    at = end - 1;
  }
  return group;
}
function drawScale() {
  const shades = [20, 40, 60, 80, 100].map((load) => html("span", { style: `opacity: ${0.15 + 0.85 * load / 100}` }));
  byId("scale").append(html("span", { class: "idle-key" }), html("i", {}, "empty"), ...shades, html("i", {}, "20% … 100%"));
}

// ---- start latency --------------------------------------------------------------------------------------------------
function drawLatency() {
  if (!data.latency.length) { byId("latency-section").hidden = true; return; }
  const box = byId("latency");
  const width = box.clientWidth;
  const tall = 150;
  const { left, right } = margin(width);
  const most = data.latency[100] || 1;
  const x = (s) => left + ((width - left - right) * s) / most;
  const y = (p) => 8 + (tall - 8) * (1 - p / 100);
  const root = svg("svg", { width, height: tall + 24, "aria-hidden": "true" });
  for (const p of [0, 50, 90, 99]) {
    root.append(svg("line", { class: p ? "grid" : "base", x1: left, x2: width - right, y1: y(p), y2: y(p) }));
    if (p < 99) root.append(text(left - 8, y(p) + 4, `${p}%`, { "text-anchor": "end" }));
  }
  const room = Math.max(2, Math.floor((width - left - right) / 70));
  const step = STEPS.find((s) => s >= most / room) || most / room;
  for (let s = 0; s <= most && step > 0; s += step) root.append(text(x(s), tall + 17, s ? exactly(s * 1000, step * 1000) : "0", { "text-anchor": s ? "middle" : "start" }));
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
  box.setAttribute("aria-label", `Half of the pods ran within ${span(data.latency[50] * 1000)}, 90% within ${span(data.latency[90] * 1000)}, 99% within ${span(data.latency[99] * 1000)}`);
}
