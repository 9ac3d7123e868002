// The jobs: filtered, grouped, each with why it waits and when it may start.

import { h } from "./dom.js";
import { link, most, named } from "./routes.js";
import { amounts, byName, count, span } from "./words.js";

const PAGE = 200;
const GROUPS = { queue: "queue", owner: "owner", phase: "phase", namespace: "namespace" };
const STAGES = ["submitted", "enqueued", "planned", "held", "bound", "running", "ended"];
const KINDS = { waits: (job) => job.waits, "in trouble": (job) => job.trouble };
const GROUP_NAME = /([a-z0-9.-]+\/[a-z0-9.-]*[a-z0-9])/;
const GROUP_OF_A_JOB = /^([^/]+)\/(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const COLUMNS = ["Job", "Queue", "State", "Members", "Asks for", "Age", "Why, and when"];

export function title() {
  return "Jobs";
}

export function body(context) {
  const { view, route, choose } = context;
  const options = route.options;
  const shown = [...view.jobs.values()].filter(wanted(options)).sort(inOrder);
  const rows = most(options.most, PAGE);
  return [
    h(
      "div",
      { class: "top" },
      h("h1", null, "Jobs"),
      h("p", { class: "hint", role: "status" }, summary(view.jobs.size, shown)),
    ),
    view.jobs.size === 0
      ? empty(view)
      : [
          filter(view, options, choose),
          shown.length === 0 &&
            h("p", { class: "empty" }, "No job is like that. ", h("a", { href: "#/jobs" }, "Show all jobs")),
          groups(shown.slice(0, rows), options.group).map(([name, of]) => table(name, of, context)),
          shown.length > rows &&
            h(
              "button",
              { type: "button", onclick: () => choose({ most: rows + PAGE }) },
              `Show more: ${count(shown.length - rows, "job is", "jobs are")} not shown`,
            ),
        ],
  ];
}

function empty(view) {
  if (view.role !== "leads") return h("p", { class: "empty" }, "A replica that stands by knows no jobs.");
  return h(
    "p",
    { class: "empty" },
    "There are no jobs. ",
    h("code", null, "kubectl apply -f job.yaml"),
    " or ",
    h("code", null, "pumice job run"),
    " submits one; it is shown here at once.",
  );
}

function summary(all, shown) {
  const waiting = shown.filter((job) => job.waits).length;
  return `${shown.length === all ? count(all, "job") : `${shown.length} of ${count(all, "job")}`}, ${waiting} of them wait`;
}

function filter(view, options, choose) {
  const queues = [...new Set([...view.jobs.values()].map((job) => job.queue))].sort(byName);
  const changed = (name) => (event) => choose({ [name]: event.target.value, most: "" });
  return h(
    "form",
    {
      class: "filter",
      role: "search",
      "aria-label": "Filter of jobs",
      onsubmit: (event) => event.preventDefault(),
    },
    h(
      "label",
      null,
      "Text ",
      h("input", {
        type: "search",
        value: options.text ?? "",
        oninput: changed("text"),
        placeholder: "name, owner or reason",
      }),
    ),
    choice("Queue", options.queue, [["", "all"], ...queues.map((name) => [name, name])], changed("queue")),
    choice(
      "State",
      options.stage,
      [["", "all"], ...[...Object.keys(KINDS), ...STAGES].map((name) => [name, name])],
      changed("stage"),
    ),
    choice("Group by", options.group, [["", "nothing"], ...Object.entries(GROUPS)], changed("group")),
  );
}

function choice(name, value, options, onchange) {
  return h(
    "label",
    null,
    `${name} `,
    h(
      "select",
      { value: value ?? "", onchange },
      options.map(([key, text]) => h("option", { value: key }, text)),
    ),
  );
}

/** Whether a job is wanted by the options of the address. */
function wanted({ text = "", queue = "", stage = "" }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return (job) => {
    if (queue && job.queue !== queue) return false;
    if (stage && !(stage in KINDS ? KINDS[stage](job) : job.stage === stage)) return false;
    if (words.length === 0) return true;
    const said = `${job.key} ${job.name} ${job.owner} ${job.reason} ${job.cause} ${job.trouble}`.toLowerCase();
    return words.every((word) => said.includes(word));
  };
}

/** Those that wait first, by their place in line; then the youngest first. */
function inOrder(a, b) {
  if (a.waits !== b.waits) return a.waits ? -1 : 1;
  const first = (a.place?.position ?? Infinity) - (b.place?.position ?? Infinity);
  if (a.waits && first) return first;
  return b.created - a.created || byName(a.key, b.key);
}

function groups(rows, by) {
  if (!named(GROUPS, by)) return [["", rows]];
  const found = new Map();
  for (const job of rows) {
    const name = job[by] || "none";
    found.set(name, [...(found.get(name) ?? []), job]);
  }
  return [...found].sort(([a], [b]) => byName(a, b));
}

function table(name, rows, context) {
  if (rows.length === 0) return null;
  return h(
    "section",
    { "aria-label": name || "all jobs" },
    name && h("h2", null, name, " ", h("span", { class: "hint" }, count(rows.length, "job"))),
    h(
      "table",
      { class: "stacks", role: "table", "aria-label": name ? `Jobs of ${name}` : "Jobs" },
      h(
        "thead",
        { role: "rowgroup" },
        h(
          "tr",
          { role: "row" },
          COLUMNS.map((text) => h("th", { scope: "col", role: "columnheader" }, text)),
        ),
      ),
      h(
        "tbody",
        { role: "rowgroup" },
        rows.map((job) => row(job, context)),
      ),
    ),
  );
}

function row(job, context) {
  const cell = (column, ...content) => h("td", { role: "cell", "data-column": column }, content);
  return h(
    "tr",
    { key: job.key, role: "row" },
    h(
      "th",
      { scope: "row", role: "rowheader" },
      h("a", { href: address(job) }, job.name),
      h("span", { class: "hint" }, `${job.namespace} · ${job.kind}`),
    ),
    cell("Queue", h("a", { href: link("queues", [job.queue]) }, job.queue)),
    cell("State", state(job)),
    cell("Members", members(job)),
    cell("Asks for", amounts(job.asked)),
    cell("Age", span(context.now - job.created)),
    cell("Why, and when", why(job, context)),
  );
}

/** The address of a job's story. */
export function address(job) {
  return link("jobs", [job.namespace, job.name]);
}

/** The stage of a job, with a sign that tells waiting from running without colour. */
export function state(job) {
  const runs = job.stage === "running";
  const [sign, kind] = job.trouble
    ? ["!", "bad"]
    : job.outlook === "never" && !runs
      ? ["✕", "bad"]
      : runs
        ? ["▶", "runs"]
        : job.waits
          ? ["…", "waits"]
          : ["·", ""];
  return h(
    "span",
    { class: `pill ${kind}` },
    h("span", { "aria-hidden": "true" }, sign),
    runs && job.waits ? " running, waits for more" : ` ${job.waits ? "waits, " : ""}${job.stage}`,
    job.trouble && ", in trouble",
  );
}

/** How many of its members are how far: "2 of 3 run". */
export function members(job) {
  const { total, min, running, bound, succeeded, failed } = job.members;
  const parts = [total ? `${running} of ${total} run` : "no pods yet"];
  if (bound > running) parts.push(`${bound - running} bound`);
  if (succeeded) parts.push(`${succeeded} succeeded`);
  if (failed) parts.push(`${failed} failed`);
  if (min !== total) parts.push(`needs ${min}`);
  return parts.join(", ");
}

const lastNames = { view: null, generation: 0, found: new Map() };

/** Jobs by namespace and name, as long as the view is the same. */
function byNames(view) {
  if (lastNames.view !== view || lastNames.generation !== view.generation) {
    const found = new Map([...view.jobs.values()].map((job) => [`${job.namespace}/${job.name}`, job]));
    Object.assign(lastNames, { view, generation: view.generation, found });
  }
  return lastNames.found;
}

/** A sentence in which jobs that are named as the scheduler names them become links. */
export function linked(text, view) {
  const named = byNames(view);
  return text.split(GROUP_NAME).map((part) => {
    const job = view.jobs.get(part) ?? named.get(part);
    return job === undefined ? ended(part) : h("a", { href: address(job) }, job.name);
  });
}

/** A link to the job of a group that has gone; the text itself where it names none. */
export function ended(group) {
  const [, namespace, name] = group.match(GROUP_OF_A_JOB) ?? [];
  return name === undefined ? group : h("a", { href: link("jobs", [namespace, name]) }, name);
}

/** The job of a group as "namespace/name", without the UID; the text itself where it names none. */
export function jobOf(group) {
  const [, namespace, name] = group.match(GROUP_OF_A_JOB) ?? [];
  return name === undefined ? group : `${namespace}/${name}`;
}

/** Why a job waits, its place in line and its estimated start, as sentences. */
export function why(job, { view }) {
  const trouble = job.trouble && h("span", { class: "reason" }, job.trouble, ". ");
  if (!job.waits) return trouble || null;
  return [
    trouble,
    h(
      "span",
      { class: "reason" },
      job.reason ? linked(job.reason, view) : "waiting for the next planning cycle",
    ),
    job.outlook === "never" && h("span", { class: "tag bad" }, "not without a change"),
    job.place && h("span", { class: "hint" }, ` Place ${job.place.position} of ${job.place.of} in line.`),
    job.eta && h("span", { class: "hint" }, " ", linked(job.eta.text, view)),
    job.evicting > 0 &&
      h("span", { class: "hint" }, ` ${count(job.evicting, "pod is", "pods are")} evicted for it.`),
  ];
}
