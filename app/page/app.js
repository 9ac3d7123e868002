// The page: follows the cluster, and paints the view that the address names.

import { Answers, post } from "./ask.js";
import { Changes } from "./changes.js";
import { h, paint } from "./dom.js";
import * as cluster from "./cluster.js";
import * as head from "./head.js";
import * as job from "./job.js";
import * as jobs from "./jobs.js";
import { Stream, restWhileHidden } from "./live.js";
import * as queues from "./queues.js";
import { changed, named, read, write } from "./routes.js";
import * as session from "./session.js";
import * as signin from "./signin.js";
import { follow, now, viewOf } from "./store.js";
import * as time from "./time.js";
import * as trying from "./trying.js";
import { clock } from "./words.js";

const TICK_MS = 5_000;
const VIEWS = { queues, jobs, map: cluster, time, try: trying };

const place = {
  head: document.getElementById("head"),
  notices: document.getElementById("notices"),
  content: document.getElementById("content"),
  spoken: document.getElementById("spoken"),
};

const page = {
  view: null,
  connection: { kind: "connecting", text: "", since: performance.now() },
  route: read(location.hash),
  signing: null,
  painting: false,
};
const answers = new Answers(repaint);
const changes = new Changes((text) => {
  place.spoken.textContent = text;
});
const stream = new Stream({ event, state });

/** What every view is given. */
function context() {
  const { view, route } = page;
  return {
    view,
    route,
    answers,
    post,
    repaint,
    now: view === null ? 0 : now(view),
    moment,
    scoped: session.scoped,
    choose,
  };
}

const moments = new WeakMap();

/** When an answer came, by the clock; the same text for as long as it is shown. */
function moment(answer) {
  if (!moments.has(answer)) {
    const at = now(page.view);
    moments.set(answer, clock(at - (performance.now() - answer.at) / 1000, at));
  }
  return moments.get(answer);
}

/** Change options of the view, such as those of its filter. */
function choose(options) {
  page.route = changed(page.route, options);
  write(page.route);
  repaint();
}

function event({ name, said, served }) {
  if (name === "whole") {
    page.view = viewOf(said, served);
    changes.forget();
  } else if (name === "delta") {
    if (page.view === null || !follow(page.view, said)) return false;
    changes.note(said);
  }
  repaint();
  return true;
}

function state(said) {
  const before = page.connection;
  if (said.kind === "connecting" && before.kind === "lost") return;
  const since = said.kind === before.kind ? before.since : performance.now();
  page.connection = { ...said, since };
  if (said.kind === "sign-in") askForToken(said);
  if (said.kind === "lost" && before.kind !== "lost") changes.say(`The connection is lost: ${said.text}`);
  if (said.kind === "live" && before.kind === "lost") changes.say("The connection is back.");
  repaint();
}

function askForToken({ text, status, expired }) {
  page.view = null;
  answers.forget();
  page.signing = { text, status, expired: expired ?? false, hadToken: session.token() !== "" };
}

function signIn({ token, namespaces }) {
  const given = session.tokenIn(token);
  if (!session.isSendable(given)) {
    const text = "It has characters that no token has. Copy it once more, and nothing else.";
    page.signing = { text, status: 401, expired: false, hadToken: true };
    return repaint();
  }
  session.remember({ token: given, namespaces });
  page.signing = null;
  page.view = null;
  answers.forget();
  stream.open();
  repaint();
}

function signOut() {
  session.forget();
  signIn({ token: "", namespaces: "" });
}

function repaint() {
  if (page.painting) return;
  page.painting = true;
  requestAnimationFrame(() => {
    page.painting = false;
    paintAll();
  });
}

function paintAll() {
  const actions = {
    signOut,
    retry: () => stream.open(),
    change: () => {
      page.signing = { text: "", status: 0, expired: false, hadToken: true };
      repaint();
    },
    turnTheme: () => globalThis.pumiceTheme.turn(),
  };
  paint(place.head, ...head.bar(page, actions));
  paint(place.notices, ...head.notices(page, actions));
  const { title, body } = content();
  document.title = `${title} · Pumice`;
  paint(place.content, h("div", { key: keyOf(page) }, body));
}

function content() {
  if (page.signing !== null) {
    return {
      title: "Sign in",
      body: signin.form(page.signing, signIn, () => {
        page.signing = null;
        repaint();
      }),
    };
  }
  if (page.view === null) return { title: "Loading", body: h("p", null, "Waiting for the server …") };
  const { view, names } = page.route;
  const shown = view === "jobs" && names.length === 2 ? job : named(VIEWS, view);
  if (shown === undefined) return { title: "Not found", body: notFound() };
  return { title: shown.title(page.route), body: shown.body(context()) };
}

/** Another view is painted anew, so that nothing of one is left in the other. */
function keyOf({ signing, view, route }) {
  if (signing !== null) return "sign-in";
  return view === null ? "waiting" : [route.view, ...route.names].join("/");
}

function notFound() {
  return [
    h("h1", null, "There is no such view"),
    h("p", null, "The address names none. ", h("a", { href: "#/queues" }, "Go to the queues")),
  ];
}

function moved() {
  const before = [page.route.view, ...page.route.names].join("/");
  page.route = read(location.hash);
  if ([page.route.view, ...page.route.names].join("/") === before) return repaint();
  paintAll();
  place.content.focus({ preventScroll: true });
  scrollTo(0, 0);
}

addEventListener("hashchange", moved);
addEventListener("theme", repaint);
document.getElementById("skip").onclick = (click) => {
  click.preventDefault(); // the part behind # is the address of a view
  place.content.focus();
};
setInterval(repaint, TICK_MS);
stream.open();
restWhileHidden(stream);
repaint();
