// The nodes as squares on a canvas: thousands are painted in one go, and only when they differ.

import { keyOf } from "./colours.js";
import { percent } from "./words.js";

const GAP = 3;
const TITLE = 18;
const LARGEST = 34;
const SMALLEST = 8;
const MOST_HEIGHT = 1400;

export class NodeMap {
  constructor() {
    this.canvas = null;
    this.squares = [];
    this.shown = null;
    addEventListener("resize", () => this.paint());
    addEventListener("theme", () => this.paint());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  /** Put a canvas into an element of the page. */
  mount(place) {
    this.place = place;
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "map of nodes");
    this.canvas.setAttribute("aria-describedby", "map-help");
    this.canvas.onclick = (event) => this.clicked(event);
    this.canvas.onmousemove = (event) => {
      this.canvas.title = this.textOf(this.at(event));
    };
    this.canvas.onkeydown = (event) => this.pressed(event);
    place.append(this.canvas);
    requestAnimationFrame(() => this.paint());
  }

  /** What to show: {nodes, mode, resource, shades, marked, chosen, pick}. */
  show(what) {
    this.shown = what;
    if (this.canvas?.isConnected) requestAnimationFrame(() => this.paint());
  }

  paint() {
    if (!this.canvas?.isConnected || this.shown === null) return;
    const width = this.place.clientWidth;
    const { height, groups } = this.laidOut(width);
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.setAttribute("aria-label", `Map of ${this.squares.length} nodes. ${this.textOf(this.squares.find((each) => each.node.key === this.shown.chosen))}`);
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const palette = paletteOf(this.place);
    pen.font = `12px ${palette.font}`;
    pen.fillStyle = palette.soft;
    for (const { name, y } of groups) pen.fillText(name, 0, y + 12, width);
    for (const square of this.squares) this.square(pen, square, palette);
  }

  /** Squares as large as there is room for, group below group. */
  laidOut(width) {
    const groups = groupsOf(this.shown.nodes);
    let size = LARGEST;
    while (size > SMALLEST && heightOf(groups, width, size) > MOST_HEIGHT) size -= 2;
    const columns = columnsOf(width, size);
    const step = size + GAP;
    this.squares = [];
    this.columns = columns;
    let y = 0;
    for (const group of groups) {
      group.y = y;
      if (group.name) y += TITLE;
      group.nodes.forEach((node, index) => {
        this.squares.push({ node, x: (index % columns) * step, y: y + Math.floor(index / columns) * step, size });
      });
      y += Math.ceil(group.nodes.length / columns) * step + GAP;
    }
    return { height: Math.max(y, 1), groups };
  }

  square(pen, { node, x, y, size }, palette) {
    const { mode, resource, shades, marked, chosen } = this.shown;
    const whole = node.allocatable[resource] || 1;
    pen.globalAlpha = 1;
    pen.fillStyle = palette.room;
    pen.fillRect(x, y, size, size);
    let filled = 0;
    const fill = (part, colour, faint) => {
      const high = Math.min(part / whole, 1) * size;
      const from = Math.min(size, filled + high);
      pen.globalAlpha = faint ? 0.15 : 1;
      pen.fillStyle = colour;
      pen.fillRect(x, y + size - from, size, from - filled);
      filled = from;
    };
    if (mode === "use") fill(node.used[resource] ?? 0, palette.held, false);
    else for (const each of node.by) {
      const key = keyOf(each, mode);
      fill(each.amounts[resource] ?? 0, shades.get(key).colour, marked !== "" && marked !== key);
    }
    pen.globalAlpha = 1;
    if (node.cordoned) {
      pen.fillStyle = palette.text;
      pen.fillRect(x, y, size, 2);
    }
    if (!node.ready) cross(pen, x, y, size, palette.bad);
    if (node.key === chosen) {
      pen.strokeStyle = palette.focus;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, size + 2, size + 2);
    }
  }

  at({ offsetX, offsetY }) {
    return this.squares.find(({ x, y, size }) => offsetX >= x && offsetX < x + size && offsetY >= y && offsetY < y + size);
  }

  textOf(square) {
    if (square === undefined) return "";
    const { node } = square;
    const { resource } = this.shown;
    const used = percent((node.used[resource] ?? 0) / (node.allocatable[resource] || 1));
    return `${node.name}: ${used} of ${resource} used${node.ready ? "" : ", not ready"}${node.cordoned ? ", takes no pods" : ""}`;
  }

  clicked(event) {
    const square = this.at(event);
    if (square !== undefined) this.shown.pick(square.node.key);
  }

  pressed(event) {
    const away = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, Home: -Infinity, End: Infinity }[event.key];
    if (away === undefined) return;
    event.preventDefault();
    const now = this.squares.findIndex(({ node }) => node.key === this.shown.chosen);
    const next = now < 0 ? 0 : Math.min(this.squares.length - 1, Math.max(0, now + away));
    this.shown.pick(this.squares[next].node.key);
  }
}

/** Nodes that come in order, apart by the path of their domains, else by zone. */
function groupsOf(nodes) {
  const groups = [];
  for (const node of nodes) {
    const name = node.path.join(" / ") || node.zone;
    if (groups.at(-1)?.name !== name) groups.push({ name, nodes: [] });
    groups.at(-1).nodes.push(node);
  }
  return groups;
}

function columnsOf(width, size) {
  return Math.max(1, Math.floor((width + GAP) / (size + GAP)));
}

function heightOf(groups, width, size) {
  const columns = columnsOf(width, size);
  return groups.reduce((sum, { nodes }) => sum + TITLE + Math.ceil(nodes.length / columns) * (size + GAP) + GAP, 0);
}

function cross(pen, x, y, size, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x + 2, y + 2);
  pen.lineTo(x + size - 2, y + size - 2);
  pen.moveTo(x + size - 2, y + 2);
  pen.lineTo(x + 2, y + size - 2);
  pen.stroke();
}

function paletteOf(place) {
  const style = getComputedStyle(place);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return { text: named("text"), soft: named("soft"), room: named("square"), held: named("held"), bad: named("bad"), focus: named("focus"), font: style.fontFamily };
}
