// What the page knows of the cluster: the lists of GET /view by key, kept up to date by deltas.

const LISTS = ["queues", "jobs", "nodes", "domains", "future"];
const VALUES = ["scheduler", "cluster", "resources"];

/**
 * The view of a `whole`: each list becomes a Map by key. `served` is when the server sent it, in
 * seconds since the epoch; what it tells may be from before.
 */
export function viewOf(whole, served) {
  const view = { ...whole, clock: Math.max(whole.at, served), heard: performance.now() };
  for (const list of LISTS) view[list] = new Map(whole[list].map((row) => [row.key, row]));
  return view;
}

/** Bring a view up to date; false when the delta does not follow on what is known. */
export function follow(view, delta) {
  if (delta.before !== view.generation) return false;
  view.generation = delta.generation;
  view.at = delta.at;
  view.clock = Math.max(now(view), delta.at);
  view.heard = performance.now();
  for (const name of VALUES) if (delta[name] !== undefined) view[name] = delta[name];
  for (const [list, rows] of Object.entries(delta.changed ?? {}))
    for (const row of rows) view[list].set(row.key, row);
  for (const [list, keys] of Object.entries(delta.gone ?? {})) for (const key of keys) view[list].delete(key);
  return true;
}

/** The clock of the server, in seconds since the epoch: that of the browser may be wrong. */
export function now(view) {
  return view.clock + (performance.now() - view.heard) / 1000;
}
