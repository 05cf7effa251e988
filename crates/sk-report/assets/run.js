// The run as the page holds it: columns with texts kept once, and what can be asked of them.

const data = JSON.parse(byId("data").textContent);
const length = Math.max(data.length, 1);
const view = { from: 0, to: length, wait: null, pod: null, node: null };
const isZoomed = () => view.from > 0 || view.to < length;

const HOW = ["", "finished", "failed", "deleted", "evicted", "preempted", "node lost"];
const [FAILED, EVICTED, PREEMPTED, NODE_LOST] = [2, 4, 5, 6];
const { pods, answers, nodes } = data;
const podCount = pods.name.length;
const nodeCount = nodes.name.length;

const ownerOf = (i) => (pods.owner[i] < 0 ? "another owner" : data.owners[pods.owner[i]]);
function podName(i) {
  const name = pods.name[i];
  if (name[0] === "=") return name.slice(1);
  const [namespace, , ...rest] = data.owners[pods.owner[i]].split("/");
  return `${namespace}/${rest.join("/")}${name.slice(1)}`;
}
const after = (i, column) => (column[i] < 0 ? null : pods.created[i] + column[i]);
const scheduledAt = (i) => after(i, pods.scheduled);
const startedAt = (i) => after(i, pods.started);
const endedAt = (i) => after(i, pods.ended);
const hasWaited = (i) => pods.why[i] !== -1;
const waitEnd = (i) => scheduledAt(i) ?? endedAt(i) ?? length;
const waitOf = (i) => Math.max(Math.min(waitEnd(i), length) - pods.created[i], 0);
const isNeverPlaced = (i) => hasWaited(i) && (pods.scheduled[i] < 0 || scheduledAt(i) > length);
const nodeOf = (i) => (pods.node[i] < 0 ? null : data.nodeNames[pods.node[i]]);
const reasonOf = (i) => (hasWaited(i) ? (pods.why[i] < 0 ? "no room for the reason here; skctl why tells it" : data.texts[pods.why[i]]) : "");
const nodePlaces = new Map(nodes.name.map((name, i) => [name, i]));
// What let a waiting pod go on.
function endingOf(i) {
  if (isNeverPlaced(i)) return endedAt(i) !== null && endedAt(i) <= length ? "until the pod was gone" : "and still waiting at the end";
  const place = nodePlaces.get(nodeOf(i));
  const isNew = place !== undefined && nodes.ready[place] !== null && nodes.ready[place] > pods.created[i];
  if (!isNew) return "until there was room on a node";
  return nodes.group[place] ? `until a node of group ${nodes.group[place]} was ready` : "until a node was ready";
}
// Was the pod there at any time of the view?
const touches = (i) => pods.created[i] <= view.to && (endedAt(i) ?? Infinity) >= view.from;
const waitsInView = (i) => hasWaited(i) && pods.created[i] <= view.to && waitEnd(i) >= view.from;

// Places of answers by pod, made when somebody first asks.
let answersByPod = null;
function answersOf(pod) {
  if (!answersByPod) {
    answersByPod = new Map();
    answers.pod.forEach((of, i) => {
      if (!answersByPod.has(of)) answersByPod.set(of, []);
      answersByPod.get(of).push(i);
    });
  }
  return answersByPod.get(pod) ?? [];
}
const findPod = (name) => {
  for (let i = 0; i < podCount; i++) if (podName(i) === name) return i;
  return -1;
};

// ---- curves made of others ----------------------------------------------------------------------------------------
const plus = (a, b) => a + b;
const stacks = [];
for (const group of data.groups) stacks.push(stacks.length ? merge(stacks[stacks.length - 1], group.points, plus) : group.points);
const total = stacks.length ? stacks[stacks.length - 1] : [[0, 0]];
const busy = merge(total, data.empty, (all, empty) => all - empty);

// ---- words of moments ----------------------------------------------------------------------------------------------
const isoOf = (ms) => new Date(data.start + ms).toISOString();
const clockOf = (ms) => isoOf(ms).slice(11, 19);
const isOneDay = isoOf(0).slice(0, 10) === isoOf(length).slice(0, 10);
const moment = (ms) => (isOneDay ? clockOf(ms) : `${isoOf(ms).slice(5, 10)} ${clockOf(ms)}`);
const money = (amount) => {
  const digits = Math.abs(amount) < 999.995 ? amount.toFixed(2) : Math.round(amount).toLocaleString("en-US");
  const signs = { USD: "$", EUR: "€", GBP: "£" };
  return signs[data.currency] ? `${signs[data.currency]}${digits}` : `${digits} ${data.currency}`;
};
