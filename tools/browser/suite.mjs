// Report and comparison in a headless Chromium, used as people use them. SIMKUBE_PAGES is the folder that `pages` made, and
// gets the screenshots. How fast a page opens is measured in opening.mjs, because a test that looks at the clock fails at random.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.SIMKUBE_BROWSER_PACKAGES, "/"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const folder = process.env.SIMKUBE_PAGES;
const address = (name, fragment = "") => pathToFileURL(join(folder, `${name}.html`)).href + fragment;
const PAGES = ["small-report", "large-report", "small-compare", "large-compare"];
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const MAX_BYTES = 10_000_000;

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", headless: true, args: FLAGS });
});
after(async () => { await browser?.close(); });

// Opens a page; what it complains about makes the test fail at its end.
async function opened(name, { fragment = "", ...options } = {}, use) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) complaints.push(`asks for ${request.url()}`); });
  await page.goto(address(name, fragment));
  await page.waitForFunction(() => document.body.dataset.ready === "yes");
  try {
    const result = await use(page);
    assert.deepEqual(complaints, [], `${name} complains`);
    return result;
  } finally {
    await context.close();
  }
}
const dataOf = (page) => page.evaluate(() => JSON.parse(document.getElementById("data").textContent));
async function drag(page, from, to) {
  const box = await page.locator("#picture").boundingBox();
  const { left, right } = { left: 150, right: 14 };
  const x = (share) => box.x + left + share * (box.width - left - right);
  await page.mouse.move(x(from), box.y + 120);
  await page.mouse.down();
  await page.mouse.move(x((from + to) / 2), box.y + 120);
  await page.mouse.move(x(to), box.y + 120);
  await page.mouse.up();
}
// The address as the page has it: what the driver knows of it comes later.
const addressOf = (page) => page.evaluate(() => location.href);
const words = (page, selector) => page.locator(selector).innerText();

for (const name of PAGES) {
  test(`${name} is at most ten megabytes, opens without complaint and draws`, async () => {
    assert.ok(statSync(join(folder, `${name}.html`)).size <= MAX_BYTES);
    await opened(name, {}, async (page) => {
      assert.ok((await page.locator("#picture path").count()) >= 3);
      const label = await page.locator("#picture").getAttribute("aria-label");
      assert.match(label, /[Rr]unning pods/);
    });
  });

  for (const colorScheme of ["light", "dark"]) {
    test(`${name} passes axe's rules in ${colorScheme} colours`, async () => {
      await opened(name, { colorScheme }, async (page) => {
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const told = found.violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(told, []);
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`), fullPage: true });
      });
    });
  }

  test(`${name} reads on a phone: nothing but tables scrolls sideways`, async () => {
    await opened(name, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }, async (page) => {
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
      assert.ok(wide <= room, `${wide} of ${room} pixels`);
      await page.screenshot({ path: join(folder, `${name}-phone.png`) });
    });
  });

  test(`${name} prints whole`, async () => {
    await opened(name, {}, async (page) => {
      await page.emulateMedia({ media: "print" });
      const cut = await page.evaluate(() => [...document.querySelectorAll(".scroll")].filter((box) => getComputedStyle(box).overflowX !== "visible").length);
      assert.equal(cut, 0, "no table scrolls on paper");
      const hidden = await page.evaluate(() => [...document.querySelectorAll("tr.more")].filter((row) => getComputedStyle(row).display === "none").length);
      assert.equal(hidden, 0, "paper has no button that shows more");
      const pdf = await page.pdf({ format: "A4" });
      assert.ok(pdf.length > 20_000);
    });
  });
}

for (const name of ["small-report", "large-report"]) {
  test(`${name}: zoomed to an interval with one pending pod, that pod is there`, async () => {
    await opened(name, {}, async (page) => {
      const [pod, from, to] = await page.evaluate(() => {
        const { pods, owners } = JSON.parse(document.getElementById("data").textContent);
        // The pod with the longest wait; the interval is the last tenth of its wait.
        const waited = pods.why.map((why, i) => [why === -1 ? -1 : pods.scheduled[i], i]).sort(([a], [b]) => b - a)[0][1];
        const [namespace, , ...rest] = owners[pods.owner[waited]].split("/");
        const short = pods.name[waited];
        const name = short[0] === "=" ? short.slice(1) : `${namespace}/${rest.join("/")}${short.slice(1)}`;
        const end = pods.created[waited] + pods.scheduled[waited];
        return [name, end - pods.scheduled[waited] / 10, end];
      });
      await page.evaluate(([from, to]) => { location.hash = `#from=${from}&to=${to}`; }, [from, to]);
      await page.selectOption("#pods select", "waited");
      await page.waitForFunction((pod) => document.querySelector("#pods tbody").textContent.includes(pod), pod);
      assert.match(await words(page, "#tile-wait dd.note"), /waited in the interval/);
      const pending = await page.locator("#picture").getAttribute("aria-label");
      assert.doesNotMatch(pending, /pending up to 0/);
    });
  });

  test(`${name}: dragging zooms, tiles and tables follow, Escape goes back`, async () => {
    await opened(name, {}, async (page) => {
      const before = await words(page, "#tile-hours dd >> nth=0");
      await drag(page, 0.3, 0.5);
      assert.match(await addressOf(page), /#from=\d+&to=\d+/);
      assert.notEqual(await words(page, "#tile-hours dd >> nth=0"), before);
      assert.match(await words(page, "#pods h2"), /from \d\d:\d\d:\d\d to/);
      await page.locator("#picture").focus();
      await page.keyboard.press("Escape");
      assert.equal(await words(page, "#tile-hours dd >> nth=0"), before);
      await page.keyboard.press("+");
      assert.match(await addressOf(page), /#from=/);
    });
  });

  test(`${name}: ticks never repeat, however far it is zoomed`, async () => {
    await opened(name, {}, async (page) => {
      const { length } = await dataOf(page);
      for (const wide of [length, length / 3, length / 20, 60_000, 5_000]) {
        await page.evaluate(([from, to]) => { location.hash = `#from=${from}&to=${to}`; }, [length / 2 - wide / 2, length / 2 + wide / 2].map(Math.round));
        await page.waitForTimeout(50);
        for (const row of ["clock", "since"]) {
          const told = await page.$$eval(`#picture text.${row}`, (all) => all.map((one) => one.textContent));
          assert.ok(told.length >= 1, `${row} at ${wide} ms has ticks`);
          assert.equal(new Set(told).size, told.length, `${row} at ${wide} ms: ${told}`);
        }
      }
    });
  });

  test(`${name}: pods are searched, sorted and opened by the address' fragment`, async () => {
    const pod = await opened(name, {}, async (page) => {
      const first = await words(page, "#pods tbody tr >> nth=0 >> td >> nth=1");
      await page.fill("#pods input", first);
      await page.waitForFunction((pod) => [...document.querySelectorAll("#pods tbody tr")].every((row) => row.textContent.includes(pod)), first);
      await page.fill("#pods input", "no such thing");
      await page.waitForFunction(() => document.querySelectorAll("#pods tbody tr").length === 0);
      await page.fill("#pods input", "");
      await page.click("#pods th >> nth=1 >> button");
      const names = await page.$$eval("#pods tbody tr td:nth-child(2)", (cells) => cells.map((cell) => cell.textContent));
      const order = [...names].sort(new Intl.Collator("en", { numeric: true }).compare).reverse();
      assert.deepEqual(names, order);
      assert.equal(await page.locator("#pods th >> nth=1").getAttribute("aria-sort"), "descending");
      return first;
    });
    await opened(name, { fragment: `#pod=${pod}` }, async (page) => {
      assert.ok((await words(page, "#story h2")).includes(pod));
      assert.match(await words(page, "#story ol"), /created by/);
      await page.click("#story ol a >> nth=0");
      await page.waitForFunction(() => document.querySelector("#story h2").textContent.startsWith("Node"));
      assert.match(await addressOf(page), /node=/);
      await page.click("#story a.close");
      await page.locator("#story").waitFor({ state: "hidden" });
    });
  });

  test(`${name}: a decision is opened by its wait's fragment`, async () => {
    await opened(name, { fragment: "#wait=0" }, async (page) => {
      assert.match(await words(page, "#decisions tbody"), /no node fits/);
      assert.match(await words(page, "#decisions tbody"), /nodes are available/);
      assert.equal(await page.locator("tr.chosen-row").count(), 1);
    });
  });

  test(`${name}: decisions of the autoscaler are listed, searched, follow the interval and stand in a node's page`, async () => {
    await opened(name, {}, async (page) => {
      const rows = page.locator("#scalings tbody tr");
      assert.ok((await rows.count()) >= 2);
      await page.fill("#scalings input", "scale up");
      await page.waitForFunction(() => [...document.querySelectorAll("#scalings tbody tr")].every((row) => row.textContent.includes("scale up") || row.textContent.includes("scale-up")));
      assert.ok((await rows.count()) >= 1);
      const { scalings, nodes, length } = await dataOf(page);
      const place = scalings.what.indexOf("unneeded");
      await page.fill("#scalings input", "");
      const at = scalings.at[place];
      await page.evaluate(([from, to]) => { location.hash = `#from=${from}&to=${to}`; }, [Math.max(0, at - 500), Math.min(length, at + 500)]);
      const node = scalings.subjects[scalings.about[place]];
      await page.waitForFunction((node) => document.querySelector("#scalings tbody").textContent.includes(node), node);
      assert.ok(nodes.name.includes(node));
      await page.evaluate((node) => { location.hash = `#node=${node}`; }, node);
      await page.waitForFunction(() => /autoscaler: unneeded/.test(document.querySelector("#story")?.textContent));
    });
  });

  test(`${name}: tables of owners sort by their numbers`, async () => {
    await opened(name, {}, async (page) => {
      const table = page.locator("section", { has: page.locator("h2", { hasText: "Namespaces" }) }).last().locator("table");
      await table.locator("th >> nth=1 >> button").click();
      const counts = await table.locator("tbody tr td:nth-child(2)").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.v)));
      assert.deepEqual(counts, [...counts].sort((a, b) => b - a));
    });
  });
}

test("small-report: a fault of the scenario's timeline is a mark that says what it was and until when", async () => {
  await opened("small-report", {}, async (page) => {
    const titles = await page.$$eval("#picture line.mark-line.fault title", (all) => all.map((one) => one.textContent));
    assert.equal(titles.length, 1);
    assert.match(titles[0], /09:10:00 loseNodes.*, until 09:15:00/);
  });
});

test("large-report: the one late pod among 100,000 is found by its name", async () => {
  await opened("large-report", {}, async (page) => {
    await page.fill("#pods input", "batch/late");
    await page.waitForFunction(() => document.querySelectorAll("#pods tbody tr").length === 1);
    const row = await words(page, "#pods tbody");
    assert.match(row, /Insufficient cpu/);
    assert.match(row, /until a node of group big was ready/);
  });
});

for (const name of ["small-compare", "large-compare"]) {
  test(`${name}: dragging zooms the curves and the address holds the interval`, async () => {
    await opened(name, {}, async (page) => {
      await drag(page, 0.2, 0.6);
      assert.match(await addressOf(page), /#from=\d+&to=\d+/);
      assert.equal(await page.locator("#legend span.swatch").count(), 2);
      await page.click("#whole");
      assert.doesNotMatch(await addressOf(page), /from=/);
    });
  });
}
