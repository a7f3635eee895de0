// Two rows of the model atlas against each other. The first half is pure functions of
// the data that the build makes (scripts/site/atlas/compare.py), and runs in the build
// as well; the second is the element that asks for two rows and shows the answer.
globalThis.atlasCompare ??= (() => {
  const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, key) => values[key]);
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
  const TENSORS = ["q", "k", "v", "qk", "kv", "latent-q", "latent-kv", "indexer-k"];
  const QK = ["q", "k", "qk", "kv"];
  const SIDE = /(?<=-)(in|out|sum)$/; // of a branch
  const SIDES = ["scope", "rope"];

  // {field: code} of the norm at a place, with its name in the block.
  const part = (data, row, place) => {
    const [name, form, scope, rope] = row.parts[place];
    const fields = data.fields.map((field, i) => [field, data.forms[form][i]]);
    return { name, ...Object.fromEntries(fields), scope, rope };
  };
  // A module's path in the block, where the drawing has it; its name elsewhere.
  const path = (data, row, place) =>
    Object.keys(row.boxes).find((label) => row.boxes[label] === place && label.includes(".")) ?? part(data, row, place).name;
  const worded = (words, field, code) => words.values[field]?.[code] ?? code;
  // Where a place is, in words: what mixes positions need not be attention.
  const where = ({ words }, row, place) => {
    const [site, name] = place.split(" ");
    return words.places[row.mixer ? site.replace("attention", "mixer") : site] || named(name);
  };
  const named = (name) => (name ? `\`${name}\`` : "");

  // A row by "name" or "name:layer"; a line that says what is wrong with the text.
  const find = (data, text) => {
    const [name, layer] = text.split(/:(.*)/s);
    const rows = data.rows.filter((row) => row.name === name);
    if (!rows.length) return { line: fill(data.words.unknown, { name }) };
    const most = Math.max(...rows.map((row) => row.indices.length));
    const row = layer === undefined ? rows.find((row) => row.indices.length === most) : rows.find((row) => row.layers.includes(layer));
    if (row) return { row };
    const layers = rows.flatMap((row) => row.layers).filter(Boolean).join(data.words.comma);
    return { line: fill(data.words[layers ? "unknown_layer" : "no_layers"], { name, layer, layers }) };
  };

  // What a norm is and where, in words: `q_norm` (q: RMSNorm, per head, before RoPE).
  const described = (data, row, place) => {
    const { words } = data;
    const found = part(data, row, place);
    const [site] = place.split(" ");
    if (site === "other") return named(found.name);
    const says = [where(data, row, place)];
    if (TENSORS.includes(site)) {
      const side = SIDES.filter((field) => found[field] !== "none").map((field) => worded(words, field, found[field]));
      says.push([found.kind, ...side].filter(Boolean).join(words.and));
    }
    const said = says.join(words.colon);
    const name = path(data, row, place);
    return name ? named(name) + fill(words.brackets, { said }) : said;
  };

  // Names that the two give the same place, and places that they give the same name.
  const names = (data, a, b) => {
    const renamed = new Map(), traps = [];
    for (const place of Object.keys(b.parts)) {
      const theirs = path(data, b, place);
      const ours = a.parts[place] && path(data, a, place);
      if (theirs && ours && theirs !== ours) renamed.set(place, [theirs, ours]);
    }
    const block = (row) => Object.keys(row.parts).filter((place) => SIDE.test(place));
    const places = (row, name) => block(row).filter((place) => part(data, row, place).name === name);
    for (const name of new Set(block(a).map((place) => part(data, a, place).name))) {
      const [here, there] = [places(a, name), places(b, name)];
      if (name && there.length && !here.some((place) => there.includes(place))) traps.push([name, here[0], there[0]]);
    }
    return { renamed: [...renamed], traps };
  };

  function compare(data, a, b) {
    const { words } = data;
    const differences = [], steps = [], marks = [{}, {}];
    const rows = [a, b];
    const between = { a: a.name, b: b.name };
    const change = (label, from, to, said) =>
      differences.push(`${label}${words.colon}${from} → ${to}${said ? fill(words.brackets, { said }) : ""}`);
    // `sides` say which change it is: bugs and measurements hold for one, not its reverse.
    const step = (id, values, sides = [], measured = true) => {
      const { text, bugs, wrong, ...rest } = data.steps[id];
      const at = (by) => [...sides, ""].map((side) => by?.[side]).find(Boolean);
      const found = { id, text: fill(text, { ...between, ...values }), ...rest, bugs: at(bugs) ?? [], wrong: measured ? at(wrong) : undefined };
      if (!steps.some((other) => other.text === found.text)) steps.push(found);
    };
    const list = (items) => items.join(words.comma) || words.none;

    const lists = (field) => {
      if (same(a[field], b[field])) return false;
      change(words.labels[field], list(a[field].map(named)), list(b[field].map(named)));
      return true;
    };
    if (lists("branches")) step("branches");
    const only = rows.map((row, i) => Object.keys(row.parts).filter((place) => !(place in rows[1 - i].parts)));
    if (a.placement !== b.placement) {
      const said = rows.map((row) => worded(words, "placement", row.placement));
      change(words.labels.placement, ...said);
      if (rows.some((row) => row.placement === "multi-stream")) step("streams");
      else if (!only.flat().length) step("placement", { to: said[1] }, [b.placement]);
    }

    // Norms that only one of them has.
    only.forEach((places, i) => {
      if (!places.length) return;
      const said = places.map((place) => described(data, rows[i], place));
      differences.push(fill(words.only, { name: rows[i].name }) + words.colon + list(said));
      const groups = {};
      places.forEach((place, j) => {
        const [site] = place.split(" ");
        const { scope, rope } = part(data, rows[i], place);
        const group = QK.includes(site) ? `tensors ${scope} ${rope}` : TENSORS.includes(site) ? "inside"
          : site === "final" ? site : site.match(SIDE)?.[0] ?? "other";
        (groups[group] ??= []).push(said[j]);
      });
      for (const [group, norms] of Object.entries(groups)) {
        const [what, scope, rope] = group.split(" ");
        // Measured were both branches' norms, and those of q and k together.
        const sides = scope ? [`${scope} ${rope}`, scope] : [what];
        step(`${i ? "add" : "drop"}_${SIDE.test(`-${what}`) ? "norm" : what}`, { norms: list(norms) }, sides, what === "final" || norms.length > 1);
      }
    });

    // The form of the main norm, then of others where the change is another one.
    const main = rows.map((row) => data.main.find((place) => place in row.parts));
    const ours = main.map((place, i) => place && part(data, rows[i], place));
    const shared = Object.keys(a.parts).filter((place) => place in b.parts);
    const changes = (field) => {
      const groups = new Map();
      const note = (from, to, place) => {
        if (from === to || from === "" || to === "") return;
        const key = JSON.stringify([from, to]);
        groups.set(key, [...(groups.get(key) ?? []), place]);
      };
      if (ours[0] && ours[1] && !SIDES.includes(field)) note(ours[0][field], ours[1][field], "");
      for (const place of shared) note(part(data, a, place)[field], part(data, b, place)[field], place);
      return [...groups].map(([key, places]) => [...JSON.parse(key), places]);
    };
    for (const field of [...data.fields, ...SIDES]) {
      for (const [from, to, places] of changes(field)) {
        const said = [from, to].map((code) => worded(words, field, code));
        change(words.labels[field], ...said, places.includes("") ? "" : list(places.map((place) => where(data, b, place))));
        const id = [`${field} ${from} ${to}`, `${field} ${from} *`, `${field} * ${to}`, field];
        // What a norm of another kind has none of goes with the old kind.
        const kinds = (place) => rows.map((row, i) => part(data, row, place || main[i]).kind);
        if (["gain none", "bias no"].includes(`${field} ${to}`) && places.every((place) => !same(...kinds(place)))) continue;
        const all = SIDES.includes(field) || places.includes("");
        step(id.find((id) => id in data.steps), { from: said[0], to: said[1] }, [`${from} → ${to}`, `* → ${to}`], all);
      }
    }
    for (const field of ["factors", "multipliers", "caps", "functional"]) {
      if (!lists(field)) continue;
      const gone = a[field].filter((one) => !b[field].includes(one));
      const come = b[field].filter((one) => !a[field].includes(one));
      const stream = come.some((one) => /·[xa]$/.test(one)) ? ["stream"] : [];
      if (come.length) step(`add_${field}`, { what: list(come.map(named)) }, stream);
      if (gone.length) step(`drop_${field}`, { what: list(gone.map(named)) });
    }
    if (a.overflow !== b.overflow) {
      change(words.labels.overflow, ...rows.map((row) => words.values.overflow[row.overflow]));
      step("overflow");
    }
    const { renamed, traps } = names(data, a, b);
    for (const [name, here, there] of traps) {
      const values = { name: named(name), here: where(data, a, here), there: where(data, b, there) };
      differences.push(fill(words.trap, { ...between, ...values }));
      const branch = [here, there].map((place) => place.replace(SIDE, ""));
      step("trap", values, same(...branch) ? there.match(SIDE) : []);
    }
    if (renamed.length) {
      const said = renamed.map(([place, [theirs, ours]]) =>
        `${named(theirs)} → ${named(ours)}${fill(words.brackets, { said: where(data, b, place) })}`);
      step("rename", { names: list(said) });
    }

    // What the drawings mark: boxes that only one has, norms of another form, factors.
    rows.forEach((row, i) => {
      const other = rows[1 - i];
      for (const [label, place] of Object.entries(row.boxes)) {
        if (!(place in other.parts)) marks[i][label] = "only";
        else {
          const forms = rows.map((each) => ({ ...part(data, each, place), name: "" }));
          if (!same(...forms)) marks[i][label] = "differs";
        }
      }
      for (const name of row.branches) if (!other.branches.includes(name)) marks[i][name] = "only";
      const factor = (said) => `×${said.split("·")[0]}`;
      for (const said of row.factors) if (!other.factors.includes(said)) marks[i][factor(said)] = "only";
    });
    return { differences, steps, marks };
  }

  // The answer to "llama,gemma3_text": what differs, or one line that says why not.
  function pair(data, text) {
    const { words } = data;
    const asked = text.split(",");
    if (asked.length !== 2 || asked.includes("")) return { line: words.form_of_address };
    const found = asked.map((one) => find(data, one));
    const wrong = found.find(({ line }) => line);
    if (wrong) return wrong;
    const rows = found.map(({ row }) => row);
    const reason = (row) => fill(words[row.status], row);
    const unresolved = rows.find((row) => row.status === "unresolved");
    if (unresolved) return { line: reason(unresolved) };
    if (rows[0] === rows[1]) return { rows, line: fill(words.twice, rows[0]) };
    const answer = compare(data, ...rows);
    const chosen = rows.filter((row, i) => row.kind && !asked[i].includes(":"));
    const kinds = chosen.map((row) => {
      const others = data.rows.filter((one) => one.name === row.name && one !== row).map(({ kind }) => kind);
      return fill(words.compared, { ...row, others: others.join(words.comma) });
    });
    const partial = rows.filter((row) => row.status === "partial").map(reason);
    const { length } = answer.differences;
    const count = fill(length ? words.count : words.nothing, { a: rows[0].name, b: rows[1].name, n: length });
    return { rows, line: [count, ...kinds, ...partial].join(words.space), ...answer };
  }
  return { pair };
})();

if (globalThis.customElements && !customElements.get("model-compare")) {
  const SOURCE = new URL("atlas-compare.js", document.currentScript.src).href;
  const START = "#compare=";
  let loading;
  const load = () =>
    (loading ??= new Promise((resolve, reject) => {
      addEventListener("atlas-compare", (event) => resolve(event.detail), { once: true });
      const script = Object.assign(document.createElement("script"), { src: SOURCE });
      script.addEventListener("error", () => ((loading = undefined), script.remove(), reject()));
      document.head.append(script);
    }));

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  // `names` as code.
  const written = (text) => text.split("`").map((piece, i) => (i % 2 ? make("code", { textContent: piece }) : piece));

  class ModelCompare extends HTMLElement {
    connectedCallback() {
      this.words = JSON.parse(this.dataset.words);
      this.replaceChildren();
      this.form = make("form", { ariaLabel: this.words.form });
      const names = [...new Set([...document.querySelectorAll("table.atlas tbody th a")].map((a) => a.textContent))];
      this.rows = ["a", "b"].map((side) => {
        const row = this.field(this.words[side], side);
        row.append(new Option(this.words.choose, ""), ...names.map((name) => new Option(name, name)));
        const layer = this.field(this.words.layer, `${side}_layer`);
        layer.parentElement.hidden = true;
        row.addEventListener("change", () => ((layer.value = ""), this.choose()));
        layer.addEventListener("change", () => this.choose());
        return { row, layer };
      });
      const swap = make("button", { type: "button", textContent: this.words.swap });
      swap.addEventListener("click", () => {
        const [a, b] = this.rows.map((one) => this.text(one));
        if (a && b) this.go(`${b},${a}`);
      });
      this.form.append(swap);
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.line = make("p", { className: "line", role: "status" });
      this.answer = make("div", { className: "answer" });
      this.append(this.form, this.line, this.answer);
      this.listen = () => this.follow();
      addEventListener("hashchange", this.listen);
      addEventListener("popstate", this.listen);
      this.shown = undefined;
      this.follow();
    }

    disconnectedCallback() {
      removeEventListener("hashchange", this.listen);
      removeEventListener("popstate", this.listen);
    }

    field(label, name) {
      const select = make("select", { name });
      this.form.append(make("label", {}, make("span", { textContent: label }), select));
      return select;
    }

    text({ row, layer }) {
      return row.value && layer.value ? `${row.value}:${layer.value}` : row.value;
    }

    choose() {
      const [a, b] = this.rows.map((one) => this.text(one));
      if (a && b) this.go(`${a},${b}`);
    }

    // The pair goes to the address, so that it can be sent, and back leads out of it. A
    // name typed letter by letter is one entry. (location.hash = ... would take the focus.)
    go(pair) {
      const hash = START + pair.split(",").map((one) => encodeURIComponent(one).replaceAll("%3A", ":")).join(",");
      const now = Date.now();
      history[now - this.went < 1000 ? "replaceState" : "pushState"](history.state, "", hash);
      this.went = now;
      this.follow();
    }

    follow() {
      if (!location.hash.startsWith(START)) {
        if (this.shown === undefined) return;
        this.show(); // what is below moves up, the place that the address names too
        document.getElementById(location.hash.slice(1))?.scrollIntoView();
        return;
      }
      const asked = location.hash.slice(START.length);
      if (asked === this.shown) return;
      const away = !this.form.contains(document.activeElement);
      this.shown = asked;
      let text = asked;
      try {
        text = decodeURIComponent(asked);
      } catch {} // a stray % is part of an unknown name
      if (!this.arrived) this.line.textContent = this.words.loading;
      load().then(
        (data) => {
          this.arrived = true;
          if (this.shown !== asked || !this.isConnected) return;
          this.show(data, atlasCompare.pair(data, text));
          if (away) this.scrollIntoView();
        },
        () => ((this.shown = undefined), (this.line.textContent = this.words.failed)),
      );
    }

    show(data, found) {
      this.answer.replaceChildren();
      this.line.replaceChildren(...written(found?.line ?? ""));
      if (!found) this.shown = undefined;
      this.rows.forEach((one, i) => this.set(one, data, found?.rows?.[i]));
      if (!found?.differences) return;
      const { words } = data;
      const [a, b] = found.rows;
      this.answer.append(
        make("div", { className: "pair" }, ...found.rows.map((row, i) => this.block(data, row, found.marks[i]))),
      );
      if (found.marks.some((marks) => Object.keys(marks).length)) {
        this.answer.append(make("p", { className: "legend", textContent: words.legend }));
      }
      if (!found.differences.length) return;
      const item = (text) => make("li", {}, ...written(text));
      this.answer.append(
        make("h3", { textContent: words.differences }),
        make("ul", {}, ...found.differences.map(item)),
        make("h3", {}, ...written(words.checklist.replace("{a}", a.name).replace("{b}", b.name))),
        make("ol", {}, ...found.steps.map((step) => this.step(words, step, item))),
        make("p", { className: "legend", textContent: words.not_compared }),
      );
    }

    // The selects show the pair of the address; layers only where there are several.
    set({ row, layer }, data, found) {
      if (!found) return;
      row.value = found.name;
      const kinds = data.rows.filter((one) => one.name === found.name);
      layer.replaceChildren(...kinds.map((one) => new Option(one.kind, one.layers[0])));
      layer.value = found.layers[0];
      layer.parentElement.hidden = kinds.length < 2;
    }

    block(data, row, marks) {
      const { words } = data;
      const name = make("a", { href: row.href, textContent: row.name });
      const caption = make("figcaption", {}, name, row.kind ? ` ${row.kind}` : "");
      const lines = row.equations.flatMap((line, i) => [...(i ? [make("br")] : []), make("code", { textContent: line })]);
      const equations = make("p", { className: "equations" }, ...lines);
      if (row.drawing === null) return make("figure", {}, caption, equations);
      const svg = document.importNode(
        new DOMParser().parseFromString(data.drawings[row.drawing].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" '), "image/svg+xml").documentElement,
        true,
      );
      const marked = [];
      for (const text of svg.querySelectorAll("text")) {
        const mark = marks[text.textContent];
        if (!mark) continue;
        marked.push(`${text.textContent}${words.colon}${words.marks[mark]}`);
        const box = text.previousElementSibling;
        if (box?.localName === "rect") this.badge(box, text, mark);
        else text.classList.add(mark);
      }
      const label = [`${row.name}${words.colon}${row.equations.join("; ")}`, ...marked];
      svg.setAttribute("aria-label", label.join(words.semicolon));
      return make("figure", {}, caption, svg, equations);
    }

    // Beside the border, a sign at the corner: not by colour alone.
    badge(box, text, mark) {
      box.classList.add(mark);
      const of = (key) => Number(box.getAttribute(key));
      const draw = (tag, attributes) => {
        const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
        for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
        return element;
      };
      const [cx, cy] = [of("x") + of("width"), of("y")];
      const sign = draw("text", { class: "sign", x: cx, y: cy + 4, "text-anchor": "middle" });
      sign.textContent = mark === "only" ? "+" : "≠";
      text.after(draw("circle", { class: "sign", cx, cy, r: 7 }), sign);
    }

    step(words, step, item) {
      const line = item(step.text);
      const notes = [];
      if (step.bugs?.length) {
        const links = step.bugs.flatMap(([bug, href], i) => [...(i ? [words.comma] : []), make("a", { href, textContent: bug })]);
        notes.push([words.bug, ...links]);
      }
      if (step.wrong) {
        const [name, error, moved, href] = step.wrong;
        const [before, after] = words.wrong.replace("{error}", error).replace("{moved}", moved).split("`{name}`");
        notes.push([before, make("a", { href, textContent: name }), after]);
      }
      if (step.more) notes.push([make("a", { href: step.more, textContent: words.more })]);
      for (const note of notes) line.append(make("br"), make("small", {}, ...note));
      if (step.code) {
        const code = make("pre", { tabIndex: 0 }, make("code", { textContent: step.code }));
        line.append(make("details", {}, make("summary", { textContent: words.code }), code));
      }
      return line;
    }
  }
  customElements.define("model-compare", ModelCompare);
}
