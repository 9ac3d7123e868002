// Questions to the server, and answers that are kept while they are fresh.

import { headers } from "./session.js";

/** A refusal: `status` of HTTP (0: no answer came) and the sentence of the server. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The JSON answer to GET; throws Refused. */
export function get(path) {
  return asked(path, { headers: headers() });
}

/** The JSON answer to POST; throws Refused. */
export function post(path, body) {
  const more = { "Content-Type": "application/json" };
  return asked(path, { method: "POST", headers: { ...headers(), ...more }, body: JSON.stringify(body) });
}

async function asked(path, how) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", ...how });
  } catch {
    throw new Refused(0, "no answer came from the server");
  }
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim() || answer.statusText);
  return answer.json();
}

/** Answers by path. `tell` is called whenever one has come. */
export class Answers {
  constructor(tell) {
    this.tell = tell;
    this.kept = new Map();
  }

  /**
   * {value, error, loading} of a path; asks when there is no answer younger than `seconds`.
   * While an old one is asked again, it is still told.
   */
  of(path, seconds = Infinity) {
    const known = this.kept.get(path) ?? { value: null, error: null, loading: false, at: -Infinity };
    if (!known.loading && performance.now() - known.at > seconds * 1000) this.load(path, known);
    return this.kept.get(path) ?? known;
  }

  /** The same without asking: null when it was never asked. */
  known(path) {
    return this.kept.get(path) ?? null;
  }

  async load(path, known) {
    this.kept.set(path, { ...known, loading: true });
    let next;
    try {
      next = { value: await get(path), error: null };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      next = { value: error.status === 0 ? known.value : null, error };
    }
    if (!this.kept.has(path)) return; // forgotten in the meantime
    this.kept.set(path, { ...next, loading: false, at: performance.now() });
    this.tell();
  }

  forget() {
    this.kept.clear();
  }
}
