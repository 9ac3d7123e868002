// The bar above every view, and the notices about the connection and the replica.

import { h } from "./dom.js";
import { namespaces, token } from "./session.js";
import { clock, span } from "./words.js";

const LINKS = [
  ["queues", "Queues"],
  ["jobs", "Jobs"],
  ["map", "Cluster map"],
  ["time", "Time axis"],
  ["try", "What if"],
];
const STATES = { live: "live", connecting: "connecting", lost: "not connected", "sign-in": "signed out" };

export function bar(page, actions) {
  return [
    h("a", { class: "brand", href: "#/queues" }, icon(), "Pumice"),
    h(
      "nav",
      { "aria-label": "Views" },
      h(
        "ul",
        null,
        LINKS.map(([view, name]) => item(view, name, page.route)),
      ),
    ),
    h(
      "div",
      { class: "session" },
      h("span", { class: `state ${page.connection.kind}` }, STATES[page.connection.kind]),
      who(page),
      h("button", { type: "button", onclick: actions.change }, "Namespaces"),
      token() && h("button", { type: "button", onclick: actions.signOut }, "Sign out"),
      h(
        "button",
        { type: "button", onclick: actions.turnTheme },
        globalThis.pumiceTheme.isDark() ? "Light" : "Dark",
      ),
    ),
  ];
}

function icon() {
  return h(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true" },
    h("rect", { class: "back", width: 16, height: 16, rx: 3 }),
    h("path", { class: "front", d: "M3 8h3v5h-3zM7 5h3v8h-3zM11 3h2v10h-2z" }),
  );
}

function item(view, name, route) {
  const current = route.view === view;
  return h("li", null, h("a", { href: `#/${view}`, "aria-current": current ? "page" : null }, name));
}

function who({ view }) {
  if (view === null) return null;
  const shown = view.viewer.namespaces;
  const all = shown === null ? "all namespaces" : `namespace ${shown.join(", ")}`;
  return h("span", { class: "who" }, [view.viewer.user, all].filter(Boolean).join(" · "));
}

/** What the reader has to know before reading on. */
export function notices(page, actions) {
  const { connection, view } = page;
  const told = [];
  if (connection.kind === "lost") told.push(lost(page, actions));
  if (view === null) return told;
  if (view.role !== "leads") told.push(note("standby", `This replica stands by. ${view.notice}`));
  else if (view.notice) told.push(note("notice", view.notice));
  for (const text of view.scheduler?.notices ?? []) told.push(note(`scheduler ${text}`, text));
  if (namespaces() && view.viewer.namespaces !== null && !token())
    told.push(note("scoped", `Shown as a tenant of ${namespaces()} sees it.`));
  return told;
}

function lost({ connection, view }, actions) {
  const gone = span((performance.now() - connection.since) / 1000);
  const again = Math.max(0, (connection.retryAt - performance.now()) / 1000);
  const shown = view === null ? "" : ` What is shown is as of ${clock(view.at, view.at)}.`;
  return h(
    "p",
    { key: "lost", class: "notice bad" },
    `The connection is lost since ${gone}: ${connection.text}.${shown} The next try is in ${span(again)}. `,
    h("button", { type: "button", onclick: actions.retry }, "Try now"),
  );
}

function note(key, text) {
  return h("p", { key, class: "notice" }, text);
}
