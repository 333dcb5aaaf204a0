// Asks for the token of --admin-token-file.

import { el, field } from "./dom.js";
import { hasToken, useToken } from "./session.js";

/** Show the form, and wait until a token is entered. */
export function askForToken(main) {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", name: "token", autocomplete: "current-password", required: true });
    const refused = hasToken() ? el("p", { role: "alert" }, "The gateway refused this token.") : null;
    const submit = (event) => {
      event.preventDefault();
      useToken(input.value.trim());
      resolve();
    };
    main.replaceChildren(
      el("h2", {}, "Token"),
      ...(refused ? [refused] : []),
      el("p", {}, "This gateway shows its dashboard to those who have a token of --admin-token-file. It is kept until this tab is closed."),
      el("form", { submit }, field("Token", input), el("button", { type: "submit" }, "Open the dashboard")),
    );
    input.focus();
  });
}
