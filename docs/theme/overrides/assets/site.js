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

// The language switch: instant navigation changes the page but not the header, so
// the twin is that of the page in view, and of the section in view.
const select = document.querySelector(".md-select[data-root]");
const root = new URL(select.dataset.root, location.href).href;
for (const link of select.querySelectorAll("a[hreflang]")) {
  link.addEventListener("click", () => {
    const rest = location.href.slice(root.length);
    link.href = new URL(`../${link.hreflang}/${rest}`, root).href;
  });
}

// The search listens to keys going up; pasted text and some input methods send none.
document.querySelector("[data-md-component=search-query]").addEventListener("input", (event) => {
  if (!event.isComposing) event.target.dispatchEvent(new Event("keyup"));
});
