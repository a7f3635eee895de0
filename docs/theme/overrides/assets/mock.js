// <mock-interview>: asks the questions of the .mock-list beside it, one by one, each
// followed by its follow-up. The list holds them as folded blocks; what a reader marks
// and writes stays on this device. A classic script, so that a page opened as a file runs it;
// instant navigation runs it again on each page that names it.
if (!customElements.get("mock-interview")) {
  const WORDS = {
    en: {
      pool: "Questions",
      every: "The whole bank",
      forty: "The forty",
      public: "Asked in public lists",
      source: "Draw from",
      all: "All questions",
      marked: "Only what I marked for revision",
      weak: "What I knew partly or marked for revision",
      fresh: "What I was not asked yet",
      level: "Level",
      group: "Group",
      groups: "All groups",
      none: "No group",
      number: "Questions",
      minutes: "Minutes per question",
      follow: "Ask the follow-up after each answer, on the same clock",
      matching: (n) => (n === 1 ? "1 question fits." : `${n} questions fit.`),
      start: "Start the interview",
      go_on: (i, n) => `Go on with question ${i} of ${n}`,
      last: "Summary of the last interview",
      forget: "Delete my marks",
      sure: "Delete all your marks on this device?",
      forgotten: "Your marks are deleted.",
      position: (i, n) => `Question ${i} of ${n}`,
      left: "Time left",
      over: "Over time by",
      pause: "Pause",
      resume: "Resume",
      paused: "Paused.",
      resumed: "The clock runs again.",
      soon: "One minute left.",
      up: "Time is up.",
      write: "Your answer in writing, if you like",
      reveal: "Show the answer",
      next: "On to the follow-up",
      end: "End the interview",
      answer: "Answer",
      tab: " (new tab)",
      rate: "How well did you know it?",
      known: "Knew it",
      partly: "Partly",
      revise: "Revise",
      summary: "Summary",
      outcome: (n, time) => `${n === 1 ? "1 question" : `${n} questions`} rated in ${time}.`,
      nothing: "You rated no question.",
      kept: "What you marked for revision is kept on this device only.",
      unkept: "This browser keeps nothing here: your marks last until you leave the page.",
      wrote: "You wrote: ",
      print: "Print the summary",
      again: "Ask again what I did not know",
      anew: "New interview",
      count: (label, n) => `${label}: ${n}`,
    },
    zh: {
      pool: "题库",
      every: "全部题库",
      forty: "精选四十题",
      public: "公开题单里问过的",
      source: "从中抽",
      all: "不限",
      marked: "只抽我标记为“再复习”的",
      weak: "只抽“一知半解”和“再复习”的",
      fresh: "只抽还没考过的",
      level: "级别",
      group: "题组",
      groups: "全选题组",
      none: "清空题组",
      number: "题数",
      minutes: "每题分钟数",
      follow: "每题答完接着追问，共用一个计时",
      matching: (n) => `符合条件的题：${n} 道。`,
      start: "开始面试",
      go_on: (i, n) => `继续上次的面试：第 ${i} 题，共 ${n} 题`,
      last: "上次面试的小结",
      forget: "删除我的标记",
      sure: "删除这台设备上的全部标记？",
      forgotten: "标记已删除。",
      position: (i, n) => `第 ${i} 题，共 ${n} 题`,
      left: "剩余时间",
      over: "已超时",
      pause: "暂停",
      resume: "继续",
      paused: "已暂停。",
      resumed: "继续计时。",
      soon: "还剩一分钟。",
      up: "时间到。",
      write: "也可以把回答写下来",
      reveal: "看答案",
      next: "进入追问",
      end: "结束面试",
      answer: "答案",
      tab: "（新标签页）",
      rate: "答得怎么样？",
      known: "会",
      partly: "一知半解",
      revise: "再复习",
      summary: "小结",
      outcome: (n, time) => `评了 ${n} 道题，用时 ${time}。`,
      nothing: "一道题也没有评。",
      kept: "标记为“再复习”的题只保存在这台设备上。",
      unkept: "这个浏览器不允许保存：离开本页后标记就没有了。",
      wrote: "你写的：",
      print: "打印小结",
      again: "没答好的再来一遍",
      anew: "重新开始",
      count: (label, n) => `${label}：${n}`,
    },
  };
  const QUESTIONS = 10; // to begin with, and minutes for each
  const MINUTES = 2;
  const RATINGS = ["known", "partly", "revise"];
  const POOLS = ["every", "forty", "public"]; // ?from= in the address
  const SOURCES = {
    all: () => true,
    marked: (rating) => rating === "revise",
    weak: (rating) => rating === "partly" || rating === "revise",
    fresh: (rating) => !rating,
  };
  const KEY = "norms-measured.mock";
  const UNFINISHED = "norms-measured.mock-unfinished";

  // The marks by question, {id: rating}. A private window may refuse to keep them.
  const marks = {
    kept: true,
    rated: {},
    read() {
      try {
        const found = JSON.parse(localStorage.getItem(KEY));
        if (found?.constructor === Object) this.rated = found;
      } catch (error) {
        if (!(error instanceof SyntaxError)) this.kept = false; // damaged is not refused
      }
    },
    write() {
      try {
        localStorage.setItem(KEY, JSON.stringify(this.rated));
      } catch {
        this.kept = false;
      }
    },
    rate(id, rating) {
      this.read(); // another tab may have marked something
      this.rated[id] = rating;
      this.write();
    },
    clear() {
      this.rated = {};
      this.write();
    },
  };

  // The interview that a reload or a discarded tab cut off, or the last one, with its
  // summary: ids in place of questions.
  const unfinished = {
    read(questions) {
      try {
        const { asked, rated, said, ...rest } = JSON.parse(localStorage.getItem(UNFINISHED));
        const known = new Map(questions.map((question) => [question.id, question]));
        const session = {
          ...rest,
          said: said?.constructor === Object ? said : {},
          asked: asked.map((id) => known.get(id)),
          rated: rated.map(([id, rating]) => ({ question: known.get(id), rating })),
        };
        const all_known = [...session.asked, ...session.rated.map(({ question }) => question)].every(Boolean);
        const whole = session.over ? session.rated.length : session.asked[session.at] && session.limit > 0;
        return all_known && whole ? session : null;
      } catch {
        return null; // nothing was cut off, or it is damaged
      }
    },
    write({ asked, rated, ...rest }) {
      const ids = rated.map(({ question, rating }) => [question.id, rating]);
      const kept = { asked: asked.map((question) => question.id), rated: ids, ...rest };
      try {
        localStorage.setItem(UNFINISHED, JSON.stringify(kept));
      } catch {}
    },
  };

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const button = (textContent, onclick, className = "") =>
    make("button", { type: "button", textContent, onclick, className });
  const inside = (block) => block.querySelector("summary").cloneNode(true).childNodes;
  const clock = (seconds) => {
    const whole = Math.floor(Math.abs(seconds));
    return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  };
  const shuffled = (items) => {
    const left = [...items];
    return items.map(() => left.splice(Math.floor(Math.random() * left.length), 1)[0]);
  };

  class MockInterview extends HTMLElement {
    connectedCallback() {
      this.words = WORDS[document.documentElement.lang.startsWith("zh") ? "zh" : "en"];
      const list = this.closest("article").querySelector(".mock-list");
      this.questions = [...list.querySelectorAll("section > details")].map((block) => {
        const link = block.querySelector(":scope > p:last-of-type > a"); // to the full answer
        const group = block.closest("section").ariaLabel;
        const pools = ["every", ...(block.dataset.in ?? "").split(" ")];
        return { block, link, id: link.hash.slice(1), group, level: block.dataset.level, pools };
      });
      this.levels = list.dataset;
      // One polite voice for what changes without a move of the focus.
      this.voice = make("p", { className: "mock-voice", role: "status" });
      this.stage = make("div", { className: "mock-stage" });
      this.replaceChildren(this.stage, this.voice);
      this.onkeydown = (event) => {
        if (event.key === "Escape" && !event.isComposing && this.pause?.isConnected) this.pause.click();
      };
      marks.read();
      this.set_up();
    }

    disconnectedCallback() {
      clearInterval(this.ticking);
    }

    show(...children) {
      clearInterval(this.ticking);
      this.voice.textContent = "";
      this.stage.replaceChildren(...children.filter(Boolean));
    }

    set_up() {
      const { words } = this;
      const choice = (type, name, value, label, checked) =>
        make("label", {}, make("input", { type, name, value, checked }), ` ${label}`);
      const set = (legend, ...children) => make("fieldset", {}, make("legend", { textContent: legend }), ...children);
      const boxes = (kind, labels = {}) =>
        [...new Set(this.questions.map((q) => q[kind]))].map((value) =>
          choice("checkbox", kind, value, labels[value] ?? value, true),
        );
      const amount = (name, label, value, min, max, step) =>
        make("label", {}, `${label} `, make("input", { type: "number", name, value, min, max, step, required: true }));

      const address = new URL(location);
      const from = POOLS.find((name) => name === address.searchParams.get("from")) ?? "every";
      const pools = POOLS.map((name) => choice("radio", "pool", name, words[name], name === from));
      const sources = Object.keys(SOURCES).map((name) => choice("radio", "source", name, words[name], name === "all"));
      const left = unfinished.read(this.questions);
      const go_on = () => {
        this.session = left;
        if (left.over) this.sum_up();
        else this.ask(left.shown);
      };
      const fitting = make("p", { className: "mock-fitting", role: "status" });
      const start = make("button", { type: "submit", textContent: words.start, className: "mock-main" });
      const forget = button(words.forget, () => {
        if (!confirm(words.sure)) return;
        marks.clear();
        this.set_up();
        this.voice.textContent = words.forgotten;
        this.querySelector("input").focus();
      });
      const tick = (checked) => {
        for (const box of form.querySelectorAll("[name=group]")) box.checked = checked;
        count();
      };
      const form = make(
        "form",
        { className: "mock-form" },
        set(words.pool, ...pools),
        set(words.source, ...sources),
        set(words.level, ...boxes("level", this.levels)),
        set(words.group, ...boxes("group"), button(words.groups, () => tick(true)), button(words.none, () => tick(false))),
        make("div", { className: "mock-amounts" }, amount("number", words.number, QUESTIONS, 1, 200, 1), amount("minutes", words.minutes, MINUTES, 0.5, 60, 0.5)),
        choice("checkbox", "follow", "yes", words.follow, true),
        fitting,
        make("div", { className: "mock-buttons" }, start, ...(Object.keys(marks.rated).length ? [forget] : [])),
        make("p", { className: "mock-note", textContent: marks.kept ? words.kept : words.unkept }),
      );
      const drawn = () => {
        const data = new FormData(form);
        return this.questions.filter(
          (q) =>
            q.pools.includes(data.get("pool")) &&
            data.getAll("level").includes(q.level) &&
            data.getAll("group").includes(q.group) &&
            SOURCES[data.get("source")](marks.rated[q.id]),
        );
      };
      const count = () => {
        fitting.textContent = words.matching(drawn().length);
        start.disabled = !drawn().length;
      };
      form.onchange = ({ target: { name, value } }) => {
        count();
        if (name !== "pool") return;
        if (value === "every") address.searchParams.delete("from");
        else address.searchParams.set("from", value);
        history.replaceState(history.state, "", address);
      };
      form.onsubmit = (event) => {
        event.preventDefault();
        const { number, minutes, follow } = form.elements;
        this.begin(shuffled(drawn()).slice(0, number.valueAsNumber), minutes.valueAsNumber * 60, follow.checked);
      };
      for (const source of sources) {
        const { value } = source.firstChild;
        source.firstChild.disabled = !this.questions.some((q) => SOURCES[value](marks.rated[q.id]));
      }
      const label = left && (left.over ? words.last : words.go_on(left.at + 1, left.asked.length));
      const again = left && button(label, go_on, "mock-go-on" + (left.over ? "" : " mock-main"));
      this.show(again && make("div", { className: "mock-buttons" }, again), form);
      count();
    }

    begin(asked, limit, follow) {
      this.session = { asked, limit, follow, at: 0, spent: 0, rated: [], said: {} };
      this.ask();
    }

    // ``stage`` is 0 while the question stands alone, 1 with its answer; 2 and 3 are the
    // same of its follow-up.
    ask(stage = 0) {
      const { words, session } = this;
      const shown = Math.min(Math.max(Math.floor(stage) || 0, 0), session.follow ? 3 : 1);
      const turn = shown > 1 ? 1 : 0;
      session.shown = shown;
      session.time = (shown && Number(session.time)) || 0;
      unfinished.write(session);
      const question = session.asked[session.at];
      const position = words.position(session.at + 1, session.asked.length);
      const where = [position, question.group, this.levels[question.level]].join(" · ");
      const heading = make("h3", { tabIndex: -1, className: "mock-question" });
      heading.setAttribute("aria-describedby", "mock-where");
      const asked = turn ? question.block.querySelector("details") : question.block;
      heading.append(...inside(asked));
      const before = make("p", { className: "mock-where" }, ...inside(question.block));
      const timer = make("p", { className: "mock-timer", role: "timer" });
      const reveal = button(words.reveal, () => this.reveal(question), "mock-main");
      this.pause = button(words.pause, () => this.toggle());
      heading.onkeydown = (event) => {
        if (event.key === "Enter" && event.target === heading && reveal.isConnected) reveal.click();
      };
      const bar = make("div", { className: "mock-buttons" }, reveal, this.pause, button(words.end, () => this.sum_up()));
      const text = make("textarea", { rows: 2, value: session.said[question.id]?.[turn] ?? "" });
      text.oninput = () => {
        (session.said[question.id] ??= ["", ""])[turn] = text.value;
        unfinished.write(session);
      };
      this.pair = make("div", { className: "mock-pair" }, make("label", {}, words.write, text));
      const place = make("p", { id: "mock-where", className: "mock-where", textContent: where });
      this.show(place, turn && before, heading, timer, this.pair, bar);
      this.bar = bar;
      this.run(timer);
      heading.focus();
      this.stage.scrollIntoView();
      if (shown % 2) this.reveal(question);
    }

    // The clock counts what has passed, so that a sleeping tab loses nothing.
    run(timer) {
      const { words, session } = this;
      let last = performance.now();
      let before = session.limit - session.time;
      this.running = true;
      const tick = () => {
        const now = performance.now();
        if (this.running) {
          session.time += (now - last) / 1000;
          session.spent += (now - last) / 1000;
        }
        last = now;
        const left = session.limit - session.time;
        const shown = left > 0 ? Math.ceil(left) : left;
        timer.textContent = words.count(left > 0 ? words.left : words.over, clock(shown));
        timer.classList.toggle("mock-over", left <= 0);
        if (before > 60 && left <= 60 && left > 0) this.voice.textContent = words.soon;
        if (before > 0 && left <= 0) this.voice.textContent = words.up;
        before = left;
      };
      tick();
      this.tick = tick;
      this.ticking = setInterval(tick, 250);
    }

    toggle() {
      const { words } = this;
      this.tick();
      this.running = !this.running;
      this.pause.textContent = this.running ? words.pause : words.resume;
      this.voice.textContent = this.running ? words.resumed : words.paused;
    }

    reveal(question) {
      const { words, session } = this;
      this.tick();
      this.running = false;
      clearInterval(this.ticking);
      this.voice.textContent = "";
      session.shown |= 1;
      unfinished.write(session);
      const turn = session.shown > 1;
      const asked = turn ? question.block.querySelector("details") : question.block;
      const answer = make("section", { className: "mock-answer", tabIndex: -1 });
      answer.setAttribute("aria-label", words.answer);
      answer.append(...asked.cloneNode(true).querySelectorAll(":scope > :not(summary, details)"));
      for (const link of answer.querySelectorAll("a")) {
        link.target = "_blank"; // here the interview goes on
        link.append(words.tab);
      }
      const rate = (rating) => {
        marks.rate(question.id, rating);
        session.rated.push({ question, rating });
        session.at += 1;
        if (session.at < session.asked.length) this.ask();
        else this.sum_up();
      };
      const last = turn || !session.follow;
      const then = make("div", { className: "mock-buttons mock-then", role: "group" });
      if (last) {
        then.setAttribute("aria-label", words.rate);
        then.append(...RATINGS.map((rating) => button(words[rating], () => rate(rating), `mock-${rating}`)));
      } else then.append(button(words.next, () => this.ask(2), "mock-main"));
      const end = make("div", { className: "mock-buttons" }, button(words.end, () => this.sum_up()));
      if (!this.querySelector("textarea").value) this.pair.replaceChildren();
      this.pair.append(answer);
      this.bar.replaceWith(...(last ? [make("p", { className: "mock-rate", textContent: words.rate })] : []), then, end);
      answer.focus();
    }

    sum_up() {
      const { words, session } = this;
      if (!session.over) this.tick();
      this.running = false;
      session.over = true;
      unfinished.write(session);
      const heading = make("h3", { textContent: words.summary, tabIndex: -1, className: "mock-summary" });
      const parts = [];
      for (const rating of [...RATINGS].reverse()) {
        const rated = session.rated.filter((entry) => entry.rating === rating);
        if (!rated.length) continue;
        const entries = rated.map(({ question }) => this.entry(question, rating !== "known"));
        parts.push(make("h4", { textContent: words.count(words[rating], rated.length) }), make("ul", {}, ...entries));
      }
      const missed = session.rated.filter((entry) => entry.rating !== "known").map((entry) => entry.question);
      const outcome = session.rated.length ? words.outcome(session.rated.length, clock(session.spent)) : words.nothing;
      this.show(
        heading,
        make("p", { textContent: outcome }),
        ...parts,
        make(
          "div",
          { className: "mock-buttons" },
          ...(missed.length ? [button(words.again, () => this.begin(shuffled(missed), session.limit, session.follow), "mock-main")] : []),
          ...(session.rated.length ? [button(words.print, () => window.print())] : []),
          button(words.anew, () => {
            this.set_up();
            this.querySelector("input").focus();
          }),
        ),
        make("p", { className: "mock-note", textContent: marks.kept ? words.kept : words.unkept }),
      );
      heading.focus();
    }

    // A question in the summary, with what was written; on paper with our short answers.
    entry(question, answered) {
      const link = question.link.cloneNode();
      link.append(...inside(question.block));
      const [short] = question.block.querySelectorAll(":scope > section");
      const follow_up = question.block.querySelector("details").cloneNode(true);
      const written = (this.session.said[question.id] ?? [])
        .slice(0, 2)
        .map((said) => said && make("p", { className: "mock-said", textContent: this.words.wrote + said }));
      const paper = (...children) => make("div", { className: "mock-paper" }, ...(answered ? children : []));
      return make(
        "li",
        {},
        link,
        written[0] || "",
        paper(short.cloneNode(true), make("p", {}, make("strong", {}, ...inside(follow_up)))),
        written[1] || "",
        paper(...follow_up.querySelectorAll(":scope > :not(summary)")),
      );
    }
  }

  customElements.define("mock-interview", MockInterview);
}
