// What a screen reader is told of changes: a few of them, and not all the time.

const QUIET_MS = 6_000;
const TOLD = 3;

export class Changes {
  /** `tell` puts a sentence into the live region. */
  constructor(tell) {
    this.tell = tell;
    this.stages = new Map();
    this.waiting = [];
    this.timer = 0;
  }

  /** Another cluster, or the same after a gap: nothing of before is compared with it. */
  forget() {
    this.stages.clear();
    this.waiting = [];
  }

  /** Note the jobs of a delta whose stage is another than the last one that was told. */
  note(delta) {
    for (const job of delta.changed?.jobs ?? []) {
      const before = this.stages.get(job.key);
      this.stages.set(job.key, job.stage);
      if (before !== job.stage) this.say(`${job.name}: ${job.stage}`);
    }
    for (const key of delta.gone?.jobs ?? []) this.stages.delete(key);
  }

  say(text) {
    this.waiting.push(text);
    if (this.timer === 0) this.timer = setTimeout(() => this.flush(), this.quietUntil());
  }

  quietUntil() {
    return this.last === undefined ? 0 : Math.max(0, this.last + QUIET_MS - performance.now());
  }

  flush() {
    const told = this.waiting.splice(0);
    const more = told.length - TOLD;
    this.timer = 0;
    this.last = performance.now();
    this.tell(told.slice(0, TOLD).join(". ") + (more > 0 ? `. And ${more} more` : ""));
  }
}
