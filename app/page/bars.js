// Amounts as bars and lines. Each has its numbers as text beside it or as its label.

import { h } from "./dom.js";
import { amount } from "./words.js";

const WIDTH = 240;
const HEIGHT = 22;
const LINE_WIDTH = 160;
const LINE_HEIGHT = 34;

/**
 * What is held and asked, with marks at what is deserved and at the limit; `null`: not known.
 * All are of one resource, and `full` is the end of the bar.
 */
export function bar(resource, { held, asked, deserved, limit, full }) {
  const at = (value) => (full > 0 ? Math.min(1, value / full) * WIDTH : 0);
  return h(
    "svg",
    {
      class: "bar",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": said(resource, { held, asked, deserved, limit }),
      preserveAspectRatio: "none",
    },
    h("rect", { class: "room", x: 0, y: 5, width: WIDTH, height: 12 }),
    h("rect", { class: "asked", x: 0, y: 5, width: at(asked), height: 12 }),
    h("rect", { class: "held", x: 0, y: 5, width: at(held), height: 12 }),
    deserved > 0 && h("path", { class: "deserved", d: mark(at(deserved)) }),
    limit !== null && h("path", { class: "limit", d: `M${Math.max(1, at(limit) - 1)} 1v20` }),
  );
}

/** A triangle with a line below it, not cut off at the ends. */
function mark(x) {
  const middle = Math.min(WIDTH - 4, Math.max(4, x));
  return `M${middle - 4} 0h8l-4 5zM${middle} 5v12`;
}

/** "cpu: holds 2 of 4 deserved, asks for 6, limit 8". */
export function said(resource, { held, asked, deserved, limit }) {
  const told = (value) => amount(resource, value);
  const parts = [
    `${resource}: holds ${told(held)}${deserved === null ? "" : ` of ${told(deserved)} deserved`}`,
    `asks for ${told(asked)}`,
  ];
  if (limit !== null) parts.push(`limit ${told(limit)}`);
  return parts.join(", ");
}

/** How much of a whole something is; the number stands beside it. */
export function part(value, whole, label) {
  return h(
    "svg",
    { class: "part", viewBox: "0 0 100 8", role: "img", "aria-label": label, preserveAspectRatio: "none" },
    h("rect", { class: "room", width: 100, height: 8 }),
    h("rect", { class: "held", width: whole > 0 ? (100 * value) / whole : 0, height: 8 }),
  );
}

/** A line over time of `values` (null: not known), with a second one dashed, and marks at times. */
export function line({ times, values, second, marks = [], label, full }) {
  if (values.filter((value) => value !== null && value !== undefined).length < 2)
    return h("span", { class: "hint" }, "no history yet");
  const first = times[0];
  const whole = times[times.length - 1] - first || 1;
  const x = (time) => ((time - first) / whole) * LINE_WIDTH;
  const top = full || Math.max(1, ...values, ...(second ?? []));
  const y = (value) => LINE_HEIGHT - 2 - (Math.min(value, top) / top) * (LINE_HEIGHT - 6);
  return h(
    "svg",
    {
      class: "line",
      viewBox: `0 0 ${LINE_WIDTH} ${LINE_HEIGHT}`,
      preserveAspectRatio: "xMinYMid",
      role: "img",
      "aria-label": label,
    },
    h("path", { class: "base", d: `M0 ${LINE_HEIGHT - 1}H${LINE_WIDTH}` }),
    second && h("path", { class: "second", d: path(times, second, x, y) }),
    h("path", { class: "first", d: path(times, values, x, y) }),
    marks.map((time) => h("path", { class: "mark", d: `M${x(time) - 3} 1l6 6m0 -6l-6 6` })),
  );
}

function path(times, values, x, y) {
  let drawn = "";
  let gap = true;
  values.forEach((value, index) => {
    if (value === null || value === undefined) {
      gap = true;
      return;
    }
    drawn += `${gap ? "M" : "L"}${x(times[index]).toFixed(1)} ${y(value).toFixed(1)}`;
    gap = false;
  });
  return drawn;
}
