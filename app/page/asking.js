// What is asked about a job on demand: the nodes that are left, the line, a change that would help.

import { part } from "./bars.js";
import { h } from "./dom.js";
import { link } from "./routes.js";
import { count } from "./words.js";

/** Three questions as buttons, and the answers of those that were asked. */
export function decisions(context, job) {
  if (!job.waits) return null;
  const at = `${encodeURIComponent(job.namespace)}/${encodeURIComponent(job.group)}`;
  const questions = [
    ["How nodes narrow down", `explain/${at}`, funnels],
    ["Who is ahead in the queue", `line/${at}`, ahead],
    ["Find a change that would let it run", `advice/${at}`, advice],
  ];
  return h(
    "section",
    { "aria-label": "Questions about it" },
    h(
      "div",
      { class: "actions" },
      questions.map(([text, path]) => button(context, text, path)),
    ),
    questions.map(([text, path, told]) => answer(context, path, text, told)),
  );
}

function button({ answers }, text, path) {
  const known = answers.known(path);
  return h(
    "button",
    { type: "button", disabled: known?.loading ?? false, onclick: () => answers.of(path, 0) },
    known?.loading ? `${text} …` : text,
  );
}

function answer({ answers, moment }, path, text, told) {
  const known = answers.known(path);
  if (known === null || (known.loading && known.value === null)) return null;
  return h(
    "section",
    { class: "card answer", role: "status", "aria-label": text },
    h("h2", null, text),
    known.error ? h("p", { class: "notice bad" }, known.error.message) : told(known.value),
    h("p", { class: "hint" }, `The answer of ${moment(known)}.`),
  );
}

function funnels({ funnels: all, network }) {
  if (all.length === 0) return h("p", null, "Its members do not look for nodes now.");
  return [network && h("p", null, network), all.map(funnel)];
}

function funnel({ role, lacking, fit, steps }) {
  const most = Math.max(1, ...steps.map((step) => step.nodes));
  return h(
    "div",
    null,
    h(
      "p",
      null,
      role && h("strong", null, `${role}: `),
      `${count(lacking, "member")} needed, room for ${fit} now.`,
    ),
    h(
      "ol",
      { class: "funnel" },
      steps.map((step) =>
        h(
          "li",
          null,
          part(step.nodes, most, `${step.nodes} nodes ${step.text}`),
          ` ${step.nodes} ${step.text}`,
        ),
      ),
    ),
  );
}

function ahead({ queue, position, waiting, ahead: others, decided_by: rule }) {
  return [
    h(
      "p",
      null,
      `Place ${position} of ${waiting} in queue ${queue}. `,
      rule ? `What decides against the group right before it: ${rule}.` : "It is the first.",
    ),
    others.length > 0 &&
      h(
        "ol",
        null,
        others.map((each) => h("li", null, inLine(each))),
      ),
  ];
}

function inLine(each) {
  const name = each.group ?? each.name;
  const [namespace, own] = String(name).split("/");
  return own ? h("a", { href: link("jobs", [namespace, own]) }, name) : String(name);
}

function advice({ changes, tried }) {
  if (changes.length === 0)
    return h(
      "p",
      null,
      tried
        ? `None of the ${count(tried, "change")} that were tried would let it run now.`
        : "There is nothing to try for it now.",
    );
  return [
    h("p", null, "Each of these was tried by the planner. It would run now if you:"),
    h(
      "ul",
      null,
      changes.map(({ text }) => h("li", null, text)),
    ),
  ];
}
