// One interval and one chosen object for everything; the address' fragment is the only state, so it can be pasted:
// `#from=300000&to=370000` (milliseconds since the start), `#wait=0`, `#pod=default/web-1`, `#node=small-3`.

function fragment(change) {
  const state = { from: view.from, to: view.to, wait: view.wait, pod: view.pod, node: view.node, ...change };
  if (change.pod) state.node = null;
  if (change.node) state.pod = null;
  const asked = new URLSearchParams();
  if (state.wait !== null && change.from === undefined) asked.set("wait", state.wait);
  else if (state.from > 0 || state.to < length) {
    asked.set("from", Math.round(state.from));
    asked.set("to", Math.round(state.to));
  }
  if (state.pod !== null) asked.set("pod", state.pod);
  if (state.node !== null) asked.set("node", state.node);
  return `#${asked}`;
}
const open = (change) => { location.hash = fragment(change); };
function zoom(from, to) {
  const [a, b] = clamped(from, to, length);
  history.replaceState(null, "", location.pathname + location.search + fragment({ from: a, to: b, wait: null }));
  follow();
}

// ---- tiles that follow the interval -----------------------------------------------------------------------------------
const tileWords = new Map();
const tile = (id, value, note) => {
  const box = byId(`tile-${id}`);
  if (!tileWords.has(id)) tileWords.set(id, [...box.querySelectorAll("dd")].map((words) => words.textContent));
  const [whole, wholeNote] = tileWords.get(id);
  const [shown, small] = box.querySelectorAll("dd");
  shown.textContent = isZoomed() ? value : whole;
  small.textContent = isZoomed() ? note : wholeNote;
};
const HOUR = 3600000;
function followTiles() {
  byId("interval").textContent = isZoomed() ? `${moment(view.from)} to ${moment(view.to)} UTC, ${exactly(view.to - view.from, 1000)} of ${exactly(length, 1000)}` : "";
  const isWhole = !data.leftOut.quiet && !data.minutes.rows.length;
  const latencies = [];
  let [waited, longest, never, created] = [0, 0, 0, 0];
  for (let i = 0; i < podCount; i++) {
    if (pods.created[i] >= view.from && pods.created[i] <= view.to) {
      created++;
      if (pods.started[i] >= 0) latencies.push(pods.started[i]);
      if (isNeverPlaced(i)) never++;
    }
    if (waitsInView(i)) { waited++; longest = Math.max(longest, waitOf(i)); }
  }
  for (const [, minute, count, most, open] of data.minutes.rows) {
    const at = minute * data.minutes.width;
    if (at <= view.to && at + Math.max(data.minutes.width, most) >= view.from) { waited += count; longest = Math.max(longest, most); never += open; }
  }
  latencies.sort((a, b) => a - b);
  const p99 = latencies.length ? latencies[Math.ceil(0.99 * latencies.length) - 1] : null;
  tile("latency", isWhole && p99 !== null ? span(p99) : "–", isWhole ? `${plural(latencies.length, "pod")} of the interval started` : "not every pod is in the page");
  tile("wait", span(longest), `${plural(waited, "pod")} waited in the interval`);
  tile("unschedulable", number(never), isWhole ? `of ${plural(created, "pod")} created then` : "pods no node could take");
  const hours = integral(total, view) / HOUR;
  const empty = integral(data.empty, view) / HOUR;
  tile("hours", number(hours), `${number(empty)} of them (${hours ? Math.round((100 * empty) / hours) : 0}%) empty`);
  const priced = data.groups.length > 0 && data.groups.every((group) => group.price !== null);
  const cost = data.groups.reduce((sum, group) => sum + ((group.price ?? 0) * integral(group.points, view)) / HOUR, 0);
  const an_hour = cost / ((view.to - view.from) / HOUR);
  tile("cost", priced ? money(cost) : "–", priced ? `${money(an_hour)} an hour` : tileWords.get("cost")?.[1] ?? "no price, so no cost");
}

// ---- longest waits ----------------------------------------------------------------------------------------------------
const FIRST_WAITS = 5;
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

function read() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const place = asked.has("wait") ? Number(asked.get("wait")) : NaN;
  const wait = data.waits[place];
  let [from, to] = [Number(asked.get("from") ?? 0), Number(asked.get("to") ?? length)];
  if (wait) {
    const room = Math.max((wait.to - wait.from) / 2, 1000);
    [from, to] = [wait.from - room, wait.to + room];
  }
  const sound = Number.isFinite(from) && Number.isFinite(to) && from < to;
  [view.from, view.to] = sound ? clamped(from, to, length) : [0, length];
  if (wait && sound) [view.from, view.to] = [Math.max(0, from), Math.min(length, to)];
  view.wait = wait ? place : null;
  view.pod = asked.get("pod");
  view.node = view.pod === null ? asked.get("node") : null;
}
const draw = () => { drawPicture(); drawNodes(); drawLatency(); };
let fillers = null;
function followAnswers() { fillers?.answers(); fillers?.minutes(); }
// Tables below the first screen are made when the browser has nothing else to do, so that the picture comes at once.
const later = (work) => (window.requestIdleCallback ? requestIdleCallback(work, { timeout: 500 }) : setTimeout(work, 1));
function fillTables() {
  fillers ??= { pods: makePods(), minutes: makeMinutes(), answers: makeAnswers(), scalings: makeScalings(), nodes: makeNodes() };
  Object.values(fillers).forEach((fillTable) => fillTable());
  document.body.dataset.ready = "yes";
}
function follow() {
  read();
  draw();
  followTiles();
  followWaits();
  followStory();
  byId("whole").hidden = !isZoomed();
  if (fillers) fillTables();
}

byId("whole").addEventListener("click", () => zoom(0, length));
byId("more-waits")?.addEventListener("click", (event) => {
  byId("waits").querySelector("table").classList.add("all");
  event.currentTarget.hidden = true;
});
document.querySelectorAll("table.live").forEach(enliven);
addEventListener("hashchange", () => {
  follow();
  if (view.pod !== null || view.node !== null) byId("story").scrollIntoView({ block: "nearest" });
});
addEventListener("resize", draw);
addEventListener("beforeprint", () => { if (!fillers) fillTables(); draw(); });
drawScale();
byId("picture").after(tip);
makeZoomable(byId("picture"), view, length, { draw: drawPicture, zoom, point: pointAt });
follow();
later(fillTables);
