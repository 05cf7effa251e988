// How long a page takes to open in a headless Chromium against an empty page of the same bytes: `opening.mjs PAGE…`. Each is
// opened in turns, so that a busy moment of the machine meets both; the middle of eleven counts. Exits with 1 above 3 times.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SIMKUBE_BROWSER_PACKAGES, "/"));
const { chromium } = require("playwright-core");
const [ROUNDS, MOST] = [11, 3];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });

async function open(path) {
  const page = await browser.newPage();
  const began = performance.now();
  await page.goto(pathToFileURL(path).href);
  const took = performance.now() - began;
  await page.close();
  return took;
}
const middle = (times) => times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
for (const page of process.argv.slice(2).map((path) => resolve(path))) {
  const bytes = readFileSync(page).length;
  const empty = page.replace(/\.html$/, "-empty.html");
  const filler = "x".repeat(bytes);
  writeFileSync(empty, `<!doctype html><html lang="en"><title>empty</title><script type="application/json">${filler}</script></html>`);
  const [own, none] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await open(page));
    none.push(await open(empty));
  }
  const [a, b] = [middle(own), middle(none)];
  console.log(`${page.split("/").pop()}: ${(bytes / 1e6).toFixed(2)} MB opens in ${a.toFixed(0)} ms, an empty page of the same bytes in ${b.toFixed(0)} ms: ${(a / b).toFixed(2)} times (goal ${MOST})`);
  if (a > MOST * b) process.exitCode = 1;
}
await browser.close();
