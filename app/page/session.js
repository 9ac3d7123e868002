// Who reads: the bearer token and the namespaces, for as long as the tab is open.
// The token is never part of an address, so links can be passed on.

const TOKEN = "pumice-token";
const NAMESPACES = "pumice-namespaces";

export function token() {
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** The namespaces that are looked at, as "a,b"; empty: all that the reader may see. */
export function namespaces() {
  return sessionStorage.getItem(NAMESPACES) ?? "";
}

/** Remember a token and namespaces; an empty one is forgotten. */
export function remember({ token: given, namespaces: named }) {
  keep(TOKEN, given.trim());
  keep(
    NAMESPACES,
    named
      .split(/[\s,]+/)
      .filter(Boolean)
      .join(","),
  );
}

export function forget() {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(NAMESPACES);
}

function keep(key, value) {
  if (value) sessionStorage.setItem(key, value);
  else sessionStorage.removeItem(key);
}

/** The headers of every question. */
export function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** The path with the namespaces that are looked at. */
export function scoped(path) {
  return namespaces() ? `${path}?namespace=${encodeURIComponent(namespaces())}` : path;
}
