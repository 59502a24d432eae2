// A queue of jobs that shares time between senders: the next job is from the sender whose jobs have taken the least time. So a
// sender with many or slow jobs delays its own jobs more than those of others.

interface SenderQueue<Job> {
  readonly jobs: Job[];
  /**
   * The sender's virtual time: grows by the time that its jobs take. When a job arrives and no other job of the sender waits,
   * this time is raised to `#virtualTimeMs` if it is lower.
   */
  usedMs: number;
}

export class FairQueue<Job> {
  readonly #senders = new Map<string, SenderQueue<Job>>();
  /**
   * The queue's virtual time: `usedMs` of the sender whose job was taken last, at the time it was taken. A sender that was
   * idle starts here, so that it gets no credit for idle time.
   */
  #virtualTimeMs = 0;

  add(sender: string, job: Job): void {
    const queue = this.#senders.get(sender) ?? { jobs: [], usedMs: this.#virtualTimeMs };
    if (queue.jobs.length === 0) queue.usedMs = Math.max(queue.usedMs, this.#virtualTimeMs);
    queue.jobs.push(job);
    this.#senders.set(sender, queue);
  }

  take(): Job | undefined {
    let next: SenderQueue<Job> | undefined;
    for (const queue of this.#senders.values())
      if (queue.jobs.length > 0 && (next === undefined || queue.usedMs < next.usedMs)) next = queue;
    if (next === undefined) {
      this.#senders.clear(); // nobody waits, so all senders are equal again
      return undefined;
    }
    this.#virtualTimeMs = next.usedMs;
    return next.jobs.shift();
  }

  /** Puts a job that `take` returned back to the front of its sender's jobs. */
  putBack(sender: string, job: Job): void {
    this.#senders.get(sender)?.jobs.unshift(job);
  }

  /** Counts the time that a job took, unless the queue was empty in the meantime and has forgotten the sender. */
  addTime(sender: string, ms: number): void {
    const queue = this.#senders.get(sender);
    if (queue !== undefined) queue.usedMs += ms;
  }

  /** Returns false if the job is not in the queue. */
  remove(sender: string, job: Job): boolean {
    const jobs = this.#senders.get(sender)?.jobs ?? [];
    const index = jobs.indexOf(job);
    if (index !== -1) jobs.splice(index, 1);
    return index !== -1;
  }

  removeAll(): Job[] {
    const jobs = [...this.#senders.values()].flatMap(queue => queue.jobs);
    this.#senders.clear();
    return jobs;
  }
}
