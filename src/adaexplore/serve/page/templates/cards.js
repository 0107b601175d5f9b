// Pages without steps: j and k go through the cards, or the problems of a campaign.

keepLive();

document.addEventListener("keydown", (event) => {
  const by = { j: 1, k: -1 }[event.key];
  if (!by || event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const links = [...document.querySelectorAll("a.card, table.groups a")];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
});
