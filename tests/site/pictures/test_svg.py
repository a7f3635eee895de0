"""A picture on a page: groups, ids, numbers and styles that it needs, and no more."""

from scripts.measure import svg


def test_groups_with_attributes_stay_and_others_go():
    deep = '<svg><g id="a"><g><g class="b"><path/></g></g></g><g></g></svg>'
    wanted = '<svg><g id="a"><g class="b"><path/></g></g></svg>'
    assert svg._without_idle_groups(deep) == wanted


def test_ids_that_nobody_refers_to_go_and_others_are_short():
    text = '<svg><g id="long"/><path id="mark"/><use href="#mark"/></svg>'
    found = svg._short_ids(text, "f1")
    assert found == '<svg><g/><path id="f1-0"/><use href="#f1-0"/></svg>'


def test_a_style_that_stands_often_becomes_a_class():
    style = 'style="fill:red"'
    twice = f"<svg><a {style}/><b {style}/></svg>"
    assert svg._classes(twice, "f1") == twice
    found = svg._classes(f"<svg><a {style}/><b {style}/><c {style}/></svg>", "f1")
    assert found == (
        '<svg><style>.f10{fill:red}</style><a class="f10"/><b class="f10"/>'
        '<c class="f10"/></svg>'
    )


def test_a_picture_has_a_name():
    found = svg.named("<svg><svg/></svg>", 'A < "B"')
    assert found == '<svg aria-label="A &lt; &quot;B&quot;"><svg/></svg>'
