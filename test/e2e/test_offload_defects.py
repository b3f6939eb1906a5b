"""Defects planted into plans with offload: the checker refuses each, and accepts the plans that they were planted into; so does ds-audit."""

import subprocess
import sys

import pytest
from conftest import FOLDERS, REPOSITORY
from offload_plans import AWAY, BACKWARD, BEGIN, FORWARD, MODELS, UPDATE, compile_plan, in_routines, kernels, updated_there, with_links
from plan_files import read_plan, write_plan


@pytest.fixture(scope="module")
def staged(tools, tmp_path_factory):
    """A plan of two stages, of which the first has two micro-batches under way, each with slots of its own in host memory."""
    model = REPOSITORY / "test/e2e/hazards/good-gpt2"
    return compile_plan(tools, tmp_path_factory.mktemp("staged"), model, 16, (None, 0, 2, 2, 3), AWAY)[0]


def verify(plan, edit, code=1):
    """What ds-opt verify and ds-audit say of a copy that `edit` has changed."""
    broken = read_plan(plan)
    edit(broken.roles[0])
    path = write_plan(plan.with_name(f"{edit.__name__}.dsplan"), broken)
    verified = subprocess.run([FOLDERS["ds-opt"] / "ds-opt", "verify", path], capture_output=True, text=True)
    assert verified.returncode == code, verified.stdout + verified.stderr
    return verified.stderr


def copies(role, queue):
    """(routine, number of a copy on that queue, the copy's command)."""
    return [(routine, number, command) for routine in role.routines for number, command in enumerate(routine.commands)
            if command.HasField("copy") and role.queues[command.queue].name == queue]


def waits_for(routine, event):
    return next(command for command in routine.commands if any(wait.event == event for wait in command.waits))


def forget(command, event):
    kept = [wait for wait in command.waits if wait.event != event]
    del command.waits[:]
    command.waits.extend(kept)


def freed_before_its_copy_ends(role):
    """Compute does not wait for any copy to the host, and may use the bytes again that these read."""
    for routine, _, command in copies(role, "evict"):
        forget(waits_for(routine, command.signals[0]), command.signals[0])


def used_before_it_is_back(role):
    routine, _, command = copies(role, "fetch")[0]
    forget(waits_for(routine, command.signals[0]), command.signals[0])


def fetched_before_it_has_left(role):
    """All waits between compute and the copies of a routine back to the device are gone."""
    for _, _, command in copies(role, "fetch"):
        del command.waits[:]


def evicted_before_it_is_computed(role):
    del copies(role, "evict")[0][2].waits[:]


def two_microbatches_in_one_slot(role):
    for buffer in role.buffers:
        if role.arenas[buffer.arena].space == "host":
            buffer.slot_offsets[:] = [buffer.offset] * len(buffer.slot_offsets)


def another_tensor_comes_back(role):
    shapes = {}
    for _, _, command in copies(role, "fetch"):
        source = command.copy.source
        other = shapes.setdefault(tuple(source.shape), source.buffer)
        if other != source.buffer:
            source.buffer = other
            return
    raise AssertionError("no two tensors of one shape come back")


def a_kernel_reads_host_memory(role):
    _, _, command = copies(role, "fetch")[0]
    for routine in role.routines:
        for other in routine.commands:
            for operand in other.kernel.operands:
                if operand.buffer == command.copy.target.buffer:
                    operand.buffer = command.copy.source.buffer
                    return


@pytest.mark.parametrize("edit, sentence", [
    (freed_before_its_copy_ends, "(race)"), (used_before_it_is_back, "(race)"), (fetched_before_it_has_left, "nothing has written"),
    (evicted_before_it_is_computed, "nothing has written"), (two_microbatches_in_one_slot, "it holds that of micro-batch 1"),
    (another_tensor_comes_back, "(meaning)"), (a_kernel_reads_host_memory, "lies in space host, which only copies, and kernels and fills on queues of kind HOST")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_are_refused(staged, edit, sentence):
    assert sentence in verify(staged, edit)


def plan_of_slices(tools, folder, space):
    """A plan of two ranks, each of which updates its slice of the parameters on its host."""
    keys = updated_there(space, folder)
    keys["zero_optimization"]["reduce_bucket_size"] = 2500
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 1, 2, 1, 2), keys)[0]


@pytest.fixture(scope="module")
def in_host_memory(tools, tmp_path_factory):
    return plan_of_slices(tools, tmp_path_factory.mktemp("host"), "host")


@pytest.fixture(scope="module")
def in_files(tools, tmp_path_factory):
    return plan_of_slices(tools, tmp_path_factory.mktemp("nvme"), "nvme")


def updates(role):
    """(routine, command) of each update on the host."""
    return [(routine, command) for routine in role.routines for command in routine.commands if role.queues[command.queue].kind == 7 and command.kernel.kernel == "adamw"]


def copies_of(role, queue, operand):
    """Copies on that queue of operands of updates: to the host before them, or back."""
    buffers = {command.kernel.operands[operand].buffer for _, command in updates(role)}
    return [command for _, _, command in copies(role, queue) if {command.copy.source.buffer, command.copy.target.buffer} & buffers]


def updated_before_its_gradient_is_there(role):
    for _, command in updates(role):
        del command.waits[:]


def back_before_the_update(role):
    for command in copies_of(role, "fetch", 0):
        for _, update in updates(role):
            forget(command, update.signals[0])


def the_gradient_comes_back(role):
    _, command = updates(role)[0]
    source = copies_of(role, "fetch", 0)[0].copy.source
    source.buffer, source.byte_offset = command.kernel.operands[1].buffer, command.kernel.operands[1].byte_offset


def the_slice_of_the_first_rank_comes_back(role):
    copies_of(role, "fetch", 0)[0].copy.target.rank_stride = 0


def the_slice_of_the_first_rank_leaves(role):
    for _, _, command in copies(role, "evict"):
        command.copy.source.rank_stride = 0


def moments_of_another_bucket(role):
    (_, one), (_, other) = updates(role)[:2]
    assert len(one.kernel.operands) == len(other.kernel.operands)
    one.kernel.operands[2].buffer = other.kernel.operands[2].buffer


def an_update_reads_device_memory(role):
    _, command = updates(role)[0]
    command.kernel.operands[0].buffer = copies_of(role, "fetch", 0)[0].copy.target.buffer


def the_device_updates_host_memory(role):
    compute = next(number for number, queue in enumerate(role.queues) if queue.name == "compute")
    for _, command in updates(role):
        command.queue = compute


@pytest.mark.parametrize("edit, sentence", [
    (updated_before_its_gradient_is_there, "(value)"), (back_before_the_update, "(race)"), (the_gradient_comes_back, "(coverage)"),
    (the_slice_of_the_first_rank_comes_back, "(coverage)"), (the_slice_of_the_first_rank_leaves, "(value)"), (moments_of_another_bucket, "(meaning)"),
    (an_update_reads_device_memory, "kernels and fills on queues of kind HOST read and write space host alone"),
    (the_device_updates_host_memory, "which only copies, and kernels and fills on queues of kind HOST")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_of_updates_are_refused(in_host_memory, edit, sentence):
    assert sentence in verify(in_host_memory, edit)


# ---- gradients

@pytest.fixture(scope="module")
def added_there(tools, tmp_path_factory):
    """A plan whose host adds up the gradients of two micro-batches, which ranks then sum."""
    return plan_of_slices(tools, tmp_path_factory.mktemp("added"), "host")


@pytest.fixture(scope="module")
def brought_near(tools, tmp_path_factory):
    """A plan whose ranks sum each micro-batch's gradients onto the slice of their owner, which comes from host memory and goes back."""
    folder = tmp_path_factory.mktemp("near")
    keys = updated_there("host", folder)
    keys["zero_optimization"].update(reduce_bucket_size=2500, overlap_comm=True)
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 2, 2, 1, 2), keys)[0]


def leaves_before_it_is_computed(role):
    next(command for routine, _, command in copies(role, "evict") if routine.phase == BACKWARD).ClearField("waits")


def forget_copies(role, command, queue="evict"):
    """The command waits for no copy of that queue."""
    for _, _, copy in copies(role, queue):
        for event in copy.signals:
            forget(command, event)


def added_before_it_is_there(role):
    """The host adds what lies where this micro-batch's gradient will be."""
    forget_copies(role, kernels(role, BACKWARD, "host_compute", "elementwise")[0])


def overwritten_not_added_to(role):
    addition = kernels(role, BACKWARD, "host_compute", "elementwise")[0]
    addition.kernel.operands[0].CopyFrom(addition.kernel.operands[1])


def the_gradient_of_another_parameter_is_added(role):
    one, other = (command for command in kernels(role, BACKWARD, "host_compute", "elementwise")[:2])
    assert list(one.kernel.operands[1].shape) == list(other.kernel.operands[1].shape)
    leave = {command.copy.target.buffer: command.copy for _, _, command in copies(role, "evict")}
    leave[one.kernel.operands[1].buffer].source.CopyFrom(leave[other.kernel.operands[1].buffer].source)


def sums_do_not_begin_with_zeros(role):
    for routine, number, command in in_routines(role, BEGIN):
        if role.queues[command.queue].kind == 7:
            command.fill.target.shape[:] = [1]


def squared_before_it_is_back(role):
    """The norm reads a rank's slice in host memory while the sum over the ranks is still on its way there."""
    for square in kernels(role, UPDATE, "host_compute", "block_sum_squares"):
        forget_copies(role, square)


def reduced_before_the_slice_is_near(role):
    for _, _, command in copies(role, "fetch"):
        for _, _, other in in_routines(role, BACKWARD):
            if other.HasField("collective"):
                forget(other, command.signals[0])


def taken_back_before_it_is_reduced(role):
    sums = {event for _, _, command in in_routines(role, BACKWARD) if command.HasField("collective") for event in command.signals}
    for _, _, command in copies(role, "evict"):
        for event in sums:
            forget(command, event)


def a_micro_batch_is_not_taken_back(role):
    """A slice is not taken back, so that the next micro-batch adds to zeros."""
    command = next(command for routine, _, command in copies(role, "evict") if routine.phase == BACKWARD)
    command.copy.target.CopyFrom(command.copy.source)
    command.copy.target.access = 2


@pytest.mark.parametrize("plan, edit, sentence", [
    ("added_there", leaves_before_it_is_computed, "nothing has written"), ("added_there", added_before_it_is_there, "(race)"),
    ("added_there", overwritten_not_added_to, "(meaning)"), ("added_there", the_gradient_of_another_parameter_is_added, "(meaning)"),
    ("added_there", sums_do_not_begin_with_zeros, "nothing has written"), ("added_there", squared_before_it_is_back, "(race)"),
    ("brought_near", reduced_before_the_slice_is_near, "(race)"), ("brought_near", taken_back_before_it_is_reduced, "(race)"),
    ("brought_near", a_micro_batch_is_not_taken_back, "(meaning)")],
    ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_of_gradients_are_refused(plan, edit, sentence, request):
    assert sentence in verify(request.getfixturevalue(plan), edit)


# ---- beside compute

@pytest.fixture(scope="module")
def beside(tools, tmp_path_factory):
    """A plan whose host updates in the backward, where parameters lie."""
    folder = tmp_path_factory.mktemp("beside")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 1), {"gradient_clipping": 0, **updated_there("host", folder)}, *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def beside_files(tools, tmp_path_factory):
    """The same with state in a file, and parameters in device memory."""
    folder = tmp_path_factory.mktemp("beside-files")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 1), {"gradient_clipping": 0, **updated_there("nvme", folder)}, *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def once_a_step(tools, tmp_path_factory):
    """A plan of two micro-batches for which parameters come at the start of the step."""
    folder = tmp_path_factory.mktemp("once")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 2), updated_there("host", folder), *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def updated_early(tools, exported, tmp_path_factory):
    """A larger plan whose host updates in the backward: several parameters have one shape."""
    folder = tmp_path_factory.mktemp("early")
    return compile_plan(tools, folder, exported("gpt2", *MODELS["gpt2"][0]), 1, (None, 0, 1, 1, 1), {"gradient_clipping": 0, **updated_there("host", folder)}, *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def looked_up(tools, exported, tmp_path_factory):
    """A plan whose host looks up rows of the embedding, and makes its gradient of them."""
    folder = tmp_path_factory.mktemp("rows")
    return compile_plan(tools, folder, exported("gpt2", *MODELS["gpt2"][0]), 1, (None, 0, 1, 1, 1), updated_there("host", folder), *with_links(folder, 5, 2))[0]


def updated_before_its_own_gradient_is_there(role):
    forget_copies(role, kernels(role, BACKWARD, "host_compute", "adamw")[0])


def updated_a_second_time(role):
    """An update is of the parameter and the moments that one before it has updated."""
    one = kernels(role, BACKWARD, "host_compute", "adamw")[0]
    other = next(command for command in kernels(role, BACKWARD, "host_compute", "adamw")[1:] if command.kernel.operands[0].shape == one.kernel.operands[0].shape)
    for operand in (0, 2, 3):
        other.kernel.operands[operand].CopyFrom(one.kernel.operands[operand])
    other.reference[:] = one.reference


def back_before_it_is_updated(role):
    for update in kernels(role, BACKWARD, "host_compute", "adamw"):
        for _, _, command in copies(role, "fetch"):
            forget(command, update.signals[0])


def read_where_the_update_before_is(role):
    """What the second update takes from the file comes to where the first one's operands are, which are not back yet."""
    first, second = kernels(role, BACKWARD, "host_compute", "adamw")[:2]
    for operand in (2, 3):
        role.buffers[second.kernel.operands[operand].buffer].offset = role.buffers[first.kernel.operands[operand].buffer].offset


def used_before_it_has_come(role):
    """The first micro-batch does not wait for a parameter."""
    copy = next(command for routine, _, command in copies(role, "fetch") if routine.name == "start_step")
    for routine in role.routines:
        for command in routine.commands:
            forget(command, copy.signals[0])


def comes_for_the_first_micro_batch_alone(role):
    """Its event counts one micro-batch, so that the second waits for ever."""
    next(program for program in role.programs if program.name == "step").calls[0].microbatch = 0


def comes_as_another(role):
    one, other = (command for routine, _, command in copies(role, "fetch") if routine.name == "start_step")
    one.copy.source.buffer = other.copy.source.buffer


def rows_come_before_they_are_looked_up(role):
    gather = kernels(role, FORWARD, "host_compute", "gather")[0]
    for _, _, command in copies(role, "fetch"):
        forget(command, gather.signals[0])


def rows_of_another_micro_batch(role):
    """The host looks up what the labels say."""
    gather = kernels(role, FORWARD, "host_compute", "gather")[0]
    leaves = next(command for _, _, command in copies(role, "evict") if command.copy.target.buffer == gather.kernel.operands[1].buffer)
    leaves.copy.source.buffer = next(number for number, buffer in enumerate(role.buffers) if buffer.name == "labels")


def the_other_use_leaves_before_it_is_computed(role):
    """Of the two gradients of a table that the host adds, the first leaves too early."""
    gather = kernels(role, BACKWARD, "host_compute", "gather_grad")[0]
    addition = next(command for command in kernels(role, BACKWARD, "host_compute", "elementwise") if gather.kernel.operands[2].buffer in [operand.buffer for operand in command.kernel.operands])
    summands = {operand.buffer for operand in addition.kernel.operands}
    del next(command for _, _, command in copies(role, "evict") if command.copy.target.buffer in summands).waits[:]


@pytest.mark.parametrize("plan, edit, sentence", [
    ("beside", updated_before_its_own_gradient_is_there, "(race)"), ("updated_early", updated_a_second_time, "a second time in one step"),
    ("beside_files", back_before_it_is_updated, "(race)"), ("beside_files", read_where_the_update_before_is, "(race)"),
    ("once_a_step", used_before_it_has_come, "(race)"), ("once_a_step", comes_for_the_first_micro_batch_alone, "which could end that"),
    ("once_a_step", comes_as_another, "(meaning)"), ("looked_up", rows_come_before_they_are_looked_up, "nothing has written"),
    ("looked_up", rows_of_another_micro_batch, "(meaning)"), ("looked_up", the_other_use_leaves_before_it_is_computed, "nothing has written")],
    ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_beside_compute_are_refused(plan, edit, sentence, request):
    assert sentence in verify(request.getfixturevalue(plan), edit)


# ---- files

def updated_before_it_is_read(role):
    for _, update in updates(role):
        for _, _, read in copies(role, "nvme_read"):
            forget(update, read.signals[0])


def written_before_it_is_updated(role):
    for write in copies_of(role, "nvme_write", 2) + copies_of(role, "nvme_write", 3):
        for _, update in updates(role):
            forget(write, update.signals[0])


def read_over_what_is_not_yet_written(role):
    """The operands of the fourth update come to where the first one's are."""
    for read in (read for operand in (1, 2, 3) for read in copies_of(role, "nvme_read", operand)):
        del read.waits[:]


def the_other_moment_is_written(role):
    first, second = copies_of(role, "nvme_write", 2)[0], copies_of(role, "nvme_write", 3)[0]
    first.copy.source.buffer, second.copy.source.buffer = second.copy.source.buffer, first.copy.source.buffer


def stale_moments_are_read(role):
    """What the update reads is another bucket's."""
    reads = copies_of(role, "nvme_read", 2)
    other = next(read for read in reads[1:] if list(read.copy.source.shape) == list(reads[0].copy.source.shape))
    reads[0].copy.source.buffer = other.copy.source.buffer


def nothing_is_written_back(role):
    routine, number, _ = copies(role, "nvme_write")[0]
    routine.commands[number].copy.target.CopyFrom(routine.commands[number].copy.source)
    routine.commands[number].copy.target.access = 2


def the_device_reads_a_file(role):
    for _, _, read in copies(role, "nvme_read"):
        read.copy.target.buffer = copies(role, "fetch")[0][2].copy.target.buffer


def compute_reads_a_file(role):
    compute = next(number for number, queue in enumerate(role.queues) if queue.name == "compute")
    for _, _, read in copies(role, "nvme_read"):
        read.queue = compute


def two_queues_write_the_file(role):
    copies(role, "nvme_write")[1][2].queue = next(number for number, queue in enumerate(role.queues) if queue.name == "nvme_read")


def buffers_share_a_page(role):
    files = [buffer for buffer in role.buffers if role.arenas[buffer.arena].space == "nvme"]
    files[0].offset += 64


@pytest.mark.parametrize("edit, sentence", [
    (updated_before_it_is_read, "queue nvme_read"), (written_before_it_is_updated, "(race)"), (read_over_what_is_not_yet_written, "(race)"),
    (the_other_moment_is_written, "(coverage)"), (stale_moments_are_read, "(meaning)"), (nothing_is_written_back, "it is no copy to or from space nvme"),
    (the_device_reads_a_file, "only host memory may be there"), (compute_reads_a_file, "is not of kind IO"),
    (two_queues_write_the_file, "but queue nvme_write does so too; one may"), (buffers_share_a_page, "the page of a file")], ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_of_files_are_refused(in_files, edit, sentence):
    assert sentence in verify(in_files, edit)


@pytest.fixture(scope="module")
def held(tools, tmp_path_factory):
    """Parameters come for each use of two micro-batches, but the weight of the last layer once for the forward and the backward of each."""
    folder = tmp_path_factory.mktemp("held")
    keys = {"zero_optimization": {"offload_param": {"device": "cpu"}}}
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 2), keys, *with_links(folder, 20, 5))[0]


def read_by(role, phase):
    return {operand.buffer for _, _, command in in_routines(role, phase) for operand in command.kernel.operands}


def copy_of_what_is_held(role):
    """The forward's routine, and its copy into what the backward uses, too."""
    both = read_by(role, FORWARD) & read_by(role, BACKWARD)
    (routine, _, command), = [one for one in copies(role, "fetch") if one[0].phase == FORWARD and one[2].copy.target.buffer in both]
    return routine, command


def held_weight_comes_again_too_early(role):
    """The next micro-batch's does not wait for this one's backward."""
    _, command = copy_of_what_is_held(role)
    del command.waits[:]


def held_weight_is_used_before_it_comes(role):
    routine, command = copy_of_what_is_held(role)
    forget(waits_for(routine, command.signals[0]), command.signals[0])


def what_is_held_gives_its_bytes_away(role):
    """An activation of the backward lies where the weight still waits."""
    _, command = copy_of_what_is_held(role)
    place = role.buffers[command.copy.target.buffer]
    routine = next(routine for routine, _, _ in in_routines(role, BACKWARD))
    first = next(operand.buffer for one in routine.commands for operand in one.kernel.operands if operand.access == 2)
    role.buffers[first].offset = place.offset


@pytest.mark.parametrize("edit, sentence", [
    (held_weight_comes_again_too_early, "(race)"), (held_weight_is_used_before_it_comes, "nothing has written"), (what_is_held_gives_its_bytes_away, "(cross_entropy_grad of node_cross_entropy_loss) wrote it")],
    ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_of_what_is_held_are_refused(held, edit, sentence):
    assert sentence in verify(held, edit)


@pytest.mark.parametrize("plan", ["staged", "in_host_memory", "in_files", "added_there", "brought_near", "beside", "beside_files", "once_a_step", "updated_early", "looked_up", "held"])
def test_an_unchanged_plan_is_accepted(plan, request):
    path = request.getfixturevalue(plan)
    verify(path, lambda role: None, code=0)
    audited = subprocess.run([sys.executable, REPOSITORY / "tools/ds-audit/ds-audit", path], capture_output=True, text=True)
    assert audited.returncode == 0, audited.stderr
