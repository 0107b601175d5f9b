// The chart: the nearest mark answers to pointer, finger and arrow keys.

function tipContent(step, confirmation) {
  const lines = [make("b", {}, `Node ${step.id}`), ` ${step.kind} step, ${step.origin}`];
  if (confirmation) lines.push(make("span", {}, "confirmed in a fresh process; see the headline"));
  else if (step.speedup)
    lines.push(make("span", {}, `${step.speedup[1]} (95 % ${step.interval[2]}), ${step.time[1]}`));
  else lines.push(make("span", {}, step.estimate || `${step.status}: ${step.reason}`));
  if (step.note) lines.push(make("span", { class: "tip-note" }, step.note));
  return lines;
}

function bindChart(svg, select) {
  const tip = svg.parentElement.querySelector(".tip");
  const ring = svg.querySelector(".ring");
  const marks = [...svg.querySelectorAll(".mark")].map((element) => ({
    id: Number(element.dataset.id),
    x: Number(element.dataset.x),
    y: Number(element.dataset.y),
    confirmation: element.classList.contains("confirmation"),
  }));
  let current = -1;

  const show = (index) => {
    current = index;
    const mark = marks[index];
    ring.setAttribute("cx", mark.x);
    ring.setAttribute("cy", mark.y);
    ring.removeAttribute("hidden");
    tip.replaceChildren(...tipContent(byId.get(mark.id), mark.confirmation));
    tip.hidden = false;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const left = mark.x * scale - tip.offsetWidth / 2;
    const below = mark.y * scale < tip.offsetHeight + 20;
    tip.style.left = `${Math.max(0, Math.min(left, svg.clientWidth - tip.offsetWidth))}px`;
    tip.style.top = `${mark.y * scale + (below ? 16 : -tip.offsetHeight - 14)}px`;
  };
  const hide = () => {
    tip.hidden = true;
    ring.setAttribute("hidden", "");
  };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    const distance = (mark) => Math.hypot(mark.x - x, (mark.y - y) / 2);
    return marks.reduce((best, mark, index) => (distance(mark) < distance(marks[best]) ? index : best), 0);
  };

  svg.addEventListener("pointermove", (event) => show(nearest(event)));
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hide());
  svg.addEventListener("blur", hide);
  svg.addEventListener("click", (event) => {
    show(nearest(event));
    select(marks[current].id);
  });
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (move) show(Math.min(marks.length - 1, Math.max(0, current + move)));
    else if (event.key === "Enter" && current >= 0) select(marks[current].id, { reveal: "panel" });
    else if (event.key === "Escape") hide();
    else return;
    event.preventDefault();
  });
}

function markInChart(step) {
  for (const mark of document.querySelectorAll(".chart .mark"))
    mark.classList.toggle("chosen", Number(mark.dataset.id) === step.id);
}
