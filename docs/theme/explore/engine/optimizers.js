// Optimizers as torch has them. State is float32, a step's arithmetic float64.

/** Adam: a function that moves the parameters (by name) against their gradients. */
export function adam(parameters, { betas = [0.9, 0.999], eps = 1e-8 } = {}) {
  const [b1, b2] = betas;
  const state = Object.values(parameters).map((parameter) => {
    const size = parameter.value.length;
    return [parameter, new Float32Array(size), new Float32Array(size)];
  });
  let [power1, power2] = [1, 1];
  return (rate) => {
    power1 *= b1;
    power2 *= b2;
    const size = rate / (1 - power1);
    const root = Math.sqrt(1 - power2);
    for (const [{ value, gradient }, m, v] of state) {
      for (let i = 0; i < value.length; i++) {
        const g = gradient[i];
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        value[i] -= (size * m[i]) / (Math.sqrt(v[i]) / root + eps);
      }
    }
  };
}

/** Gradient descent, with momentum. */
export function sgd(parameters, { momentum = 0 } = {}) {
  const state = Object.values(parameters).map((parameter) => [
    parameter,
    new Float32Array(parameter.value.length),
  ]);
  return (rate) => {
    for (const [{ value, gradient }, speed] of state) {
      for (let i = 0; i < value.length; i++) {
        speed[i] = momentum * speed[i] + gradient[i];
        value[i] -= rate * speed[i];
      }
    }
  };
}

export const OPTIMIZERS = { adam, sgd };

/** Scale all gradients together down to a norm of `most`; their norm before. */
export function clip(parameters, most) {
  const gradients = Object.values(parameters).map(({ gradient }) => gradient);
  let squares = 0;
  for (const each of gradients) for (let i = 0; i < each.length; i++) squares += each[i] * each[i];
  const size = Math.sqrt(squares);
  const factor = Math.min(1, most / (size + 1e-6));
  for (const each of gradients) for (let i = 0; i < each.length; i++) each[i] *= factor;
  return size;
}

/** Set all gradients to zero. */
export const forget = (parameters) =>
  Object.values(parameters).forEach(({ gradient }) => gradient.fill(0));

/** Share of the peak rate at a step: up over `up` of the steps, then down to zero. */
export const share = (step, steps, up) =>
  step < up ? (step + 1) / up : (steps - step) / (steps - up);
