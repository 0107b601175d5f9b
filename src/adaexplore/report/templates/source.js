// Texts: documents as numbers into the table of lines, turned into elements when they are shown.

let data, steps, byId;

/** Takes the data of the page, or of a later state of the run. */
function takeData(json) {
  data = JSON.parse(json);
  steps = data.steps;
  byId = new Map(steps.map((step) => [step.id, step]));
}

takeData(document.getElementById("data").textContent);

/** An element with attributes and children; strings become text, so nothing is ever parsed as markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

/** The line numbers of a document, from its pairs of first and count. */
function lineNumbers(documentId) {
  const spans = data.documents[documentId];
  const numbers = [];
  for (let at = 0; at < spans.length; at += 2)
    for (let offset = 0; offset < spans[at + 1]; offset++) numbers.push(spans[at] + offset);
  return numbers;
}

function documentText(documentId) {
  return lineNumbers(documentId).map((number) => data.lines[number]).join("\n");
}

/** One line as coloured spans; lengths count code points, as Python does. */
function colouredLine(number) {
  const characters = Array.from(data.lines[number]);
  const fragment = document.createDocumentFragment();
  let at = 0;
  for (const [, letter, length] of data.runs[number].matchAll(/(\D)(\d+)/g)) {
    const piece = characters.slice(at, at + Number(length)).join("");
    fragment.append(letter === "." ? piece : make("span", { class: `tok-${letter}` }, piece));
    at += Number(length);
  }
  fragment.append(characters.slice(at).join(""));
  return fragment;
}

function codeBox(label, rows) {
  return make("div", { class: "code", tabindex: "0", role: "region", "aria-label": label }, ...rows);
}

function codeRow(kind, oldNumber, newNumber, content) {
  return make(
    "div",
    { class: `row ${kind}` },
    oldNumber == null ? null : make("span", { class: "no", "data-no": oldNumber }),
    make("span", { class: "no", "data-no": newNumber }),
    make("span", { class: "text" }, content),
  );
}

/** A whole document with line numbers; `plain` leaves them out and wraps long lines. */
function documentView(documentId, label, plain = false) {
  if (plain) {
    const box = codeBox(label, [documentText(documentId)]);
    box.classList.add("prose");
    return box;
  }
  const rows = lineNumbers(documentId).map((number, index) =>
    codeRow("same", null, index + 1, colouredLine(number)),
  );
  return codeBox(label, rows);
}

/** The unified difference of two documents, from the changed ranges, with some lines around each. */
function diffView(parentDocument, childDocument, changes, around = 3) {
  const before = lineNumbers(parentDocument);
  const after = lineNumbers(childDocument);
  const rows = [];
  let shown = 0;
  const context = (from, to, shift) => {
    for (let at = from; at < to; at++)
      rows.push(codeRow("same", at + 1 - shift, at + 1, colouredLine(after[at])));
  };
  changes.forEach(([oldFrom, oldTo, newFrom, newTo], index) => {
    const from = Math.max(shown, newFrom - around);
    if (from > shown) rows.push(make("div", { class: "row gap" }, `${from - shown} unchanged lines`));
    context(from, newFrom, newFrom - oldFrom);
    for (let at = oldFrom; at < oldTo; at++)
      rows.push(codeRow("removed", at + 1, "", colouredLine(before[at])));
    for (let at = newFrom; at < newTo; at++)
      rows.push(codeRow("added", "", at + 1, colouredLine(after[at])));
    const next = index + 1 < changes.length ? changes[index + 1][2] : after.length;
    shown = Math.min(next, newTo + around);
    context(newTo, shown, newTo - oldTo);
  });
  const rest = after.length - shown;
  if (rest > 0) rows.push(make("div", { class: "row gap" }, `${rest} unchanged lines`));
  return codeBox("Difference to the parent", rows);
}

/** Copies a text and says so on the button; without clipboard access it says that instead. */
async function copy(button, text) {
  const label = button.textContent;
  const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
  button.textContent = copied ? "Copied" : "Select and copy by hand";
  setTimeout(() => (button.textContent = label), 1500);
}
