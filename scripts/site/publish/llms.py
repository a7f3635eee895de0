"""llms.txt, llms-full.txt and a plain Markdown twin of every page.

For readers that are programs: code expanded, facts filled in, TeX untouched.
"""

from pathlib import Path

from scripts.site.pages import page_parts

LINE = "- [{title}]({url}): {description}"


def write(config) -> None:
    language, base = config.theme["language"], config.site_url or "/"
    site = Path(config.site_dir)
    lines, full = [], []
    for page in _pages(config):
        text = _markdown(Path(page.file.abs_src_path), language, base)
        target = site / Path(page.file.dest_uri).with_suffix(".md")
        target.write_text(text, encoding="utf-8")
        url = base + Path(page.file.dest_uri).with_suffix(".md").as_posix()
        description = page.meta.get("description", "")
        # A title says more than the navigation, which names the section above it.
        title = page.meta.get("title", page.title)
        lines.append(LINE.format(title=title, url=url, description=description))
        full.append(text)
    head = f"# {config.site_name}\n\n> {config.site_description}\n\n"
    (site / "llms.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(full), encoding="utf-8")


def _pages(config):
    nav = config.extra["nav_object"]
    return [
        page
        for page in nav.pages
        if page.file.src_uri.endswith(".md")
        and page.file.inclusion.is_included()
        # What the search leaves out repeats other pages.
        and not page.meta.get("search", {}).get("exclude")
    ]


def _markdown(path: Path, language: str, base: str) -> str:
    out = []
    for part in page_parts.once(path, language, base):
        if part.kind == "text":
            out.append(part.text)
        else:
            info = "python" if part.kind == "code" else "text"
            out.append(f"```{info}\n{part.text}\n```")
    return "\n\n".join(out) + "\n"
