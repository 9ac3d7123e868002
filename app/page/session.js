// Who reads: the bearer token and the namespaces, for as long as the tab is open.
// The token is never part of an address, so links can be passed on.

const TOKEN = "pumice-token";
const NAMESPACES = "pumice-namespaces";

/** A browser may refuse to keep anything: then it is known until the page is loaded anew. */
const known = new Map();

export function token() {
  return kept(TOKEN);
}

/** The token in a text as it was copied, such as from a header or over several lines. */
export function tokenIn(text) {
  return text.replace(/^\s*Bearer\s/i, "").replace(/[\s"']/g, "");
}

/** Whether a token has only characters that can be sent. */
export function isSendable(text) {
  return /^[!-~]*$/.test(text);
}

/** The namespaces that are looked at, as "a,b"; empty: all that the reader may see. */
export function namespaces() {
  return kept(NAMESPACES);
}

/** Remember a token and namespaces; an empty one is forgotten. */
export function remember({ token: given, namespaces: named }) {
  keep(TOKEN, given);
  keep(
    NAMESPACES,
    named
      .split(/[\s,]+/)
      .filter(Boolean)
      .join(","),
  );
}

export function forget() {
  keep(TOKEN, "");
  keep(NAMESPACES, "");
}

function kept(key) {
  try {
    return sessionStorage.getItem(key) ?? "";
  } catch {
    return known.get(key) ?? "";
  }
}

function keep(key, value) {
  known.set(key, value);
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // it is known until the page is loaded anew
  }
}

/** The headers of every question. */
export function headers() {
  return token() ? { Authorization: `Bearer ${token()}` } : {};
}

/** The path with the namespaces that are looked at. */
export function scoped(path) {
  return namespaces() ? `${path}?namespace=${encodeURIComponent(namespaces())}` : path;
}
