// The nodes as squares on a canvas: thousands are painted in one go, and only when they differ.

import { keyOf } from "./colours.js";
import { percent } from "./words.js";

const GAP = 3;
const BETWEEN = 12;
const TITLE = 18;
const LEAST_TITLE = 60;
const WIDER = 1.6; // a block is so many times as wide as it is high
const LARGEST = 34;
const SMALLEST = 8;
const MOST_HEIGHT = 1000;

export class NodeMap {
  constructor() {
    this.canvas = null;
    this.squares = [];
    this.shown = null;
    addEventListener("resize", () => this.paint());
    addEventListener("theme", () => this.paint());
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
    const { height, titles } = this.laidOut(width);
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.canvas.setAttribute(
      "aria-label",
      `Map of ${this.squares.length} nodes. ${this.textOf(this.squares.find((each) => each.node.key === this.shown.chosen))}`,
    );
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const palette = paletteOf(this.place);
    pen.font = `12px ${palette.font}`;
    pen.fillStyle = palette.soft;
    for (const { name, x, y, most } of titles) pen.fillText(cut(pen, name, most), x, y + 12);
    for (const square of this.squares) this.square(pen, square, palette);
  }

  /** Squares as large as there is room for. */
  laidOut(width) {
    const areas = areasOf(this.shown.nodes);
    let size = LARGEST;
    while (size > SMALLEST && layOut(areas, width, size).height > MOST_HEIGHT) size -= 2;
    const { squares, titles, height } = layOut(areas, width, size);
    this.squares = squares;
    return { titles, height };
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
    else
      for (const each of node.by) {
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
      pen.strokeRect(x + 1, y + 1, size - 2, size - 2);
    }
  }

  at({ offsetX, offsetY }) {
    return this.squares.find(
      ({ x, y, size }) => offsetX >= x && offsetX < x + size && offsetY >= y && offsetY < y + size,
    );
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
    const to = STEPS[event.key];
    if (to === undefined || this.squares.length === 0) return;
    event.preventDefault();
    const now = this.squares.findIndex(({ node }) => node.key === this.shown.chosen);
    const next = now < 0 ? 0 : to(this.squares, now);
    this.shown.pick(this.squares[next].node.key);
  }
}

/** Where keys lead to from the square `now`. */
const STEPS = {
  ArrowLeft: (squares, now) => Math.max(0, now - 1),
  ArrowRight: (squares, now) => Math.min(squares.length - 1, now + 1),
  ArrowUp: (squares, now) => nearest(squares, now, (there, here) => there.y < here.y),
  ArrowDown: (squares, now) => nearest(squares, now, (there, here) => there.y > here.y),
  Home: () => 0,
  End: (squares) => squares.length - 1,
};

/** The square of the next row that is nearest; the same one where there is none. */
function nearest(squares, now, isBeyond) {
  const here = squares[now];
  let [best, least] = [now, Infinity];
  squares.forEach((there, index) => {
    if (!isBeyond(there, here)) return;
    const away = Math.abs(there.y - here.y) * 10 + Math.abs(there.x - here.x);
    if (away < least) [best, least] = [index, away];
  });
  return best;
}

/** Nodes that come in order, by their lowest domain (or zone), and these by the domains above. */
function areasOf(nodes) {
  const areas = [];
  for (const node of nodes) {
    const above = node.path.slice(0, -1).join(" / ");
    const name = node.path.at(-1) ?? node.zone;
    if (areas.at(-1)?.name !== above) areas.push({ name: above, blocks: [] });
    const { blocks } = areas.at(-1);
    if (blocks.at(-1)?.name !== name) blocks.push({ name, nodes: [] });
    blocks.at(-1).nodes.push(node);
  }
  return areas;
}

/** Blocks of nodes side by side, area below area: {squares, titles, height} in pixels. */
function layOut(areas, width, size) {
  const step = size + GAP;
  const widest = Math.max(1, Math.floor((width + GAP) / step));
  const isOne = areas.length === 1 && areas[0].blocks.length === 1;
  const [squares, titles] = [[], []];
  let y = 0;
  for (const area of areas) {
    if (area.name) titles.push({ name: area.name, x: 0, y, most: width });
    if (area.name) y += TITLE;
    let [x, high] = [0, 0];
    for (const { name, nodes } of area.blocks) {
      const columns = isOne ? widest : Math.min(widest, Math.ceil(Math.sqrt(nodes.length * WIDER)));
      const wide = Math.max(columns * step, name ? LEAST_TITLE : 0);
      if (x > 0 && x + wide > width) [x, y, high] = [0, y + high, 0];
      const top = y + (name ? TITLE : 0);
      if (name) titles.push({ name, x, y, most: wide - GAP });
      nodes.forEach((node, index) => {
        squares.push({
          node,
          size,
          x: x + (index % columns) * step,
          y: top + Math.floor(index / columns) * step,
        });
      });
      high = Math.max(high, top - y + Math.ceil(nodes.length / columns) * step + BETWEEN);
      x += wide + BETWEEN;
    }
    y += high;
  }
  return { squares, titles, height: Math.max(1, y) };
}

/** A name that is not wider than `most`; its end tells more than its beginning. */
function cut(pen, name, most) {
  if (pen.measureText(name).width <= most) return name;
  let rest = name;
  while (rest && pen.measureText(`…${rest}`).width > most) rest = rest.slice(1);
  return `…${rest}`;
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
  return {
    text: named("text"),
    soft: named("soft"),
    room: named("square"),
    held: named("held"),
    bad: named("bad"),
    focus: named("focus"),
    font: style.fontFamily,
  };
}
