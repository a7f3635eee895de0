// The engine as a script of its own: in a worker it trains what it is sent; on a page
// that may have no worker it leaves `training` there, to be run in slices of time.

import { training } from "../engine/training.js";

const PAUSE = 40; // ms of training between two looks at the messages

if (globalThis.document) globalThis.training = training;
else {
  let run = null;
  let rate;
  let steps = [];
  const next = new MessageChannel();
  const work = () => {
    if (!run) return;
    const until = performance.now() + PAUSE;
    let done = false;
    let held = null;
    while (!done && performance.now() < until) {
      const found = run.next(rate);
      rate = undefined;
      done = Boolean(found.done);
      if (!done) steps.push(found.value);
      else held = found.value;
    }
    postMessage({ rows: steps, done, held });
    steps = [];
    if (done) run = null;
    else next.port2.postMessage(null);
  };
  next.port1.onmessage = work;
  onmessage = ({ data }) => {
    if (data.options) run = training(data.options);
    if (data.rate) rate = data.rate;
    if (data.options) work();
  };
}
