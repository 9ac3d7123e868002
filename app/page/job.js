// One job's story: how far it has come and when, or why not, its members and its evictions.

import { h } from "./dom.js";
import { address, ended, why } from "./jobs.js";
import { decisions } from "./asking.js";
import { link, most } from "./routes.js";
import { amounts, clock, count, distance, span } from "./words.js";

const FRESH_S = 3;
const FIRST_MEMBERS = 100;
const NAMES = {
  submitted: "Submitted",
  enqueued: "Enqueued",
  planned: "Planned",
  held: "Held at the barrier",
  bound: "Bound",
  running: "Running",
  ended: "Ended",
};

export function title(route) {
  return `Job ${route.names[1]}`;
}

export function body(context) {
  const { route, answers, now } = context;
  const [namespace, name] = route.names;
  const at = `${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const { value: story, error } = answers.of(`view/jobs/${at}`, FRESH_S);
  const back = h("p", null, h("a", { href: "#/jobs" }, "← All jobs"));
  if (story === null)
    return [
      back,
      h("h1", null, `Job ${name}`),
      error ? refused(error) : h("p", null, "Asking for its story …"),
    ];
  const job = context.view.jobs.get(story.key) ?? story.job;
  return [
    back,
    h("h1", null, `Job ${name}`),
    job === null
      ? h("p", { class: "notice" }, "This job is gone. What is told here is what the decisions say of it.")
      : facts(job, now),
    stages(story, now),
    job !== null && job.trouble && troubles(job),
    job !== null && job.waits && waits(job, context),
    job !== null && decisions(context, job),
    members(story, context),
    evictions(story, context),
    steps(story, now),
  ];
}

function refused(error) {
  const text =
    error.status === 404
      ? "Nothing is known of a job of this name. It may never have been submitted, or ended long ago."
      : error.message;
  return h("p", { class: "empty" }, text);
}

function facts(job, now) {
  const told = [
    ["Namespace", job.namespace],
    ["Queue", h("a", { href: link("queues", [job.queue]) }, job.queue)],
    ["Owner", job.owner || "none"],
    ["Phase", job.phase],
    ["Priority", job.priority],
    ["Asks for", amounts(job.asked)],
    ["Holds", amounts(job.held)],
    ["Submitted", distance(job.created, now)],
  ];
  return h(
    "dl",
    { class: "facts" },
    told.map(([term, text]) => h("div", null, h("dt", null, term), h("dd", null, text))),
  );
}

function stages({ stages: all, current }, now) {
  const reached = all.findIndex((each) => each.stage === current);
  return h(
    "ol",
    { class: "stages", "aria-label": "How far it has come" },
    all.map((each, index) => {
      const before = all.slice(0, index).findLast((other) => other.at !== null);
      const kind = index < reached ? "past" : index === reached ? "now" : "open";
      const taken =
        each.at !== null && before !== undefined && each.at - before.at >= 1
          ? ` after ${span(each.at - before.at)}`
          : "";
      return h(
        "li",
        { class: kind, "aria-current": kind === "now" ? "step" : null },
        h("strong", null, NAMES[each.stage] ?? each.stage),
        h(
          "span",
          { class: "hint" },
          each.at === null
            ? kind === "open"
              ? "not yet"
              : "time not known"
            : `${clock(each.at, now)}${taken}`,
        ),
        each.text && h("span", { class: "hint" }, each.text),
      );
    }),
  );
}

function troubles(job) {
  return h(
    "section",
    { class: "card why", "aria-label": "What is wrong" },
    h("h2", null, "What is wrong"),
    h("p", null, job.trouble, "."),
  );
}

function waits(job, context) {
  return h(
    "section",
    { class: "card why", "aria-label": "Why it waits" },
    h("h2", null, "Why it waits"),
    h("p", null, why({ ...job, trouble: "" }, context)),
  );
}

function members(story, { route, choose }) {
  const rows = most(route.options.members, FIRST_MEMBERS);
  const shown = story.members.slice(0, rows);
  return h(
    "section",
    { "aria-label": "Members" },
    h("h2", null, `Members (${story.members_total ?? story.members.length})`),
    shown.length === 0 && h("p", { class: "hint" }, "It has no pods yet."),
    shown.length > 0 &&
      table(
        "Members",
        ["Pod", "Role", "State", "Node", "Gates"],
        shown.map((each) => ({
          key: each.pod,
          cells: [
            each.pod.split("/").at(-1),
            each.role,
            [each.state, each.trouble && h("span", { class: "hint" }, ` ${each.trouble}`)],
            node(each.node),
            each.gates.join(", "),
          ],
        })),
      ),
    story.members.length > rows &&
      h("button", { type: "button", onclick: () => choose({ members: rows + 500 }) }, "Show more members"),
    story.slots.length > 0 &&
      h(
        "p",
        null,
        `Room is kept for ${count(story.slots.length, "member")} that do not exist yet, on `,
        [...new Set(story.slots.map((slot) => slot.node))].join(", "),
        ".",
      ),
  );
}

function node(name) {
  return name && h("a", { href: link("map", [], { node: name }) }, name);
}

function evictions({ evictions: { by, of } }, { now, view }) {
  if (by.length + of.length === 0) return null;
  const rows = (list, other) =>
    list.map((each) => ({
      key: `${each.at} ${each.pod}`,
      cells: [
        clock(each.at, now),
        each.pod,
        node(each.node),
        `${each.action}${each.rule ? ` by the rule of ${each.rule}` : ""}`,
        each.state,
        jobLink(each[other], view),
      ],
    }));
  const columns = (last) => ["When", "Pod", "Node", "Why", "State", last];
  return h(
    "section",
    { "aria-label": "Evictions" },
    h("h2", null, "Evictions"),
    by.length > 0 && [
      h("h3", null, "Pods that were evicted for it"),
      table("Pods that were evicted for it", columns("Of"), rows(by, "job")),
    ],
    of.length > 0 && [
      h("h3", null, "Its own pods that were evicted"),
      table("Its own pods that were evicted", columns("For"), rows(of, "preemptor")),
    ],
  );
}

function jobLink(key, view) {
  if (!key?.includes("/")) return key;
  const known = view.jobs.get(key);
  return known ? h("a", { href: address(known) }, known.name) : ended(key);
}

function steps({ steps: all }, now) {
  if (all.length === 0) return null;
  return h(
    "details",
    null,
    h("summary", null, `All steps (${all.length})`),
    table(
      "All steps",
      ["When", "Who", "From", "To", "By", "Why"],
      all.map((each, index) => ({
        key: `${index} ${each.at}`,
        cells: [
          clock(each.at, now),
          each.who,
          each.before,
          each.after,
          each.by,
          [each.why, each.node && ` on ${each.node}`],
        ],
      })),
    ),
  );
}

/** A table of rows {key, cells}; on a phone each row is a block. */
export function table(name, columns, rows) {
  return h(
    "table",
    { class: "stacks", role: "table", "aria-label": name },
    h(
      "thead",
      { role: "rowgroup" },
      h(
        "tr",
        { role: "row" },
        columns.map((column) => h("th", { scope: "col", role: "columnheader" }, column)),
      ),
    ),
    h(
      "tbody",
      { role: "rowgroup" },
      rows.map(({ key, cells }) =>
        h(
          "tr",
          { key, role: "row" },
          cells.map((cell, index) =>
            index === 0
              ? h("th", { scope: "row", role: "rowheader" }, cell)
              : h("td", { role: "cell", "data-column": columns[index] }, cell),
          ),
        ),
      ),
    ),
  );
}
