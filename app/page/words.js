// Amounts, times and states as a reader is told them.

/** Names in the order that people expect: node-2 before node-10. */
export const byName = new Intl.Collator(undefined, { numeric: true }).compare;

const MILLI = 1000;
const LEAST_CORES = 10; // thousandths of a core: fewer are told as they are
const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
const SPANS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** 90061 → "1 d 1 h": the two largest units of a number of seconds. */
export function span(seconds) {
  let left = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of SPANS) {
    const count = Math.floor(left / size);
    if (count === 0 && parts.length === 0) continue;
    if (parts.length === 2) break;
    if (count > 0) parts.push(`${count}\u00a0${unit}`);
    else break;
    left -= count * size;
  }
  return parts.join(" ") || "0\u00a0s";
}

/** How long ago, or in how long, a moment is. */
export function distance(at, now) {
  const away = at - now;
  if (Math.abs(away) < 1) return "now";
  return away < 0 ? `${span(-away)} ago` : `in ${span(away)}`;
}

/** A moment as the clock on the wall shows it; with the day where it is not today. */
export function clock(at, now) {
  const moment = new Date(at * 1000);
  const time = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const sameDay = new Date(now * 1000).toDateString() === moment.toDateString();
  return sameDay ? time : `${moment.toLocaleDateString()} ${time}`;
}

/** Whether an amount of a resource is told in bytes. */
export function isBytes(resource) {
  return resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
}

/** An amount in its own unit: "2.5", "16Gi", "3". */
export function amount(resource, value) {
  if (isBytes(resource)) return bytes(value);
  if (resource !== "cpu") return shortened(value);
  return value !== 0 && Math.abs(value) < LEAST_CORES ? `${value}m` : shortened(value / MILLI);
}

function bytes(value) {
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < BINARY.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${shortened(size)}${BINARY[unit]}`;
}

function shortened(value) {
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** "2 cpu, 4Gi memory": some amounts by resource; pods are told beside it, if at all. */
export function amounts(found) {
  const told = Object.entries(found ?? {}).filter(([resource, value]) => value > 0 && resource !== "pods");
  return (
    told.map(([resource, value]) => `${amount(resource, value)}\u00a0${resource}`).join(", ") || "nothing"
  );
}

/** 0.734 → "73 %". */
export function percent(part) {
  return `${Math.round(part * 100)}\u00a0%`;
}

/** "1 job", "3 jobs". */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}
