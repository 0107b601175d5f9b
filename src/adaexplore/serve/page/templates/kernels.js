// Two kernels side by side: what each is and how it did, and the difference of their sources.

for (const [index, id] of ["first", "second"].entries()) {
  const place = document.getElementById(id);
  const head = detailHead(steps[index]);
  for (const link of head.querySelectorAll("a")) link.href = place.dataset.run + link.getAttribute("href");
  const own = make("a", { href: `${place.dataset.run}#node-${steps[index].id}` }, place.dataset.name);
  head.querySelector(".from").append(" · ", own);
  place.append(head);
}
const [first, second] = steps;
document.getElementById("diff").append(
  second.diff?.length
    ? diffView(first.source, second.source, second.diff)
    : notice(second.diff ? "The same source." : "There is no source on both sides to compare."),
);
