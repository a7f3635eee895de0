// The little that pages need beyond the theme.
const zh = document.documentElement.lang.startsWith("zh");

// Names for what the theme builds without one: the buttons of code annotations.
const name = () => {
  for (const link of document.querySelectorAll(".md-annotation__index:not([aria-label])")) {
    const number = link.firstElementChild?.dataset.mdAnnotationId ?? "";
    link.setAttribute("aria-label", (zh ? "注释 " : "Note ") + number);
  }
};
new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
name();

// What an address holds after # may be a state of the page, not a place: #compare=a,b
const stateful = (hash) => hash.includes("=");

// The language switch: instant navigation changes the page but not the header, so
// the twin is that of the page in view, and of the section in view.
const select = document.querySelector(".md-select[data-root]");
const root = new URL(select.dataset.root, location.href).href;
for (const link of select.querySelectorAll("a[hreflang]")) {
  link.addEventListener("click", () => {
    // After instant navigation the address may still hold an anchor of the old page.
    const here = stateful(location.hash) || document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const rest = location.href.slice(root.length).split("#")[0] + (here ? location.hash : "");
    link.href = new URL(`../${link.hreflang}/${rest}`, root).href;
  });
}

// The theme notes place and section in view soon after a scroll. Where a link was followed
// meanwhile, these are of the page that is left: the link's own stay. So does a state.
let shown = location.pathname;
document$.subscribe(() => (shown = location.pathname));
const { replaceState } = history;
history.replaceState = (state, unused, url) => {
  const { pathname, hash } = new URL(url ?? "", location.href);
  const there = !hash || stateful(hash) || document.getElementById(decodeURIComponent(hash.slice(1)));
  const kept = url && stateful(location.hash) && !stateful(hash);
  if (pathname === shown && there && !kept) replaceState.call(history, state, unused, url);
};

// The search listens to keys going up; pasted text and some input methods send none.
document.querySelector("[data-md-component=search-query]").addEventListener("input", (event) => {
  if (!event.isComposing) event.target.dispatchEvent(new Event("keyup"));
});

// The closed drawer of a narrow window is out of sight, and out of Tab's way. Instant
// navigation brings a new one.
const drawer = document.getElementById("__drawer");
const wide = matchMedia("(min-width: 76.25em)");
const tuck = () => {
  const panel = document.querySelector(".md-sidebar--primary");
  if (panel) panel.inert = !wide.matches && !drawer.checked;
};
drawer.addEventListener("change", tuck);
wide.addEventListener("change", tuck);
new MutationObserver(tuck).observe(document.body, { childList: true, subtree: true });
tuck();

// Lists with buttons to choose from: the ledger by verdict, interview questions and
// quiz items by level, questions also by having been asked in public lists. Without
// scripts all of a list is shown.
const LISTS = [
  { rows: ".claim", by: "verdict", label: zh ? "按结论筛选" : "Filter by verdict" },
  { rows: ".asked, .quiz:not(.quiz-list *)", by: "level", label: zh ? "按级别筛选" : "Filter by level" },
];
const choose = () => {
  if (document.querySelector(".filter")) return;
  for (const { rows, by, label } of LISTS) {
    const list = [...document.querySelectorAll(rows)];
    const place = document.querySelector("quiz-paper") ?? list[0];
    if (list.length) place.before(filter(list, by, label));
  }
  unfold();
};
const filter = (list, by, label) => {
  const bar = document.createElement("div");
  bar.className = "filter";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", label);
  const choices = [];
  const show = (chosen) => {
    for (const button of choices) button.setAttribute("aria-pressed", button.value === chosen);
    for (const row of list) row.hidden = chosen !== "" && row.dataset[by] !== chosen && !isPublic(row, chosen);
  };
  const add = (value, label, count) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value, textContent: `${label} ${count}` });
    button.addEventListener("click", () => show(value));
    choices.push(button);
  };
  add("", zh ? "全部" : "all", list.length);
  for (const value of new Set(list.map((row) => row.dataset[by]))) {
    const same = list.filter((row) => row.dataset[by] === value);
    add(value, same[0].querySelector("." + by).textContent, same.length);
  }
  const asked = list.filter((row) => isPublic(row, "public")).length;
  if (asked) add("public", zh ? "公开题单里问过" : "asked in public lists", asked);
  show("");
  bar.append(...choices);
  if (list[0].matches(".asked")) bar.append(opener(list));
  return bar;
};
const isPublic = (row, chosen) => chosen === "public" && row.dataset.in?.split(" ").includes(chosen);
// Opens and closes the answers of a list; a follow-up's stays folded inside.
const opener = (list) => {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", ariaPressed: "false", textContent: zh ? "展开全部答案" : "open all answers" });
  button.addEventListener("click", () => {
    const open = button.ariaPressed === "false";
    for (const row of list) row.querySelector("details").open = open;
    button.ariaPressed = open;
  });
  return button;
};
// A link from another page to a question opens its answer.
const unfold = () => {
  const named = document.getElementById(location.hash.slice(1));
  const answer = named?.closest(".asked, .quiz")?.querySelector("details");
  if (!answer || answer.open) return;
  answer.open = true;
  requestAnimationFrame(() => named.scrollIntoView()); // what opened may have moved it
};
// A link to a row that the filter hides shows all rows again.
const reveal = () => {
  if (document.getElementById(location.hash.slice(1))?.closest("[hidden]:is(.claim, .asked, .quiz)")) {
    document.querySelector(".filter button").click();
  }
};
// A link to something in a folded section opens the section.
let opened = "";
const open = () => {
  const named = document.getElementById(location.hash.slice(1));
  if (!named || opened === location.href) return;
  opened = location.href;
  const fold = named.closest("details.deeper:not([open])");
  if (!fold) return;
  fold.open = true;
  requestAnimationFrame(() => named.scrollIntoView());
};
window.addEventListener("hashchange", open);
new MutationObserver(open).observe(document.body, { childList: true, subtree: true });
open();
window.addEventListener("hashchange", reveal);
new MutationObserver(choose).observe(document.body, { childList: true, subtree: true });
choose();

// A block of code is copied with what it needs of earlier blocks and pages, so that it
// runs where it is pasted. The page's programs come when a button is reached for.
const CODE = ".language-python.highlight";
const programs = (link) =>
  (link.programs ??= new Promise((resolve, reject) => {
    addEventListener("programs", (event) => resolve(event.detail), { once: true });
    const script = Object.assign(document.createElement("script"), { src: link.dataset.programs });
    script.addEventListener("error", reject);
    document.head.append(script);
  }));
const fill = async (button, link) => {
  const { cells, blocks } = await programs(link);
  const at = [...document.querySelectorAll(CODE)].indexOf(button.closest(CODE));
  const parts = blocks[at].map((part) => cells[part] ?? part); // a cell or import lines
  button.dataset.clipboardText = parts.filter(Boolean).join("\n\n\n") + "\n";
};
const reached = (event) => {
  const button = event.target.closest?.(`${CODE} [data-clipboard-target]`);
  const link = document.querySelector("a[data-programs]");
  if (!button || !link || button.dataset.clipboardText) return;
  const filled = fill(button, link);
  if (event.type !== "click") return filled.catch(() => {});
  event.stopImmediatePropagation(); // until it is there
  filled.catch(() => link.removeAttribute("data-programs")).then(() => button.click());
};
for (const type of ["pointerover", "focusin", "click"]) {
  document.addEventListener(type, reached, true);
}
