// What happened in the interval, one by one: pods, answers of the scheduler, nodes; and the page of one pod or node.

const link = (words, to) => html("a", { href: fragment(to) }, words);
const podLink = (i) => link(podName(i), { pod: podName(i) });
const nodeLink = (name) => (name === null ? "" : link(name, { node: name }));
const cell = (content, kind = "") => html("td", kind ? { class: kind } : {}, content ?? "");
const wanted = { text: "", kind: "" };
const KINDS = [
  ["", "every pod", () => true],
  ["waited", "pods that waited", (i) => waitsInView(i)],
  ["never", "never placed", (i) => isNeverPlaced(i) && waitsInView(i)],
  ["evicted", "evicted, preempted or lost", (i) => [EVICTED, PREEMPTED, NODE_LOST].includes(pods.how[i]) && endedAt(i) >= view.from && endedAt(i) <= view.to],
  ["failed", "failed", (i) => pods.how[i] === FAILED && endedAt(i) >= view.from && endedAt(i) <= view.to],
  ["created", "created in the interval", (i) => pods.created[i] >= view.from && pods.created[i] <= view.to],
];
const contains = (words) => words.toLowerCase().includes(wanted.text);
const isWanted = (i) => !wanted.text || contains(podName(i)) || contains(ownerOf(i)) || contains(nodeOf(i) ?? "") || contains(reasonOf(i));
const leftOutWords = () => {
  const said = [];
  if (data.leftOut.quiet) said.push(`${plural(data.leftOut.quiet, "pod")} to which nothing happened ${data.leftOut.quiet === 1 ? "is" : "are"} not in the page`);
  if (data.minutes.rows.length) said.push(`there are too many waits for the page, so they are counted by owner and ${span(data.minutes.width)}`);
  if (data.leftOut.answers) said.push(`${plural(data.leftOut.answers, "answer")} of the scheduler left out`);
  if (data.leftOut.nodes) said.push(`${plural(data.leftOut.nodes, "node")} left out`);
  return said.length ? `${said.join("; ")}. All of it is in the Parquet files, and skctl why asks them.` : "";
};

function makePods() {
  const section = byId("pods");
  const field = html("input", { type: "search", placeholder: "pod, owner, node or reason", "aria-label": "search pods" });
  const choice = html("select", { "aria-label": "which pods" }, ...KINDS.map(([kind, words]) => html("option", { value: kind }, words)));
  section.append(html("p", { class: "controls" }, field, choice));
  const note = leftOutWords();
  if (note) section.append(html("p", { class: "help" }, note));
  const fillTable = filledTable(section, {
    columns: [["created", ""], ["pod", ""], ["owner", ""], ["wait", "num"], ["to start", "num"], ["node", ""], ["why it waited, how it ended", ""]],
    keys: [(i) => pods.created[i], podName, ownerOf, waitOf, (i) => pods.started[i], (i) => nodeOf(i) ?? "", (i) => `${reasonOf(i)}${HOW[pods.how[i]]}`],
    cells: (i) => [
      cell(moment(pods.created[i]), "when"), cell(podLink(i)), cell(ownerOf(i)), cell(hasWaited(i) ? span(waitOf(i)) : "–", "num"),
      cell(pods.started[i] < 0 ? "–" : span(pods.started[i]), "num"), cell(nodeLink(nodeOf(i))),
      cell([hasWaited(i) ? `${reasonOf(i)}, ${endingOf(i)}` : "", HOW[pods.how[i]]].filter(Boolean).join("; ")),
    ],
    find: () => {
      const is = KINDS.find(([kind]) => kind === wanted.kind)[2];
      const found = [];
      for (let i = 0; i < podCount; i++) if (touches(i) && is(i) && isWanted(i)) found.push(i);
      // The longest waits first, as long as nobody sorts otherwise.
      return found.sort((a, b) => (hasWaited(b) ? waitOf(b) : -1) - (hasWaited(a) ? waitOf(a) : -1) || pods.created[a] - pods.created[b]);
    },
    words: (n) => `${number(n)} ${intervalWords()}`,
  });
  field.addEventListener("input", () => { wanted.text = field.value.trim().toLowerCase(); fillTable(); followAnswers(); });
  choice.addEventListener("change", () => { wanted.kind = choice.value; fillTable(); });
  return fillTable;
}
const intervalWords = () => (isZoomed() ? `from ${moment(view.from)} to ${moment(view.to)}` : "in the whole run");

// Owners by minute, where pods are only counted.
function makeMinutes() {
  const section = byId("minutes");
  if (!data.minutes.rows.length) { section.remove(); return () => {}; }
  section.hidden = false;
  const at = (row) => data.minutes.rows[row][1] * data.minutes.width;
  const of = (row, column) => data.minutes.rows[row][column];
  const owner = (row) => data.owners[of(row, 0)] ?? "other owners";
  return filledTable(section, {
    columns: [["from", ""], ["owner", ""], ["waited", "num"], ["longest", "num"], ["never placed", "num"], ["evicted", "num"], ["preempted", "num"], ["failed or lost", "num"]],
    keys: [at, owner, ...[2, 3, 4, 5, 6, 7].map((column) => (row) => of(row, column))],
    cells: (row) => [cell(moment(at(row)), "when"), cell(owner(row)), cell(number(of(row, 2)), "num"), cell(span(of(row, 3)), "num"),
      ...[4, 5, 6, 7].map((column) => cell(number(of(row, column)), "num"))],
    find: () => data.minutes.rows.map((_, row) => row).filter((row) => at(row) <= view.to && at(row) + Math.max(data.minutes.width, of(row, 3)) >= view.from && (!wanted.text || contains(owner(row)))),
    words: (n) => `${number(n)} rows ${intervalWords()}`,
  });
}

// The scheduler's answers: refusals as it gave them, placements from the pods' own times.
function makeAnswers() {
  const section = byId("decisions");
  const isNo = (answer) => answer.node < 0;
  const every = [];
  for (let i = 0; i < answers.at.length; i++) if (answers.node[i] < 0) every.push({ at: answers.at[i], pod: answers.pod[i], node: -1, text: answers.text[i] });
  for (let i = 0; i < podCount; i++) if (pods.scheduled[i] >= 0) every.push({ at: scheduledAt(i), pod: i, node: pods.node[i], text: -1 });
  every.sort((a, b) => a.at - b.at);
  const words = (answer) => (isNo(answer) ? (answer.text < 0 ? "" : data.texts[answer.text]) : "");
  const nodeName = (answer) => (answer.node < 0 ? null : data.nodeNames[answer.node]);
  return filledTable(section, {
    columns: [["when", ""], ["pod", ""], ["answer", ""], ["in the scheduler's words", ""]],
    keys: [(answer) => answer.at, (answer) => podName(answer.pod), (answer) => nodeName(answer) ?? "", words],
    cells: (answer) => [cell(moment(answer.at), "when"), cell(podLink(answer.pod)),
      isNo(answer) ? cell("no node fits", "no") : cell(html("span", { class: "yes" }, "to ", nodeLink(nodeName(answer)))), cell(words(answer))],
    find: () => every.filter((answer) => answer.at >= view.from && answer.at <= view.to && isWanted(answer.pod)),
    words: (n) => `${number(n)} ${intervalWords()}`,
  });
}

// The autoscaler's decisions: what it did, for or about whom, and in its words why not.
const SCALING_WORDS = {
  "waits-for-more-pods": "all pods without a place are so new that more may come",
  cooldown: "nodes that could go stay, because the cluster has just changed",
  unneeded: "could go from now on",
};
const { scalings } = data;
const scalingAbout = (i) => (scalings.about[i] < 0 ? "" : scalings.subjects[scalings.about[i]]);
const scalingWhat = (i) => scalings.what[i].replaceAll("-", " ");
const scalingWords = (i) => (scalings.text[i] < 0 ? SCALING_WORDS[scalings.what[i]] ?? "" : scalings.texts[scalings.text[i]]);
function makeScalings() {
  const section = byId("scalings");
  if (!scalings.at.length) { section.remove(); return () => {}; }
  section.hidden = false;
  const field = html("input", { type: "search", placeholder: "owner, node, group or words", "aria-label": "search decisions of the autoscaler" });
  section.append(html("p", { class: "controls" }, field));
  if (data.leftOut.scalings) section.append(html("p", { class: "help" }, `${number(data.leftOut.scalings)} later decisions are not in this page; autoscaler.parquet has them.`));
  const matches = (i) => [scalingAbout(i), scalingWhat(i), scalingWords(i)].some((words) => words.toLowerCase().includes(field.value.trim().toLowerCase()));
  const about = (i) => (nodePlaces.has(scalingAbout(i)) ? nodeLink(scalingAbout(i)) : scalingAbout(i));
  const fillTable = filledTable(section, {
    columns: [["when", ""], ["decision", ""], ["about", ""], ["pods", "num"], ["in the autoscaler's words", ""]],
    keys: [(i) => scalings.at[i], scalingWhat, scalingAbout, (i) => scalings.pods[i], scalingWords],
    cells: (i) => [cell(moment(scalings.at[i]), "when"), cell(scalingWhat(i)), cell(about(i)), cell(scalings.pods[i] ? number(scalings.pods[i]) : "", "num"), cell(scalingWords(i))],
    find: () => scalings.at.map((_, i) => i).filter((i) => scalings.at[i] >= view.from && scalings.at[i] <= view.to && matches(i)),
    words: (n) => `${number(n)} ${intervalWords()}`,
  });
  field.addEventListener("input", fillTable);
  return fillTable;
}

function makeNodes() {
  const section = byId("node-table");
  const field = html("input", { type: "search", placeholder: "node or group", "aria-label": "search nodes" });
  section.append(html("p", { class: "controls" }, field));
  const fillTable = filledTable(section, {
    columns: [["node", ""], ["group", ""], ["came", ""], ["ready after", "num"], ["went", ""], ["empty", "num"]],
    keys: [(i) => nodes.name[i], (i) => nodes.group[i], (i) => nodes.created[i], (i) => (nodes.ready[i] ?? length) - nodes.created[i], (i) => nodes.deleted[i] ?? length, (i) => nodes.empty[i]],
    cells: (i) => [cell(nodeLink(nodes.name[i])), cell(nodes.group[i]), cell(nodes.created[i] <= 0 ? "at the start" : moment(nodes.created[i])),
      cell(nodes.ready[i] === null ? "never" : span(Math.max(nodes.ready[i] - nodes.created[i], 0)), "num"), cell(nodes.deleted[i] === null ? "stayed" : moment(nodes.deleted[i])), cell(span(nodes.empty[i]), "num")],
    find: () => nodes.name.map((_, i) => i).filter((i) => nodes.created[i] <= view.to && (nodes.deleted[i] ?? Infinity) >= view.from &&
      (nodes.name[i].toLowerCase().includes(field.value.toLowerCase()) || nodes.group[i].toLowerCase().includes(field.value.toLowerCase()))),
    words: (n) => `${number(n)} ${intervalWords()}`,
  });
  field.addEventListener("input", fillTable);
  return fillTable;
}

// ---- the page of one pod or node -------------------------------------------------------------------------------------
const storyLine = (t, ...content) => html("li", {}, html("time", { datetime: isoOf(t) }, `${moment(t)} `), html("span", { class: "since" }, `+${exactly(t, 1000)}`), " ", ...content);
function podStory(i) {
  const lines = [[pods.created[i], "created by ", ownerOf(i)]];
  let last = null;
  for (const a of answersOf(i)) {
    const words = answers.text[a] < 0 ? "no node fits" : data.texts[answers.text[a]];
    if (answers.node[a] < 0 && words !== last) lines.push([answers.at[a], "not scheduled: ", words]);
    else if (answers.node[a] >= 0) lines.push([answers.at[a], "the scheduler's scores, best first: ", words]);
    last = words;
  }
  if (scheduledAt(i) !== null) lines.push([scheduledAt(i), "bound to ", nodeLink(nodeOf(i)), ` after ${span(pods.scheduled[i])}`]);
  if (startedAt(i) !== null) lines.push([startedAt(i), `running after ${span(pods.started[i])}`]);
  if (endedAt(i) !== null) lines.push([endedAt(i), HOW[pods.how[i]] || "ended"]);
  lines.sort(([a], [b]) => a - b);
  return lines.map(([t, ...content]) => storyLine(t, ...content));
}
function nodeStory(name) {
  const lines = [];
  const place = nodePlaces.get(name);
  if (place !== undefined) {
    lines.push([nodes.created[place], `came, in group ${nodes.group[place] || "(none)"}`]);
    if (nodes.ready[place] !== null) lines.push([nodes.ready[place], `ready after ${span(Math.max(nodes.ready[place] - nodes.created[place], 0))}`]);
    if (nodes.deleted[place] !== null) lines.push([nodes.deleted[place], `removed; it stood empty for ${span(nodes.empty[place])}`]);
  }
  const [from, to] = place === undefined ? [0, -1] : [nodes.created[place], nodes.deleted[place] ?? length];
  for (let i = 0; i < scalings.at.length; i++) {
    if (scalingAbout(i) === name && scalings.at[i] >= from && scalings.at[i] <= to) lines.push([scalings.at[i], "autoscaler: ", [scalingWhat(i), scalingWords(i)].filter(Boolean).join(": ")]);
  }
  const number = data.nodeNames.indexOf(name);
  for (let i = 0; i < podCount && number >= 0; i++) {
    if (pods.node[i] !== number || scheduledAt(i) === null) continue;
    lines.push([scheduledAt(i), podLink(i), ` came (${ownerOf(i)})`]);
    if (endedAt(i) !== null) lines.push([endedAt(i), podLink(i), ` went: ${HOW[pods.how[i]] || "ended"}`]);
  }
  lines.sort(([a], [b]) => a - b);
  return lines;
}
const STORY_MAX = 500;
function followStory() {
  const section = byId("story");
  const asked = view.pod ?? view.node;
  section.hidden = asked === null;
  if (asked === null) return;
  const close = html("a", { href: fragment({ pod: null, node: null }), class: "close" }, "close");
  let lines;
  if (view.pod !== null) {
    const place = findPod(view.pod);
    lines = place < 0 ? [] : podStory(place);
  } else {
    const story = nodeStory(view.node);
    lines = story.slice(0, STORY_MAX).map(([t, ...content]) => storyLine(t, ...content));
    if (story.length > STORY_MAX) lines.push(html("li", {}, `and ${story.length - STORY_MAX} more; nodes.parquet and pods.parquet have them`));
  }
  const none = html("p", { class: "none" }, `${asked} is not in this page: `, html("code", {}, `skctl why ${document.body.dataset.run} ${asked}`), " tells about it.");
  section.replaceChildren(html("h2", {}, `${view.pod !== null ? "Pod" : "Node"} ${asked} `, close), lines.length ? html("ol", { class: "story" }, ...lines) : none);
}
