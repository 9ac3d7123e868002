// When jobs that wait start, as the planner foretells it: asked for all of them, now and then.

import { clock } from "./words.js";

const FRESH_S = 30;
const TOLD = new Set(["now", "later"]);

/** Map of the key of a job → {at, text, queue}; `at` null: it is only known what it is later than. */
export function etas({ view, answers, now }) {
  const found = new Map();
  if (view.cluster.jobs_waiting === 0) return found;
  for (const path of paths(view.viewer.namespaces)) {
    for (const each of answers.of(path, FRESH_S).value?.etas ?? []) {
      const told = said(each, now);
      if (told !== null) found.set(each.group, told);
    }
  }
  return found;
}

function paths(namespaces) {
  return namespaces === null ? ["eta"] : namespaces.map((name) => `eta/${encodeURIComponent(name)}`);
}

function said({ outcome, p50, beyond, text, queue }, now) {
  if (TOLD.has(outcome) && p50 !== null) return { at: p50, text, queue };
  if (outcome === "beyond" && beyond !== null)
    return { at: null, text: `It starts after ${clock(beyond, now)}.`, queue };
  return null; // never, or not known: the reason says why
}

/** What is to come by these: rows as those of the view's `future`. */
export function expected(found, now) {
  const dated = [...found].filter(([, { at }]) => at !== null);
  return dated.map(([job, { at, text, queue }]) => ({
    key: `expected ${job}`,
    kind: "expected",
    job,
    queue,
    since: now,
    at,
    text,
  }));
}
