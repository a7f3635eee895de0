"""What is up to date is not rendered, and not looked at twice."""

import os

import pytest

from scripts.site import render


def test_nothing_stale_renders_nothing_and_says_nothing(project):
    code = "from scripts.site import render; assert render.changed_only() == 0"
    done = project.run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_a_look_is_taken_again_only_after_a_change(monkeypatch, tmp_path):
    (source := tmp_path / "docs" / "a.svg").parent.mkdir()
    source.write_text("a")
    looks = []
    monkeypatch.setattr(render, "ROOT", tmp_path)
    monkeypatch.setattr(render, "KNOWN", tmp_path / ".cache" / "rendered")
    monkeypatch.setattr(render, "stale_only", lambda: looks.append(1) or len(looks))
    assert [render.changed_only() for _ in range(3)] == [1, 0, 0]
    os.utime(source, ns=(0, 1))
    assert [render.changed_only() for _ in range(2)] == [2, 0]
    (tmp_path / "docs" / "b.svg").write_text("b")
    assert render.changed_only() == 3
    source.unlink()
    assert [render.changed_only() for _ in range(2)] == [4, 0]

    def fails():
        raise render.RenderError("stale")

    source.write_text("a")
    monkeypatch.setattr(render, "stale_only", fails)
    for _ in range(2):
        with pytest.raises(render.RenderError):
            render.changed_only()


def test_changed_code_is_stale_and_a_comment_is_not(project):
    find = "from scripts.site import render; print(*render.stale(), sep='\\n')"
    path = project.root / "snippets/rms_norm/reference.py"
    project.append(path, "\n# only a comment\n")
    assert project.run("-c", find).stdout.strip() == ""
    project.append(path, "\nCHANGED = 1\n")
    stale = project.run("-c", find).stdout.split()
    # What imports it prints anew; what does not stays as it is.
    assert "snippets/rms_norm/torch_module.out" in stale
    assert "docs/figures/zh/labs/deep-stack.ipynb" in stale
    assert "snippets/rms_norm/worked_example.out" not in stale


def test_a_snippet_that_fails_is_named_and_its_output_kept(project):
    path = project.root / "snippets/rms_norm/worked_example.py"
    before = path.with_suffix(".out").read_text(encoding="utf-8")
    project.append(path, "\n1 / 0\n")
    done = project.run("scripts/build.py", "render")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("build.py: snippets/rms_norm/worked_example.py does not run")
    assert last.endswith("ZeroDivisionError: division by zero")
    assert path.with_suffix(".out").read_text(encoding="utf-8") == before
