// The time axis: what has happened, now, and what is to come, by queue.

import { h } from "./dom.js";
import { address, linked } from "./jobs.js";
import { table } from "./job.js";
import { most, named } from "./routes.js";
import { byName, clock, count, distance, span } from "./words.js";

const HISTORY_S = 5;
const WINDOWS = { 600: "10 min", 1800: "30 min", 3600: "1 hour" };
const LISTED = 50;
const PARTS = 80; // marks of a kind that are nearer to each other than that are one
const SIGNS = { started: "▲", ended: "■", evicted: "✕", expected: "◆" };

export function title() {
  return "Time axis";
}

export function body({ view, route, choose, answers, scoped, now }) {
  const past = named(WINDOWS, route.options.past) ? Number(route.options.past) : 3600;
  const { value: history, error } = answers.of(scoped("view/history"), HISTORY_S);
  const events = (history?.events ?? []).filter((each) => each.at >= now - past);
  const future = [...view.future.values()].sort(
    (a, b) => (a.at ?? Infinity) - (b.at ?? Infinity) || byName(a.key, b.key),
  );
  const axis = axisOf({ now, past, future });
  const queues = [...new Set([...events, ...future].map((each) => each.queue))].sort(byName);
  const rows = most(route.options.most, LISTED);
  return [
    h(
      "div",
      { class: "top" },
      h("h1", null, "Time axis"),
      h(
        "label",
        null,
        "Past ",
        h(
          "select",
          { value: String(past), onchange: (event) => choose({ past: event.target.value }) },
          Object.entries(WINDOWS).map(([seconds, text]) => h("option", { value: seconds }, text)),
        ),
      ),
    ),
    error !== null && h("p", { class: "notice bad" }, error.message),
    queues.length === 0
      ? h(
          "p",
          { class: "empty" },
          "Nothing has started, ended or been evicted in this time, and nothing is planned.",
        )
      : [
          h(
            "p",
            { class: "legend", "aria-hidden": "true" },
            Object.entries(SIGNS).map(([kind, sign]) =>
              h("span", { class: `sign ${kind}` }, sign, ` ${kind}`),
            ),
            h("span", { class: "key plan" }, "planned, or room is kept"),
          ),
          h(
            "div",
            { class: "axis" },
            ticks(axis),
            queues.map((queue) => lane(queue, events, future, axis)),
          ),
        ],
    h("h2", null, "To come"),
    future.length === 0
      ? h("p", { class: "hint" }, "Nothing is planned now.")
      : table(
          "To come",
          ["Job", "What", "Queue", "When"],
          future.map((each) => ({
            key: each.key,
            cells: [
              name(view, each.job),
              linked(each.text || each.kind, view),
              each.queue,
              each.at === null ? "time not known" : `${distance(each.at, now)} (${clock(each.at, now)})`,
            ],
          })),
        ),
    h("h2", null, "What happened"),
    events.length === 0
      ? h("p", { class: "hint" }, "Nothing in this time.")
      : table(
          "What happened",
          ["Job", "What", "Queue", "When"],
          events
            .slice(-rows)
            .reverse()
            .map((each) => ({
              key: `${each.at} ${each.kind} ${each.job} ${each.pod ?? ""}`,
              cells: [
                name(view, each.job, each.name),
                said(view, each),
                each.queue,
                `${distance(each.at, now)} (${clock(each.at, now)})`,
              ],
            })),
        ),
    events.length > rows &&
      h("button", { type: "button", onclick: () => choose({ most: rows + LISTED }) }, "Show more"),
  ];
}

function name(view, key, known = "") {
  const job = view.jobs.get(key);
  return job === undefined ? known || key : h("a", { href: address(job) }, job.name);
}

function said(view, event) {
  const pods = event.pods ? ` (${count(event.pods, "pod")})` : "";
  if (event.kind !== "evicted")
    return [`${SIGNS[event.kind] ?? ""} ${event.kind}${pods}`, event.text && `: ${event.text}`];
  const rule = event.rule ? ` by the rule of ${event.rule}` : "";
  return [
    `${SIGNS.evicted} evicted${pods}${rule}`,
    event.preemptor && [" for ", name(view, event.preemptor)],
    event.text && `: ${event.text}`,
  ];
}

/** From when to when, and where now is; the future has at least a quarter of the width. */
function axisOf({ now, past, future }) {
  const last = Math.max(now + past / 3, ...future.map((each) => (each.at ?? now) + past / 20));
  const from = now - past;
  return { from, to: last, now, at: (time) => Math.min(1, Math.max(0, (time - from) / (last - from))) * 100 };
}

function ticks({ from, to, now, at }) {
  const step = (now - from) / 4;
  const times = Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + step * index);
  return h(
    "div",
    { class: "ticks", "aria-hidden": "true" },
    times.map((time) =>
      h("span", { style: { left: `${at(time)}%` } }, Math.abs(time - now) < 1 ? "now" : label(time - now)),
    ),
  );
}

function label(away) {
  return away < 0 ? `−${span(-away)}` : `+${span(away)}`;
}

function lane(queue, events, future, axis) {
  const mine = events.filter((each) => each.queue === queue);
  const coming = future.filter((each) => each.queue === queue);
  return h(
    "div",
    { class: "lane", key: queue },
    h("strong", null, queue),
    h(
      "div",
      { class: "strip", role: "img", "aria-label": `Queue ${queue}: ${inWords(mine, coming)}` },
      h("span", { class: "now", style: { left: `${axis.at(axis.now)}%` } }),
      plans(coming, axis),
      marks(mine, axis),
    ),
  );
}

function inWords(events, future) {
  const kinds = Object.keys(SIGNS).map((kind) => [kind, events.filter((each) => each.kind === kind).length]);
  const parts = kinds.filter(([, number]) => number > 0).map(([kind, number]) => `${number} ${kind}`);
  if (future.length > 0) parts.push(`${future.length} to come`);
  return parts.join(", ") || "nothing";
}

function marks(events, axis) {
  const found = new Map();
  for (const each of events) {
    const place = Math.round((axis.at(each.at) / 100) * PARTS);
    const key = `${each.kind} ${place}`;
    found.set(key, {
      kind: each.kind,
      left: (place / PARTS) * 100,
      number: (found.get(key)?.number ?? 0) + 1,
    });
  }
  return [...found.values()].map(({ kind, left, number }) =>
    h(
      "span",
      { class: `sign ${kind}`, style: { left: `${left}%` } },
      SIGNS[kind] ?? "·",
      number > 1 && String(number),
    ),
  );
}

/** From now until something starts; without a known time the end is left open. */
function plans(future, axis) {
  return future.map((each, index) => {
    const from = axis.at(Math.max(each.since ?? axis.now, axis.from));
    const to = each.at === null ? 100 : axis.at(each.at);
    const kind = each.at === null ? "plan open" : "plan";
    const style = {
      left: `${from}%`,
      width: `${Math.max(0.5, to - from)}%`,
      top: `${20 + (index % 2) * 9}px`,
    };
    return [
      h("span", { class: kind, style }),
      each.kind === "expected" &&
        each.at !== null &&
        h("span", { class: "sign expected", style: { left: `${to}%` } }, SIGNS.expected),
    ];
  });
}
