// The home page: a search, one token whose eight features a reader moves, and claims to
// judge.
// Published as assets/home.js, a classic script with what it imports, so that a page opened
// as a file runs it; instant navigation runs it again on each visit. Without scripts the
// claims stand with their verdicts folded.

import { forward, shared } from "./engine/norms.js";

/** LayerNorm ("layer") or RMSNorm ("rms") of one token, without gain and bias. */
const normed = (norm, x, eps = 1e-6) => {
  const cells = shared(norm, [1, 1, x.length]);
  return [...forward(x, { cells, gain: x.map(() => 1), eps, centred: norm === "layer" }).y];
};

if (globalThis.customElements && !customElements.get("one-token")) {
  const ZH = document.documentElement.lang.startsWith("zh");
  const WORDS = ZH
    ? {
        token: "一个 token 的八个特征，拖动任意一根：",
        feature: (i) => `第 ${i + 1} 个特征`,
        add: "给所有特征加上",
        times: "所有特征乘以",
        reset: "还原",
        still: "拖上面两根滑杆试试：一根给所有特征加同一个数，一根让它们乘同一个数。哪个输出会变？",
        says: (what, rms, ln) =>
          `${what}${/\d$/.test(what) ? " " : ""}之后：RMSNorm 的输出${moved(rms)}，LayerNorm 的输出${moved(ln)}。`,
        moved: (by) => `最多变了 ${by}`,
        kept: "不变",
        one: (i, v) => `第 ${i + 1} 个特征改成 ${v}`,
        several: (count) => `改动 ${count} 个特征`,
        added: (v) => `加上 ${v}`,
        scaled: (v) => `乘以 ${v}`,
        and: "、",
        right: "答对了。",
        wrong: "不对。",
        yes: "成立",
        no: "错误",
        next: "下一条",
        again: "再来三条",
        score: (right) => `三条答对 ${right} 条。`,
        bets: { pre: "Pre-Norm", post: "Post-Norm", both: "两个都行" },
        told: { pre: "押 Pre-Norm，押对了。", post: "押 Post-Norm，没中。", both: "押两个都行，没中。" },
        again_bet: "再看一遍",
        site: "搜索本站",
        example: "fp16 的 RMSNorm 为什么会溢出",
        search: "搜索",
      }
    : {
        token: "One token of eight features. Drag any of them:",
        feature: (i) => `feature ${i + 1}`,
        add: "add to all",
        times: "multiply all by",
        reset: "Reset",
        still: "The two sliders above add one number to all features, or multiply them all. Whose output will change?",
        says: (what, rms, ln) =>
          `${what}: RMSNorm's output ${moved(rms)}, LayerNorm's ${moved(ln)}.`,
        moved: (by) => `changed by up to ${by}`,
        kept: "did not change",
        one: (i, v) => `Feature ${i + 1} at ${v}`,
        several: (count) => `${count} features moved`,
        added: (v) => `${v} added`,
        scaled: (v) => `multiplied by ${v}`,
        and: ", ",
        right: "Right.",
        wrong: "Not right.",
        yes: "True",
        no: "False",
        next: "Next",
        again: "Three more",
        score: (right) => `${right} of three right.`,
        bets: { pre: "Pre-Norm", post: "Post-Norm", both: "Both" },
        told: {
          pre: "You bet on Pre-Norm: right.",
          post: "You bet on Post-Norm: not this time.",
          both: "You bet on both: not this time.",
        },
        again_bet: "Run it again",
        site: "Search this site",
        example: "why does fp16 RMSNorm overflow",
        search: "Search",
      };
  const moved = (by) => (by < 0.005 ? WORDS.kept : WORDS.moved(by.toFixed(2)));
  const START = [1.2, -0.4, 0.7, 2.1, -1.3, 0.2, 0.9, -0.6];
  const make = (tag, fields = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), fields);
    element.append(...children);
    return element;
  };
  const slider = (min, max, step, value, label) => {
    const input = make("input", { type: "range", min, max, step });
    input.value = value;
    input.setAttribute("aria-label", label);
    return input;
  };
  const PAUSE = 400; // ms
  const minus = (v) => v.replace("-", "−");

  customElements.define(
    "one-token",
    class extends HTMLElement {
      connectedCallback() {
        this.features = START.map((v, i) => slider(-3, 3, 0.1, v, WORDS.feature(i)));
        this.add = slider(-4, 4, 0.5, 0, WORDS.add);
        this.times = slider(-2, 2, 1, 0, WORDS.times); // powers of two
        this.says = make("span");
        this.spoken = make("output");
        const reset = make("button", { type: "button", className: "md-button", textContent: WORDS.reset });
        reset.addEventListener("click", () => this.reset());
        this.rows = ["RMSNorm", "LayerNorm"].map((name) => {
          const bars = START.map(() => make("span", {}, make("i"), make("b")));
          return { name, bars };
        });
        this.replaceChildren(
          make("p", { textContent: WORDS.token }),
          make("div", { className: "features" }, ...this.features),
          ...this.rows.map(({ name, bars }) =>
            make("div", { className: "answer" }, make("strong", { textContent: name }), make("div", {}, ...bars)),
          ),
          ...[
            [this.add, WORDS.add],
            [this.times, WORDS.times],
          ].map(([input, text]) => {
            input.shown = make("b");
            return make("label", {}, make("span", { textContent: text }), input, input.shown);
          }),
          make("p", { className: "says" }, this.says, reset),
          this.spoken,
        );
        this.addEventListener("input", () => {
          this.show();
          clearTimeout(this.waiting); // told once the hand is still, not on every key
          this.waiting = setTimeout(() => (this.spoken.textContent = this.says.textContent), PAUSE);
        });
        this.show();
      }

      reset() {
        this.features.forEach((input, i) => (input.value = START[i]));
        this.add.value = this.times.value = 0;
        this.show();
      }

      show() {
        const features = this.features.map((input) => Number(input.value));
        const dragged = features.flatMap((v, i) => (v === START[i] ? [] : [i]));
        const offset = Number(this.add.value);
        const factor = 2 ** Number(this.times.value);
        const before = factor === 1 && !offset ? START : features;
        const token = features.map((v) => v * factor + offset);
        const furthest = ["rms", "layer"].map((norm, row) => {
          const [old, now] = [normed(norm, before), normed(norm, token)];
          this.rows[row].bars.forEach((bar, i) => this.draw(bar, old[i], now[i]));
          return Math.max(...now.map((v, i) => Math.abs(v - old[i])));
        });
        this.features.forEach((input, i) => input.style.setProperty("--at", `${50 + (100 * features[i]) / 6}%`));
        this.add.shown.textContent = minus(String(offset));
        this.times.shown.textContent = String(factor);
        const done = [];
        if (factor !== 1) done.push(WORDS.scaled(factor));
        if (offset) done.push(WORDS.added(minus(String(offset))));
        if (!done.length && dragged.length === 1) done.push(WORDS.one(dragged[0], minus(String(features[dragged[0]]))));
        else if (!done.length && dragged.length) done.push(WORDS.several(dragged.length));
        const what = done.join(WORDS.and).replace(/^./, (first) => first.toUpperCase());
        this.says.textContent = what ? WORDS.says(what, ...furthest) : WORDS.still;
      }

      // Where the output stood before features were moved, and stands now.
      draw(bar, old, now) {
        const place = (v) => `${50 - Math.max(0, v) * 21}%`;
        const [ghost, solid] = bar.children;
        for (const [mark, v] of [
          [ghost, old],
          [solid, now],
        ]) {
          mark.style.top = place(v);
          mark.style.height = `${Math.abs(v) * 21}%`;
        }
        bar.title = minus(now.toFixed(2));
      }
    },
  );

  customElements.define(
    "three-claims",
    class extends HTMLElement {
      connectedCallback() {
        const box = this.closest("div");
        this.claims = [...box.querySelectorAll(".dare")];
        this.claims.forEach((claim) => this.wake(claim));
        box.classList.add("awake");
        // Anew on each visit, the same three never first for all.
        for (let i = this.claims.length - 1; i > 0; i--) {
          const j = Math.floor(Math.random() * (i + 1));
          [this.claims[i], this.claims[j]] = [this.claims[j], this.claims[i]];
        }
        [this.at, this.right] = [0, 0];
        this.show();
      }

      wake(claim) {
        claim.querySelector(".says")?.remove();
        const says = make("output");
        const answer = (verdict, text) => {
          const button = make("button", { type: "button", className: "md-button", textContent: text });
          button.addEventListener("click", () => this.judge(claim, verdict));
          return button;
        };
        const line = make("p", { className: "says" }, answer("holds", WORDS.yes), answer("wrong", WORDS.no), says);
        claim.querySelector("details").before(line);
      }

      show() {
        this.claims.forEach((claim, i) => (claim.hidden = i !== this.at));
      }

      judge(claim, verdict) {
        const right = verdict === claim.dataset.verdict;
        this.right += right;
        const last = this.at % 3 === 2;
        for (const button of claim.querySelectorAll("button")) button.remove();
        const says = claim.querySelector("output");
        says.textContent = (right ? WORDS.right : WORDS.wrong) + (last ? ` ${WORDS.score(this.right)}` : "");
        const details = claim.querySelector("details");
        details.open = true;
        if (this.at + 1 === this.claims.length) return;
        const text = last ? WORDS.again : WORDS.next;
        const next = make("button", { type: "button", className: "md-button", textContent: text });
        next.addEventListener("click", () => {
          if (last) this.right = 0;
          this.at += 1;
          this.show();
          this.claims[this.at].querySelector("button").focus();
        });
        says.after(next);
        next.focus({ preventScroll: true });
      }
    },
  );

  // Two recorded runs. The maps are closed until a reader bets, then open from left to
  // right, at once where motion is unwanted; the verdict takes the place of the prompt.
  customElements.define(
    "gradient-bet",
    class extends HTMLElement {
      connectedCallback() {
        if (this.buttons) return;
        [this.prompt, this.verdict, this.next] = [".prompt", ".outcome", ".next"].map((name) => this.querySelector(name));
        this.lanes = this.querySelector(".lanes");
        this.says = make("strong", { tabIndex: -1 });
        this.verdict.prepend(this.says, " ");
        this.buttons = make(
          "p",
          { className: "bets" },
          ...Object.entries(WORDS.bets).map(([bet, text]) => {
            const button = make("button", { type: "button", className: "md-button", textContent: text });
            button.addEventListener("click", () => this.run(bet));
            return button;
          }),
        );
        this.again = make("button", { type: "button", className: "md-button", textContent: WORDS.again_bet });
        this.again.addEventListener("click", () => {
          this.close();
          this.buttons.querySelector("button").focus({ preventScroll: true });
        });
        this.lanes.after(this.buttons);
        this.prompt.after(this.verdict);
        this.next.append(" ", this.again);
        this.lanes.addEventListener("animationend", () => this.end());
        this.close();
      }

      close() {
        this.className = "closed";
        this.prompt.hidden = this.buttons.hidden = false;
        this.verdict.hidden = this.next.hidden = true;
      }

      run(bet) {
        this.says.textContent = WORDS.told[bet];
        this.buttons.hidden = true;
        if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.end();
        else this.className = "running";
      }

      end() {
        if (!this.verdict.hidden) return; // one lane has ended, and the other after it
        this.className = "";
        this.prompt.hidden = true;
        this.verdict.hidden = this.next.hidden = false;
        this.says.focus({ preventScroll: true });
      }
    },
  );

  // A field whose question, or the example in it, goes to the site's own search.
  customElements.define(
    "open-search",
    class extends HTMLElement {
      connectedCallback() {
        const field = make("input", { type: "search", placeholder: WORDS.example, autocomplete: "off", spellcheck: false });
        field.setAttribute("aria-label", WORDS.site);
        const button = make("button", { type: "submit", className: "md-button md-button--primary", textContent: WORDS.search });
        const form = make("form", { role: "search", ariaLabel: WORDS.site }, field, button);
        form.addEventListener("submit", (event) => {
          event.preventDefault();
          const query = document.querySelector("[data-md-component=search-query]");
          query.value = field.value.trim() || WORDS.example;
          const toggle = document.querySelector("#__search");
          const show = () => toggle.checked || toggle.click(); // a click, which the theme hears
          show();
          query.focus();
          setTimeout(show, 200); // the theme shuts its search 125 ms after each arrival
        });
        this.replaceChildren(form);
      }
    },
  );
}
