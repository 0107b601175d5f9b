// The table of candidates: sorted by a column, filtered by text and status, drawn in pages.

const PAGE = 50;
const COLUMNS = [
  { name: "Node", of: (step) => step.id, show: (step) => (step.best ? `★ ${step.id}` : step.id), cls: "num id" },
  { name: "Parent", of: (step) => step.parent, show: (step) => step.parent || "root", cls: "num wide" },
  { name: "Step", of: (step) => step.kind, cls: "wide" },
  { name: "Origin", of: (step) => step.origin, chip: "origin" },
  { name: "Status", of: (step) => step.status, cls: "status" },
  { name: "Time", of: (step) => step.time?.[0], show: (step) => step.time?.[1], cls: "num time" },
  { name: "Speedup", of: (step) => step.speedup?.[0], show: (step) => step.speedup?.[1], cls: "num speedup", down: true },
  { name: "95 % interval", of: (step) => step.interval?.[0], show: (step) => step.interval?.[2], cls: "num interval", down: true },
  { name: "Over eager", of: (step) => step.eager?.[0], show: (step) => step.eager?.[1], cls: "num wide", down: true },
  { name: "Class", of: (step) => step.precision, cls: "wide" },
  { name: "Structure", of: (step) => step.structure, cls: "num wide" },
  { name: "Error", of: (step) => step.error[0], show: (step) => step.error[1], cls: "num wide" },
  { name: "Note", of: (step) => step.reason || [...step.labels, step.estimate, step.note].filter(Boolean).join("; "), cls: "note" },
];
let table;
const order = { column: 0, down: false };
let limit = PAGE;

/** Missing values come last whichever way the column is sorted. */
function compare(a, b) {
  const { of } = COLUMNS[order.column];
  const [x, y] = [of(a), of(b)];
  if (x == null || x === "") return y == null || y === "" ? a.id - b.id : 1;
  if (y == null || y === "") return -1;
  const sign = typeof x === "string" ? x.localeCompare(y) : x - y;
  return (order.down ? -sign : sign) || a.id - b.id;
}

function matching() {
  const words = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const status = document.getElementById("status").value;
  return steps.filter((step) => {
    if (status && step.status !== status) return false;
    const text = [step.id, step.kind, step.origin, step.family, step.status, step.precision, step.note, step.reason]
      .join(" ")
      .toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function candidateRow(step) {
  const row = make("tr", { "data-id": step.id, class: step.status === "passed" ? "passed" : "failed" });
  for (const { name, of, show = of, cls = "", chip: kind } of COLUMNS) {
    const value = show(step) ?? "";
    const cell = make("td", { class: cls, title: cls === "note" && value });
    if (name === "Node") cell.append(make("a", { href: `#node-${step.id}` }, String(value)));
    else if (kind) cell.append(chip(value, kind));
    else cell.append(String(value));
    row.append(cell);
  }
  return row;
}

/** The statuses that occur, as choices of the filter. */
function drawStatuses() {
  const filter = document.getElementById("status");
  const known = new Set([...filter.options].map((option) => option.value));
  for (const { status } of steps)
    if (!known.has(status) && known.add(status)) filter.append(make("option", {}, status));
}

function drawRows() {
  drawStatuses();
  const found = matching().sort(compare);
  table.tBodies[0].replaceChildren(...found.slice(0, limit).map(candidateRow));
  document.getElementById("count").textContent =
    found.length === steps.length ? `${steps.length} candidates` : `${found.length} of ${steps.length}`;
  const more = document.getElementById("more");
  more.hidden = found.length <= limit;
  more.textContent = `Show all ${found.length}`;
  table.tHead.rows[0].querySelectorAll("th").forEach((cell, index) => {
    const sorted = index === order.column;
    cell.setAttribute("aria-sort", sorted ? (order.down ? "descending" : "ascending") : "none");
  });
  document.getElementById("sort").value = String(order.column);
}

function sortBy(column) {
  order.down = order.column === column ? !order.down : Boolean(COLUMNS[column].down);
  order.column = column;
  drawRows();
}

function drawTable(select) {
  table = document.getElementById("candidates");
  const head = make("tr");
  COLUMNS.forEach(({ name, cls = "" }, index) => {
    const button = make("button", { type: "button" }, name);
    button.addEventListener("click", () => sortBy(index));
    head.append(make("th", { class: cls, scope: "col" }, button));
    document.getElementById("sort").append(make("option", { value: index }, name));
  });
  table.tHead.append(head);
  for (const id of ["find", "status"])
    document.getElementById(id).addEventListener("input", () => {
      limit = PAGE;
      drawRows();
    });
  document.getElementById("sort").addEventListener("input", (event) => sortBy(Number(event.target.value)));
  document.getElementById("more").addEventListener("click", () => {
    limit = Infinity;
    drawRows();
  });
  table.tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a")) select(Number(row.dataset.id), { reveal: "panel" });
  });
  drawRows();
}
