// The dashboard: one page of it at a time, by the address; the live stream feeds all of them.

import { address, onNavigate, parameters } from "./address.js";
import { showWarnings } from "./banners.js";
import { el } from "./dom.js";
import { follow } from "./live.js";
import { askForToken } from "./login.js";
import { TokenNeeded } from "./session.js";
import { listen, receiver } from "./store.js";
import * as health from "./health.js";
import * as policies from "./policies.js";
import * as review from "./review.js";
import * as reviews from "./reviews.js";
import * as workers from "./workers.js";

const PAGES = { reviews: ["Reviews", reviews], policies: ["Policies", policies], workers: ["Workers", workers], health: ["Health", health] };

const main = document.getElementById("main");
const connection = document.getElementById("connection");
let end = () => {};
let first = true;

function open({ page = "reviews" }) {
  end();
  main.replaceChildren();
  const [title, module] = page === "review" ? ["Review", review] : (PAGES[page] ?? PAGES.reviews);
  document.title = `${title} – Admission gateway`;
  const current = page === "review" || !PAGES[page] ? "reviews" : page;
  document.getElementById("pages").replaceChildren(
    ...Object.entries(PAGES).map(([name, [text]]) =>
      el("a", { href: address({ page: name === "reviews" ? "" : name }), "aria-current": name === current ? "page" : null }, text),
    ),
  );
  end = module.show(main);
  if (!first) main.focus();
  first = false;
}

function status(text, live) {
  if (connection.textContent === text) return;
  connection.textContent = text;
  connection.className = live ? "live" : "lost";
}

listen("state", (state) => {
  document.getElementById("replica").textContent = state.replica;
  showWarnings(document.getElementById("banners"), state);
  if (!shown) open(parameters());
  shown = true;
});

let shown = false;

onNavigate((values) => shown && open(values));

for (;;) {
  try {
    await follow(receiver, status);
  } catch (error) {
    if (!(error instanceof TokenNeeded)) throw error;
    status("waiting for a token", false);
    end();
    shown = false;
    await askForToken(main);
  }
}
