// A button that prints the sheet. Without scripts the browser's own menu does.
if (!customElements.get("print-button")) {
  customElements.define(
    "print-button",
    class extends HTMLElement {
      connectedCallback() {
        const zh = document.documentElement.lang.startsWith("zh");
        const button = document.createElement("button");
        button.type = "button";
        button.className = "md-button";
        button.textContent = zh ? "打印" : "Print";
        button.addEventListener("click", () => window.print());
        this.replaceChildren(button);
      }
    },
  );
}
