// Descriptions of elements, and how the document becomes what they describe.
//
// h("a", {href: "#/jobs"}, "Jobs") describes an element. paint(place, description) changes only
// what differs, so the focus, the selection and the scroll position stay where they are.
// Text from the cluster only ever becomes text nodes and attribute values.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "line", "rect", "circle", "g", "text", "title"]);
const AS_PROPERTY = new Set(["value", "checked", "disabled", "open", "selected", "indeterminate"]);

/** A description; `key` among the attributes names a child of a list that may move. */
export function h(tag, attributes, ...children) {
  return { tag, attributes: attributes ?? {}, children: flat(children) };
}

/** Several descriptions as one child. */
function flat(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== "");
}

/** Let the only content of `place` be what `descriptions` say. */
export function paint(place, ...descriptions) {
  const focused = document.activeElement;
  paintChildren(place, flat(descriptions), place.namespaceURI === SVG);
  // An element that moves within a list loses the focus on its way.
  if (focused !== document.activeElement && place.contains(focused)) focused.focus({ preventScroll: true });
}

// Either all children of an element have a key, or they are told apart by their place.
function paintChildren(parent, wanted, inSvg) {
  const keys = new Set(wanted.map((child) => child.attributes?.key));
  const known = new Map();
  for (const node of [...parent.childNodes]) {
    if (node.pumiceKey === undefined) continue;
    if (keys.has(node.pumiceKey)) known.set(node.pumiceKey, node);
    else node.remove();
  }
  let at = parent.firstChild;
  for (const child of wanted) {
    const key = child.attributes?.key;
    const node = key === undefined ? at : (known.get(key) ?? null);
    if (node !== null && fits(node, child)) {
      if (node === at) at = at.nextSibling;
      else parent.insertBefore(node, at);
      update(node, child, inSvg);
    } else {
      parent.insertBefore(made(child, inSvg), at);
    }
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function fits(node, child) {
  if (typeof child !== "object") return node.nodeType === Node.TEXT_NODE;
  return (
    node.nodeType === Node.ELEMENT_NODE &&
    node.localName === child.tag.toLowerCase() &&
    node.pumiceKey === child.attributes.key
  );
}

function made(child, inSvg) {
  if (typeof child !== "object") return document.createTextNode(String(child));
  const isSvg = SVG_TAGS.has(child.tag) && (inSvg || child.tag === "svg");
  const node = isSvg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
  if (child.attributes.key !== undefined) node.pumiceKey = child.attributes.key;
  node.pumiceSet = {};
  update(node, child, isSvg);
  child.attributes.made?.(node);
  return node;
}

function update(node, child, inSvg) {
  if (typeof child !== "object") {
    if (node.data !== String(child)) node.data = String(child);
    return;
  }
  const before = node.pumiceSet ?? {};
  const { key: _key, made: _made, opaque, ...wanted } = child.attributes;
  for (const name of Object.keys(before)) if (!(name in wanted)) set(node, name, null);
  for (const [name, value] of Object.entries(wanted))
    if (before[name] !== value || AS_PROPERTY.has(name)) set(node, name, value);
  node.pumiceSet = wanted;
  if (!opaque) paintChildren(node, child.children, inSvg || node.namespaceURI === SVG);
  if (wanted.value !== undefined && node.localName === "select") node.value = wanted.value;
}

function set(node, name, value) {
  if (name.startsWith("on")) node[name] = value;
  else if (AS_PROPERTY.has(name) && node.localName !== "option") {
    const wanted = value ?? (name === "value" ? "" : false);
    if (node[name] !== wanted) node[name] = wanted;
  } else if (name === "style") {
    for (const [property, given] of Object.entries(value ?? {})) node.style.setProperty(property, given);
  } else if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : value);
}
