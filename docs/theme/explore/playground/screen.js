// The screen: lanes of training runs side by side, a bet that starts them, and what the
// runs themselves say. All that is decided is decided in reading.js and challenges.js.

import { CHALLENGES, baseOf, decided, opened } from "./challenges.js";
import { drawLane, marks, paint, panels, picture, stops } from "./drawing.js";
import { LASTING, betsOn, breaksOf, together, rightBet, told } from "./reading.js";
import { start } from "./runner.js";
import {
  LAYERS,
  MAP_NAMES,
  MOST_LANES,
  NORMS_OFFERED,
  OPENING,
  PLACES,
  RATES,
  SEEDS,
  TASK_NAMES,
  WARMUPS,
  normed,
  optionsOf,
  searchOf,
  stateOf,
} from "./state.js";
import { WORDS, breaks, lossText, named } from "./words.js";

const KEY = "norms-measured.playground"; // challenges solved
const NAME = "gradient-playground";
const LATER = ["sandwich", "deepnorm", "rezero", "none"]; // what a lane is added with
const VEIL = 0.6; // of the paper, over a run of other settings
const COARSE = 0.1; // of a run between two drawings where motion is unwanted
const SERIES = { post: 1, pre: 2, deepnorm: 3, rezero: 4, sandwich: 5, normformer: 6 };

const make = (tag, fields = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), fields);
  element.append(...children);
  return element;
};

const button = (text, act, className = "act") => {
  const made = make("button", { type: "button", textContent: text, className });
  made.addEventListener("click", act);
  return made;
};

const solvedBefore = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
};

if (globalThis.customElements && !customElements.get(NAME)) {
  const words = WORDS[document.documentElement.lang.startsWith("zh") ? "zh" : "en"];

  customElements.define(
    NAME,
    class extends HTMLElement {
      connectedCallback() {
        this.why ??= this.querySelector("a");
        this.bare = Number(this.dataset.bare);
        this.solved = new Set(solvedBefore());
        this.state = stateOf(location.search, baseOf(stateOf(location.search)));
        if (!CHALLENGES[this.state.challenge]) this.state.challenge = "";
        this.build();
        this.reset();
        this.resized = new ResizeObserver(() => this.draw());
        this.resized.observe(this.places);
        // The colours are the scheme's.
        this.schemes = new MutationObserver(() => this.repaint());
        this.schemes.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
        this.paper = matchMedia("print"); // which is light
        this.paper.onchange = () => this.repaint();
      }

      disconnectedCallback() {
        this.halt();
        this.resized?.disconnect();
        this.schemes?.disconnect();
        this.paper.onchange = null;
      }

      // The frame.

      build() {
        this.ask = make("div", { className: "ask" });
        this.places = make("div", { className: "lanes" });
        this.live = make("p", { className: "unseen" });
        this.live.setAttribute("role", "status");
        this.reading = make("p", { className: "reading", textContent: words.hint });
        this.scale = make("div", { className: "scale" });
        this.settings = make("div", { className: "settings" });
        // Within reach of what was just changed: the bets may be a screen above.
        this.ready = make("p", { className: "ready", hidden: true }, button(words.run, () => this.run(), "act main"));
        this.actions = make("div", { className: "actions" });
        this.numbers = make("details", { hidden: true });
        this.tasks = make("section", { className: "challenges" });
        this.replaceChildren(
          this.ask,
          this.places,
          make("div", { className: "under" }, this.scale, this.reading),
          this.settings,
          this.ready,
          this.actions,
          this.numbers,
          this.tasks,
          this.live,
        );
        this.choose();
        this.act();
      }

      /** A choice among a few values as buttons, of which one is pressed. */
      group(key, label, offered, text = String) {
        const buttons = offered.map((value) => {
          const made = button(text(value), () => this.set({ [key]: value }), "pick");
          made.setAttribute("aria-pressed", value === this.state[key]);
          return made;
        });
        const group = make("div", { className: "group" }, make("span", { textContent: label }), ...buttons);
        group.setAttribute("role", "group");
        group.setAttribute("aria-label", label);
        group.renew = () => buttons.forEach((made, i) => made.setAttribute("aria-pressed", offered[i] === this.state[key]));
        return group;
      }

      choose() {
        this.rate = make("input", { type: "range", min: 0, max: RATES.length - 1, step: 1 });
        this.rateText = make("b");
        this.rate.addEventListener("input", () => this.moveRate(RATES[Number(this.rate.value)]));
        const rate = make("label", { className: "group" }, make("span", { textContent: words.rate }), this.rate, this.rateText);
        this.groups = [
          this.group("layers", words.layers, LAYERS),
          this.group("warmup", words.warmup, WARMUPS, (value) => `${value * 100}%`),
          this.group("seeds", words.seeds, SEEDS),
        ];
        const [layers, warmup, seeds] = this.groups;
        const task =
          TASK_NAMES.length > 1
            ? this.group("task", words.task, TASK_NAMES, (value) => words.tasks[value])
            : make(
                "p",
                { className: "group" },
                make("span", { textContent: words.task }),
                make("b", { textContent: words.tasks[TASK_NAMES[0]] }),
              );
        if (task.renew) this.groups.push(task);
        this.settings.replaceChildren(layers, rate, warmup, seeds, task);
        this.mapGroup = this.group("map", words.map, MAP_NAMES, (value) => words.maps[value]);
        this.groups.push(this.mapGroup);
        this.bar = make("div", { className: "bar" });
        this.scale.replaceChildren(this.mapGroup, this.bar);
      }

      act() {
        this.again = button(words.replay, () => this.run());
        this.fresh = button(words.fresh, () => {
          const seed = (this.state.seed + 1) % 10000;
          const { challenge } = this.state;
          this.set(CHALLENGES[challenge]?.hidden ? { seed, lanes: opened(challenge, seed).lanes } : { seed });
        });
        this.adds = button(words.add, () => this.addLane());
        this.removes = button(words.remove, () => this.set({ lanes: this.state.lanes.slice(0, -1) }));
        this.link = button(words.share, () => this.share());
        this.save = button(words.picture, () => this.download());
        this.actions.replaceChildren(this.again, this.fresh, this.adds, this.removes, this.link, this.save);
      }

      get hiddenNames() {
        return Boolean(CHALLENGES[this.state.challenge]?.hidden) && this.chosen === null;
      }

      nameOf(i) {
        return this.hiddenNames ? words.lane(i + 1) : named(this.state.lanes[i], words);
      }

      // What a reader sets.

      set(change) {
        this.state = { ...this.state, ...change };
        const only = Object.keys(change);
        if (only.length === 1 && only[0] === "map") {
          this.repaint();
          this.keep();
          return;
        }
        this.reset(this.lanes);
        this.ready.hidden = false;
        this.keep();
      }

      /** Nothing has run: empty lanes, or pale ones of what ran before, and the bet. */
      reset(before = []) {
        this.halt();
        this.ready.hidden = true;
        this.chosen = null;
        this.cursor = null;
        this.phase = "ready";
        this.classList.add("idle");
        this.outcome = [];
        const { lanes, steps, layers } = this.state;
        this.places.classList.toggle("many", lanes.length > 2);
        this.lanes = lanes.map((_, i) => this.laneOf(i, steps, layers));
        this.lanes.forEach((lane, i) => this.leave(lane, before[i]));
        this.places.style.setProperty("--lanes", lanes.length);
        this.places.replaceChildren(...this.lanes.map(({ figure }) => figure));
        this.reading.textContent = words.hint;
        this.numbers.hidden = true;
        this.prompt();
        this.renew();
        this.draw();
      }

      /** What ran in a lane before a setting was changed stays in sight until the next run. */
      leave(lane, before) {
        const old = before?.shown?.runs[0].length ? { drawn: before.shown, text: before.text } : before?.old;
        if (!old || old.drawn.hidden || this.hiddenNames) return;
        lane.old = old;
        lane.note.textContent = words.before(...old.text);
        lane.note.classList.add("whole");
      }

      renew() {
        for (const group of this.groups) group.renew();
        this.rate.value = RATES.indexOf(this.state.rate);
        this.rateText.textContent = String(this.state.rate);
        this.rate.setAttribute("aria-valuetext", String(this.state.rate));
        const ended = this.phase === "ended" || this.phase === "stopped";
        this.again.hidden = !ended;
        this.fresh.hidden = !ended;
        this.save.disabled = !ended;
        const free = !CHALLENGES[this.state.challenge]?.hidden;
        this.adds.hidden = !free;
        this.adds.disabled = this.state.lanes.length >= MOST_LANES;
        this.removes.hidden = !free || this.state.lanes.length < 2;
        this.bar.replaceChildren(
          make("i", {}),
          make("p", {}, ...marks(this.state.map).map((text) => make("span", { textContent: text }))),
          make("p", { textContent: words.scale[this.state.map] }),
        );
        this.bar.firstChild.style.background = `linear-gradient(90deg, ${stops(this.state.map, this.look().dark)})`;
        this.list();
      }

      keep() {
        const url = new URL(location.href);
        url.search = searchOf(this.state, baseOf(this.state));
        if (url.href !== location.href) history.replaceState(history.state, "", url);
      }

      addLane() {
        const taken = this.state.lanes.map(({ place }) => place);
        const place = LATER.find((each) => !taken.includes(each)) ?? "pre";
        this.set({ lanes: [...this.state.lanes, { place, norm: "layer" }] });
      }

      moveRate(rate) {
        if (this.phase !== "running") {
          this.set({ rate });
          this.rate.focus();
          return;
        }
        this.state = { ...this.state, rate };
        this.control.rate(rate);
        for (const lane of this.lanes) lane.moves.push(lane.runs[0].length);
        this.say(words.moved(this.lanes[0].runs[0].length, rate));
        this.rateText.textContent = String(rate);
        this.rate.setAttribute("aria-valuetext", String(rate));
        this.keep();
      }

      // A lane's part of the page.

      laneOf(i, steps, layers) {
        const { place, norm } = this.state.lanes[i];
        const head = make("figcaption");
        const end = make("span", { className: "end" });
        if (this.hiddenNames) head.append(make("b", { textContent: words.lane(i + 1) }));
        else {
          const pick = (label, offered, value, text, change) => {
            const select = make(
              "select",
              { ariaLabel: label },
              ...offered.map((each) => make("option", { value: each, textContent: text[each], selected: each === value })),
            );
            select.addEventListener("change", () => {
              const lanes = this.state.lanes.map((lane, j) => (j === i ? { ...lane, ...change(select.value) } : lane));
              this.set({ lanes });
              this.places.children[i].querySelectorAll("select")[change === toNorm ? 1 : 0]?.focus();
            });
            return select;
          };
          const toPlace = (chosen) => ({ place: chosen, norm: normed(chosen) ? norm : "layer" });
          const toNorm = (chosen) => ({ norm: chosen });
          head.append(pick(words.place(i + 1), PLACES, place, words.places, toPlace));
          const norms = pick(words.norm(i + 1), NORMS_OFFERED, norm, words.norms, toNorm);
          norms.style.visibility = normed(place) ? "" : "hidden"; // its place stays
          head.append(norms);
        }
        head.append(end);
        if (!this.hiddenNames) head.append(make("code", { textContent: words.formulas[place] }));
        const canvas = make("canvas");
        const box = make("div", { className: "map", tabIndex: 0 }, canvas);
        box.setAttribute("role", "slider");
        box.setAttribute("aria-label", words.read(this.nameOf(i)));
        box.setAttribute("aria-valuemin", 0);
        box.setAttribute("aria-valuemax", steps - 1);
        box.setAttribute("aria-valuenow", 0);
        box.setAttribute("aria-valuetext", words.hint);
        const note = make("p", { className: "note" });
        const image = make("canvas", { width: steps, height: layers + 1 });
        const figure = make("figure", {}, head, box, note);
        const lane = { figure, head, end, canvas, box, note, image, runs: [[]], held: [], painted: 0, moves: [], checked: 0, found: {}, said: new Set() };
        const point = (event) => {
          const { left, top, width } = box.getBoundingClientRect();
          const places = panels(width, this.sizes, steps, layers, !this.hiddenNames);
          this.read(i, places.step(event.clientX - left), places.layer(event.clientY - top));
        };
        box.addEventListener("pointerdown", point);
        box.addEventListener("pointermove", (event) => {
          if (event.buttons || event.pointerType === "mouse") point(event);
        });
        box.addEventListener("keydown", (event) => this.key(i, event));
        return lane;
      }

      key(i, event) {
        const wide = Math.max(1, Math.round(this.state.steps / 60));
        const by = {
          ArrowLeft: [-wide, 0],
          ArrowRight: [wide, 0],
          ArrowUp: [0, 1],
          ArrowDown: [0, -1],
          PageUp: [10 * wide, 0],
          PageDown: [-10 * wide, 0],
          Home: [-this.state.steps, 0],
          End: [this.state.steps, 0],
        }[event.key];
        if (!by) return;
        event.preventDefault();
        const { step, layer } = this.cursor ?? { step: 0, layer: 0 };
        this.read(i, step + by[0], layer + by[1]);
      }

      /** The same step in every lane; the one in hand is spelt out. */
      read(i, step, layer) {
        const rows = this.lanes[i].runs[0];
        if (!rows.length) return;
        const kept = (value, most) => Math.min(most, Math.max(0, value));
        this.cursor = { step: kept(step, rows.length - 1), layer: kept(layer, this.state.layers) };
        const row = rows[this.cursor.step];
        const at = this.cursor.layer;
        const said = words.reading({
          step: this.cursor.step,
          layer: at,
          loss: row.loss,
          gradient: row.gradient[at],
          cosine: row.cosine[at],
          size: row.size[at],
        });
        this.lanes[i].box.setAttribute("aria-valuenow", this.cursor.step);
        this.lanes[i].box.setAttribute("aria-valuetext", said);
        const name = make("b", { textContent: this.nameOf(i) });
        this.reading.replaceChildren(name, ` ${said}`);
        this.later();
      }

      // The bet, the run, the verdict.

      prompt() {
        const { lanes, layers, challenge } = this.state;
        const names = lanes.map((_, i) => this.nameOf(i));
        if (CHALLENGES[challenge]) {
          const [title, text] = words.challenge[challenge];
          const go = button(words.run, () => this.run(), "act main");
          this.ask.replaceChildren(
            make("p", { className: "question" }, make("b", { textContent: title }), ` ${text}`),
            make("p", { className: "bets" }, go, button(words.leave, () => this.set({ challenge: "" }), "act quiet")),
          );
          return;
        }
        const asks = lanes.length === 1 ? words.ask.one : lanes.length === 2 ? words.ask.two : words.ask.many;
        const opening = searchOf({ ...this.state, layers: OPENING.layers, seed: 0, map: OPENING.map }) === "";
        const question = opening ? words.ask.opening(layers) : asks;
        const bets = betsOn(lanes.length).map((id) =>
          button(words.bets(id, names), () => this.run(id), "act main"),
        );
        this.ask.replaceChildren(
          make("p", { className: "question", textContent: question }),
          make("p", { className: "bets" }, ...bets, button(words.just, () => this.run(), "act quiet"), make("a", { href: "#record", textContent: words.record })),
        );
      }

      run(bet = null) {
        this.reset();
        this.bet = bet;
        for (const [i, lane] of this.lanes.entries()) lane.text = [this.nameOf(i), words.settings(this.state), ""];
        this.phase = "running";
        this.classList.remove("idle");
        const { state } = this;
        for (const lane of this.lanes) lane.runs = Array.from({ length: state.seeds }, () => []);
        const jobs = [];
        for (let run = 0; run < state.seeds; run++) {
          state.lanes.forEach((_, lane) => jobs.push({ lane, run, options: optionsOf(state, lane, run) }));
        }
        this.progress = make("span"); // not a live region: it changes with each step
        const stop = button(words.stop, () => this.stop(), "act main");
        this.ask.replaceChildren(
          make("p", { className: "question" }, this.progress),
          make("p", { className: "bets" }, stop),
        );
        this.still = matchMedia("(prefers-reduced-motion: reduce)").matches;
        this.drawnAt = 0;
        this.renew();
        stop.focus({ preventScroll: true });
        // On a phone the maps stand below the bets, and are what one wants to see now.
        if (this.places.getBoundingClientRect().bottom > innerHeight) this.ask.scrollIntoView({ block: "start" });
        this.control = start(jobs, {
          engine: this.dataset.engine,
          lanes: state.lanes.length,
          heard: (job, rows, held) => this.heard(job, rows, held),
          over: () => this.ended(),
        });
      }

      heard({ lane: i, run }, rows, held) {
        const lane = this.lanes[i];
        if (held !== null) lane.held[run] = held;
        lane.runs[run].push(...rows);
        if (run === 0 && lane.runs[0].length - lane.checked >= LASTING) this.check(i);
        const { steps, seeds } = this.state;
        const done = Math.min(...this.lanes.map(({ runs }) => runs.reduce((sum, each) => sum + each.length, 0)));
        if (this.still && done - this.drawnAt < COARSE * steps * seeds) return;
        this.drawnAt = done;
        this.progress.textContent = words.running(done, steps * seeds);
        this.later();
      }

      /** Name a break as soon as it has lasted. */
      check(i) {
        const lane = this.lanes[i];
        const rows = lane.runs[0];
        lane.checked = rows.length;
        const found = breaksOf(rows);
        lane.found = { lost: null, ...found };
        if (this.hiddenNames) return;
        lane.note.textContent = breaks(lane.found, words).join(words.between);
        for (const kind in found) {
          if (!found[kind] || lane.said.has(kind)) continue;
          lane.said.add(kind);
          this.say(`${this.nameOf(i)}: ${words[kind](found[kind])}`);
        }
      }

      say(text) {
        this.live.textContent = text;
      }

      halt() {
        this.control?.stop();
        this.control = null;
      }

      stop() {
        this.halt();
        this.phase = "stopped";
        const step = Math.min(...this.lanes.map(({ runs }) => runs[0].length));
        this.conclude(words.stopped(step));
      }

      ended() {
        this.control = null;
        this.phase = "ended";
        const { state } = this;
        this.outcome = this.lanes.map(({ runs, held }) => together(runs.map((rows, run) => told(rows, held[run], this.bare, run === 0))));
        this.lanes.forEach((lane, i) => {
          lane.found = this.outcome[i];
        });
        if (this.hiddenNames) return this.offer();
        this.judge();
      }

      /** What a lane's run has come to, beside its name and under its map. */
      conclusion(i) {
        const lane = this.lanes[i];
        lane.end.textContent = lane.text[2] = `${words.loss} ${words.end(this.outcome[i])}`;
        const found = breaks(this.outcome[i], words);
        const seed = this.state.seeds > 1 ? [words.ofSeed(this.state.seed)] : [];
        lane.note.textContent = [...seed, ...(found.length ? found : [words.whole])].join(words.between);
        lane.note.classList.toggle("whole", !found.length);
      }

      /** The names are hidden: the reader says which map is the one. */
      offer() {
        this.lanes.forEach(({ figure }, i) => {
          figure.append(
            button(words.choose, () => {
              this.chosen = i;
              this.judge();
            }),
          );
        });
        this.conclude(words.ask.hidden);
      }

      judge() {
        const { state } = this;
        const parts = [];
        if (this.bet) {
          const right = this.bet === rightBet(this.outcome.map(({ learned }) => learned));
          parts.push(right ? words.right : words.wrong);
        }
        if (this.chosen !== null) {
          parts.push(words.wasIt(this.nameOf(this.chosen)));
          this.lanes.forEach(({ head, figure, box }, i) => {
            head.querySelector("b").textContent = this.nameOf(i);
            box.setAttribute("aria-label", words.read(this.nameOf(i)));
            figure.querySelector("button")?.remove();
          });
        }
        this.lanes.forEach((_, i) => this.conclusion(i));
        const outcomes = this.outcome.map((lane, i) => words.outcome(this.nameOf(i), lane, this.bare));
        if (state.challenge) {
          const [title] = words.challenge[state.challenge];
          const solved = decided(state.challenge, state, this.outcome, this.chosen);
          if (solved) {
            this.solve(state.challenge);
            outcomes.push(words.because[state.challenge]);
          }
          parts.push(solved ? words.solvedNow(title) : words.notNow(title));
        }
        this.conclude(parts.join(words.between), outcomes);
      }

      conclude(verdict, outcomes = []) {
        this.verdict = make("b", { textContent: verdict, tabIndex: -1 });
        const said = [this.verdict, ` ${outcomes.join(words.between)} `, ...(outcomes.length ? [this.why] : [])];
        this.ask.replaceChildren(
          make("p", { className: "question" }, ...said),
          make("p", { className: "bets" }, ...this.onward(), this.again, this.fresh),
        );
        this.renew();
        this.tabulate();
        this.later();
        const notes = this.lanes.map(({ note }, i) => note.textContent && `${this.nameOf(i)}: ${note.textContent}`);
        this.say([verdict, ...outcomes, ...notes.filter(Boolean)].join(" "));
        if (this.contains(document.activeElement) || document.activeElement === document.body) {
          this.verdict.focus({ preventScroll: true });
        }
      }

      /** After a challenge that is solved, a button to one that is not. */
      onward() {
        if (!this.solved.has(this.state.challenge)) return [];
        const next = Object.keys(CHALLENGES).find((id) => !this.solved.has(id));
        return next ? [button(words.next, () => this.begin(next), "act main")] : [];
      }

      begin(id) {
        this.state = opened(id, CHALLENGES[id].hidden ? 1 + Math.floor(Math.random() * 998) : 0);
        this.reset();
        this.keep();
        this.ask.scrollIntoView({ block: "nearest" });
        this.ask.querySelector("button").focus({ preventScroll: true });
      }

      solve(id) {
        this.solved.add(id);
        try {
          localStorage.setItem(KEY, JSON.stringify([...this.solved]));
        } catch {}
      }

      list() {
        const rows = Object.keys(CHALLENGES).map((id) => {
          const [title, text] = words.challenge[id];
          const solved = this.solved.has(id);
          const go = button(words.begin, () => this.begin(id));
          go.setAttribute("aria-label", `${words.begin}: ${title}`);
          return make(
            "li",
            { className: solved ? "solved" : "" },
            make("b", { textContent: title }),
            make("span", { textContent: text }),
            make("i", { textContent: solved ? `✓ ${words.solved}` : words.open }),
            go,
          );
        });
        this.tasks.replaceChildren(make("h2", { textContent: words.challenges }), make("ul", {}, ...rows));
      }

      /** The runs as a table, for who does not see the maps. */
      tabulate() {
        const open = this.numbers.open;
        const tables = this.lanes.map(({ runs: [rows] }, i) => {
          const every = Math.max(1, Math.floor(rows.length / 10));
          const chosen = rows.filter((_, at) => at % every === 0 || at === rows.length - 1);
          const cells = chosen.map(({ step, loss, gradient, cosine }) =>
            [step, lossText(loss), gradient[0].toExponential(1), gradient.at(-1).toExponential(1), cosine.at(-1).toFixed(3)].map(
              (text) => String(text).replace("-", "−"),
            ),
          );
          const line = (tag, texts) => make("tr", {}, ...texts.map((text) => make(tag, { textContent: text })));
          return make(
            "table",
            {},
            make("caption", { textContent: this.nameOf(i) }),
            make("thead", {}, line("th", words.columns)),
            make("tbody", {}, ...cells.map((texts) => line("td", texts))),
          );
        });
        this.numbers.replaceChildren(make("summary", { textContent: words.table }), make("div", {}, ...tables));
        this.numbers.hidden = false;
        this.numbers.open = open;
      }

      async share() {
        try {
          await navigator.clipboard.writeText(location.href);
          this.link.textContent = words.shared;
          setTimeout(() => (this.link.textContent = words.share), 2000);
        } catch {
          const field = make("input", { type: "text", readOnly: true, value: location.href, ariaLabel: words.share });
          this.link.after(field);
          field.select();
        }
      }

      // Drawing.

      get sizes() {
        const narrow = this.clientWidth < 720;
        return { lossHeight: narrow ? 88 : 120, mapHeight: narrow ? 170 : 230 };
      }

      look() {
        const style = getComputedStyle(this);
        const side = style.colorScheme === "dark" ? 1 : 0; // a canvas knows no light-dark()
        const token = (name) => style.getPropertyValue(name).match(/#\w+/g)?.[side] ?? "";
        const [ink, muted, line, panel, paper, accent] = ["ink", "muted", "line", "panel", "paper", "accent"].map((name) =>
          token(`--${name}`),
        );
        const series = (place) => (SERIES[place] ? token(`--figure-${SERIES[place]}`) : ink);
        const dark = side === 1;
        return { ink, muted, line, panel, paper, accent, dark, series, font: style.fontFamily, words, map: this.state.map };
      }

      later() {
        this.asked ??= requestAnimationFrame(() => {
          this.asked = undefined;
          this.draw();
        });
      }

      repaint() {
        for (const lane of this.lanes) lane.painted = 0;
        const { dark, map } = this.look();
        for (const { old } of this.lanes) if (old) paint(old.drawn.image, old.drawn.runs[0], 0, map, dark);
        this.renew();
        this.draw();
      }

      drawn(i, look, width) {
        const lane = this.lanes[i];
        const { steps, layers, lanes } = this.state;
        if (lane.painted === 0) lane.image.getContext("2d").clearRect(0, 0, steps, layers + 1);
        paint(lane.image, lane.runs[0], lane.painted, this.state.map, look.dark);
        lane.painted = lane.runs[0].length;
        return {
          steps,
          layers,
          width,
          sizes: this.sizes,
          bare: this.bare,
          runs: lane.runs,
          image: lane.image,
          moves: lane.moves,
          mark: this.hiddenNames ? null : (lane.found.dead?.from ?? null),
          cursor: this.cursor && this.cursor.step < lane.runs[0].length ? this.cursor : null,
          hidden: this.hiddenNames,
          colour: this.hiddenNames ? look.ink : look.series(lanes[i].place),
        };
      }

      draw() {
        if (!this.lanes || !this.isConnected) return;
        const look = this.look();
        const scale = devicePixelRatio || 1;
        this.lanes.forEach((lane, i) => {
          const { canvas, box, old } = lane;
          const width = box.clientWidth;
          if (!width) return;
          const { height } = panels(width, this.sizes, 1, 1, !this.hiddenNames);
          const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
          if (canvas.width !== wide || canvas.height !== high) {
            Object.assign(canvas, { width: wide, height: high });
            canvas.style.height = `${height}px`;
          }
          const context = canvas.getContext("2d");
          context.setTransform(scale, 0, 0, scale, 0, 0);
          lane.shown = this.drawn(i, look, width);
          if (!old) return drawLane(context, lane.shown, look);
          drawLane(context, { ...old.drawn, width, sizes: this.sizes, cursor: null }, look);
          context.globalAlpha = VEIL;
          context.fillStyle = look.paper;
          context.fillRect(0, 0, width, height);
          context.globalAlpha = 1;
        });
      }

      download() {
        const look = this.look();
        const lanes = this.lanes.map((lane, i) => ({
          ...this.drawn(i, look, 400),
          name: this.nameOf(i),
          endText: lane.end.textContent,
          note: lane.note.textContent,
          whole: lane.note.classList.contains("whole"),
        }));
        const home = document.querySelector("link[rel=canonical]")?.href ?? location.href; // not a reader's folder
        const { host, pathname } = new URL(home);
        const canvas = picture(lanes, look, {
          title: words.title,
          settings: words.settings(this.state),
          address: host + pathname,
        });
        canvas.toBlob((blob) => {
          const href = URL.createObjectURL(blob);
          make("a", { href, download: "where-the-gradient-dies.png" }).click();
          setTimeout(() => URL.revokeObjectURL(href), 1000);
        });
      }
    },
  );
}
