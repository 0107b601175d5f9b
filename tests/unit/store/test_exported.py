import json
import lzma

import pytest
from stored_runs import sample_node, sample_run

from adaexplore.core.ask import Ask, Exchange
from adaexplore.core.errors import BadInputError
from adaexplore.core.protocols.client import Message, Prompt, Reply
from adaexplore.core.protocols.store import FORMAT_VERSION
from adaexplore.store import Confirmation, create_run, export_run, memory_store, read_run


@pytest.fixture
def run(tmp_path):
    with create_run(tmp_path / "run", sample_run()) as run:
        store = run.store
        for number in range(1, 8):
            store.record(sample_node(number))
        store.open_ask(Ask(1, 0, "large", 5, (1, 2), (), 7, "manual", 1.5e9))
        prompt = Prompt((Message("user", "Faster\0? ü"),), "large")
        store.add_call(Exchange(1, prompt, Reply("Nö", "manual"), 1.5e9))
        store.confirm(Confirmation(2, sample_node(2).evaluation, 1.6e9))
        store.set_plan({"proposers": ["manual"]})
        yield run


def content(store):
    return store.run(), store.nodes(), store.asks(), store.calls(), store.confirmations()


def test_an_export_holds_the_whole_run(run, tmp_path):
    target = tmp_path / "run.json.xz"
    export_run(run.store, target)
    with read_run(target) as exported:
        assert content(exported.store) == content(run.store)
    second = tmp_path / "again.json.xz"
    export_run(run.store, second)
    assert second.read_bytes() == target.read_bytes()


def test_an_export_can_leave_out_the_problem(run, tmp_path):
    target = tmp_path / "run.json.xz"
    export_run(run.store, target, problem=False)
    text = lzma.decompress(target.read_bytes()).decode()
    assert sample_run().problem.source.splitlines()[0] not in text
    assert "Faster" not in text
    with read_run(target) as exported:
        assert [c.reply for c in exported.store.calls()] == [c.reply for c in run.store.calls()]
        candidates = [node.candidate for node in exported.store.nodes()]
        assert candidates == [node.candidate for node in run.store.nodes()]


def test_an_unwritable_target_is_refused(run, tmp_path):
    with pytest.raises(BadInputError, match=r"cannot write .*: No such file"):
        export_run(run.store, tmp_path / "gone" / "run.json.xz")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        lzma.compress(b"\xff"),
        lzma.compress(b"[]"),
        lzma.compress(b"3"),
        lzma.compress(b'{"run": [{"nothing": 1}]}'),
        lzma.compress(b'{"run": 7}'),
    ],
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "run.json.xz"
    path.write_bytes(content)
    with pytest.raises(BadInputError, match="is not an exported run; export one with"):
        read_run(path)


@pytest.mark.parametrize("how", ["null", "missing", "empty"])
@pytest.mark.parametrize("table", ["run", "plan", "candidates", "nodes"])
def test_an_export_without_a_table_is_refused(run, tmp_path, table, how):
    target = tmp_path / "run.json.xz"
    export_run(run.store, target)
    rows = json.loads(lzma.decompress(target.read_bytes()))
    del rows[table]
    if how != "missing":
        rows[table] = None if how == "null" else []
    target.write_bytes(lzma.compress(json.dumps(rows).encode()))
    with pytest.raises(BadInputError, match="is not an exported run; export one with"):
        read_run(target)


def test_an_export_of_a_run_without_a_step_is_read(tmp_path):
    target = tmp_path / "run.json.xz"
    export_run(memory_store(sample_run()), target)
    with read_run(target) as exported:
        assert exported.store.nodes() == []


def test_an_export_of_a_newer_release_is_refused(run, tmp_path):
    target = tmp_path / "run.json.xz"
    export_run(run.store, target)
    rows = json.loads(lzma.decompress(target.read_bytes()))
    rows["run"][0]["format_version"] = FORMAT_VERSION + 1
    target.write_bytes(lzma.compress(json.dumps(rows).encode()))
    with pytest.raises(BadInputError, match="upgrade"):
        read_run(target)


def test_a_run_in_memory_equals_a_run_on_disk(run):
    store = memory_store(sample_run())
    for number in range(1, 8):
        store.record(sample_node(number))
    assert store.nodes() == run.store.nodes()
