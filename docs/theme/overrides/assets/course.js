// The course. Which chapters a reader has finished stays in this browser: <course-done>
// is the button at the end of a chapter, <course-progress> the line that counts, on the
// course's index with the chapter to go on with. Without scripts a chapter has its
// place in the course and its links, and nothing is kept.
if (!customElements.get("course-progress")) {
  const KEY = "norms-measured.course";
  const WORDS = document.documentElement.lang.startsWith("zh")
    ? {
        count: (done, all) => `已读 ${done}/${all} 章`,
        done: "这一章读完了",
        read: "已读",
        first: "从第一章开始",
        on: (title) => `接着读：${title}`,
      }
    : {
        count: (done, all) => `${done} of ${all} read`,
        done: "I have read this chapter",
        read: "read",
        first: "Begin with chapter one",
        on: (title) => `Go on: ${title}`,
      };

  // chapter -> true. Where the browser keeps nothing, it lasts until a reload.
  let finished = {};
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      finished = kept?.constructor === Object ? kept : {};
    } catch {}
  };
  const keep = () => {
    try {
      localStorage.setItem(KEY, JSON.stringify(finished));
    } catch {}
    refresh();
  };
  const refresh = () => {
    for (const part of document.querySelectorAll(":is(course-progress, course-done):defined")) part.show();
  };
  addEventListener("storage", ({ key }) => {
    if (key !== KEY && key !== null) return;
    read(); // what another tab has written
    refresh();
  });

  const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);
  const chapterOf = (link) => new URL(link.href).pathname.replace(/(\/index\.html|\/)$/, "").split("/").pop();

  customElements.define(
    "course-progress",
    class extends HTMLElement {
      connectedCallback() {
        read();
        this.count = make("span", { className: "course-count" });
        this.append(this.count);
        this.links = [...document.querySelectorAll(".course li > a:first-child")];
        if (this.links.length) this.next = this.appendChild(make("a", { className: "md-button" }));
        this.show();
      }

      show() {
        const done = Object.keys(finished).length;
        this.count.textContent = done || this.next ? WORDS.count(done, this.dataset.of) : "";
        if (!this.next) return;
        for (const link of this.links) {
          const is = Boolean(finished[chapterOf(link)]);
          link.parentElement.classList.toggle("done", is);
          link.parentElement.querySelector(".course-mark")?.remove();
          if (is) link.after(make("span", { className: "course-mark", textContent: ` ✓ ${WORDS.read}` }));
        }
        const open = this.links.find((link) => !finished[chapterOf(link)]);
        this.next.hidden = !open;
        if (!open) return;
        this.next.href = open.href;
        this.next.textContent = done ? WORDS.on(open.textContent) : WORDS.first;
      }
    },
  );

  customElements.define(
    "course-done",
    class extends HTMLElement {
      connectedCallback() {
        read();
        this.button = make("button", { type: "button", className: "md-button" });
        this.button.addEventListener("click", () => {
          read();
          const { chapter } = this.dataset;
          if (finished[chapter]) delete finished[chapter];
          else finished[chapter] = true;
          keep();
        });
        this.replaceChildren(this.button);
        this.show();
      }

      show() {
        const is = Boolean(finished[this.dataset.chapter]);
        this.button.setAttribute("aria-pressed", is);
        this.button.textContent = is ? `✓ ${WORDS.done}` : WORDS.done;
      }
    },
  );
}
