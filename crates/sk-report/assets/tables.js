// Tables that sort, filter and search: those that stand in the page, and those that are filled from the run's columns.
// A cell's `data-v` is what it sorts by; without it, its text.

const collator = new Intl.Collator("en", { numeric: true });
const sortKey = (cell) => (cell.dataset.v !== undefined ? Number(cell.dataset.v) : cell.textContent);
const compareKeys = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b)));

// Makes the heads of a table buttons; `sort(column, down)` puts its rows in order.
function sortableHeads(table, sort) {
  [...table.querySelectorAll("thead th")].forEach((head, column) => {
    if (!head.textContent.trim()) return;
    const button = html("button", { type: "button", class: "sort", title: `sort by ${head.textContent}` }, ...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(column, down);
    });
  });
}

// A table that stands in the page: sorted by its cells, searched by its text.
function enliven(table) {
  const body = table.tBodies[0];
  sortableHeads(table, (column, down) => {
    const rows = [...body.rows].map((row) => [sortKey(row.cells[column]), row]);
    rows.sort(([a], [b]) => (down ? compareKeys(b, a) : compareKeys(a, b)));
    body.append(...rows.map(([, row]) => row));
  });
  if (body.rows.length <= 10) return;
  const about = table.closest("section")?.querySelector("h2")?.firstChild?.textContent.trim() || "this table";
  const field = html("input", { type: "search", placeholder: "search", "aria-label": `search ${about}` });
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of body.rows) row.classList.toggle("unwanted", !row.textContent.toLowerCase().includes(wanted));
  });
  table.closest(".scroll").before(html("p", { class: "controls" }, field));
}

// A table that is filled row by row from numbers 0 … n-1: `matches` says which are wanted, `cells` makes one's cells.
// Only what is seen is made, so a hundred thousand rows cost nothing until somebody looks.
const PAGE = 25;
function filledTable(section, { columns, find, cells, keys, words }) {
  const state = { rows: [], shown: PAGE, column: null, down: false };
  const head = html("tr", {}, ...columns.map(([name, kind]) => html("th", { scope: "col", class: kind || "" }, name)));
  const body = html("tbody");
  const table = html("table", {}, html("thead", {}, head), body);
  const more = html("button", { type: "button" }, "Show more");
  const count = html("span", { class: "count", role: "status" });
  section.querySelector("h2").append(" ", count);
  section.append(html("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": section.querySelector("h2").firstChild.textContent }, table), more);
  function paint() {
    body.replaceChildren(...state.rows.slice(0, state.shown).map((row) => html("tr", {}, ...cells(row))));
    more.hidden = state.rows.length <= state.shown;
    count.textContent = words(state.rows.length);
  }
  function order() {
    if (state.column === null) return;
    const key = keys[state.column];
    const keyed = state.rows.map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => (state.down ? compareKeys(b, a) : compareKeys(a, b)));
    state.rows = keyed.map(([, row]) => row);
  }
  sortableHeads(table, (column, down) => {
    Object.assign(state, { column, down });
    order();
    paint();
  });
  more.addEventListener("click", () => { state.shown += 8 * PAGE; paint(); });
  return () => {
    state.rows = find();
    state.shown = PAGE;
    order();
    paint();
  };
}
