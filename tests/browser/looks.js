// Two rules of axe, by far the dearest, depend on nothing but how an element looks: its
// colours and font, what is painted behind it and over it. Looks groups the elements of
// the page by that; ask() then has axe judge the first of each group wanted and, where
// it cannot judge that one, all the others.
(excluded) => {
  // Never serious, and the dearest of the other rules.
  const DEAR = { region: { enabled: false } };
  const [CONTRAST, LINKS] = ["color-contrast", "link-in-text-block"];
  const LINKED = "a[href], [role=link]";
  const CONTROLS = ["INPUT", "SELECT", "TEXTAREA", "OPTION"];
  const PICTURES = ["IMG", "svg", "CANVAS", "VIDEO", "OBJECT", ...CONTROLS];
  const BLOCK = /^(block|list-item|table|flex|grid|inline-block)|^table-/;
  const BEHIND = {
    backgroundColor: "rgba(0, 0, 0, 0)", backgroundImage: "none", opacity: "1",
    filter: "none", mixBlendMode: "normal", clip: "auto", clipPath: "none",
  };
  const FONT = [
    "color", "webkitTextFillColor", "fontSize", "fontWeight", "textShadow", "visibility",
  ];
  const LINK = [
    "display", "fontFamily", "fontStyle", "textDecoration", "outline", "borderTop",
    "borderBottom", "backgroundColor", "backgroundImage", ...FONT,
  ];

  const read = (style, names) => names.map((name) => style[name]).join();
  const painted = (style) => Object.entries(BEHIND)
    .filter(([name, usual]) => style[name] !== usual)
    .map(([name]) => `/${name}:${style[name]}`).join("");
  const pseudo = (e, which) => {
    const { content, width, height } = getComputedStyle(e, which);
    if (content === "none" || content === "normal") return 0;
    return parseFloat(width) * parseFloat(height) || 1;
  };
  const pseudos = (e) => pseudo(e, "::before") + pseudo(e, "::after");
  const veil = (e) => (known.get(e).veil ??=
    Math.max(pseudos(e), e === document.body ? 0 : veil(e.parentElement)));
  const textsOf = (e) => [...e.childNodes].filter(
    (node) => node.nodeType === Node.TEXT_NODE && node.data.trim());

  const unseen = ({ style, behind }) => style.visibility !== "visible" ||
    /\/(opacity:0|clip:rect[^/]*)(\/|$)/.test(behind);

  // Each element that is laid out, with what it and all around it paint; the painters.
  const known = new Map(), painters = [];
  const learn = (e, around) => {
    if (e.shadowRoot || e.tagName === "IFRAME") throw Error(`axe alone sees ${e.tagName}`);
    const style = getComputedStyle(e);
    if (style.display === "none") return;
    const own = painted(style);
    const here = {
      style,
      behind: around.behind + own,
      beneath: around.beneath,
      out: around.out || e.matches(excluded),
    };
    const paints = own.includes("/background") || PICTURES.includes(e.tagName);
    if (paints && !unseen(here)) {
      painters.push({ box: e.getBoundingClientRect(), behind: here.behind });
      here.beneath = [...around.beneath, painters.at(-1)];
    }
    known.set(e, here);
    if (!e.matches(".katex-html")) for (const child of e.children) learn(child, here);
  };
  learn(document.body, { behind: "", beneath: [], out: false });

  // What is painted over one of the element's boxes makes its look this page's own.
  const place = (e, texts) => {
    const { behind, beneath } = known.get(e);
    if (unseen(known.get(e))) return behind;
    const range = document.createRange();
    const boxes = texts.flatMap((text) => {
      range.selectNodeContents(text);
      return [...range.getClientRects()];
    });
    if (!texts.length) boxes.push(...e.getClientRects());
    const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 &&
      a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
    const meet = (a, b) => a.left < b.right - 1 && a.right > b.left + 1 &&
      a.top < b.bottom - 1 && a.bottom > b.top + 1;
    const whole = beneath.map(({ box }) => boxes.every((each) => inside(each, box)));
    const over = painters.flatMap((painter, number) => beneath.includes(painter) ||
      !boxes.some((each) => meet(each, painter.box)) ? [] : [number]);
    const { width, height } = e.getBoundingClientRect();
    const veiled = veil(e) > width * height / 4;
    return [over.length ? `!${over}` : "", behind, whole, veiled].join("|");
  };
  const lookOfText = (e) => {
    const texts = textsOf(e), said = texts.map((text) => text.data.trim()).join("");
    const plain = said.length > 1 && /[\p{L}\p{N}]/u.test(said);
    const kind = CONTROLS.includes(e.tagName) ? e.tagName : "";
    const held = e.closest("[disabled], [aria-disabled], label") !== null;
    return [place(e, texts), CONTRAST, read(known.get(e).style, FONT), kind, held, plain];
  };
  const lookOfLink = (e) => {
    const parts = [place(e, []), LINKS];
    for (let up = e, last = false; !last; up = up.parentElement) {
      const { style, behind } = known.get(up);
      last = up === document.body || (up !== e && BLOCK.test(style.display));
      parts.push(read(style, LINK), pseudos(up) > 0);
      if (!last) continue;
      const linked = [...up.querySelectorAll(LINKED)].map((link) => link.textContent);
      const words = (text) => text.replace(/\s/g, "").length;
      parts.push(behind, words(up.textContent) > words(linked.join("")));
    }
    return parts;
  };

  const groups = {};
  const put = (rule, e, look) =>
    ((groups[look.join("|")] ??= { rule, elements: [] }).elements.push(e));
  for (const [e, { out }] of known) {
    if (out) continue;
    if (textsOf(e).length || CONTROLS.includes(e.tagName)) put(CONTRAST, e, lookOfText(e));
    if (e.matches(LINKED)) put(LINKS, e, lookOfLink(e));
  }

  const mark = (rule) => `data-asked-${rule}`;
  axe.configure({
    rules: [CONTRAST, LINKS].map((id) => ({ id, selector: `[${mark(id)}]` })),
  });
  const VERDICTS = ["passes", "violations", "incomplete"];
  const found = [], verdicts = new Map();
  axe.addReporter("looks", (results, _, done) => {
    for (const result of results) {
      for (const { node } of (result.violations ?? []).slice(0, 3)) {
        found.push([result.impact, result.id, `${node.selector}`, node.source]);
      }
      for (const verdict of [CONTRAST, LINKS].includes(result.id) ? VERDICTS : []) {
        for (const { node } of result[verdict]) {
          verdicts.set(node.element, verdict);
        }
      }
    }
    done();
  });
  const run = async (keys, choose, context, options) => {
    const marked = keys.map((key) => groups[key])
      .flatMap(({ rule, elements }) => choose(elements).map((e) => [e, mark(rule)]));
    for (const [e, name] of marked) e.setAttribute(name, "");
    await axe.run(context, { reporter: "looks", preload: false, rules: DEAR, ...options });
    for (const [e, name] of marked) e.removeAttribute(name);
  };
  const judged = (e) => ["passes", "violations"].includes(verdicts.get(e));

  return {
    keys: Object.keys(groups),
    sizes: () => Object.values(groups).map(({ elements }) => elements.length),
    // [what was found, the verdicts on each look]; whole: also by all the other rules.
    ask: async ({ keys, context, whole, every }) => {
      const two = { runOnly: [CONTRAST, LINKS] };
      await run(keys, (all) => every ? all : all.slice(0, 1), context, whole ? {} : two);
      const rest = keys.filter((key) =>
        groups[key].elements.length > 1 && !judged(groups[key].elements[0]));
      if (rest.length && !every) await run(rest, (all) => all.slice(1), context, two);
      const said = keys.map((key) => [key, groups[key].elements.map((e) => verdicts.get(e))]);
      return [found, said];
    },
  };
}
