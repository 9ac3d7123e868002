// Addresses of views, behind the # of the page: "#/jobs/ns/name" or "#/jobs?queue=a&group=owner".

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

/** Change options of the address without a step in the history, such as those of a filter. */
export function choose(route, changes) {
  const next = link(route.view, route.names, { ...route.options, ...changes });
  history.replaceState(null, "", next);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a % that is not one of ours
  }
}
