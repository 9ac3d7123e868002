// The queues as a tree, and one queue with all its resources.

import { bar, line, said } from "./bars.js";
import { h } from "./dom.js";
import { link } from "./routes.js";
import { amount, byName, count, percent } from "./words.js";

const HISTORY_S = 15;

export function title(route) {
  return route.names[0] ? `Queue ${route.names[0]}` : "Queues";
}

export function body(context) {
  return context.route.names[0] ? one(context, context.route.names[0]) : all(context);
}

function all({ view, route, choose, answers, scoped }) {
  const resource = view.resources.includes(route.options.resource)
    ? route.options.resource
    : view.resources[0];
  const history = answers.of(scoped("view/history"), HISTORY_S).value;
  const rows = rowsOf(view);
  return [
    h(
      "div",
      { class: "top" },
      h("h1", null, "Queues"),
      rows.length > 0 && chooser(view.resources, resource, (chosen) => choose({ resource: chosen })),
    ),
    rows.length === 0
      ? empty(view)
      : [
          legend(),
          h(
            "div",
            { class: "scrolls" },
            h(
              "table",
              { class: "queues", "aria-label": "Queues" },
              h(
                "thead",
                null,
                h(
                  "tr",
                  null,
                  ["Queue", `Held of ${resource}`, "In numbers", "Last hour", "Jobs"].map((name) =>
                    h("th", { scope: "col" }, name),
                  ),
                ),
              ),
              h(
                "tbody",
                null,
                rows.map(({ queue, depth }) => row(queue, depth, resource, history)),
              ),
            ),
          ),
        ],
  ];
}

function empty(view) {
  if (view.role !== "leads") return h("p", { class: "empty" }, "A replica that stands by knows no queues.");
  return h(
    "p",
    { class: "empty" },
    "There are no queues yet. ",
    h("code", null, "pumice queue create NAME"),
    " makes one.",
  );
}

function chooser(resources, chosen, choose) {
  return h(
    "label",
    null,
    "Resource ",
    h(
      "select",
      { value: chosen, onchange: (event) => choose(event.target.value) },
      resources.map((name) => h("option", { value: name }, name)),
    ),
  );
}

function legend() {
  const entries = [
    ["held", "held"],
    ["asked", "asked"],
    ["deserved", "deserved"],
    ["limit", "limit"],
  ];
  return h(
    "p",
    { class: "legend", "aria-hidden": "true" },
    entries.map(([kind, text]) => h("span", { class: `key ${kind}` }, text)),
  );
}

/** The tree as it is shown: with sums for who sees everything, as a tenant's would leave others out. */
function rowsOf(view) {
  const rows = tree(view.queues);
  return view.viewer.namespaces === null ? withSums(rows) : withoutSums(rows);
}

/** The rows of a tenant's tree; of a queue that only others below it use nothing can be told. */
function withoutSums(rows) {
  return rows.map(({ queue, depth }, index) => {
    const isParent = (rows[index + 1]?.depth ?? 0) > depth;
    const isBare = isParent && isEmpty(queue.held) && isEmpty(queue.asked);
    return { queue: isBare ? { ...queue, bare: true, deserved: null } : queue, depth };
  });
}

/** Queues below their parents, by name; one whose parent is not shown stands at the top. */
export function tree(queues) {
  const below = new Map();
  for (const queue of queues.values()) {
    const parent = queues.has(queue.parent) && queue.parent !== queue.key ? queue.parent : "";
    below.set(parent, [...(below.get(parent) ?? []), queue]);
  }
  const found = [];
  const walk = (parent, depth) => {
    const children = (below.get(parent) ?? []).sort((a, b) => byName(a.name, b.name));
    for (const queue of children) {
      found.push({ queue, depth });
      walk(queue.key, depth + 1);
    }
  };
  walk("", 0);
  return found;
}

/** The rows of a whole tree; a queue that only others below it use has their sums. */
export function withSums(rows) {
  const sums = new Map();
  const found = [...rows].reverse().map(({ queue, depth }) => {
    const below = sums.get(queue.key);
    const own = isEmpty(queue.held) && isEmpty(queue.asked);
    const told = own && below ? { ...queue, ...below, deserved: null } : queue;
    const beside = sums.get(queue.parent) ?? { held: {}, asked: {} };
    sums.set(queue.parent, { held: sum(beside.held, told.held), asked: sum(beside.asked, told.asked) });
    return { queue: told, depth };
  });
  return found.reverse();
}

function isEmpty(amounts) {
  return Object.values(amounts).every((value) => value === 0);
}

function sum(one, other) {
  const found = { ...one };
  for (const [resource, value] of Object.entries(other)) found[resource] = (found[resource] ?? 0) + value;
  return found;
}

function row(queue, depth, resource, history) {
  const figures = of(queue, resource);
  return h(
    "tr",
    { key: queue.key },
    h(
      "th",
      { scope: "row", style: { "--depth": String(depth) } },
      h("a", { href: link("queues", [queue.name]) }, queue.name),
      tags(queue),
    ),
    h("td", { class: "wide" }, bar(resource, figures)),
    h("td", { class: "numbers" }, queue.bare ? bare(resource, figures) : numbers(resource, figures)),
    h("td", null, lastHour(queue, resource, history)),
    h(
      "td",
      { class: "numbers whole" },
      h(
        "a",
        { href: link("jobs", [], { queue: queue.name }) },
        `${queue.running} run, ${queue.waiting} wait`,
      ),
    ),
  );
}

function tags(queue) {
  const told = [];
  if (queue.state !== "Open") told.push(queue.state.toLowerCase());
  if (queue.overused) told.push("has all it deserves");
  if (!queue.reclaimable) told.push("not reclaimable");
  return told.map((text) => h("span", { class: "tag" }, text));
}

/** The figures of a queue in one resource; null: not known. */
function of(queue, resource) {
  const known = (amounts) => (amounts === null ? null : (amounts[resource] ?? 0));
  const limit = queue.limit === null ? null : (queue.limit[resource] ?? null);
  const figures = {
    held: queue.held[resource] ?? 0,
    asked: queue.asked[resource] ?? 0,
    deserved: known(queue.deserved),
    limit,
  };
  return { ...figures, full: Math.max(figures.held, figures.asked, figures.deserved ?? 0, limit ?? 0) };
}

function numbers(resource, { held, asked, deserved, limit }) {
  const told = (value) => amount(resource, value);
  return [
    h("strong", null, told(held)),
    deserved !== null && ` of ${told(deserved)} deserved`,
    deserved > 0 && ` (${percent(held / deserved)})`,
    h("br"),
    `asks for ${told(asked)}`,
    limit !== null && ` · limit ${told(limit)}`,
  ];
}

function bare(resource, { limit }) {
  return `nothing of its own${limit === null ? "" : ` · limit ${amount(resource, limit)}`}`;
}

function lastHour(queue, resource, history) {
  const known = history?.queues[queue.key];
  if (known === undefined) return h("span", { class: "hint" }, "no history yet");
  const values = known.held?.[resource] ?? history.times.map(() => 0);
  const second = known.deserved?.[resource];
  const marks = evictions(history, queue.name);
  const label = `held of ${resource} in the last hour: ${trend(resource, values)}${marks.length ? `; ${count(marks.length, "eviction")}` : ""}`;
  return line({ times: history.times, values, second, marks, label });
}

function evictions(history, queue) {
  const first = history.times[0];
  return history.events
    .filter((each) => each.kind === "evicted" && each.queue === queue && each.at >= first)
    .map((each) => each.at);
}

function trend(resource, values) {
  const known = values.filter((value) => value !== null);
  if (known.length === 0) return "not known";
  const told = (value) => amount(resource, value);
  return `from ${told(known[0])} to ${told(known.at(-1))}, at most ${told(Math.max(...known))}`;
}

function one(context, name) {
  const { view, answers, scoped } = context;
  const queue = rowsOf(view).find((row) => row.queue.key === name)?.queue;
  const back = h("p", null, h("a", { href: "#/queues" }, "← All queues"));
  if (queue === undefined)
    return [
      back,
      h("h1", null, `There is no queue ${name}`),
      h("p", { class: "empty" }, "It may have been deleted, or you may not see it."),
    ];
  const history = answers.of(scoped("view/history"), HISTORY_S).value;
  return [
    back,
    h("h1", null, `Queue ${queue.name}`),
    h("p", null, tags(queue)),
    h(
      "dl",
      { class: "facts" },
      facts(queue).map(([term, text]) => h("div", null, h("dt", null, term), h("dd", null, text))),
    ),
    legend(),
    h(
      "div",
      { class: "cards" },
      view.resources.map((resource) => card(queue, resource, history)),
    ),
    h(
      "p",
      { class: "actions" },
      h("a", { href: link("jobs", [], { queue: queue.name }) }, "Its jobs"),
      h("a", { href: link("try", [], { queue: queue.name }) }, "What if its limit were another?"),
    ),
  ];
}

function facts(queue) {
  const parent = queue.parent ? h("a", { href: link("queues", [queue.parent]) }, queue.parent) : "none";
  const share = queue.share === null ? "not known" : percent(queue.share);
  return [
    ["Parent", parent],
    ["State", queue.state],
    ["Weight", queue.weight],
    ["Priority", queue.priority],
    ["Share", share],
    ["Jobs", `${queue.running} run, ${queue.waiting} wait`],
  ];
}

function card(queue, resource, history) {
  const figures = of(queue, resource);
  return h(
    "section",
    { key: resource, class: "card", "aria-label": resource },
    h("h2", null, resource),
    bar(resource, figures),
    h("p", { class: "hint" }, queue.bare ? bare(resource, figures) : said(resource, figures)),
    lastHour(queue, resource, history),
  );
}
