// Asking for a token, and which namespaces to look at.

import { h } from "./dom.js";
import { namespaces, token } from "./session.js";

/** `why` has the sentence of the server, its status and whether a token has expired. */
export function form(why, done, cancel) {
  const given = { token: token(), namespaces: namespaces() };
  return h(
    "form",
    { class: "card narrow", onsubmit: (event) => sent(event, done) },
    h("h1", null, heading(why)),
    why.text && h("p", { class: "notice bad", role: "alert" }, sentence(why)),
    h("label", { for: "token" }, "Bearer token"),
    h("input", {
      id: "token",
      name: "token",
      type: "password",
      autocomplete: "off",
      spellcheck: "false",
      "aria-describedby": "token-help",
      made: (it) => {
        it.value = given.token;
      },
    }),
    h(
      "p",
      { id: "token-help", class: "hint" },
      "Such as ",
      h("code", null, "kubectl create token NAME"),
      " prints. It stays in this tab until you sign out or close it. ",
      "Through a port-forward no token is needed.",
    ),
    h("label", { for: "namespaces" }, "Namespaces"),
    h("input", {
      id: "namespaces",
      name: "namespaces",
      autocomplete: "off",
      spellcheck: "false",
      placeholder: "team-a, team-b",
      "aria-describedby": "namespaces-help",
      made: (it) => {
        it.value = given.namespaces;
      },
    }),
    h(
      "p",
      { id: "namespaces-help", class: "hint" },
      "A tenant names its own. An operator leaves this empty to see everything, or names some to see what their tenants see.",
    ),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "submit", class: "primary" }, "Show"),
      why.status === 0 && h("button", { type: "button", onclick: cancel }, "Cancel"),
    ),
  );
}

function heading({ status, expired, hadToken }) {
  if (expired) return "Your token has expired";
  if (status === 401) return hadToken ? "This token is not accepted" : "Sign in";
  if (status === 403) return "You may not see this";
  return "What to look at";
}

function sentence({ text, expired }) {
  if (expired)
    return `The server no longer accepts your token (${text}). Sign in with a new one: you come back to the same view.`;
  return text;
}

function sent(event, done) {
  event.preventDefault();
  const fields = new FormData(event.target);
  done({ token: fields.get("token"), namespaces: fields.get("namespaces") });
}
