// New states of a page: the server says that there is one, and the parts that changed take its place.

let shown = document.cloneNode(true);
let asking = false;
let askAgain = false;

function part(root, name) {
  return root.querySelector(`[data-part="${CSS.escape(name)}"]`);
}

function partNames(root) {
  return [...root.querySelectorAll("[data-part]")].map((element) => element.dataset.part);
}

/** Puts forms that a reader may be filling in where a later state of the page has them. */
function keepForms(fresh) {
  for (const later of fresh.querySelectorAll("[data-keep]")) {
    const own = document.querySelector(`[data-keep="${CSS.escape(later.dataset.keep)}"]`);
    if (own) later.replaceWith(own);
  }
}

function put(own, later) {
  const element = document.importNode(later, true);
  keepForms(element);
  own.replaceWith(element);
}

function scriptOf(root) {
  return root.querySelector("script[src]")?.getAttribute("src");
}

/** Takes over a later state of the page; true where its parts are others than before. */
function takePage(fresh) {
  const active = document.activeElement;
  const whole = "whole" in document.body.dataset || partNames(shown).join() !== partNames(fresh).join();
  if (whole) put(document.querySelector("main"), fresh.querySelector("main"));
  if (whole && part(document, "masthead") && !document.querySelector("main [data-part=masthead]"))
    put(part(document, "masthead"), part(fresh, "masthead"));
  for (const name of whole ? [] : partNames(fresh))
    if (!part(fresh, name).isEqualNode(part(shown, name))) put(part(document, name), part(fresh, name));
  const csrf = fresh.querySelector("input[name=csrf]")?.value;
  if (csrf) for (const field of document.querySelectorAll("input[name=csrf]")) field.value = csrf;
  document.title = fresh.title;
  document.body.dataset.version = fresh.body.dataset.version;
  const again = active.isConnected ? active : active.id && document.getElementById(active.id);
  if (again && again !== document.activeElement) again.focus({ preventScroll: true });
  shown = fresh;
  return whole;
}

function say(words, kind) {
  const place = document.getElementById("live");
  place.textContent = words;
  place.className = kind;
}

/** Fetches the page as it is now and shows it; `redraw` draws what scripts draw. */
async function refresh(redraw) {
  askAgain = asking;
  if (asking) return;
  asking = true;
  try {
    const answer = await fetch(location.href.split("#")[0]);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (scriptOf(fresh) !== scriptOf(document)) return location.reload(); // a page of another kind
    if (answer.ok && fresh.body.dataset.events) redraw(fresh, takePage(fresh));
  } catch {
    say("not connected", "bad"); // the stream of events connects again, and says so
  } finally {
    asking = false;
  }
  if (askAgain) refresh(redraw);
}

/** Keeps the page as the records are, and sends its forms without leaving it. */
function keepLive(redraw = () => {}) {
  const { events, version } = document.body.dataset;
  const source = new EventSource(`${events}?version=${version}`);
  source.addEventListener("open", () => say("live", "good"));
  source.addEventListener("error", () => say("not connected", "bad"));
  source.addEventListener("changed", () => refresh(redraw));
  document.addEventListener("submit", (event) => sendForm(event, redraw));
}

async function sendForm(event, redraw) {
  const form = event.target;
  const output = form.querySelector("output");
  if (!output) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form, event.submitter));
  const buttons = form.querySelectorAll("button");
  buttons.forEach((button) => (button.disabled = true));
  output.textContent = "…";
  try {
    const answer = await fetch(form.action, { method: "POST", body: fields });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    output.textContent = answer.ok ? "" : page.getElementById("detail-text")?.textContent || "refused";
    if (answer.ok) await refresh(redraw);
  } catch {
    output.textContent = "The server cannot be reached; what you wrote is still here.";
  }
  buttons.forEach((button) => (button.disabled = false));
}
