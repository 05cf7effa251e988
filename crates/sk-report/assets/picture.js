// The picture: running and pending pods and nodes on one time axis, what was recorded in grey, and what happened as marks.

// Rows without a mark in the whole run take no room, except those that every run has.
const MARK_ROWS = [["changes", "workload"], ["scaling", "scaling"], ["evictions", "eviction"], ...(data.faults.length ? [["faults", "fault"]] : [])];
const LANES = { row: 15, running: 110, pending: 52, nodes: 96, gap: 20 };
const TOP = {};
TOP.marks = 2;
TOP.running = TOP.marks + MARK_ROWS.length * LANES.row + 14;
TOP.pending = TOP.running + LANES.running + LANES.gap;
TOP.nodes = TOP.pending + LANES.pending + LANES.gap;
TOP.axis = TOP.nodes + LANES.nodes;
const HEIGHT = TOP.axis + AXIS;
const groupClass = (i) => `g${Math.min(i, 5)}`;

function pattern(id, lineClass) {
  const attributes = { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  return svg("defs", {}, svg("pattern", attributes, svg("line", { x1: 0, x2: 0, y1: 0, y2: 6, class: lineClass })));
}

// ---- marks ----------------------------------------------------------------------------------------------------------
const replicas = (n) => (n === null ? "gone" : `×${number(n)}`);
const workloadMarks = data.changes.map(([t, owner, old, now]) =>
  ({ t, count: 1, short: replicas(now), words: `${owner} ${old === null ? "created" : replicas(old)} → ${replicas(now)}` }));
const scalingMarks = [];
for (let i = 0; i < nodeCount; i++) {
  const group = nodes.group[i] || "no group";
  if (nodes.created[i] > 0) scalingMarks.push({ t: nodes.created[i], count: 1, up: true, short: "+", words: `node ${nodes.name[i]} of ${group} came` });
  if (nodes.deleted[i] !== null && nodes.deleted[i] <= length) scalingMarks.push({ t: nodes.deleted[i], count: -1, up: false, short: "−", words: `node ${nodes.name[i]} of ${group} went` });
}
scalingMarks.sort((a, b) => a.t - b.t);
const evictionMarks = [];
for (let i = 0; i < podCount; i++) {
  if ([EVICTED, PREEMPTED, NODE_LOST].includes(pods.how[i])) evictionMarks.push({ t: endedAt(i), count: 1, words: `${podName(i)} ${HOW[pods.how[i]]}` });
}
for (const [owner, minute, , , , evicted, preempted] of data.minutes.rows) {
  const count = evicted + preempted;
  if (count) evictionMarks.push({ t: minute * data.minutes.width, count, words: `${plural(count, "pod")} of ${data.owners[owner] ?? "other owners"} evicted or preempted` });
}
evictionMarks.sort((a, b) => a.t - b.t);
const faultMarks = data.faults.map(([t, until, what]) =>
  ({ t, count: 1, short: cut(what, 24), words: until === null ? what : `${what}, until ${moment(until)}` }));
const MARKS = [workloadMarks, scalingMarks, evictionMarks, faultMarks];

// Marks that would lie on each other are one, with their number.
function bundles(marks, x) {
  const found = [];
  for (const mark of marks) {
    if (mark.t < view.from || mark.t > view.to) continue;
    const last = found[found.length - 1];
    if (last && x(mark.t) - x(last.t) < 14) last.marks.push(mark);
    else found.push({ t: mark.t, marks: [mark] });
  }
  return found;
}
function markLabel(kind, marks) {
  if (kind === "workload") return marks.length === 1 ? marks[0].short : `${marks.length} changes`;
  if (kind === "fault") return marks.length === 1 ? marks[0].short : plural(marks.length, "fault");
  if (kind === "eviction") return String(marks.reduce((sum, mark) => sum + mark.count, 0));
  const [up, down] = [marks.filter((mark) => mark.up).length, marks.filter((mark) => !mark.up).length];
  return [up ? `+${up}` : "", down ? `−${down}` : ""].filter(Boolean).join(" ");
}
function drawMarks(root, x) {
  MARK_ROWS.forEach(([words, kind], row) => {
    const y = TOP.marks + row * LANES.row;
    if (x.left > 100) root.append(text(0, y + 11, words, { class: `mark-owner ${kind}` }));
    let free = x.left;
    for (const { t, marks } of bundles(MARKS[row], x)) {
      const at = x(t);
      const isLong = kind === "fault" || (kind === "workload" && marks.length === 1);
      const bottom = isLong ? TOP.axis : y + 12;
      const line = svg("line", { class: `mark-line ${kind}`, x1: at, x2: at, y1: y + 2, y2: bottom });
      const shown = marks.slice(0, 20).map((mark) => `${moment(mark.t)} ${mark.words}`);
      if (marks.length > 20) shown.push(`and ${marks.length - 20} more; zoom in`);
      line.append(svg("title", {}, shown.join("\n")));
      root.append(line);
      const label = markLabel(kind, marks);
      if (at + 3 < free || at + label.length * 7 > x.right) continue;
      root.append(text(at + 3, y + 11, label, { class: `mark-label ${kind}` }));
      free = at + 3 + label.length * 7 + 5;
    }
  });
}

// ---- legend ---------------------------------------------------------------------------------------------------------
function legendItems() {
  const groups = data.groups.slice(0, 6).map(({ name }, i) => [data.groups.length === 1 ? `nodes: ${name}` : name, groupClass(i)]);
  return { running: [["running pods", "running"]], pending: [["pending pods", "pending"]], nodes: groups };
}
function sideLegend(root, items, top, room) {
  items.slice(0, Math.floor(room / 17)).forEach(([words, kind], i) => {
    const y = top + 6 + i * 17;
    root.append(svg("rect", { x: 0, y, width: 10, height: 10, rx: 2, class: kind }));
    const label = text(16, y + 9, cut(words, 15), { class: "strong" });
    label.append(svg("title", {}, words));
    root.append(label);
  });
}
function drawLegend(root, x) {
  const legend = legendItems();
  if (x.left > 100) {
    for (const lane of ["running", "pending", "nodes"]) sideLegend(root, legend[lane], TOP[lane], LANES[lane] - 17);
    root.append(text(0, TOP.nodes + LANES.nodes - 2, "hatched: empty"));
    if (data.recorded) root.append(text(0, TOP.running + LANES.running - 4, "grey line: recorded"));
    byId("legend").replaceChildren();
    return;
  }
  const items = [...legend.running, ...legend.pending, ...legend.nodes].map(([words, kind]) =>
    html("span", {}, html("span", { class: `swatch ${kind}` }), words));
  const notes = ["hatched: empty", ...(data.recorded ? ["grey line: recorded"] : [])].map((words) => html("span", {}, words));
  byId("legend").replaceChildren(...items, ...notes);
}

// ---- drawing --------------------------------------------------------------------------------------------------------
function recordedLine(root, points, x, y) {
  if (points?.length) root.append(svg("path", { class: "recorded", d: stepPath(points, x, y, view) }));
}
function drawNodesLane(root, x) {
  const y = lane(root, x, TOP.nodes, LANES.nodes, Math.max(maxOf(total, view), data.recorded ? maxOf(data.recorded.nodes, view) : 0));
  for (let i = stacks.length - 1; i >= 0; i--) {
    root.append(svg("path", { class: `group area ${groupClass(i)}`, d: stepArea(stacks[i], x, y, view) }));
  }
  let hole = stepPath(total, x, y, view);
  let right = view.to;
  for (const [t, v] of visible(busy, view).reverse()) {
    hole += `L${x(right).toFixed(1)} ${y(v).toFixed(1)}H${x(t).toFixed(1)}`;
    right = t;
  }
  root.append(svg("path", { fill: "url(#empty)", d: `${hole}Z` }));
  recordedLine(root, data.recorded?.nodes, x, y);
}
function drawPicture(cursor = null, begun = null) {
  const box = byId("picture");
  const width = box.clientWidth;
  const x = timeScale(width, view);
  const root = svg("svg", { width, height: HEIGHT, "aria-hidden": "true" }, pattern("empty", "hatch-line"));
  const recordedMax = (name) => (data.recorded ? maxOf(data.recorded[name], view) : 0);
  const yRunning = lane(root, x, TOP.running, LANES.running, Math.max(maxOf(data.running, view), recordedMax("running")));
  root.append(svg("path", { class: "running area", d: stepArea(data.running, x, yRunning, view) }));
  root.append(svg("path", { class: "running edge", d: stepPath(data.running, x, yRunning, view) }));
  recordedLine(root, data.recorded?.running, x, yRunning);
  // On its own scale: one pod that waits among thousands that run is seen.
  const yPending = lane(root, x, TOP.pending, LANES.pending, Math.max(maxOf(data.pending, view), recordedMax("pending")));
  root.append(svg("path", { class: "pending area", d: stepArea(data.pending, x, yPending, view) }));
  root.append(svg("path", { class: "pending edge", d: stepPath(data.pending, x, yPending, view) }));
  recordedLine(root, data.recorded?.pending, x, yPending);
  drawNodesLane(root, x);
  drawLegend(root, x);
  drawMarks(root, x);
  drawAxis(root, x, TOP.axis, view, data.start);
  if (cursor !== null) root.append(svg("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: TOP.running, y2: TOP.axis }));
  if (begun !== null && cursor !== null) {
    const [a, b] = [x(Math.min(begun, cursor)), x(Math.max(begun, cursor))];
    root.append(svg("rect", { class: "chosen", x: a, width: b - a, y: 0, height: TOP.axis }));
  }
  box.replaceChildren(root);
  box.setAttribute("aria-label", `What happened when: running pods up to ${maxOf(data.running, view)}, pending up to ${maxOf(data.pending, view)}, nodes up to ${maxOf(total, view)}, from ${moment(view.from)} to ${moment(view.to)}`);
}

const tip = html("div", { class: "tip", hidden: "" });
function pointAt(cursor) {
  tip.hidden = cursor === null;
  if (cursor === null) return;
  const x = timeScale(byId("picture").clientWidth, view);
  const rows = [["running", valueAt(data.running, cursor)], ["pending", valueAt(data.pending, cursor)], ["nodes", valueAt(total, cursor)], ["of them empty", valueAt(data.empty, cursor)]];
  if (data.recorded) {
    rows.push(["recorded running", valueAt(data.recorded.running, cursor)], ["recorded pending", valueAt(data.recorded.pending, cursor)]);
    if (data.recorded.nodes.length) rows.push(["recorded nodes", valueAt(data.recorded.nodes, cursor)]);
  }
  if (data.groups.length > 1) data.groups.slice(0, 8).forEach(({ name, points }) => rows.push([name, valueAt(points, cursor)]));
  const lines = rows.map(([name, value]) => html("div", {}, html("span", {}, name), html("span", {}, number(value))));
  tip.replaceChildren(html("b", {}, `${isoOf(cursor).slice(0, 10)} ${clockOf(cursor)} UTC`), html("span", {}, `+${exactly(cursor, 1000)}`), ...lines);
  const room = byId("picture").clientWidth;
  const left = x(cursor) + 26;
  tip.style.left = `${left + tip.offsetWidth > room ? x(cursor) - tip.offsetWidth + 2 : left}px`;
  tip.style.top = "70px";
  byId("picture-says").textContent = `${clockOf(cursor)}: ${rows.map(([name, value]) => `${name} ${number(value)}`).join(", ")}`;
}
