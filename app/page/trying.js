// What if: another limit, nodes that are gone, jobs that would come. The planner answers.

import { Refused } from "./ask.js";
import { h } from "./dom.js";
import { fates } from "./fates.js";
import { amount, byName, isBytes } from "./words.js";

const SETTLED_MS = 500;
const EXAMPLE = "Paste the YAML of a job, a PodGroup or pods here, as for kubectl apply";

/** What the reader has put together, kept while other views are looked at. */
const asked = { queue: "", resource: "", value: null, typed: null, drain: new Set(), text: "", namespace: "default" };
const shown = { result: null, answer: null, refusal: "", loading: false, number: 0, timer: 0 };

export function title() {
  return "What if";
}

export function body(context) {
  const { view, route } = context;
  const mayChange = view.viewer.namespaces === null;
  if (route.options.queue && asked.queue === "") asked.queue = route.options.queue;
  if (!view.queues.has(asked.queue))
    asked.queue = [...view.queues.keys()].find((key) => view.queues.get(key).parent) ?? "";
  if (!view.resources.includes(asked.resource)) asked.resource = view.resources[0];
  return [
    h("h1", null, "What if"),
    h(
      "p",
      null,
      "Put together what would be otherwise. The planner answers as it would decide at this moment. Nothing is changed.",
    ),
    h(
      "form",
      {
        class: "try",
        onsubmit: (event) => {
          event.preventDefault();
          ask(context);
        },
      },
      mayChange && asked.queue !== "" && limit(context),
      mayChange && view.nodes.size > 0 && drain(context),
      paste(context),
      h(
        "div",
        { class: "actions" },
        h(
          "button",
          { type: "submit", class: "primary", disabled: shown.loading || !isQuestion(view) },
          shown.loading ? "Asking …" : "Ask",
        ),
        h("button", { type: "button", onclick: () => reset(context) }, "Clear"),
      ),
    ),
    h(
      "div",
      { "aria-live": "polite" },
      shown.refusal && h("p", { class: "notice bad" }, shown.refusal),
      shown.result && [
        fates(shown.result, view),
        h("p", { class: "hint" }, `The answer of ${context.moment(shown.answer)}.`),
      ],
    ),
  ];
}

function isQuestion(view) {
  return (
    asked.text.trim() !== "" || asked.drain.size > 0 || (asked.value !== null && view.queues.has(asked.queue))
  );
}

function reset({ repaint }) {
  Object.assign(asked, { value: null, typed: null, text: "" });
  asked.drain.clear();
  shown.number += 1;
  Object.assign(shown, { result: null, refusal: "", loading: false });
  repaint();
}

// A limit ---------------------------------------------------------------------------------------

function limit(context) {
  const { view, repaint } = context;
  const { now, most, step } = range(view);
  const value = asked.value ?? now;
  const told = (number) => amount(asked.resource, number);
  const choose = (name) => (event) => {
    Object.assign(asked, { [name]: event.target.value, value: null, typed: null });
    repaint();
  };
  const { size, name: unit } = unitOf(asked.resource);
  const set = (number, typed) => {
    Object.assign(asked, { value: number, typed });
    repaint();
    clearTimeout(shown.timer);
    shown.timer = setTimeout(() => ask(context), SETTLED_MS);
  };
  const written = ({ target }) => {
    const number = target.value === "" ? NaN : Math.round(Number(target.value) * size);
    set(number >= 0 ? number : null, target.value);
  };
  return h(
    "fieldset",
    null,
    h("legend", null, "Another limit of a queue"),
    choice("Queue", asked.queue, [...view.queues.keys()].sort(byName), choose("queue")),
    choice("Resource", asked.resource, view.resources, choose("resource")),
    h(
      "label",
      { class: "wide" },
      `Limit: ${told(value)} ${asked.resource}${asked.value === null ? " (as it is)" : `, now ${told(now)}`}`,
      h("input", {
        type: "range",
        min: 0,
        max: most,
        step,
        value: String(value),
        "aria-valuetext": `${told(value)} ${asked.resource}`,
        oninput: (event) => set(Number(event.target.value), null),
      }),
    ),
    h(
      "label",
      null,
      `Limit in ${unit} `,
      h("input", {
        type: "number",
        min: 0,
        step: "any",
        value: asked.typed ?? String(value / size),
        oninput: written,
      }),
    ),
  );
}

/** From nothing to half as much again as there is, in steps that can be told apart. */
function range({ queues, cluster }) {
  const unit = { cpu: 500, memory: 1024 ** 3 }[asked.resource] ?? 1;
  const queue = queues.get(asked.queue);
  const whole = cluster.allocatable[asked.resource] ?? 0;
  const now = queue.capability[asked.resource] ?? queue.limit?.[asked.resource] ?? whole;
  const most = Math.max(unit, Math.ceil((Math.max(whole, now) * 1.5) / unit) * unit);
  const step = Math.max(unit, Math.round(most / 200 / unit) * unit);
  return { now, most, step };
}

/** In what a limit is written: {size, name} of one. */
function unitOf(resource) {
  if (resource === "cpu") return { size: 1000, name: "cpu" };
  return isBytes(resource) ? { size: 1024 ** 3, name: `Gi of ${resource}` } : { size: 1, name: resource };
}

function quantity(resource, value) {
  return resource === "cpu" ? `${value}m` : String(value);
}

// Nodes -----------------------------------------------------------------------------------------

function drain({ view, repaint }) {
  const add = () => {
    const field = document.getElementById("drain");
    const name = field.value.trim();
    if (view.nodes.has(name)) {
      asked.drain.add(name);
      field.value = "";
      repaint();
    } else {
      field.setCustomValidity(`No node ${name} is known`);
      field.reportValidity();
    }
  };
  const entered = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    add();
  };
  return h(
    "fieldset",
    null,
    h("legend", null, "Nodes that are gone"),
    h(
      "label",
      null,
      "Node ",
      h("input", {
        id: "drain",
        list: "nodes",
        autocomplete: "off",
        onkeydown: entered,
        oninput: (event) => event.target.setCustomValidity(""),
      }),
    ),
    h(
      "datalist",
      { id: "nodes" },
      [...view.nodes.keys()].slice(0, 1000).map((name) => h("option", { value: name })),
    ),
    h("button", { type: "button", onclick: add }, "Drain it"),
    asked.drain.size > 0 &&
      h(
        "ul",
        { class: "chosen" },
        [...asked.drain].map((name) =>
          h(
            "li",
            { key: name },
            name,
            " ",
            h(
              "button",
              {
                type: "button",
                "aria-label": `Keep ${name}`,
                onclick: () => {
                  asked.drain.delete(name);
                  repaint();
                },
              },
              "keep",
            ),
          ),
        ),
      ),
  );
}

// Jobs ------------------------------------------------------------------------------------------

function paste({ view, repaint }) {
  const own = view.viewer.namespaces;
  if (own !== null && !own.includes(asked.namespace)) asked.namespace = own[0] ?? "";
  const changed = (name) => (event) => {
    asked[name] = event.target.value;
    repaint();
  };
  return h(
    "fieldset",
    null,
    h("legend", null, "A job that would come"),
    h(
      "label",
      null,
      "Namespace, where it names none ",
      own === null
        ? h("input", { value: asked.namespace, onchange: changed("namespace") })
        : h(
            "select",
            { value: asked.namespace, onchange: changed("namespace") },
            own.map((name) => h("option", { value: name }, name)),
          ),
    ),
    h(
      "label",
      { class: "wide" },
      "YAML",
      h("textarea", {
        rows: 8,
        value: asked.text,
        placeholder: EXAMPLE,
        spellcheck: "false",
        oninput: changed("text"),
      }),
    ),
  );
}

// The question ----------------------------------------------------------------------------------

async function ask({ post, repaint, view }) {
  if (!isQuestion(view)) return;
  shown.number += 1;
  const mine = shown.number;
  Object.assign(shown, { loading: true, refusal: "" });
  repaint();
  let next;
  try {
    const result = await post("simulate", question());
    next = { result, refusal: "", answer: { at: performance.now() } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    next = { result: null, refusal: error.message };
  }
  if (mine !== shown.number) return; // another question was asked in the meantime
  Object.assign(shown, { ...next, loading: false });
  repaint();
}

function question() {
  const { queue, resource, value, drain: gone, text, namespace } = asked;
  const set = value === null ? {} : { [`queue/${queue}.capability.${resource}`]: quantity(resource, value) };
  return { yaml: text, namespace, set, drain: [...gone] };
}

function choice(name, value, options, onchange) {
  return h(
    "label",
    null,
    `${name} `,
    h(
      "select",
      { value, onchange },
      options.map((option) => h("option", { value: option }, option)),
    ),
  );
}
