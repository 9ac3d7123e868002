// The stream of the server: read with the token in a header, which EventSource cannot send, and
// opened again when it ends.

import { headers, scoped } from "./session.js";

const SILENCE_MS = 25_000;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
const STOPPING_WAIT_MS = 2_000;
const HIDDEN_MS = 20_000;
const SIGN_IN = new Set([401, 403]);

/** Events of a text/event-stream: feed it text, it calls `tell` with each {name, data}. */
export class Events {
  constructor(tell) {
    this.tell = tell;
    this.rest = "";
    this.name = "message";
    this.data = [];
  }

  feed(text) {
    const lines = (this.rest + text).split(/\r?\n/);
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length > 0) this.tell({ name: this.name, data: this.data.join("\n") });
      this.name = "message";
      this.data = [];
    } else if (line.startsWith("event:")) this.name = line.slice(6).trim();
    else if (line.startsWith("data:")) this.data.push(line.slice(5).replace(/^ /, ""));
  }
}

/**
 * Follows the stream until `close`. `listener` has `event({name, said, served})`, which returns false to
 * start again, and `state({kind, text, retryAt})` with kind "connecting", "live", "lost" or
 * "sign-in"; after the last one nothing is tried again until `open`.
 */
export class Stream {
  constructor(listener) {
    this.listener = listener;
    this.wait = FIRST_WAIT_MS;
    this.run = null;
  }

  open() {
    this.close();
    const run = { abort: new AbortController(), timer: 0 };
    this.run = run;
    this.listener.state({ kind: "connecting", text: "" });
    this.read(run).then(
      (end) => this.ended(run, end),
      (error) => this.ended(run, { text: run.silent ? "the server says nothing" : reasonOf(error) }),
    );
  }

  close() {
    if (this.run === null) return;
    clearTimeout(this.run.timer);
    this.run.abort.abort();
    this.run = null;
  }

  /** Resolves to how the stream ended: {text, status, wait}. */
  async read(run) {
    this.watch(run);
    const how = { headers: headers(), signal: run.abort.signal, cache: "no-store" };
    const answer = await fetch(scoped("view/stream"), how);
    if (!answer.ok) return { text: (await answer.text()).trim(), status: answer.status };
    this.served = Date.parse(answer.headers.get("Date")) / 1000 || 0;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let end = null;
    const events = new Events((event) => {
      end ??= this.heard(event);
    });
    while (end === null) {
      const { done, value } = await reader.read();
      if (done) return { text: "the server ended the connection" };
      this.watch(run);
      events.feed(value);
    }
    return end;
  }

  heard({ name, data }) {
    const said = JSON.parse(data);
    if (name === "expired") return { text: said.why, status: 401, expired: true };
    if (name === "stopping") return { text: said.why, wait: STOPPING_WAIT_MS };
    if (!this.listener.event({ name, said, served: this.served }))
      return { text: "an update was missed", wait: 0 };
    if (name === "whole") {
      this.wait = FIRST_WAIT_MS;
      this.listener.state({ kind: "live", text: "" });
    }
    return null;
  }

  watch(run) {
    clearTimeout(run.timer);
    run.timer = setTimeout(() => {
      run.silent = true;
      run.abort.abort();
    }, SILENCE_MS);
  }

  ended(run, { text, status = 0, wait = this.wait, expired = false }) {
    if (this.run !== run) return;
    this.close();
    if (SIGN_IN.has(status)) {
      this.listener.state({ kind: "sign-in", text, status, expired });
      return;
    }
    const again = { timer: setTimeout(() => this.open(), wait), abort: new AbortController() };
    this.run = again;
    if (wait === this.wait) this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
    const retryAt = performance.now() + wait;
    this.listener.state({ kind: wait === 0 ? "connecting" : "lost", text, retryAt });
  }
}

/**
 * Lets the stream go while nobody looks at the page: a browser has six connections to a server, for
 * all its pages and those that it keeps to go back to.
 */
export function restWhileHidden(stream) {
  let timer = 0;
  let rests = false;
  const rest = () => {
    rests ||= stream.run !== null;
    stream.close();
  };
  const wake = () => {
    clearTimeout(timer);
    if (rests) stream.open();
    rests = false;
  };
  addEventListener("pagehide", rest);
  addEventListener("pageshow", wake);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return wake();
    clearTimeout(timer);
    timer = setTimeout(rest, HIDDEN_MS);
  });
}

function reasonOf(error) {
  return error instanceof TypeError ? "the server cannot be reached" : String(error.message ?? error);
}
