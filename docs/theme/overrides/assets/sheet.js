// <sheet-buttons>: hides the answers of the .sheet on the page, each behind a button of
// its own, and prints it. Paper always has them: only the screen's rules hide. Without
// scripts all is shown, and the browser's own menu prints.
if (!customElements.get("sheet-buttons")) {
  const WORDS = document.documentElement.lang.startsWith("zh")
    ? { print: "打印", hide: "隐藏答案", answer: (n) => `第 ${n} 题的答案` }
    : { print: "Print", hide: "Hide the answers", answer: (n) => `Answer ${n}` };

  const button = (text, click) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "md-button", textContent: text });
    made.addEventListener("click", () => click(made));
    return made;
  };
  const open = (item, is) => {
    item.toggleAttribute("data-open", is);
    item.querySelector(":scope > button").setAttribute("aria-expanded", is);
  };

  customElements.define(
    "sheet-buttons",
    class extends HTMLElement {
      connectedCallback() {
        const hide = button(WORDS.hide, () => this.hide(hide));
        hide.setAttribute("aria-pressed", false);
        this.replaceChildren(hide, button(WORDS.print, () => window.print()));
      }
      hide(switched) {
        const sheet = document.querySelector(".sheet");
        const hidden = sheet.toggleAttribute("data-hidden");
        switched.setAttribute("aria-pressed", hidden);
        sheet.querySelectorAll(":scope > ol > li").forEach((item, i) => {
          if (!item.querySelector(":scope > button")) {
            const show = () => open(item, !item.hasAttribute("data-open"));
            item.firstElementChild.after(button(WORDS.answer(i + 1), show));
          }
          open(item, false);
        });
      }
    },
  );
}
