// Prints a trace of 100,000 bare pods over six hours, each of which lives for nine minutes, and one that is known by name:
// `batch/late`, at +3h, needs a node that is not there and waits for it alone.
import { once } from "node:events";

const [PODS, HOURS, LIFE_S] = [100000, 6, 540];
const start = Date.UTC(2026, 0, 5, 9);
const at = (s) => new Date(start + s * 1000).toISOString().replace(".000Z", "Z");
const names = ["api", "web", "search", "mail", "etl", "report", "image", "cart"];
const pod = (name, namespace, cpu) => ({
  apiVersion: "v1", kind: "Pod", metadata: { name, namespace, annotations: {}, labels: { app: name.split("-")[0] } },
  spec: { containers: [{ name: "main", image: "main:1", resources: { requests: { cpu, memory: "64Mi" } } }] },
});
const write = async (line) => { if (!process.stdout.write(`${JSON.stringify(line)}\n`)) await once(process.stdout, "drain"); };

await write({ simkube: "trace", version: 1, config: { trackedObjects: { "v1.Pod": {} } } });
const changes = [];
for (let i = 0; i < PODS; i++) {
  const from = Math.floor((i * HOURS * 3600) / PODS);
  const [name, namespace] = [`${names[i % names.length]}-${i}`, `team-${i % 5}`];
  changes.push([from, { apply: pod(name, namespace, "100m") }]);
  changes.push([from + LIFE_S, { delete: { apiVersion: "v1", kind: "Pod", metadata: { name, namespace } } }]);
}
changes.push([3 * 3600, { apply: pod("late", "batch", "40") }]);
changes.sort(([a], [b]) => a - b);
for (const [s, change] of changes) await write({ at: at(s), ...change });
