// A live figure is one object:
//   name, opening         the element is <explore-NAME>; state as a flat object of texts
//   words                 {en, zh}, among them caption
//   presets               [{claim, verdict, state, en, zh, shows: {en, zh}}]
//   controls(words)       HTML of form controls, named after the entries of the state
//   shown                 {name: (state, words) => text} of what stands beside controls:
//                         data-of
//   picked(target)        what a click on something in the view sets, if it has such
//   idle(state)           {name: whether this control has no effect now}, if there is such
//   dragged(state, x, y)  what dragging .grip to a place in the drawing's units sets
//   view(state, words)    HTML of what is shown
//   says(state, words)    the same as a sentence or two, for who does not see it
// None of it needs a document, so that the build renders the opening state and the tests
// read any. The element below only listens.

import { picture, save } from "./picture.js";

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

const BUTTONS = {
  en: {
    presets: "Bet on a claim:",
    reset: "Reset",
    share: "Copy link",
    copied: "Copied",
    save: "Save picture",
    asks: (claim) => `“${claim}”: does it hold?`,
    bets: { holds: "Always", "holds-when": "Sometimes", wrong: "No" },
    verdicts: { holds: "the claim holds", "holds-when": "the claim holds sometimes", wrong: "the claim is wrong" },
    right: (verdict) => `You had it right: ${verdict}.`,
    other: (verdict, bet) => `You said “${bet}”, but ${verdict}.`,
    plain: (verdict) => `${verdict[0].toUpperCase()}${verdict.slice(1)}.`,
    quoted: (claim) => `Claim: ${claim}. `,
    setting: (name, value) => `${name}: ${value}`,
    between: "; ",
    gap: " ",
  },
  zh: {
    presets: "猜一条说法：",
    reset: "还原",
    share: "复制链接",
    copied: "已复制",
    save: "存成图片",
    asks: (claim) => `“${claim}”，成立吗？`,
    bets: { holds: "总是成立", "holds-when": "有时成立", wrong: "不成立" },
    verdicts: { holds: "这条说法成立", "holds-when": "这条说法有时成立", wrong: "这条说法不成立" },
    right: (verdict) => `猜对了，${verdict}。`,
    other: (verdict, bet) => `你猜的是“${bet}”，其实${verdict}。`,
    plain: (verdict) => `${verdict}。`,
    quoted: (claim) => `说法：${claim}。`,
    setting: (name, value) => `${name}：${value}`,
    between: "；",
    gap: "",
  },
};

/** All of a figure in its opening state. */
function page(figure, language) {
  const words = figure.words[language];
  const own = BUTTONS[language];
  const presets = figure.presets.map(
    (preset, i) => `<button type="button" value="${i}" aria-pressed="false">${preset[language]}</button>`,
  );
  const bets = Object.entries(own.bets).map(
    ([verdict, bet]) => `<button type="button" data-bet="${verdict}">${bet}</button>`,
  );
  return (
    `<div class="presets" role="group" aria-label="${own.presets}"><b>${own.presets}</b>` +
    `${presets.join("")}<button type="button" value="">${own.reset}</button>` +
    `<button type="button" data-share>${own.share}</button>` +
    `<button type="button" data-save>${own.save}</button></div>` +
    `<div class="presets asks" role="group" hidden><b></b>${bets.join("")}</div>` +
    '<p class="shows"></p>' +
    `<div class="view">${figure.view(figure.opening, words)}</div>` +
    `<p class="says" role="status">${escaped(figure.says(figure.opening, words))}</p>` +
    `<form>${figure.controls(words)}</form>`
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
  const own = BUTTONS[language];
  const keys = Object.keys(figure.opening);
  const named = (key) => `${figure.name}.${key}`;

  customElements.define(
    tag,
    class extends HTMLElement {
      connectedCallback() {
        this.innerHTML = page(figure, language);
        [, this.asks, this.shows, this.view, this.spoken, this.form] = this.children;
        this.form.addEventListener("submit", (event) => event.preventDefault());
        this.form.addEventListener("input", () => this.show());
        this.addEventListener("click", ({ target }) => this.clicked(target));
        if (figure.dragged) this.view.addEventListener("pointerdown", (event) => this.grab(event));
        const claim = new URLSearchParams(location.search).get(named("claim"));
        const shared = figure.presets.find((preset) => preset.claim === claim);
        this.write(shared?.state ?? this.address());
        this.show(shared, shared && this.told(shared));
        if (shared) this.closest("figure")?.scrollIntoView();
      }

      clicked(target) {
        const button = target.closest("button");
        if (button?.dataset.bet) this.bet(button.dataset.bet);
        else if (button && "share" in button.dataset) this.share(button);
        else if (button && "save" in button.dataset) this.save();
        else if (button?.value) this.ask(figure.presets[button.value]);
        else if (button) {
          this.write({});
          this.show();
        } else this.set(this.view.contains(target) && figure.picked?.(target));
      }

      /** A claim is asked for first; the figure moves once there is an answer. */
      ask(preset) {
        this.asked = preset;
        this.press(preset);
        this.asks.hidden = false;
        this.asks.firstChild.textContent = own.asks(preset[language]);
        this.shows.textContent = "";
        this.spoken.textContent = this.asks.firstChild.textContent;
      }

      bet(verdict) {
        const preset = this.asked;
        this.querySelector("[aria-pressed=true]").focus({ preventScroll: true }); // the bets go
        this.write(preset.state);
        this.show(preset, this.told(preset, verdict));
        for (const part of [this.view, this.shows]) part.scrollIntoView({ block: "nearest" });
      }

      /** The verdict of a claim, beside the bet on it where there was one, and why. */
      told(preset, bet) {
        const verdict = own.verdicts[preset.verdict];
        const opens = !bet ? own.plain : bet === preset.verdict ? own.right : own.other;
        return opens(verdict, own.bets[bet]) + own.gap + preset.shows[language];
      }

      async share(button) {
        const url = this.link(location.href).href;
        try {
          await navigator.clipboard.writeText(url);
          button.textContent = own.copied;
          setTimeout(() => (button.textContent = own.share), 4 * PAUSE);
        } catch {
          this.shows.textContent = url;
        }
      }

      /** The figure as it stands, with its setting and its address below. */
      save() {
        const part = (text) => Object.assign(document.createElement("p"), { className: "told", textContent: text });
        const home = document.querySelector("link[rel=canonical]")?.href;
        const whole = this.closest("figure");
        const said = part(this.claim ? own.quoted(this.claim[language]) + this.told(this.claim) : "");
        const setting = part(this.setting().join(own.between));
        const address = part(home ? this.link(home).href : document.title);
        const more = [said, setting, address].filter((each) => each.textContent);
        this.append(...more);
        const parts = [whole.querySelector("figcaption"), this.view, ...more];
        save(picture(parts), `${figure.name}.png`);
        for (const each of more) each.remove();
      }

      /** What each control is at, as text. */
      setting() {
        return keys.map((key) => {
          const named = this.form.elements[key];
          const control = named.labels ? named : [...named].find((each) => each.checked);
          const [label] = control.labels;
          const name = label.querySelector("span, i").textContent.replace(/[:：]\s*$/, "");
          const held = control.selectedOptions?.[0] ?? label.querySelector("[data-of]");
          return own.setting(name, control.type === "text" ? control.value : held.textContent);
        });
      }

      /** Some entries of the state, set from the drawing. */
      set(changed) {
        if (!changed) return;
        this.write({ ...this.read(), ...changed });
        this.show();
      }

      grab(event) {
        if (!event.target.closest(".grip")) return;
        event.preventDefault();
        this.view.setPointerCapture(event.pointerId);
        const move = ({ clientX, clientY }) => {
          const inverse = this.view.querySelector("svg").getScreenCTM().inverse();
          const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(inverse);
          this.set(figure.dragged(this.read(), x, y));
        };
        this.view.addEventListener("pointermove", move);
        const end = () => this.view.removeEventListener("pointermove", move);
        this.view.addEventListener("lostpointercapture", end, { once: true });
      }

      press(preset) {
        for (const button of this.querySelectorAll("[aria-pressed]")) {
          button.setAttribute("aria-pressed", figure.presets[button.value] === preset);
        }
      }

      /** What the controls hold; what none of them takes is as it was at first. */
      read() {
        return Object.fromEntries(keys.map((key) => [key, this.form.elements[key].value || figure.opening[key]]));
      }

      write(state) {
        for (const key of keys) {
          const control = this.form.elements[key];
          control.value = state[key] ?? figure.opening[key];
          if (control.value === "") control.value = figure.opening[key];
        }
      }

      show(preset, said = "") {
        const state = this.read();
        this.view.innerHTML = figure.view(state, words);
        for (const [key, idle] of Object.entries(figure.idle?.(state) ?? {})) this.form.elements[key].disabled = idle;
        for (const held of this.form.querySelectorAll("[data-of]")) {
          held.textContent = figure.shown[held.dataset.of](state, words);
          const control = held.previousElementSibling;
          if (control.type === "range") control.ariaValueText = held.textContent;
        }
        this.claim = preset;
        this.press(preset);
        this.asks.hidden = true;
        this.shows.textContent = said;
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.settle(state), PAUSE);
      }

      settle(state) {
        this.spoken.textContent = `${this.shows.textContent} ${figure.says(state, words)}`;
        const url = this.link(location.href);
        if (this.isConnected && url.href !== location.href) history.replaceState(history.state, "", url);
      }

      /** An address that leads to the state. */
      link(page) {
        const url = new URL(page);
        const state = this.claim ? figure.opening : this.read(); // a claim has its own
        const held = { ...state, claim: this.claim?.claim };
        for (const [key, value] of Object.entries(held)) {
          if (value === figure.opening[key]) url.searchParams.delete(named(key));
          else url.searchParams.set(named(key), value);
        }
        return url;
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
