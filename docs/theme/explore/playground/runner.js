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
  const waiting = [...jobs];
  let open = jobs.length;
  let halted = false;
  let moved;
  const ended = () => {
    open -= 1;
    if (!open && !halted) over();
  };
  // A rate moved during the run is also that of what starts later.
  const begun = (options) => (moved ? { ...options, rate: moved } : options);

  if (location.protocol === "file:") return slices();
  const workers = [];
  const take = () => {
    const job = waiting.shift();
    if (!job) return;
    const worker = new Worker(engine);
    workers.push(worker);
    worker.addEventListener("message", ({ data }) => {
      heard(job, data.rows, data.held);
      if (!data.done) return;
      worker.terminate();
      take();
      ended();
    });
    worker.postMessage({ options: begun(job.options) });
  };
  const count = atOnce(lanes, jobs.length, navigator.hardwareConcurrency || 2);
  for (let i = 0; i < count; i++) take();
  return {
    stop() {
      halted = true;
      for (const worker of workers) worker.terminate();
    },
    rate(value) {
      moved = value;
      for (const worker of workers) worker.postMessage({ rate: value });
    },
  };

  function slices() {
    const turns = new MessageChannel();
    let runs = [];
    let at = 0;
    const go = () => {
      if (halted) return;
      const until = performance.now() + SLICE;
      do {
        while (runs.length < lanes && waiting.length) {
          const job = waiting.shift();
          runs.push({ job, steps: globalThis.training(begun(job.options)) });
        }
        if (!runs.length) return;
        const run = runs[at++ % runs.length];
        const { value, done } = run.steps.next(run.rate);
        run.rate = undefined;
        heard(run.job, done ? [] : [value], done ? value : null);
        if (done) {
          runs = runs.filter((each) => each !== run);
          ended();
        }
      } while (performance.now() < until && !halted);
      turns.port2.postMessage(null);
    };
    turns.port1.onmessage = go;
    const ready = () => turns.port2.postMessage(null);
    if (globalThis.training) ready();
    else {
      const script = Object.assign(document.createElement("script"), { src: engine, onload: ready });
      document.head.append(script);
    }
    return {
      stop() {
        halted = true;
        turns.port1.close();
      },
      rate(value) {
        moved = value;
        for (const run of runs) run.rate = value;
      },
    };
  }
}
