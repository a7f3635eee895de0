// The model atlas: choose rows by what they have, sort them by a column. Without
// scripts the whole table stands there, in the order of names.
if (!customElements.get("model-atlas")) {
  const zh = document.documentElement.lang.startsWith("zh");
  const words = zh
    ? { all: "全部", name: "名称", shown: (n, of) => `显示 ${n} / ${of} 行`, filter: "筛选", reset: "清除" }
    : { all: "all", name: "Name", shown: (n, of) => `${n} of ${of} rows shown`, filter: "Filter", reset: "Clear" };

  class ModelAtlas extends HTMLElement {
    connectedCallback() {
      if (this.querySelector("form")) return;
      this.rows = [...this.querySelectorAll("tbody tr")];
      this.form = document.createElement("form");
      this.form.setAttribute("aria-label", words.filter);
      this.field(words.name, Object.assign(document.createElement("input"), { name: "name", type: "search", autocomplete: "off" }));
      for (const key of ["norm", "gain", "placement", "qk", "eps", "cast", "family"]) this.choice(key);
      const reset = Object.assign(document.createElement("button"), { type: "reset", textContent: words.reset });
      this.count = document.createElement("output");
      this.form.append(reset, this.count);
      this.form.addEventListener("input", () => this.show());
      this.form.addEventListener("reset", () => setTimeout(() => this.show()));
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.prepend(this.form);
      this.querySelectorAll("thead th").forEach((head, column) => this.sortable(head, column));
      this.show();
    }

    field(label, input) {
      const box = document.createElement("label");
      box.append(Object.assign(document.createElement("span"), { textContent: label }), input);
      this.form.append(box);
    }

    // A list of the values that the rows have, the commonest first, with their numbers.
    choice(key) {
      const select = Object.assign(document.createElement("select"), { name: key });
      select.append(new Option(words.all, ""));
      const counts = new Map();
      for (const row of this.rows) {
        const value = row.dataset[key];
        if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
      }
      const labels = JSON.parse(this.dataset.labels);
      const order = key === "family" ? ([a], [b]) => a.localeCompare(b) : ([, a], [, b]) => b - a;
      for (const [value, count] of [...counts].sort(order)) {
        select.append(new Option(`${labels[value] ?? value} (${count})`, value));
      }
      this.field(labels[`${key}:`], select);
    }

    show() {
      const chosen = [...new FormData(this.form)].filter(([, value]) => value);
      let shown = 0;
      for (const row of this.rows) {
        const name = row.cells[0].textContent.toLowerCase();
        row.hidden = !chosen.every(([key, value]) =>
          key === "name" ? name.includes(value.trim().toLowerCase()) : row.dataset[key] === value);
        shown += !row.hidden;
      }
      this.count.textContent = words.shown(shown, this.rows.length);
    }

    sortable(head, column) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
      head.replaceChildren(button);
      if (!column) head.ariaSort = "ascending";
      button.addEventListener("click", () => {
        const down = head.ariaSort === "ascending";
        for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
        head.ariaSort = down ? "descending" : "ascending";
        const text = (row) => row.cells[column].textContent;
        const order = (a, b) => text(a).localeCompare(text(b)) || a.rowIndex - b.rowIndex;
        this.rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
        this.querySelector("tbody").append(...this.rows);
      });
    }
  }
  customElements.define("model-atlas", ModelAtlas);
}
