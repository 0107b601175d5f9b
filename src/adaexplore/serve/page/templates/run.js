// A search as it runs: the report of a run, which takes the steps that are new.

function compareLink(step) {
  const key = document.body.dataset.key;
  const other = steps.find((one) => one.best && one.id !== step.id)?.id ?? step.parent;
  const second = other ? `&b=${key}&b_step=${other}` : `&b=${key}`;
  return make("a", { class: "quiet", href: `/compare?a=${key}&a_step=${step.id}${second}` }, "Compare");
}

/** Shows the steps of a later state of the page; what is chosen and open stays so. */
function redrawSteps(fresh, whole) {
  const before = shownStep && textsOf(shownStep);
  const led = shownStep?.best;
  const drawn = steps.length > 0 && !whole;
  takeData(fresh.getElementById("data").textContent);
  if (!steps.length) return;
  if (!drawn) {
    drawSteps();
    return;
  }
  growTree();
  drawRows();
  bindCharts();
  Object.assign(shownStep, byId.get(shownStep.id)); // open tabs hold it: its documents have new numbers
  byId.set(shownStep.id, shownStep);
  if (textsOf(shownStep) !== before) showDetail(shownStep);
  else if (shownStep.best !== led) detailPanel.querySelector("header").replaceWith(detailHead(shownStep));
  markInTree(shownStep, false);
  markInChart(shownStep);
}

/** A step as a text to compare, whatever the numbers of its documents and its place among others. */
function textsOf(step) {
  const texts = [step.source, step.feedback, step.detail, ...step.turns.flatMap((turn) => turn.slice(1))];
  const read = texts.map((number) => (number < 0 ? "" : documentText(number)));
  const titles = step.turns.map(([title]) => title);
  const own = { ...step, source: 0, feedback: 0, detail: 0, best: 0, path: 0, improved: 0, turns: titles };
  return JSON.stringify([own, read]);
}

stepActions.push(compareLink);
if (steps.length) showDetail(shownStep);
keepLive(redrawSteps);
