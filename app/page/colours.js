// One colour for each job or queue that has pods on nodes, the same for all readers.

import { byName } from "./words.js";

const OTHERS = "hsl(210 6% 55%)";
const OTHER_PODS = "other pods";
const TURN = 137.508; // degrees: neighbours in the list are far apart on the wheel

/** Map of key → {key, colour, pods, nodes}; `mode` is "job" or "queue". */
export function colours(nodes, mode) {
  const found = new Map();
  for (const node of nodes) {
    for (const each of node.by) {
      const key = keyOf(each, mode);
      const known = found.get(key) ?? { key, pods: 0, nodes: 0 };
      known.pods += each.pods;
      known.nodes += 1;
      found.set(key, known);
    }
  }
  const named = [...found.values()].filter(({ key }) => key !== OTHER_PODS);
  named
    .sort((a, b) => byName(a.key, b.key))
    .forEach((each, index) => {
      each.colour = `hsl(${(190 + index * TURN) % 360} 55% ${index % 2 ? 58 : 46}%)`;
    });
  if (found.has(OTHER_PODS)) found.get(OTHER_PODS).colour = OTHERS;
  return found;
}

/** What an entry of a node counts as. */
export function keyOf({ job, queue }, mode) {
  return (mode === "job" ? job : queue) || OTHER_PODS;
}
