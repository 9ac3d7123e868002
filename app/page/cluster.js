// The cluster map: all nodes by use, grouped by topology, and what free room is worth.

import { part } from "./bars.js";
import { h } from "./dom.js";
import { colours } from "./colours.js";
import { address } from "./jobs.js";
import { table } from "./job.js";
import { NodeMap } from "./map.js";
import { named } from "./routes.js";
import { amount, amounts, byName, count, percent } from "./words.js";

const MODES = { use: "use", job: "job", queue: "queue" };
const IN_LEGEND = 12;
const IN_TABLE = 200;
const map = new NodeMap();

export function title() {
  return "Cluster map";
}

export function body({ view, route, choose }) {
  const mode = named(MODES, route.options.by) ?? "use";
  const resource = view.resources.includes(route.options.resource)
    ? route.options.resource
    : view.resources[0];
  const nodes = [...view.nodes.values()].sort(inOrder);
  const top = h(
    "div",
    { class: "top" },
    h("h1", null, "Cluster map"),
    h("p", { class: "hint" }, summary(view.cluster)),
  );
  if (nodes.length === 0)
    return [
      top,
      h(
        "p",
        { class: "empty" },
        view.role === "leads"
          ? "There are no nodes yet. Nodes are shown here as soon as they join the cluster."
          : "A replica that stands by knows no nodes.",
      ),
    ];
  const shades = mode === "use" ? null : colours(nodes, mode);
  const chosen = view.nodes.get(route.options.node) ?? null;
  const marked = route.options.mark ?? "";
  map.show({
    nodes,
    mode,
    resource,
    shades,
    marked,
    chosen: chosen?.key ?? "",
    pick: (key) => choose({ node: key }),
  });
  return [
    top,
    h(
      "form",
      { class: "filter", "aria-label": "What the map shows", onsubmit: (event) => event.preventDefault() },
      choice("Colour by", mode, Object.keys(MODES), (by) => choose({ by, mark: "" })),
      choice("Resource", resource, view.resources, (name) => choose({ resource: name })),
      h(
        "label",
        null,
        h("input", {
          type: "checkbox",
          checked: route.options.table === "1",
          onchange: (event) => choose({ table: event.target.checked ? "1" : "" }),
        }),
        " As a table",
      ),
    ),
    shades !== null && legend(shades, mode, marked, view, choose),
    route.options.table === "1"
      ? nodeTable(nodes, resource)
      : [
          h(
            "p",
            { class: "hint", id: "map-help" },
            "Each square is a node; it is filled as far as the node is used. Arrow keys go from node to node. A bar on top: it takes no pods; a cross: it is not ready.",
          ),
          h("div", { class: "map", key: "map", opaque: true, made: (place) => map.mount(place) }),
        ],
    h("div", { "aria-live": "polite" }, chosen !== null && details(chosen, view)),
    fragmentation(view.cluster.fragmentation),
  ];
}

function inOrder(a, b) {
  return byName(whereOf(a), whereOf(b)) || byName(a.name, b.name);
}

function whereOf(node) {
  return node.path.join(" / ") || node.zone;
}

function summary({ nodes, nodes_down: down, nodes_cordoned: cordoned, used, allocatable }) {
  const parts = [count(nodes, "node")];
  if (down) parts.push(`${down} not ready`);
  if (cordoned) parts.push(`${cordoned} take no pods`);
  parts.push(`used: ${percent((used.cpu ?? 0) / (allocatable.cpu || 1))} of cpu`);
  return parts.join(", ");
}

function choice(name, value, options, choose) {
  return h(
    "label",
    null,
    `${name} `,
    h(
      "select",
      { value, onchange: (event) => choose(event.target.value) },
      options.map((option) => h("option", { value: option }, option)),
    ),
  );
}

function legend(shades, mode, marked, view, choose) {
  const entries = [...shades.values()].sort((a, b) => b.pods - a.pods);
  return h(
    "ul",
    { class: "shades", "aria-label": `Colours of ${mode}s` },
    entries.slice(0, IN_LEGEND).map(({ key, colour, pods, nodes }) =>
      h(
        "li",
        { key: `shade ${key}` },
        h(
          "button",
          {
            type: "button",
            "aria-pressed": marked === key ? "true" : "false",
            onclick: () => choose({ mark: marked === key ? "" : key }),
          },
          h("span", { class: "swatch", style: { background: colour }, "aria-hidden": "true" }),
          `${mode === "job" ? (view.jobs.get(key)?.name ?? key) : key}: ${count(pods, "pod")} on ${count(nodes, "node")}`,
        ),
      ),
    ),
    entries.length > IN_LEGEND &&
      h("li", { key: "more", class: "hint" }, `and ${entries.length - IN_LEGEND} more`),
  );
}

function details(node, view) {
  const state = [node.ready ? "ready" : "not ready", node.cordoned && "takes no pods", whereOf(node)].filter(
    Boolean,
  );
  return h(
    "section",
    { class: "card", "aria-label": `Node ${node.name}` },
    h("h2", null, `Node ${node.name}`),
    h("p", null, state.join(" · ")),
    h("p", null, `Used: ${amounts(node.used)}. Of: ${amounts(node.allocatable)}.`),
    Object.values(node.reserved).some(Boolean) &&
      h("p", null, `Reserved and not bound yet: ${amounts(node.reserved)}.`),
    Object.values(node.kept).some(Boolean) &&
      h("p", null, `Kept for groups that wait for more: ${amounts(node.kept)}.`),
    node.by.length === 0
      ? h("p", null, "No pod runs on it.")
      : h(
          "ul",
          null,
          node.by.map((each) =>
            h("li", null, holder(each, view), `: ${count(each.pods, "pod")}, ${amounts(each.amounts)}`),
          ),
        ),
  );
}

function holder({ job, queue }, view) {
  const known = view.jobs.get(job);
  if (known === undefined) return job || "other pods";
  return [h("a", { href: address(known) }, known.name), ` (queue ${queue})`];
}

function nodeTable(nodes, resource) {
  const rows = nodes.slice(0, IN_TABLE).map((node) => ({
    key: node.key,
    cells: [
      node.name,
      whereOf(node),
      `${amount(resource, node.used[resource] ?? 0)} of ${amount(resource, node.allocatable[resource] ?? 0)}`,
      node.ready ? (node.cordoned ? "takes no pods" : "ready") : "not ready",
      count(
        node.by.reduce((sum, each) => sum + each.pods, 0),
        "pod",
      ),
    ],
  }));
  return [
    table("Nodes", ["Node", "Where", `Used of ${resource}`, "State", "Pods"], rows),
    nodes.length > IN_TABLE && h("p", { class: "hint" }, `The first ${IN_TABLE} of ${nodes.length} nodes.`),
  ];
}

function fragmentation({ shape, basis, fits, resources }) {
  if (!basis) return null;
  const whose =
    basis === "waiting"
      ? "the request that most waiting members have"
      : "the request that most running members have";
  return h(
    "section",
    { class: "card", "aria-label": "Fragmentation" },
    h("h2", null, "What the free room is worth"),
    h(
      "p",
      null,
      `${count(fits, "more member")} of ${amounts(shape)} would find room, one by one (${whose}).`,
    ),
    table(
      "Fragmentation",
      ["Resource", "Free", "Usable", "Stranded"],
      Object.entries(resources).map(([name, each]) => ({
        key: name,
        cells: [
          name,
          amount(name, each.idle),
          amount(name, each.usable),
          [
            part(each.stranded, each.idle, `stranded ${name}`),
            ` ${amount(name, each.stranded)}${each.idle ? ` (${percent(each.stranded / each.idle)})` : ""}`,
          ],
        ],
      })),
    ),
  );
}
