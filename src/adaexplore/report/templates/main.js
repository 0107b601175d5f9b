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

if (steps.length) {
  drawTree(select);
  drawTable(select);
  document.querySelectorAll(".chart").forEach((svg) => bindChart(svg, select));
  const first = linkedStep(location.hash) ?? steps.find((step) => step.best) ?? steps.at(-1);
  showDetail(first);
  markInTree(first, true);
  markInChart(first);
}

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

document.querySelector("details.reference").addEventListener("toggle", (event) => {
  const box = document.getElementById("reference");
  if (event.target.open && !box.firstChild) box.append(documentView(data.reference, "Reference"));
});
const copyCommand = document.getElementById("copy-command");
copyCommand?.addEventListener("click", () =>
  copy(copyCommand, document.getElementById("command").textContent),
);
