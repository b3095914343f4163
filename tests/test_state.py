"""States: copied, taken apart, written to disk and read back exactly."""

import json
import os
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import spillover as sp
from spillover.files import write_atomically
from spillover.state import Saved, leaves, map_leaves, save_arrays


class Inner(NamedTuple):
    weights: Any
    held: Any


class Outer(NamedTuple):
    rounds: Any
    graph: Any
    flags: Any


def example():
    awkward = np.array([[0.1, -0.0, np.inf], [-np.inf, np.nan, 5e-324]])
    return Outer(np.array(7), Inner(awkward, np.array([2**62 + 1, -3])), np.array([[True], [False]]))


def assert_same(one, other):
    """Equal bit for bit, types and shapes included."""
    ours, theirs = leaves(one), leaves(other)
    assert ours.keys() == theirs.keys()
    for name, leaf in ours.items():
        assert leaf.dtype == theirs[name].dtype
        assert leaf.shape == theirs[name].shape
        assert leaf.tobytes() == theirs[name].tobytes()


def test_leaves_have_dotted_names():
    assert list(leaves(example())) == ["rounds", "graph.weights", "graph.held", "flags"]


def test_a_copy_shares_nothing():
    state = example()
    copied = sp.state.copy_state(state)
    assert_same(state, copied)
    assert type(copied.graph) is Inner
    for name, leaf in leaves(copied).items():
        assert not np.shares_memory(leaf, leaves(state)[name])


def test_take_learner_takes_a_row_of_every_leaf():
    state = Inner(np.arange(6.0).reshape(3, 2), np.arange(3))
    one = sp.state.take_replication(state, 1)
    assert one.weights.tolist() == [2.0, 3.0]
    assert one.held == 1
    one.weights[0] = 9.0
    assert state.weights[1, 0] == 2.0
    assert sp.state.take_replication(Inner(np.zeros((2, 3, 4)), np.zeros((2, 3))), (1, 2)).weights.shape == (4,)


def test_save_and_load_are_exact(tmp_path):
    state = example()
    sp.state.save_state(tmp_path / "state.json", state)
    assert_same(sp.state.load_state(tmp_path / "state.json", like=map_leaves(np.zeros_like, state)), state)


@given(
    arrays.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.bool_]),
        arrays.array_shapes(min_dims=0, min_side=0, max_dims=3),
    )
)
def test_any_array_survives(tmp_path_factory, leaf):
    path = tmp_path_factory.mktemp("states") / "state.json"
    sp.state.save_state(path, Inner(leaf, np.array(0)))
    back = sp.state.load_state(path, Inner(np.zeros_like(leaf), np.array(0))).weights
    assert back.dtype == leaf.dtype
    assert back.shape == leaf.shape
    assert np.array_equal(back, leaf, equal_nan=leaf.dtype.kind == "f")


def test_named_arrays_survive_without_a_structure(tmp_path):
    given = leaves(example()) | {"empty": np.zeros((0, 3))}
    save_arrays(tmp_path / "arrays.json", given)
    back = Saved(tmp_path / "arrays.json").arrays
    assert back.keys() == given.keys()
    for name, leaf in given.items():
        assert (back[name].dtype, back[name].shape) == (leaf.dtype, leaf.shape)
        assert back[name].tobytes() == leaf.tobytes()


def test_the_file_is_plain_json_that_other_programs_can_read(tmp_path):
    sp.state.save_state(tmp_path / "state.json", example())

    def refuse(word):
        raise ValueError(word)

    content = json.loads((tmp_path / "state.json").read_text(), parse_constant=refuse)
    assert content["arrays"]["graph.weights"]["shape"] == [2, 3]
    assert content["arrays"]["graph.weights"]["values"][:3] == [0.1, -0.0, "inf"]


def test_a_learner_goes_on_from_its_file(tmp_path):
    policy, problem = sp.NDCSEM(), sp.Problem(n_arms=4, budget=2)
    state = policy.init(problem, sp.Rng(0))
    sp.state.save_state(tmp_path / "state.json", state)
    back = sp.state.load_state(tmp_path / "state.json", like=policy.init(problem, sp.Rng(1)))
    assert_same(back, state)


def test_another_policys_state_is_refused(tmp_path):
    sp.state.save_state(tmp_path / "state.json", example())
    with pytest.raises(ValueError, match=r"state\.json: fields = .*flags.*: must be .*weights.*as this policy's state"):
        sp.state.load_state(tmp_path / "state.json", like=Inner(np.array(0), np.array(0)))


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (Inner(np.zeros(3), np.array(0)), r"weights = float64 of shape \(2,\): must be float64 of shape \(3,\)"),
        (
            Inner(np.zeros(2, np.float32), np.array(0)),
            r"weights = float64 of shape \(2,\): must be float32 of shape \(2,\)",
        ),
    ],
)
def test_another_shape_or_type_is_refused(tmp_path, like, message):
    sp.state.save_state(tmp_path / "state.json", Inner(np.zeros(2), np.array(0)))
    with pytest.raises(ValueError, match=message):
        sp.state.load_state(tmp_path / "state.json", like)


def test_another_format_is_refused(tmp_path):
    (tmp_path / "state.json").write_text('{"format": 99, "arrays": {}}')
    with pytest.raises(ValueError, match=r"state\.json: format = 99: must be 3, this version's"):
        sp.state.load_state(tmp_path / "state.json", example())


@pytest.mark.parametrize("content", ["", "not json", "[1, 2]", '{"format": 1}'])
def test_a_file_that_holds_no_state_is_named(tmp_path, content):
    (tmp_path / "broken.json").write_text(content)
    with pytest.raises(ValueError, match=r"broken\.json"):
        sp.state.load_state(tmp_path / "broken.json", example())


def test_a_list_of_values_that_was_cut_short_is_named(tmp_path):
    path = tmp_path / "broken.json"
    sp.state.save_state(path, Inner(np.zeros(3), np.array(0)))
    path.write_text(path.read_text().replace("[0.0, 0.0, 0.0]", "[0.0, 0.0]"))
    with pytest.raises(ValueError, match=r"broken\.json"):
        sp.state.load_state(path, Inner(np.zeros(3), np.array(0)))


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        sp.state.load_state(tmp_path / "none.json", example())


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_in_mid_write_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "state.json"
    sp.state.save_state(path, example())
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, full_disk)
    with pytest.raises(OSError, match="no space left"):
        sp.state.save_state(path, Outer(np.array(8), *example()[1:]))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]


def test_an_interrupt_in_mid_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    path.write_bytes(b"old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "state.json"
    sp.state.save_state(path, example())
    before = path.read_bytes()
    with pytest.raises(ValueError, match="objects of Python cannot be saved"):
        sp.state.save_state(path, Inner(np.array([object()]), np.array(0)))
    assert path.read_bytes() == before


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        write_atomically(tmp_path / "none" / "file", b"new")
    assert missing.value.filename == str(tmp_path / "none" / "file")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as folder:
        write_atomically(tmp_path / "folder", b"new")
    assert (folder.value.filename, folder.value.filename2) == (str(tmp_path / "folder"), None)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_writing_replaces_the_whole_file(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, b"a long first version")
    write_atomically(str(path), b"short")
    assert path.read_bytes() == b"short"
