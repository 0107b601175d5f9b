// The chosen candidate: what it is, how it did, and its texts behind tabs.

let openTab = "Source";

/** Functions that add an element to the head of a step. */
const stepActions = [];

let detailPanel, shownStep;


function chip(text, kind = "") {
  return make("span", { class: `chip ${kind}` }, text);
}

function factList(facts) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of facts) list.append(make("dt", {}, name), make("dd", {}, value));
  return list;
}

function notice(text) {
  return make("p", { class: "notice" }, text);
}

function diffPanel(step) {
  const parent = byId.get(step.parent);
  if (!parent) return notice("Grown from the empty root: there is no parent to compare with.");
  if (!step.diff) return notice("There is no source on both sides to compare.");
  if (!step.diff.length) return notice(`The same source as node ${parent.id}.`);
  return diffView(parent.source, step.source, step.diff);
}

function evaluationPanel(step) {
  const panel = make("div", { class: "panel-body" });
  if (step.reason) panel.append(make("p", { class: "reason" }, step.reason));
  panel.append(factList(step.evaluation));
  panel.append(documentView(step.feedback, "Feedback", true));
  if (step.detail >= 0) panel.append(documentView(step.detail, "Detail of the evaluation", true));
  return panel;
}

/** A text that is folded away; empty ones say so. */
function folded(label, documentId) {
  if (documentId < 0) return make("p", { class: "note" }, `${label}: empty`);
  return make(
    "details",
    { class: "folded" },
    make("summary", {}, label),
    documentView(documentId, label, true),
  );
}

/** What the model was asked and what it answered, turn by turn. */
function conversationPanel(step) {
  const panel = make("div", { class: "panel-body" });
  for (const [title, prompt, reply] of step.turns) {
    if (title) panel.append(make("h4", { class: "turn" }, title));
    panel.append(folded("Prompt", prompt), folded("Reply", reply));
  }
  return panel;
}

/** The tabs of a step, each with a function that builds its content when it is opened. */
function tabsOf(step) {
  const tabs = [
    ["Source", () => step.source >= 0
      ? documentView(step.source, "Source")
      : notice("This step produced no source.")],
    ["Diff", () => diffPanel(step)],
    ["Evaluation", () => evaluationPanel(step)],
  ];
  if (step.turns.length) tabs.push(["Conversation", () => conversationPanel(step)]);
  if (step.settings.length)
    tabs.push(["Settings", () => make("div", { class: "panel-body" }, factList(step.settings))]);
  return tabs;
}

function showTab(tabs, name) {
  const [chosen, build] = tabs.find(([label]) => label === name) ?? tabs[0];
  for (const button of detailPanel.querySelectorAll("[role=tab]")) {
    const active = button.textContent === chosen;
    button.setAttribute("aria-selected", active);
    button.tabIndex = active ? 0 : -1;
  }
  const panel = detailPanel.querySelector("[role=tabpanel]");
  panel.setAttribute("aria-label", chosen);
  panel.replaceChildren(build());
}

function tabBar(tabs) {
  const bar = make("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  for (const [name] of tabs) {
    const button = make("button", { type: "button", role: "tab" }, name);
    button.addEventListener("click", () => showTab(tabs, (openTab = name)));
    bar.append(button);
  }
  bar.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    const buttons = [...bar.children];
    const next = buttons.indexOf(document.activeElement) + move;
    buttons[(next + buttons.length) % buttons.length].click();
    buttons[(next + buttons.length) % buttons.length].focus();
    event.preventDefault();
  });
  return bar;
}

function copySourceButton(step) {
  const button = make("button", { type: "button", class: "quiet" }, "Copy source");
  button.addEventListener("click", () => copy(button, documentText(step.source)));
  return button;
}

function detailHead(step) {
  const copyButton = step.source >= 0 ? copySourceButton(step) : null;
  const origin = step.parent
    ? make("a", { href: `#node-${step.parent}` }, `node ${step.parent}`)
    : "the root";
  const head = make(
    "header",
    {},
    make(
      "div",
      { class: "title-row" },
      make("h3", {}, `Node ${step.id}`, step.best ? make("span", { class: "star" }, " ★ best") : ""),
      make("span", { class: "actions" }, ...stepActions.map((action) => action(step)), copyButton),
    ),
    make("p", { class: "from" }, `${step.kind} step from `, origin),
    make(
      "p",
      { class: "chips" },
      chip(step.origin, "origin"),
      step.family ? chip(step.family) : null,
      chip(step.status, step.status === "passed" ? "good" : "bad"),
      step.precision ? chip(step.precision, "precision") : null,
      ...step.labels.map((label) => chip(label, "warn")),
      step.reused ? chip("evaluation taken over") : null,
    ),
  );
  if (step.speedup)
    head.append(
      make(
        "p",
        { class: "measure" },
        make("b", {}, step.speedup[1]),
        make("span", {}, `95 % ${step.interval[2]}`),
        make("span", {}, step.time[1]),
        make("span", {}, `${step.eager[1]} over eager`),
      ),
    );
  else if (step.estimate) head.append(make("p", { class: "note" }, step.estimate));
  else if (step.reason) head.append(make("p", { class: "reason" }, step.reason));
  if (step.note) head.append(make("p", { class: "note" }, step.note));
  return head;
}

function showDetail(step) {
  detailPanel = document.getElementById("detail");
  shownStep = step;
  const tabs = tabsOf(step);
  const panel = make("div", { role: "tabpanel", class: "panel" });
  detailPanel.replaceChildren(detailHead(step), tabBar(tabs), panel);
  showTab(tabs, openTab);
}
