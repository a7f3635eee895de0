// A live figure is one object:
//   name, opening         the element is <explore-NAME>; state as a flat object of texts
//   words                 {en, zh}, among them caption
//   presets               [{claim, verdict, state, en, zh, shows: {en, zh}}]
//   controls(words)       HTML of form controls, named after the entries of the state
//   shown                 {name: state => text} of what stands beside controls: data-of
//   view(state, words)    HTML of what is shown
//   says(state, words)    the same as a sentence or two, for who does not see it
// None of it needs a document, so that the build renders the opening state and the tests
// read any. The element below only listens.

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

const BUTTONS = {
  en: { presets: "Try a claim:", reset: "Reset" },
  zh: { presets: "试一条说法：", reset: "还原" },
};

/** All of a figure in its opening state. */
function page(figure, language) {
  const words = figure.words[language];
  const own = BUTTONS[language];
  const presets = figure.presets.map(
    (preset, i) => `<button type="button" value="${i}" aria-pressed="false">${preset[language]}</button>`,
  );
  return (
    `<div class="view">${figure.view(figure.opening, words)}</div>` +
    `<p class="says" role="status">${escaped(figure.says(figure.opening, words))}</p>` +
    `<form>${figure.controls(words)}</form>` +
    `<div class="presets" role="group" aria-label="${own.presets}"><b>${own.presets}</b>` +
    `${presets.join("")}<button type="button" value="">${own.reset}</button></div>` +
    '<p class="shows"></p>'
  );
}

const PAUSE = 400; // ms without a change, after which state and address are renewed

export function define(figure) {
  globalThis.explore = {
    ...globalThis.explore,
    [figure.name]: { ...figure, page: (language) => page(figure, language) },
  };
  const tag = `explore-${figure.name}`;
  if (!globalThis.customElements || customElements.get(tag)) return;

  const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  const words = figure.words[language];
  const keys = Object.keys(figure.opening);
  const named = (key) => `${figure.name}.${key}`;

  customElements.define(
    tag,
    class extends HTMLElement {
      connectedCallback() {
        this.innerHTML = page(figure, language);
        [this.view, this.spoken, this.form, , this.shows] = this.children;
        this.form.addEventListener("submit", (event) => event.preventDefault());
        this.form.addEventListener("input", () => this.show());
        this.addEventListener("click", (event) => {
          const button = event.target.closest("button");
          if (!button) return;
          const preset = figure.presets[button.value];
          this.write(preset?.state ?? {});
          this.show(preset);
        });
        this.write(this.address());
        this.show();
      }

      /** What the controls hold; what none of them takes is as it was at first. */
      read() {
        const held = Object.fromEntries(new FormData(this.form));
        return { ...figure.opening, ...held };
      }

      write(state) {
        for (const key of keys) {
          const control = this.form.elements[key];
          control.value = state[key] ?? figure.opening[key];
          if (control.value === "") control.value = figure.opening[key];
        }
      }

      show(preset) {
        const state = this.read();
        this.view.innerHTML = figure.view(state, words);
        for (const held of this.form.querySelectorAll("[data-of]")) {
          held.textContent = figure.shown[held.dataset.of](state);
          const control = held.previousElementSibling;
          if (control.type === "range") control.ariaValueText = held.textContent;
        }
        for (const button of this.querySelectorAll("[aria-pressed]")) {
          button.setAttribute("aria-pressed", figure.presets[button.value] === preset);
        }
        this.shows.textContent = preset ? preset.shows[language] : "";
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.settle(state), PAUSE);
      }

      settle(state) {
        this.spoken.textContent = `${this.shows.textContent} ${figure.says(state, words)}`;
        const url = new URL(location.href);
        for (const key of keys) {
          if (state[key] === figure.opening[key]) url.searchParams.delete(named(key));
          else url.searchParams.set(named(key), state[key]);
        }
        if (this.isConnected && url.href !== location.href) history.replaceState(history.state, "", url);
      }

      /** What the address holds of a state: ?numbers.eps=-8 */
      address() {
        const held = new URLSearchParams(location.search);
        return Object.fromEntries(keys.map((key) => [key, held.get(named(key)) ?? undefined]));
      }
    },
  );
}

/** A slider with its label and its value. */
export const slider = (name, label, min, max, step, value) =>
  `<label><span>${label}</span><input type="range" name="${name}" min="${min}" max="${max}" ` +
  `step="${step}" value="${value}"><span data-of="${name}"></span></label>`;

/** A choice among [value, text]. */
export const choice = (name, label, options, value) =>
  `<label><span>${label}</span><select name="${name}">` +
  options
    .map(([v, text]) => `<option value="${v}"${v === value ? " selected" : ""}>${text}</option>`)
    .join("") +
  "</select></label>";

/** A number in a few digits, with a true minus. */
export const digits = (v, count = 4) => {
  if (Number.isNaN(v)) return "NaN";
  if (Math.abs(v) === Infinity) return v < 0 ? "−∞" : "∞";
  if (v === 0) return Object.is(v, -0) ? "−0" : "0";
  const a = Math.abs(v);
  if (a >= 1e-3 && a < 1e6) {
    return String(Number.isInteger(v) ? v : Number(v.toPrecision(count))).replace("-", "−");
  }
  const [number, power] = v.toExponential(count - 1).split("e");
  return `${Number(number)}e${Number(power)}`.replaceAll("-", "−");
};
