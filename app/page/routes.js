// Addresses of views, behind the # of the page: "#/jobs/ns/name" or "#/jobs?queue=a&group=owner".

const SETTLED_MS = 200;

/** {view, names, options} of an address; without one it is that of the queues. */
export function read(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...names] = path.split("/").map(decoded);
  return { view: view || "queues", names, options: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a view; options without a value are left out. */
export function link(view, names = [], options = {}) {
  const given = Object.entries(options).filter(
    ([, value]) => value !== "" && value !== null && value !== undefined,
  );
  const query = new URLSearchParams(given).toString();
  return `#/${[view, ...names].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

/** What a table has of a name that comes from an address; undefined: it has no such name. */
export function named(table, name) {
  return Object.hasOwn(table, name ?? "") ? table[name] : undefined;
}

/** How many rows an address wants to see; never fewer than `least`. */
export function most(text, least) {
  return Math.max(least, Math.floor(Number(text)) || 0);
}

/** The same view with other options. */
export function changed(route, options) {
  return { ...route, options: { ...route.options, ...options } };
}

let timer = 0;

/**
 * Write a route into the address, without a step in the history. That happens a little later, as
 * browsers limit how often; unless the reader has gone elsewhere by then.
 */
export function write({ view, names, options }) {
  const before = location.hash;
  clearTimeout(timer);
  timer = setTimeout(() => {
    if (location.hash === before) history.replaceState(null, "", link(view, names, options));
  }, SETTLED_MS);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that is not one of ours
  }
}
