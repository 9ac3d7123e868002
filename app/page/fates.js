// The answer to a what-if question: places, how long to wait, and what would be evicted.

import { h } from "./dom.js";
import { address, jobOf, linked } from "./jobs.js";
import { count } from "./words.js";

const SAID = {
  runs: "runs now",
  evicts: "runs once pods have been evicted",
  waits: "waits",
  never: "never runs as it is",
};
const SIGNS = { runs: "▶", evicts: "✕", waits: "…", never: "✕" };
const KINDS = { runs: "runs", evicts: "waits", waits: "waits", never: "bad" };
const NAMED = 20;

/** The whole answer of POST /simulate. */
export function fates(answer, view) {
  const { asked, displaced, others, given_up: lost, warnings } = answer;
  const same = asked.length + displaced.length + others.length === 0;
  return h(
    "section",
    { "aria-label": "Answer" },
    h("h2", null, "What would happen"),
    warnings.map((text) => h("p", { class: "notice" }, text)),
    same && h("p", null, "No group that waits, or loses pods, would fare otherwise."),
    part("What you ask about", asked, view),
    part("Groups that lose pods", displaced, view),
    part("Groups that fare otherwise", others, view),
    lost.length > 0 && [
      h("h3", null, `${count(lost.length, "pod")} would be evicted for no group`),
      victims(lost),
    ],
  );
}

function part(name, list, view) {
  if (list.length === 0) return null;
  return [
    h("h3", null, name),
    h(
      "ul",
      { class: "fates" },
      list.map((fate) => h("li", { class: "card", key: fate.group }, told(fate, view))),
    ),
  ];
}

function told(fate, view) {
  const job = view.jobs.get(fate.group);
  return [
    h(
      "p",
      null,
      job ? h("a", { href: address(job) }, job.name) : h("strong", null, jobOf(fate.group)),
      ` in queue ${fate.queue} `,
      h(
        "span",
        { class: `pill ${KINDS[fate.outcome] ?? ""}` },
        h("span", { "aria-hidden": "true" }, `${SIGNS[fate.outcome]} `),
        SAID[fate.outcome],
      ),
      fate.before &&
        fate.before !== fate.outcome &&
        h("span", { class: "hint" }, ` now it ${SAID[fate.before]}`),
    ),
    fate.text &&
      h(
        "p",
        null,
        ["runs", "evicts"].includes(fate.outcome) && "Beyond the minimum: ",
        linked(fate.text, view),
      ),
    fate.eta && h("p", null, linked(fate.eta.text, view)),
    fate.victims.length > 0 && [
      h("p", null, `${fate.action} evicts ${count(fate.victims.length, "pod")}:`),
      victims(fate.victims),
    ],
    fate.places.length > 0 && h("p", null, `Places: ${places(fate.places)}`),
  ];
}

function places(found) {
  const nodes = new Map();
  for (const { node } of found) nodes.set(node, (nodes.get(node) ?? 0) + 1);
  const named = [...nodes].slice(0, NAMED).map(([node, number]) => `${number} on ${node}`);
  return named.join(", ") + (nodes.size > NAMED ? ` and ${nodes.size - NAMED} more nodes` : "");
}

function victims(pods) {
  const more = pods.length - NAMED;
  return h(
    "ul",
    null,
    pods
      .slice(0, NAMED)
      .map((pod) =>
        h(
          "li",
          null,
          `${pod.pod} on ${pod.node}, of queue ${pod.queue}${pod.rule ? `, by the rule of ${pod.rule}` : ""}`,
        ),
      ),
    more > 0 && h("li", null, `and ${more} more`),
  );
}
