// One chosen step, shown everywhere at once; the address bar keeps it for sharing.

function select(id, { reveal = "", tree = true } = {}) {
  const step = byId.get(id);
  if (!step) return;
  showDetail(step);
  markInTree(step, tree);
  markInChart(step);
  history.replaceState(null, "", `#node-${id}`);
  if (reveal !== "panel") return;
  const box = detailPanel.getBoundingClientRect();
  const inSight = box.top >= 0 && box.top < innerHeight * 0.5;
  if (!inSight) detailPanel.scrollIntoView({ block: "start" });
}

/** The step that a link such as #node-12 names, if there is one. */
function linkedStep(hash) {
  return byId.get(Number(hash.match(/^#node-(\d+)$/)?.[1]));
}

function bindCharts() {
  document.querySelectorAll("[data-part=chart] .chart").forEach((svg) => bindChart(svg, select));
}

/** Draws all that needs steps; the page has its places once there is a step. */
function drawSteps() {
  drawTree(select);
  drawTable(select);
  bindCharts();
  const first = linkedStep(location.hash) ?? steps.find((step) => step.best) ?? steps.at(-1);
  showDetail(first);
  markInTree(first, true);
  markInChart(first);
}

if (steps.length) drawSteps();

/** Chooses the row below or above the chosen one in the tree. */
function move(by) {
  const rows = [...(treeBox?.children ?? [])];
  const row = rows[rows.findIndex((one) => one.getAttribute("aria-selected") === "true") + by];
  if (row) select(Number(row.dataset.id));
}

document.addEventListener("keydown", (event) => {
  const by = { j: 1, k: -1 }[event.key];
  const typing = event.target.closest?.("input, textarea, select");
  if (by && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) move(by);
});

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#node-']");
  const step = link && linkedStep(link.getAttribute("href"));
  if (!step) return;
  event.preventDefault();
  select(step.id, { reveal: "panel" });
});
addEventListener("hashchange", () => {
  const step = linkedStep(location.hash);
  if (step) select(step.id, { reveal: "panel" });
});

document.addEventListener(
  "toggle",
  (event) => {
    const box = event.target.matches("details.reference") && document.getElementById("reference");
    if (box && event.target.open && !box.firstChild) box.append(documentView(data.reference, "Reference"));
  },
  true,
);
document.addEventListener("click", (event) => {
  if (event.target.id === "copy-command")
    copy(event.target, document.getElementById("command").textContent);
});
