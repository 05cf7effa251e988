// Draws the curves of several runs over each other: running pods, pending pods, nodes, each on its own scale.
// A recording among them is grey, as in the report. The address' fragment holds the interval, so it can be pasted.

const data = JSON.parse(byId("data").textContent);
const length = Math.max(data.length, 1);
const view = { from: 0, to: length };
const box = byId("picture");
const CURVES = [["running pods", "running"], ["pending pods", "pending"], ["nodes", "nodes"]];
const [TALL, GAP] = [104, 26];
const AXIS_TOP = CURVES.length * (TALL + GAP);
const colour = (run, i) => (run.recorded ? "recorded" : `r${i}`);
const momentOf = (ms) => new Date(data.start + ms).toISOString().replace("T", " ").slice(0, 19);

function draw(cursor = null, begun = null) {
  const width = box.clientWidth;
  const x = timeScale(width, view);
  const root = svg("svg", { width, height: AXIS_TOP + AXIS, "aria-hidden": "true" });
  CURVES.forEach(([words, name], place) => {
    const top = place * (TALL + GAP) + GAP;
    const y = lane(root, x, top, TALL, Math.max(...data.runs.map((run) => maxOf(run[name], view)), 0));
    root.append(text(x.left > 100 ? 0 : x.left, x.left > 100 ? top + 14 : top - 8, words, { class: "strong" }));
    data.runs.forEach((run, i) => root.append(svg("path", { class: `over ${colour(run, i)}`, d: stepPath(run[name], x, y, view) })));
    if (cursor === null) return;
    root.append(svg("line", { class: "cursor", x1: x(cursor), x2: x(cursor), y1: top, y2: top + TALL }));
    const values = data.runs.map((run) => `${run.label} ${number(valueAt(run[name], cursor))}`);
    root.append(text(x.right, top - 8, cut(values.join("   "), Math.floor(width / 7)), { "text-anchor": "end", class: "strong" }));
  });
  drawAxis(root, x, AXIS_TOP, view, data.start);
  if (begun !== null && cursor !== null) {
    const [a, b] = [x(Math.min(begun, cursor)), x(Math.max(begun, cursor))];
    root.append(svg("rect", { class: "chosen", x: a, width: b - a, y: 0, height: AXIS_TOP }));
  }
  box.replaceChildren(root);
  box.setAttribute("aria-label", `Running pods, pending pods and nodes of ${data.runs.map((run) => run.label).join(", ")}, from ${momentOf(view.from)} to ${momentOf(view.to)} UTC`);
}
function point(cursor) {
  if (cursor === null) return;
  const values = data.runs.map((run) => `${run.label}: ${CURVES.map(([words, name]) => `${words} ${number(valueAt(run[name], cursor))}`).join(", ")}`);
  byId("picture-says").textContent = `${momentOf(cursor)}: ${values.join("; ")}`;
}
function follow() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [from, to] = [Number(asked.get("from") ?? 0), Number(asked.get("to") ?? length)];
  const sound = Number.isFinite(from) && Number.isFinite(to) && from < to;
  [view.from, view.to] = sound ? clamped(from, to, length) : [0, length];
  byId("whole").hidden = view.from <= 0 && view.to >= length;
  draw();
}
function zoom(from, to) {
  const [a, b] = clamped(from, to, length);
  const all = a <= 0 && b >= length;
  history.replaceState(null, "", location.pathname + location.search + (all ? "" : `#from=${Math.round(a)}&to=${Math.round(b)}`));
  follow();
}
const legend = data.runs.map((run, i) => html("span", {}, html("span", { class: `swatch ${colour(run, i)}` }), run.label));
byId("legend").replaceChildren(...legend);
byId("whole").addEventListener("click", () => zoom(0, length));
document.querySelectorAll("table.live").forEach(enliven);
makeZoomable(box, view, length, { draw, zoom, point });
addEventListener("hashchange", follow);
addEventListener("resize", () => draw());
addEventListener("beforeprint", () => draw());
follow();
document.body.dataset.ready = "yes";
