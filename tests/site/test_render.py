"""What is generated is up to date, and a second run renders nothing."""

from scripts.site import render
from scripts.site.reading import outputs


def test_second_run_renders_nothing(capsys):
    assert render.stale_only() == 0
    assert capsys.readouterr().out == ""


def test_lock_names_exactly_the_outputs():
    assert set(outputs.locked()) == {outputs.name(out) for out in outputs.files()}


def test_changed_code_is_stale_and_a_comment_is_not(project):
    find = "from scripts.site import render; print(*render.stale(), sep='\\n')"
    path = project.root / "snippets/rms_norm/reference.py"
    project.append(path, "\n# only a comment\n")
    assert project.run("-c", find).stdout.strip() == ""
    project.append(path, "\nCHANGED = 1\n")
    stale = project.run("-c", find).stdout.split()
    # What imports it prints anew; what does not stays as it is.
    assert "snippets/rms_norm/torch_module.out" in stale
    assert "docs/labs/deep_stack.py" in stale
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
