// Runs of the engine beside the page: each lane's in a worker, or, where a browser
// refuses workers (at file:// addresses), all in slices of time on the page's own thread.

const SLICE = 12; // ms of training before the page may draw and hear

/** How many workers go at once: all lanes, and more where the device has cores. */
export const atOnce = (lanes, jobs, cores) => Math.min(jobs, Math.max(lanes, Math.min(8, cores - 1)));

/**
 * Trains `jobs`, each {options, lane, run}, in their order.
 * heard(job, rows, held): new rows of a job, and with its last ones the loss on held-out
 * sequences, null before. over(): all have ended.
 * Returns {stop, rate}: both work at once.
 */
export function start(jobs, { engine, lanes, heard, over }) {
  let open = jobs.length;
  let moved;
  let runs;
  const given = {
    engine,
    lanes,
    heard(job, rows, held) {
      heard(job, rows, held);
      if (held === null) return;
      open -= 1;
      if (!open) over();
    },
    // A rate moved during the run is also that of what starts later.
    begun: ({ options }) => (moved ? { ...options, rate: moved } : options),
  };
  if (location.protocol === "file:") runs = inSlices(jobs, given);
  else runs = inWorkers(jobs, { ...given, refused: () => (runs = inSlices(jobs, given)) });
  return {
    stop: () => runs.stop(),
    rate(value) {
      moved = value;
      runs.rate(value);
    },
  };
}

function inWorkers(jobs, { engine, lanes, heard, begun, refused }) {
  const waiting = [...jobs];
  const workers = new Set();
  let began = false;
  const stop = () => {
    for (const worker of workers) worker.terminate();
    workers.clear();
  };
  const take = () => {
    const job = waiting.shift();
    if (!job) return;
    const worker = new Worker(engine);
    workers.add(worker);
    worker.addEventListener("error", () => {
      if (began || !workers.size) return;
      stop();
      refused();
    });
    worker.addEventListener("message", ({ data }) => {
      if (!workers.has(worker)) return; // stopped
      began = true;
      if (data.done) {
        worker.terminate();
        workers.delete(worker);
        take();
      }
      heard(job, data.rows, data.held);
    });
    worker.postMessage({ options: begun(job) });
  };
  const count = atOnce(lanes, jobs.length, navigator.hardwareConcurrency || 2);
  for (let i = 0; i < count; i++) take();
  return {
    stop,
    rate(value) {
      for (const worker of workers) worker.postMessage({ rate: value });
    },
  };
}

function inSlices(jobs, { engine, lanes, heard, begun }) {
  const waiting = [...jobs];
  const turns = new MessageChannel();
  let runs = [];
  let at = 0;
  let halted = false;
  const turn = () => {
    while (runs.length < lanes && waiting.length) {
      const job = waiting.shift();
      runs.push({ job, steps: globalThis.training(begun(job)) });
    }
    if (!runs.length) return false;
    const run = runs[at++ % runs.length];
    const { value, done } = run.steps.next(run.rate);
    run.rate = undefined;
    if (done) runs = runs.filter((each) => each !== run);
    heard(run.job, done ? [] : [value], done ? value : null);
    return true;
  };
  turns.port1.onmessage = () => {
    const until = performance.now() + SLICE;
    let more = !halted;
    while (more && performance.now() < until) more = turn() && !halted;
    if (more) turns.port2.postMessage(null);
  };
  const ready = () => turns.port2.postMessage(null);
  if (globalThis.training) ready();
  else document.head.append(Object.assign(document.createElement("script"), { src: engine, onload: ready }));
  return {
    stop() {
      halted = true;
      turns.port1.close();
    },
    rate(value) {
      for (const run of runs) run.rate = value;
    },
  };
}
