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
const choose = () => {
  const bar = document.querySelector(".filter");
  if (bar?.onclick) return;
  const list = [...document.querySelectorAll(":is(.claim, .asked, .quiz):not(.quiz-list *)")];
  if (bar) {
    bar.onclick = ({ target: button }) => {
      if (button.matches(".all-answers")) openAll(list, button);
      else if (button !== bar) show(list, bar, button.value);
    };
  }
  unfold();
};
const show = (list, bar, chosen) => {
  for (const button of bar.querySelectorAll("[value]")) button.ariaPressed = button.value === chosen;
  for (const row of list) {
    const { verdict, level, in: lists = "" } = row.dataset;
    row.hidden = chosen && ![verdict, level, ...lists.split(" ")].includes(chosen);
  }
};
// Opens and closes the answers of a list; a follow-up's stays folded inside.
const openAll = (list, button) => {
  button.ariaPressed = button.ariaPressed === "false";
  for (const row of list) row.querySelector("details").open = button.ariaPressed === "true";
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

// Code is copied with what it needs of earlier blocks and pages, so that it runs where it
// is pasted: by a block's button, by selecting a whole block, and a page's as one program.
// The programs come when a reader reaches for code: as a script, which pages opened as
// files may load too.
const CODE = ".language-python.highlight";
const says = zh
  ? {
      how: (lines) => `复制 ${lines} 行，包括它用到的代码`,
      block: (lines) => `已复制 ${lines} 行：这段代码，连同它用到的代码`,
      page: (lines) => `已复制 ${lines} 行：本页的全部代码，一个程序`,
      alone: "只复制了这段代码：它用到的代码没能加载",
      see: "# 这段代码用到的其他代码没能加载，见",
      nothing: "没能加载，什么也没有复制",
    }
  : {
      how: (lines) => `Copy ${lines} lines: this with the code that it uses`,
      block: (lines) => `Copied ${lines} lines: this block with the code that it uses`,
      page: (lines) => `Copied ${lines} lines: the code of this page as one program`,
      alone: "Copied this block alone: the code that it uses did not load",
      see: "# The code that this uses did not load, see",
      nothing: "Nothing was copied: it did not load",
    };
const shownIn = (block) => block.querySelector("code").textContent.trim() + "\n";
const linesOf = (text) => text.split("\n").length - 1;
const programs = (holder) =>
  (holder.programs ??= new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { src: holder.dataset.programs });
    const heard = ({ detail }) => document.currentScript === script && resolve((holder.loaded = detail));
    addEventListener("programs", heard);
    script.addEventListener("load", () => removeEventListener("programs", heard));
    script.addEventListener("error", reject);
    document.head.append(script);
  }));
const program = ({ cells, blocks, page }, block) => {
  const parts = block ? blocks[[...document.querySelectorAll(CODE)].indexOf(block)] : page;
  return parts.map((part) => cells[part] ?? part).filter(Boolean).join("\n\n\n") + "\n";
};
const reached = (event) => {
  const block = event.target.closest?.(CODE);
  const button = event.target.closest?.(`${CODE} [data-md-type=copy], button[data-programs]`);
  const holder = document.querySelector("[data-programs]");
  if (!holder || !(block || button) || button?.dataset.clipboardText) return;
  if (!button) return event.type === "pointerdown" && programs(holder).catch(() => {});
  const text = programs(holder).then((found) => program(found, block));
  const filled = text.then((code) => {
    button.dataset.clipboardText = code;
    if (block && linesOf(code) === linesOf(shownIn(block))) return code;
    button.dataset.says = says[block ? "block" : "page"](linesOf(code));
    if (block) button.title = says.how(linesOf(code));
    return code;
  });
  if (event.type === "click") late(event, button, block, filled);
  else filled.catch(() => {});
};
// Clicked before the text is there. A browser takes a promise of it, so that the click
// still counts when it comes; one that takes none, as at plain http, is clicked again.
const late = (event, button, block, filled) => {
  event.stopImmediatePropagation();
  const given = filled.catch((error) => {
    if (!block) throw error;
    button.dataset.says = says.alone;
    return (button.dataset.clipboardText = `${says.see} ${location.href}\n${shownIn(block)}`);
  });
  const blob = given.then((code) => new Blob([code], { type: "text/plain" }));
  const again = () => given.then(() => button.click(), () => alert$.next(says.nothing));
  if (!navigator.clipboard?.write || !window.ClipboardItem) return again();
  const done = () => alert$.next(button.dataset.says ?? says.block(linesOf(button.dataset.clipboardText)));
  navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]).then(done, again);
};
for (const type of ["pointerover", "pointerdown", "focusin", "click"]) {
  document.addEventListener(type, reached, true);
}
// The theme says that something was copied; after it, this says what.
addEventListener("click", (event) => {
  const said = event.target.closest?.("[data-clipboard-text][data-says]")?.dataset.says;
  if (said) alert$.next(said);
});
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  const around = selection.rangeCount ? selection.getRangeAt(0).commonAncestorContainer : null;
  const block = (around?.closest ? around : around?.parentElement)?.closest(CODE);
  const found = document.querySelector("[data-programs]")?.loaded;
  const bare = (text) => text.replace(/\s+/g, "");
  if (!block || !found || bare(selection.toString()) !== bare(shownIn(block))) return;
  const code = program(found, block);
  event.clipboardData.setData("text/plain", code);
  event.preventDefault();
  alert$.next(says.block(linesOf(code)));
});
