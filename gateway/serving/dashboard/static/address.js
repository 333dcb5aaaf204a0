// What the page shows stands in its address, so a reload, a bookmark and the back button show the same.

const listeners = new Set();

/** The parameters: page, uid, and the filters of the page. */
export function parameters() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** The address with these parameters; empty ones are left out. */
export function address(values) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return `?${new URLSearchParams(kept)}`;
}

/** Change some filters of this page. It is no step of the history: the back button leaves the page. */
export function filter(values) {
  history.replaceState(null, "", address({ ...parameters(), ...values }));
}

/** Call a listener with the parameters whenever another page is to be shown. */
export function onNavigate(listener) {
  listeners.add(listener);
}

function navigated() {
  for (const listener of listeners) listener(parameters());
}

addEventListener("popstate", navigated);

// A link to a page of the dashboard shows it without loading everything again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='?']");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  navigated();
});
