// The quiz. A reader's answers stay in this browser; <quiz-score> shows the score of
// the items that it names, each with its right option, so that a corrected key corrects
// old scores, and wakes the items of the page. <quiz-round> draws items of all groups,
// <quiz-paper> prints those in view. Without scripts an item is a question, its options
// and the folded key.
// A classic script, so that a page opened as a file runs it; instant navigation runs it
// again on each page that names it.
if (!customElements.get("quiz-score")) {
  const KEY = "norms-measured.quiz";
  const WORDS = document.documentElement.lang.startsWith("zh")
    ? {
        check: "提交",
        choose: "先选一个选项。",
        right: "答对了。",
        wrong: (letter) => `不对，正确的是 ${letter}。`,
        retry: "再答一次",
        score: (done, all, right) => `已答 ${done}/${all} 题，答对 ${right} 题。`,
        reset: "重新开始",
        sure: (done) => `删除这里的 ${done} 个回答？`,
        pool: "题目",
        every: "全部题目",
        forty: "精选四十题涉及的",
        source: "从中抽",
        all: "不限",
        missed: "只抽我答错的",
        fresh: "只抽还没答过的",
        level: "级别",
        number: "题数",
        matching: (n) => `符合条件的题：${n} 道。`,
        start: "开始一轮",
        anew: "再来一轮",
        paper: "打印题目",
        keys: "打印题目和答案",
      }
    : {
        check: "Check",
        choose: "Choose an option first.",
        right: "Right.",
        wrong: (letter) => `Not right: it is ${letter}.`,
        retry: "Try again",
        score: (done, all, right) => `${done} of ${all} answered, ${right} right.`,
        reset: "Start over",
        sure: (done) => `Delete ${done === 1 ? "the answer" : `the ${done} answers`} given here?`,
        pool: "Items",
        every: "All items",
        forty: "On what the forty ask",
        source: "Draw from",
        all: "Any of them",
        missed: "Only what I got wrong",
        fresh: "What I have not answered yet",
        level: "Level",
        number: "Items",
        matching: (n) => (n === 1 ? "1 item fits." : `${n} items fit.`),
        start: "Start a round",
        anew: "New round",
        paper: "Print the items",
        keys: "Print with answers",
      };

  // item -> {option}. Where the browser keeps nothing, it lasts until a reload.
  let given = {};
  const again = new Set(); // items being tried again: the last answer counts until the next
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      if (kept?.constructor === Object) given = kept;
    } catch {}
  };
  const keep = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify(given));
    } catch {}
    refresh();
  };
  const refresh = () => {
    for (const item of document.querySelectorAll(".quiz")) show(item);
    // Those that are not defined yet show themselves when they are.
    for (const shown of document.querySelectorAll(":is(quiz-score, quiz-round):defined")) shown.show();
  };
  addEventListener("storage", ({ key }) => {
    if (key !== KEY && key !== null) return;
    given = {};
    read(); // what another tab has written
    refresh();
  });

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const button = (textContent, onclick, type = "button") =>
    make("button", { type, className: "md-button", textContent, onclick });

  const show = (item) => {
    const { choice } = item.querySelector("form").elements;
    const known = [...choice].some((input) => input.value === given[item.id]?.option);
    if (!known) delete given[item.id]; // of an option that the item no longer has
    const output = item.querySelector("output");
    if (!output) return; // not drawn
    const chosen = again.has(item.id) ? null : given[item.id]?.option;
    for (const input of choice) {
      input.disabled = Boolean(chosen);
      if (chosen) input.checked = input.value === chosen;
      const state = input.value === item.dataset.answer ? "right" : input.checked && "wrong";
      input.parentElement.className = (chosen && state) || "";
    }
    const [submit, retry] = item.querySelectorAll("fieldset button");
    submit.hidden = Boolean(chosen);
    retry.hidden = !chosen;
    const { right, wrong } = WORDS;
    const verdict = chosen === item.dataset.answer ? right : wrong(item.dataset.letter);
    output.textContent = chosen ? verdict : "";
  };

  // An item as if it had not been answered.
  const blank = (item) => {
    item.querySelector("form").reset();
    item.querySelector("details").open = false;
  };

  const wake = (item) => {
    if (item.querySelector("output")) return;
    const retry = button(WORDS.retry, () => {
      again.add(item.id);
      blank(item);
      refresh();
      item.querySelector("input").focus();
    });
    item.querySelector("fieldset").append(button(WORDS.check, null, "submit"), retry, make("output"));
    item.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const option = event.target.elements.choice.value;
      if (!option) {
        item.querySelector("output").textContent = WORDS.choose;
        return;
      }
      read();
      given[item.id] = { option };
      again.delete(item.id);
      keep();
      const key = item.querySelector("details");
      key.open = true;
      key.querySelector("summary").focus();
    });
  };

  customElements.define(
    "quiz-score",
    class extends HTMLElement {
      connectedCallback() {
        this.answers = new Map(this.dataset.items.split(" ").map((item) => item.split(":")));
        document.querySelectorAll(".quiz:not(.quiz-list *)").forEach(wake);
        const reset = this.hasAttribute("reset") ? [button(WORDS.reset, () => this.reset())] : [];
        this.replaceChildren(make("span", { tabIndex: -1 }), ...reset);
        read();
        refresh();
      }

      show() {
        const { done } = this;
        const right = done.filter((item) => given[item].option === this.answers.get(item));
        const [score, reset] = this.children;
        score.textContent = WORDS.score(done.length, this.answers.size, right.length);
        if (reset) reset.hidden = !done.length;
      }

      get done() {
        return [...this.answers.keys()].filter((item) => given[item]);
      }

      reset() {
        read();
        if (!confirm(WORDS.sure(this.done.length))) return;
        for (const name of this.answers.keys()) {
          delete given[name];
          const item = document.getElementById(name);
          if (item) blank(item);
        }
        keep();
        this.firstChild.focus(); // the button has gone
      }
    },
  );

  const isRight = (item) => given[item.id]?.option === item.dataset.answer;
  const POOLS = ["every", "forty"]; // ?from= in the address
  const SOURCES = {
    all: () => true,
    missed: (item) => given[item.id] && !isRight(item),
    fresh: (item) => !given[item.id],
  };

  customElements.define(
    "quiz-round",
    class extends HTMLElement {
      connectedCallback() {
        this.list = this.closest("article").querySelector(".quiz-list");
        this.list.hidden = false;
        this.items = [...this.list.querySelectorAll(".quiz")];
        again.clear();
        read();
        this.set_up();
      }

      set_up() {
        this.drawn = null;
        for (const item of this.items) item.hidden = true;
        this.status = make("p", { role: "status" });
        const address = new URL(location);
        const from = POOLS.find((name) => name === address.searchParams.get("from")) ?? "every";
        const choice = (type, name, value, label) =>
          make("label", {}, make("input", { type, name, value, checked: name === "level" || value === "all" || value === from }), ` ${label}`);
        const set = (legend, ...children) => make("fieldset", {}, make("legend", { textContent: legend }), ...children);
        const levels = [...new Set(this.items.map((item) => item.dataset.level))];
        const number = make("input", { type: "number", name: "number", value: Math.min(10, this.items.length), min: 1, max: this.items.length, required: true });
        this.start = button(WORDS.start, null, "submit");
        this.form = make(
          "form",
          { className: "draw" },
          set(WORDS.pool, ...POOLS.map((pool) => choice("radio", "pool", pool, WORDS[pool]))),
          set(WORDS.source, ...Object.keys(SOURCES).map((source) => choice("radio", "source", source, WORDS[source]))),
          set(WORDS.level, ...levels.map((level) => choice("checkbox", "level", level, this.list.dataset[level]))),
          make("label", {}, `${WORDS.number} `, number),
          this.status,
          this.start,
        );
        this.form.onchange = ({ target: { name, value } }) => {
          this.show();
          if (name !== "pool") return;
          if (value === "every") address.searchParams.delete("from");
          else address.searchParams.set("from", value);
          history.replaceState(history.state, "", address);
        };
        this.form.onsubmit = (event) => {
          event.preventDefault();
          this.begin(number.valueAsNumber);
        };
        this.replaceChildren(this.form, this.list);
        this.show();
      }

      get fitting() {
        const data = new FormData(this.form);
        return this.items.filter(
          (item) =>
            ["every", ...(item.dataset.in ?? "").split(" ")].includes(data.get("pool")) &&
            data.getAll("level").includes(item.dataset.level) && SOURCES[data.get("source")](item),
        );
      }

      begin(number) {
        this.drawn = this.fitting
          .map((item) => [Math.random(), item])
          .sort(([a], [b]) => a - b)
          .slice(0, number)
          .map(([, item]) => item);
        for (const item of this.drawn) {
          wake(item);
          again.add(item.id);
          blank(item);
          show(item);
          item.hidden = false;
        }
        this.list.append(...this.drawn);
        const anew = button(WORDS.anew, () => {
          for (const item of this.drawn) again.delete(item.id);
          this.set_up();
          this.form.querySelector("input").focus();
        });
        this.replaceChildren(this.list, this.status, anew, make("quiz-paper"));
        this.show();
        this.drawn[0].scrollIntoView();
        this.drawn[0].querySelector("input").focus({ preventScroll: true });
      }

      show() {
        const { status } = this;
        if (this.drawn) {
          const done = this.drawn.filter((item) => given[item.id] && !again.has(item.id));
          status.textContent = WORDS.score(done.length, this.drawn.length, done.filter(isRight).length);
          return;
        }
        status.textContent = WORDS.matching(this.fitting.length);
        this.start.disabled = !this.fitting.length;
      }
    },
  );

  customElements.define(
    "quiz-paper",
    class extends HTMLElement {
      connectedCallback() {
        const print = (label, keys) =>
          button(label, () => {
            document.body.classList.toggle("with-keys", keys);
            window.print();
          });
        this.replaceChildren(print(WORDS.paper, false), print(WORDS.keys, true));
      }
    },
  );
}
