// The quiz. A reader's answers stay in this browser; <quiz-score> shows the score of
// the items that it names, each with its right option, so that a corrected key corrects
// old scores, and wakes the items of the page. Without scripts an item is a question,
// its options and the folded key.
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
        score: (done, all, right) => `已答 ${done}/${all} 题，答对 ${right} 题。`,
        reset: "重新开始",
        sure: (done) => `删除这里的 ${done} 个回答？`,
      }
    : {
        check: "Check",
        choose: "Choose an option first.",
        right: "Right.",
        wrong: (letter) => `Not right: it is ${letter}.`,
        score: (done, all, right) => `${done} of ${all} answered, ${right} right.`,
        reset: "Start over",
        sure: (done) => `Delete ${done === 1 ? "the answer" : `the ${done} answers`} given here?`,
      };

  // item -> {option}. Where the browser keeps nothing, it lasts until a reload.
  let given = {};
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
    for (const score of document.querySelectorAll("quiz-score:defined")) score.show();
  };

  const show = (item) => {
    const { choice } = item.querySelector("form").elements;
    const chosen = given[item.id]?.option;
    const answered = [...choice].some((input) => input.value === chosen);
    if (!answered) delete given[item.id]; // of an option that the item no longer has
    for (const input of choice) {
      input.disabled = answered;
      if (answered) input.checked = input.value === chosen;
      const state = input.value === item.dataset.answer ? "right" : input.checked && "wrong";
      input.parentElement.className = (answered && state) || "";
    }
    item.querySelector("fieldset button").hidden = answered;
    const { right, wrong } = WORDS;
    const verdict = chosen === item.dataset.answer ? right : wrong(item.dataset.letter);
    item.querySelector("output").textContent = answered ? verdict : "";
  };

  const wake = (item) => {
    if (item.querySelector("output")) return;
    const button = document.createElement("button");
    Object.assign(button, { type: "submit", className: "md-button", textContent: WORDS.check });
    item.querySelector("fieldset").append(button, document.createElement("output"));
    item.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const option = event.target.elements.choice.value;
      if (!option) {
        item.querySelector("output").textContent = WORDS.choose;
        return;
      }
      read();
      given[item.id] = { option };
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
        document.querySelectorAll(".quiz").forEach(wake);
        const score = Object.assign(document.createElement("span"), { tabIndex: -1 });
        const button = document.createElement("button");
        Object.assign(button, { type: "button", className: "md-button", textContent: WORDS.reset });
        button.addEventListener("click", () => this.reset());
        this.replaceChildren(score, ...(this.hasAttribute("reset") ? [button] : []));
        read();
        refresh();
      }

      show() {
        const { done } = this;
        const right = done.filter((item) => given[item].option === this.answers.get(item));
        const [score, button] = this.children;
        score.textContent = WORDS.score(done.length, this.answers.size, right.length);
        if (button) button.hidden = !done.length;
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
          item?.querySelector("form").reset();
          item?.querySelector("details").removeAttribute("open");
        }
        keep();
        this.firstChild.focus(); // the button has gone
      }
    },
  );
}
