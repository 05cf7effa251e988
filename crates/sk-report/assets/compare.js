// Draws the curves of several runs over each other: running pods, pending pods, nodes, each on its own scale.
// Text from the runs reaches the page through textContent only, never as markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const length = Math.max(data.length, 1);
  const box = document.getElementById("curves");
  const LANES = [["running pods", "running"], ["pending pods", "pending"], ["nodes", "nodes"]];
  const [TALL, GAP, AXIS, LEFT, RIGHT] = [110, 22, 22, 54, 12];
  let cursor = null;

  const two = (n) => String(n).padStart(2, "0");
  function span(ms) {
    const s = Math.round(ms / 1000);
    const [d, h, m, r] = [Math.floor(s / 86400), Math.floor(s / 3600) % 24, Math.floor(s / 60) % 60, s % 60];
    if (d) return h ? `${d}d${two(h)}h` : `${d}d`;
    if (h) return m ? `${h}h${two(m)}m` : `${h}h`;
    if (m) return r ? `${m}m${two(r)}s` : `${m}m`;
    return `${r}s`;
  }
  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

  function valueAt(points, t) {
    let value = 0;
    for (const [time, v] of points) {
      if (time > t) break;
      value = v;
    }
    return value;
  }
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  function timeTicks(wide) {
    const least = length / Math.max(2, Math.floor(wide / 90)) / 1000;
    const step = (STEPS.find((s) => s >= least) || Math.ceil(least / 604800) * 604800) * 1000;
    const ticks = [];
    for (let t = 0; t <= length && ticks.length < 100; t += step) ticks.push(t);
    return ticks;
  }
  function stepLine(points, x, y) {
    let path = "";
    points.forEach(([t, v], i) => { path += `${i ? "H" : "M"}${x(t).toFixed(1)}${i ? "V" : " "}${y(v).toFixed(1)}`; });
    return path ? `${path}H${x(length).toFixed(1)}` : "";
  }
  function draw() {
    const width = Math.max(box.clientWidth, 240);
    const height = LANES.length * (TALL + GAP) + AXIS;
    const x = (t) => LEFT + ((width - LEFT - RIGHT) * t) / length;
    const root = svg("svg", { width, height, "aria-hidden": "true" });
    LANES.forEach(([words, name], lane) => {
      const top = lane * (TALL + GAP) + GAP;
      const max = Math.max(1, ...data.runs.map((run) => run[name].reduce((most, [, v]) => Math.max(most, v), 0)));
      const y = (v) => top + TALL - ((TALL - 4) * v) / max;
      for (const tick of [0, max]) {
        root.append(svg("line", { class: tick ? "grid" : "base", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }));
        root.append(svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, tick.toLocaleString("en-US")));
      }
      root.append(svg("text", { x: LEFT, y: top - 6, class: "strong" }, words));
      data.runs.forEach((run, i) => root.append(svg("path", { class: `over r${i}`, d: stepLine(run[name], x, y) })));
      if (cursor !== null) {
        root.append(svg("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: top, y2: top + TALL }));
        const values = data.runs.map((run) => `${run.label} ${valueAt(run[name], cursor).toLocaleString("en-US")}`);
        root.append(svg("text", { x: width - RIGHT, y: top - 6, "text-anchor": "end", class: "strong" }, values.join("   ")));
      }
    });
    const bottom = height - AXIS;
    for (const t of timeTicks(width - LEFT - RIGHT)) {
      const anchor = x(t) > width - RIGHT - 16 ? "end" : "middle";
      root.append(svg("text", { x: x(t), y: bottom + 16, "text-anchor": anchor }, t === 0 ? "0" : span(t)));
    }
    box.replaceChildren(root);
  }
  const legend = data.runs.map((run, i) =>
    html("span", {}, html("span", { class: "swatch", style: `background: var(--r${i})` }), run.label));
  document.getElementById("legend").replaceChildren(...legend);
  box.setAttribute("aria-label", `Running pods, pending pods and nodes of ${data.runs.map((run) => run.label).join(", ")}`);
  box.addEventListener("pointermove", (event) => {
    const width = Math.max(box.clientWidth, 240);
    const at = (event.clientX - box.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
    cursor = at >= 0 && at <= 1 ? at * length : null;
    draw();
  });
  box.addEventListener("pointerleave", () => { cursor = null; draw(); });
  window.addEventListener("resize", draw);
  draw();
})();
