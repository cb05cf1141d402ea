"""A log of edits gives the same shapes whenever it is applied, and says what it cannot do."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import defgpa
from defgpa.edits import Action, Edit, EditLog, read_edits, read_log, write_edits, write_log
from defgpa.errors import FormatError, ShapeError


@pytest.fixture
def wings():
    return defgpa.datasets.load_wings()


def test_a_landmark_is_moved_to_the_given_digits(wings):
    target = (0.1 + 0.2, 1e-17)
    moved = defgpa.apply_edits(wings, [Edit("move", wings.names[2], (wings.landmarks[3],), target)])
    assert tuple(moved.points[2, 3]) == target
    untouched = np.ones(wings.visible.shape, bool)
    untouched[2, 3] = False
    np.testing.assert_array_equal(moved.points[untouched], wings.points[untouched])


def test_a_missing_landmark_can_be_placed_and_a_visible_one_set_missing(wings):
    name, (a, b) = wings.names[0], wings.landmarks[:2]
    hidden = defgpa.apply_edits(wings, [Edit("set missing", name, (a,))])
    assert not hidden.visible[0, 0]
    placed = defgpa.apply_edits(hidden, [Edit("move", name, (a,), to=(1.0, 2.0))])
    assert placed.points[0, 0].tolist() == [1.0, 2.0]
    swapped = defgpa.apply_edits(hidden, [Edit("swap", name, (a, b))])
    assert swapped.visible[0, :2].tolist() == [True, False]


def test_a_reflection_negates_the_first_coordinate_like_mirror(wings):
    reflected = defgpa.apply_edits(wings, [Edit("reflect", wings.names[1])])
    assert reflected == wings.mirror([wings.names[1]])


def test_each_edit_applies_to_the_result_of_those_before(wings):
    name, a = wings.names[0], wings.landmarks[0]
    edits = [Edit("move", name, (a,), to=(3.0, 4.0)), Edit("reflect", name)]
    assert defgpa.apply_edits(wings, edits).points[0, 0].tolist() == [-3.0, 4.0]
    assert defgpa.apply_edits(wings, edits[::-1]).points[0, 0].tolist() == [3.0, 4.0]


def test_excluded_specimens_and_landmarks_are_left_out_until_they_are_included(wings):
    edits = [
        Edit("exclude specimen", wings.names[0]),
        Edit("exclude specimen", wings.names[1]),
        Edit("exclude landmark", landmarks=(wings.landmarks[2],)),
        Edit("include specimen", wings.names[1]),
    ]
    edited = defgpa.apply_edits(wings, edits)
    assert edited.names == wings.names[1:]
    assert edited.landmarks == (*wings.landmarks[:2], *wings.landmarks[3:])
    assert len(edited.metadata["groups"]) == edited.n_shapes
    included = Edit("include landmark", landmarks=(wings.landmarks[2],))
    assert defgpa.apply_edits(wings, [*edits, included]).landmarks == wings.landmarks


def test_links_keep_their_landmarks_when_others_are_excluded(wings):
    def name_links(shapes):
        return {frozenset((shapes.landmarks[a], shapes.landmarks[b])) for a, b in shapes.links}

    gone = wings.landmarks[1]
    edited = defgpa.apply_edits(wings, [Edit("exclude landmark", landmarks=(gone,))])
    assert name_links(edited) == {link for link in name_links(wings) if gone not in link}
    assert name_links(edited)


def test_links_are_drawn_and_removed(wings):
    a, b = wings.links[0]
    first = (wings.landmarks[a], wings.landmarks[b])
    unlinked = defgpa.apply_edits(wings, [Edit("unlink", landmarks=first[::-1])])
    assert unlinked.links == wings.links[1:]
    assert defgpa.apply_edits(unlinked, [Edit("link", landmarks=first)]).links[-1] == (a, b)


def test_accepting_a_finding_changes_nothing(wings):
    accepted = Edit("accept", wings.names[0], finding="far-shape")
    assert defgpa.apply_edits(wings, [accepted]) == wings


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit("reflect", "moth"), r"Edit 2 \(reflect specimen 'moth'\).*no specimen called 'moth'"),
        (Edit("set missing", "moth", ("1",)), "no landmark called '1'"),
        (Edit("exclude landmark", landmarks=("ear",)), r"Edit 2 \(exclude landmark 'ear'\)"),
    ],
)
def test_an_edit_of_what_is_not_there_is_named(wings, edit, message):
    first = Edit("exclude specimen", wings.names[0])
    with pytest.raises(ShapeError, match=message):
        defgpa.apply_edits(wings, [first, edit])


def test_coordinates_of_another_dimension_are_refused(wings):
    edit = Edit("move", wings.names[0], (wings.landmarks[0],), to=(1.0, 2.0, 3.0))
    with pytest.raises(ShapeError, match="has 3 coordinates; the shapes have 2"):
        defgpa.apply_edits(wings, [edit])


def test_excluding_everything_is_refused(wings):
    with pytest.raises(ShapeError, match="exclude every specimen"):
        defgpa.apply_edits(wings, [Edit("exclude specimen", name) for name in wings.names])
    with pytest.raises(ShapeError, match="exclude every landmark"):
        defgpa.apply_edits(
            wings, [Edit("exclude landmark", landmarks=(label,)) for label in wings.landmarks]
        )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "polish"}, "must be one of 'move', 'set missing'.*got 'polish'"),
        ({"action": "move", "specimen": "a", "landmarks": ["1"]}, "2 or 3 finite coordinates"),
        (
            {"action": "move", "specimen": "a", "landmarks": ["1"], "to": [1, float("inf")]},
            "2 or 3 finite coordinates",
        ),
        ({"action": "reflect"}, "'reflect' must name a specimen; got None"),
        ({"action": "link", "specimen": "a", "landmarks": ["1", "2"]}, "concerns all specimens"),
        ({"action": "swap", "specimen": "a", "landmarks": ["1"]}, "takes 2 landmark labels"),
        ({"action": "swap", "specimen": "a", "landmarks": ["1", "1"]}, "two different landmarks"),
        ({"action": "reflect", "specimen": "a", "to": [1, 2]}, "takes no coordinates"),
        ({"action": "reflect", "specimen": "a", "colour": "red"}, "no field 'colour'"),
        ({"action": "reflect", "specimen": "a", "reason": 7}, "reason of the edit 'reflect'"),
        ({"specimen": "a"}, "an object with an 'action'"),
    ],
)
def test_a_malformed_edit_is_refused_with_what_is_wrong(fields, message):
    with pytest.raises(ShapeError, match=message):
        Edit.from_dict(fields)


finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
moves = st.builds(
    Edit,
    st.just("move"),
    text,
    st.tuples(text),
    to=st.tuples(finite, finite),
    finding=text,
    reason=text,
)
accepted = st.builds(Edit, st.just("accept"), text, st.lists(text, max_size=3).map(tuple))


@settings(max_examples=50, deadline=None)
@given(log=st.builds(EditLog, *[st.lists(moves | accepted, max_size=4).map(tuple)] * 2))
def test_a_log_is_read_as_it_was_written(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "edits.json"
    write_log(path, log)
    assert read_log(path) == log
    assert read_edits(path) == log.edits


def test_the_file_is_readable_one_line_an_edit(tmp_path):
    path = tmp_path / "edits.json"
    edits = (
        Edit("move", "Flügel 7", ("tip",), to=(1.5, 2.0), reason="slipped", time="2026-01-01"),
        Edit("exclude specimen", "b", time="2026-01-02"),
    )
    write_edits(path, edits)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(lines[4].rstrip(",")) == edits[0].to_dict()
    assert "Flügel 7" in lines[4]
    assert len(lines) == 8


def test_applying_a_file_gives_the_same_digits(wings, tmp_path):
    rng = np.random.default_rng(3)
    edits = [
        Edit("move", wings.names[i], (wings.landmarks[j],), to=rng.normal(size=2))
        for i, j in rng.integers(0, 5, size=(20, 2))
    ]
    path = tmp_path / "edits.json"
    write_edits(path, edits)
    assert defgpa.apply_edits(wings, path) == defgpa.apply_edits(wings, edits)


def test_a_name_that_is_no_unicode_survives(tmp_path):
    name = b"wing\xff".decode("utf-8", "surrogateescape")
    path = tmp_path / "edits.json"
    write_edits(path, [Edit("reflect", name)])
    assert read_edits(path)[0].specimen == name


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "edits.json, line 1: expected JSON"),
        ("[]", "no log of edits"),
        ('{"format": "defgpa edits", "version": 99, "edits": []}', "version 99.*newer defgpa"),
        ('{"format": "defgpa edits", "version": 1, "edits": {}}', "'edits' must be a list"),
        (
            '{"format": "defgpa edits", "version": 1, "edits": [{"action": "reflect"}]}',
            "edits.json, edit 1 of 'edits': .*must name a specimen",
        ),
    ],
)
def test_a_file_that_is_no_log_is_refused(tmp_path, content, message):
    path = tmp_path / "edits.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FormatError, match=message):
        read_edits(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"edits\.json cannot be read: No such file"):
        read_edits(tmp_path / "edits.json")


def test_an_edit_of_a_file_that_cannot_be_applied_names_the_file(wings, tmp_path):
    write_edits(tmp_path / "log.json", [Edit("reflect", "nobody")])
    with pytest.raises(ShapeError, match=r"log\.json: Edit 1 .* no specimen called 'nobody'"):
        defgpa.apply_edits(wings, tmp_path / "log.json")


def test_undo_and_redo_walk_the_whole_log_and_a_new_edit_forgets_the_undone():
    log = EditLog()
    for name in "abc":
        log = log.add(Edit("reflect", name))
    back = log.undo().undo().undo()
    assert (back.edits, len(back.undone)) == ((), 3)
    with pytest.raises(ShapeError, match="no edit to undo"):
        back.undo()
    assert back.redo().redo().redo() == log
    assert back.redo().add(Edit("reflect", "d")).undone == ()
    with pytest.raises(ShapeError, match="no edit to redo"):
        log.redo()


@pytest.mark.parametrize("action", list(Action))
def test_every_action_has_a_sentence(action):
    subjects = {
        Action.MOVE: ("s", ("a",)),
        Action.SET_MISSING: ("s", ("a",)),
        Action.SWAP: ("s", ("a", "b")),
        Action.LINK: (None, ("a", "b")),
        Action.UNLINK: (None, ("a", "b")),
        Action.EXCLUDE_LANDMARK: (None, ("a",)),
        Action.INCLUDE_LANDMARK: (None, ("a",)),
        Action.ACCEPT: ("s", ("a",)),
    }
    specimen, landmarks = subjects.get(action, ("s", ()))
    to = (1.0, 2.0) if action is Action.MOVE else None
    sentence = str(Edit(action, specimen, landmarks, to=to, reason="because"))
    assert sentence.endswith(": because")
    assert all(repr(word) in sentence for word in (*landmarks, specimen or landmarks[0]))
