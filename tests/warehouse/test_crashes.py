"""A crash at any point leaves the last commit, or the new one in full; what it left behind is swept."""

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_orders import SOME_OR_EVERY, Crasher, crasher, die_while_spark_writes, records_made, where_to_kill
from images import Image, copy, image, image_after
from lakes import make_large_commit, make_small_commit, prepare
from stored_content import Stored

from viewkeeper.lake import recovery
from viewkeeper.lake.log import intents
from viewkeeper.warehouse import Warehouse

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def writer() -> Iterator[Crasher]:
    with crasher() as made:
        yield made


def check_recovered(root: Path, wanted: Image, when: str) -> None:
    """Open a warehouse that somebody was killed at: it must look like the image, and go on from there."""
    with Warehouse.open(root, compaction=None) as wh:
        assert image(root) == wanted, when
        assert Stored(root).leftovers() == set(), when
        make_small_commit(wh)
    stored = Stored(root)
    assert stored.leftovers() == set(), when
    old = wanted["orders"]["rows"]
    grown = old[max(old)] + Counter({(1000, "cap"): 1})
    assert stored.states("orders") == {**old, max(old) + 1: grown}, when


@pytest.mark.parametrize("every", SOME_OR_EVERY)
@pytest.mark.parametrize("lists", [False, True], ids=["by name", "by listing"])
def test_a_commit_killed_at_any_step_is_there_in_full_or_not_at_all(
    writer: Crasher, prepared: Path, every: bool, lists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has left is found by the names that it gave before, or in a list of all files if these are not known."""
    if lists:
        monkeypatch.setattr(intents, "_boot", lambda: None)
    else:
        monkeypatch.setattr(recovery, "_all_names", lambda _: pytest.fail("all files were listed"))
    before, after = image(prepared), image_after(copy(prepared), make_large_commit)
    assert before != after
    steps = writer.steps("large_commit", copy(prepared))
    (record,) = records_made(steps)
    for at in where_to_kill(steps, every=every):
        root = copy(prepared)
        writer.kill("large_commit", root, at)
        check_recovered(root, after if at > record else before, f"killed at {at}: {steps[at]}")


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_a_writer_that_is_killed_again_and_again_leaves_the_last_commit(
    writer: Crasher, place: Path, every: bool
) -> None:
    # The next version of these tables writes a checkpoint, which then outlives the commit that was killed.
    prepare(prepared := place / f"before checkpoints {every}", commits=8)
    before = image(prepared)
    steps = writer.steps("large_commit", root := copy(prepared))
    assert any(name.endswith(f"{9:020d}.checkpoint.parquet") for name in Stored(root).files)
    places = [at for at, step in enumerate(steps) if "within" in step] + records_made(steps)
    for at in sorted(set(places) & set(where_to_kill(steps, every=every, among=places))):
        root = copy(prepared)
        for _ in range(3):
            writer.kill("large_commit", root, at)
        check_recovered(root, before, f"killed three times at {at}: {steps[at]}")


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_an_opening_killed_at_any_step_after_a_crash_can_be_repeated(
    writer: Crasher, prepared: Path, every: bool
) -> None:
    before = image(prepared)
    steps = writer.steps("large_commit", copy(prepared))
    # Just before the record all tables are ahead: there is most to put back.
    (record,) = records_made(steps)
    crashed = copy(prepared, "crashed")
    writer.kill("large_commit", crashed, record)
    opening = writer.steps("open_it", copy(crashed))
    assert {"after restore", "os.remove"} < {step.partition(" /")[0] for step in opening}
    for at in where_to_kill(opening, every=every):
        root = copy(crashed)
        writer.kill("open_it", root, at)
        writer.kill("open_it", root, min(at, 1))
        check_recovered(root, before, f"opening killed at {at}: {opening[at]}")


def test_a_warehouse_whose_making_was_killed_can_be_made(writer: Crasher, place: Path) -> None:
    root = place / "new"
    steps = writer.steps("open_it", root)
    assert len(records_made(steps)) == 1
    for at, step in enumerate(steps):
        shutil.rmtree(root, ignore_errors=True)
        writer.kill("open_it", root, at)
        with Warehouse.open(root) as wh:
            assert wh.views == (), step
            assert wh.status().commit == 0, step
            assert Stored(root).leftovers() == set(), step


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_deltas_that_were_being_merged_are_merged_or_as_they_were(writer: Crasher, prepared: Path, every: bool) -> None:
    before, after = image(prepared), image_after(copy(prepared), make_small_commit)
    steps = writer.steps("merge_deltas", root := copy(prepared))
    merged = image(root)
    assert merged["orders"]["status"]["pending_files"] == 1
    assert merged["orders"]["rows"] == after["orders"]["rows"]
    committing, merging = records_made(steps)
    for at in where_to_kill(steps, every=every):
        root = copy(prepared)
        writer.kill("merge_deltas", root, at)
        wanted = before if at <= committing else after if at <= merging else merged
        check_recovered(root, wanted, f"killed at {at}: {steps[at]}")


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_a_base_that_was_being_written_is_there_or_is_not(writer: Crasher, prepared: Path, every: bool) -> None:
    before = image(prepared)
    steps = writer.steps("compact_here", root := copy(prepared))
    after = image(root)
    assert after["orders"]["rows"] == before["orders"]["rows"]
    assert (before["orders"]["status"]["pending_files"], after["orders"]["status"]["pending_files"]) == (2, 0)
    (record,) = records_made(steps)
    for at in where_to_kill(steps, every=every):
        root = copy(prepared)
        writer.kill("compact_here", root, at)
        check_recovered(root, after if at > record else before, f"killed at {at}: {steps[at]}")


@pytest.mark.parametrize("every", SOME_OR_EVERY)
def test_a_vacuum_killed_at_any_step_leaves_what_it_announced(writer: Crasher, prepared: Path, every: bool) -> None:
    original = copy(prepared, "original")
    before = image_after(original, make_large_commit)
    steps = writer.steps("vacuum", root := copy(original))
    after = image(root)
    assert [len(view["rows"]) for view in after.values()] != [len(view["rows"]) for view in before.values()]
    (announced,) = records_made(steps)
    for at in where_to_kill(steps, every=every):
        root = copy(original)
        writer.kill("vacuum", root, at)
        with Warehouse.open(root, compaction=None) as wh:
            assert image(root) == (after if at > announced else before), steps[at]
            wh.vacuum(0, grace=0)
        stored = Stored(root)
        assert stored.leftovers({view: table["kept"] for view, table in stored.last["tables"].items()}) == set(), steps[
            at
        ]


# --- with Spark ---


@pytest.fixture(scope="module")
def spark_writer() -> Iterator[Crasher]:
    with crasher("--spark") as made:
        yield made


@pytest.mark.parametrize("every", SOME_OR_EVERY)
@pytest.mark.parametrize("task", ["load", "compact"])
def test_files_that_spark_wrote_become_part_of_a_view_or_are_swept(
    spark_writer: Crasher, prepared: Path, task: str, every: bool
) -> None:
    before = image(prepared)
    steps = spark_writer.steps(task, root := copy(prepared))
    after = image(root)
    assert after != before
    if task == "compact":
        assert after["orders"]["rows"] == before["orders"]["rows"]
        assert after["orders"]["status"]["pending_files"] == 0
    (record,) = records_made(steps)
    telling = ("before write", "after write", "within", "os.link")
    places = [*(at for at, step in enumerate(steps) if step.startswith(telling)), record + 1]
    for at in where_to_kill(steps, every=every, among=places):
        root = copy(prepared)
        spark_writer.kill(task, root, at)
        check_recovered(root, after if at > record else before, f"killed at {at}: {steps[at]}")


def test_a_bulk_load_killed_while_spark_writes_leaves_nothing(prepared: Path) -> None:
    before = image(prepared)
    root = copy(prepared)
    assert die_while_spark_writes(root) == -signal.SIGKILL
    assert Stored(root).files - Stored(root).needed_files()
    check_recovered(root, before, "killed while Spark writes")
