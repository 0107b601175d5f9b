// The tree as an outline with one interval per row, all on one logarithmic scale.

let treeBox;
const treeRows = new Map();
const collapsed = new Set();
const children = new Map();

/** Beyond so many steps, only the way to the best is open at first. */
const MANY = 2500;

/** Steps that grew from one, each followed by its own, as far as branches are open. */
function shownBelow(id) {
  const order = [];
  const waiting = [...(children.get(id) ?? [])].reverse();
  while (waiting.length) {
    const step = waiting.pop();
    order.push(step);
    if (!collapsed.has(step.id)) waiting.push(...[...(children.get(step.id) ?? [])].reverse());
  }
  return order;
}

/** Share of the width at which a speedup stands; the range covers every interval and the baseline. */
function logScale() {
  const bounds = steps.flatMap((step) => (step.interval ? step.interval.slice(0, 2) : []));
  const low = Math.log(Math.max(0.05, bounds.reduce((a, b) => Math.min(a, b), 0.95)));
  const high = Math.log(bounds.reduce((a, b) => Math.max(a, b), 1.05));
  return (speedup) =>
    `${100 * Math.min(1, Math.max(0, (Math.log(speedup) - low) / (high - low)))}%`;
}

function track(step, at) {
  const bar = make("span", { class: "track", "aria-hidden": "true" });
  const baseline = make("i", { class: "one" });
  baseline.style.left = at(1);
  bar.append(baseline);
  if (!step.speedup) return bar;
  const whisker = make("i", { class: "whisker" });
  whisker.style.left = at(step.interval[0]);
  whisker.style.right = `calc(100% - ${at(step.interval[1])})`;
  const dot = make("i", { class: "dot" });
  dot.style.left = at(step.speedup[0]);
  bar.append(whisker, dot);
  return bar;
}

function treeRow(step, at) {
  const parent = children.has(step.id);
  const row = make(
    "div",
    {
      role: "treeitem",
      class: ["node", step.kind, step.status === "passed" ? "passed" : "failed", step.best ? "best" : "",
        step.path ? "path" : ""].join(" "),
      "data-id": step.id,
      "aria-level": step.depth,
      "aria-selected": "false",
      "aria-expanded": parent ? String(!collapsed.has(step.id)) : null,
      tabindex: "-1",
    },
    make("span", { class: "guides" }),
    make("span", { class: "twisty", "aria-hidden": "true" }),
    make("span", { class: "shape", "aria-hidden": "true" }, step.status === "passed" ? "" : "×"),
    make("span", { class: "id" }, String(step.id)),
    make("span", { class: "origin-text" }, step.origin),
    make("span", { class: "label" }, step.note || step.reason || step.kind),
    make("span", { class: "value" }, step.speedup?.[1] ?? (step.estimate ? "estimated" : step.status.replaceAll("_", " "))),
    track(step, at),
  );
  row.style.setProperty("--above", step.depth - 1);
  return row;
}

/** The row of a step, made when it is first shown. */
function rowOf(step) {
  if (!treeRows.has(step.id)) treeRows.set(step.id, treeRow(step, treeScale));
  return treeRows.get(step.id);
}

let treeScale;

function drawTree(select) {
  treeBox = document.getElementById("tree");
  treeBox.addEventListener("click", (event) => {
    const row = event.target.closest(".node");
    if (!row) return;
    const id = Number(row.dataset.id);
    if (event.target.classList.contains("twisty")) toggle(id);
    else select(id, { reveal: "panel" });
  });
  treeBox.addEventListener("keydown", (event) => treeKey(event, select));
  growTree();
}

/** Draws the rows of all steps; branches that were closed stay closed. */
function growTree() {
  const focused = Number(treeBox.contains(document.activeElement) && document.activeElement.dataset.id);
  const scrolled = treeBox.scrollTop;
  children.clear();
  treeRows.clear();
  for (const step of steps) {
    if (!children.has(step.parent)) children.set(step.parent, []);
    children.get(step.parent).push(step);
  }
  if (steps.length > MANY && !collapsed.size)
    for (const step of steps) if (!step.path && children.has(step.id)) collapsed.add(step.id);
  const deepest = steps.reduce((depth, step) => Math.max(depth, step.depth), 1);
  treeBox.style.setProperty("--deepest", deepest);
  treeBox.classList.toggle("deep", deepest > 24);
  treeScale = logScale();
  treeBox.replaceChildren(...shownBelow(0).map(rowOf));
  treeBox.scrollTop = scrolled;
  treeRows.get(focused)?.focus({ preventScroll: true });
}

function toggle(id, close = !collapsed.has(id)) {
  if (!children.has(id) || close === collapsed.has(id)) return;
  const row = rowOf(byId.get(id));
  row.setAttribute("aria-expanded", !close);
  if (close) {
    for (const step of shownBelow(id)) treeRows.get(step.id)?.remove();
    collapsed.add(id);
  } else {
    collapsed.delete(id);
    if (row.isConnected) row.after(...shownBelow(id).map(rowOf));
  }
}

function treeKey(event, select) {
  const row = event.target.closest(".node");
  if (!row) return;
  const id = Number(row.dataset.id);
  const visible = [...treeBox.children];
  const at = visible.indexOf(row);
  const open = children.has(id) && !collapsed.has(id);
  const moves = {
    ArrowDown: () => visible[at + 1],
    ArrowUp: () => visible[at - 1],
    Home: () => visible[0],
    End: () => visible.at(-1),
    ArrowRight: () => (collapsed.has(id) ? toggle(id, false) : open && visible[at + 1]),
    ArrowLeft: () => (open ? toggle(id, true) : treeRows.get(byId.get(id).parent)),
    Enter: () => select(id, { reveal: "panel" }),
    " ": () => select(id),
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const target = moves[event.key]();
  if (!target) return;
  target.focus();
  select(Number(target.dataset.id), { tree: false });
}

function markInTree(step, reveal) {
  for (const row of treeBox.querySelectorAll("[aria-selected=true]")) {
    row.setAttribute("aria-selected", "false");
    row.tabIndex = -1;
  }
  const above = [];
  for (let parent = byId.get(step.parent); parent; parent = byId.get(parent.parent)) above.push(parent.id);
  for (const id of above.reverse()) toggle(id, false);
  const row = rowOf(step);
  row.setAttribute("aria-selected", "true");
  row.tabIndex = 0;
  if (reveal) {
    const top = row.offsetTop;
    if (top < treeBox.scrollTop || top + row.offsetHeight > treeBox.scrollTop + treeBox.clientHeight)
      treeBox.scrollTop = top - treeBox.clientHeight / 2;
  }
}
