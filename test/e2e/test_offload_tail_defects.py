"""Defects planted into a step that updates ahead of the norm, and into its tail: the plan reader or the checker refuses each."""

import pytest
from conftest import REPOSITORY
from offload_plans import BACKWARD, MODELS, compile_plan, kernels, updated_there, with_links
from plan_files import read_plan, write_plan
from test_offload_defects import copies, forget, verify

FLOAT32, FLOAT64 = 7, 8


@pytest.fixture(scope="module")
def guessed(tools, tmp_path_factory):
    """A plan whose clipped updates are made from a file beside the backward, as if nothing were clipped."""
    folder = tmp_path_factory.mktemp("guessed")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 1), updated_there("nvme", folder), *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def larger(tools, exported, tmp_path_factory):
    """A larger one: several parameters have one shape."""
    folder = tmp_path_factory.mktemp("larger")
    return compile_plan(tools, folder, exported("gpt2", *MODELS["gpt2"][0]), 1, (None, 0, 1, 1, 1), updated_there("nvme", folder), *with_links(folder, 5, 2))[0]


@pytest.fixture(scope="module")
def of_two(tools, tmp_path_factory):
    """The same with two micro-batches, of which the last has a backward of its own."""
    folder = tmp_path_factory.mktemp("of-two")
    return compile_plan(tools, folder, REPOSITORY / "test/e2e/hazards/good-gpt2", 1, (None, 0, 1, 1, 2), updated_there("nvme", folder), *with_links(folder, 5, 2))[0]


def step_of(role):
    return next(program for program in role.programs if program.name == "step")


def redo(role):
    return role.routines[step_of(role).calls[step_of(role).tail.first_call].routine]


def guesses(role):
    return kernels(role, BACKWARD, "host_compute", "adamw")


def again(role):
    return [command for command in redo(role).commands if command.kernel.kernel == "adamw"]


def next_of(role):
    """Where new state goes, by where the old lies."""
    return {buffer.next_of: number for number, buffer in enumerate(role.buffers) if buffer.HasField("next_of")}


def copies_in(role, routines, queue):
    return [command for routine, _, command in copies(role, queue) if routine.name in routines]


def backwards(role):
    return [routine.name for routine in role.routines if routine.phase == BACKWARD]


def place_of(command, operand):
    return command.kernel.operands[operand]


def made_again_whatever_the_factor(role):
    step_of(role).ClearField("tail")


def decided_by_the_norm(role):
    """What says whether something was clipped is the norm itself."""
    step = step_of(role)
    norm = next(metric for metric in step.metrics if metric.name == "grad_norm")
    step.tail.unless_one.CopyFrom(norm.source)


def decided_by_a_constant(role):
    step_of(role).tail.unless_one.buffer = next(number for number, buffer in enumerate(role.buffers) if buffer.name == "constant::one" and role.arenas[buffer.arena].space == "device")


def one_parameter_is_not_made_again(role):
    """It is written over itself."""
    back = copies_in(role, [redo(role).name], "fetch")[-1]
    back.copy.source.CopyFrom(back.copy.target)
    back.copy.source.access = 1


def made_again_without_the_factor(role):
    one = place_of(guesses(role)[0], 6)
    place_of(again(role)[0], 6).CopyFrom(one)
    life = role.buffers[one.buffer].lives[0]
    life.death_routine, life.death_command = list(role.routines).index(redo(role)), len(redo(role).commands) - 1


def made_again_from_what_is_new(role):
    for read in copies_in(role, [redo(role).name], "nvme_read"):
        read.copy.source.buffer = next_of(role)[read.copy.source.buffer]


def new_moments_over_old_ones(role):
    """All writes of the step go where it reads, as without a tail."""
    old = {number: before for before, number in next_of(role).items()}
    for routine in role.routines:
        for command in routine.commands:
            if command.HasField("copy") and command.copy.target.buffer in old and routine.name != redo(role).name:
                command.copy.target.buffer = old[command.copy.target.buffer]


def made_again_over_old_ones(role):
    old = {number: before for before, number in next_of(role).items()}
    write = copies_in(role, [redo(role).name], "nvme_write")[0]
    write.copy.target.buffer = old[write.copy.target.buffer]


def updated_where_it_is_kept(role):
    """The update before the norm changes the parameter that is kept for the tail."""
    kept, updated = place_of(again(role)[0], 0), place_of(guesses(role)[0], 0)
    for routine in role.routines:
        for command in routine.commands:
            if command.HasField("copy") and command.copy.source.buffer == updated.buffer:
                command.copy.source.CopyFrom(kept)
                command.copy.source.access = 1
    updated.CopyFrom(kept)


def never_kept(role):
    kept = place_of(again(role)[0], 0).buffer
    copy = next(command.copy for _, _, command in copies(role, "evict") if command.copy.target.buffer == kept)
    copy.target.CopyFrom(place_of(guesses(role)[0], 0))
    copy.target.access = 2


def gradient_of_another(role):
    one, other = again(role)[0], next(command for command in again(role)[1:] if place_of(command, 1).shape == place_of(again(role)[0], 1).shape)
    place_of(one, 1).CopyFrom(place_of(other, 1))


def a_moment_of_another(role):
    first, second = copies_in(role, [redo(role).name], "nvme_read")[:2]
    first.copy.source.CopyFrom(second.copy.source)


def another_rate(role):
    place_of(again(role)[0], 4).CopyFrom(place_of(again(role)[0], 6))


def halves_are_not_exchanged(role):
    for buffer in role.buffers:
        buffer.ClearField("next_of")


def halves_of_one_another(role):
    first, second = [buffer for buffer in role.buffers if buffer.HasField("next_of")][:2]
    first.next_of, second.next_of = second.next_of, first.next_of


def kept_for_the_step_alone(role):
    """Its life ends before the tail."""
    kept = role.buffers[place_of(again(role)[0], 0).buffer]
    last = next(number for number, routine in enumerate(role.routines) if routine.name == "update")
    for life in kept.lives:
        life.death_routine, life.death_command = last, len(role.routines[last].commands) - 1


def an_activation_dies_before_the_first_backward_has_read_it(role):
    """The last micro-batch's backward is another routine, and its life another one."""
    first = next(number for number, routine in enumerate(role.routines) if routine.name == "backward")
    life = next(life for buffer in role.buffers for life in buffer.lives if len(buffer.lives) == 2 and life.death_routine == first and life.death_command > 0)
    life.death_command -= 1


def an_activation_is_born_in_the_backward_of_another_microbatch(role):
    """No micro-batch is in both routines, so none has such a life."""
    number = {routine.name: index for index, routine in enumerate(role.routines)}
    life = next(life for buffer in role.buffers for life in buffer.lives
                if (life.birth_routine, life.death_routine) == (number["forward"], number["backward_last"]))
    life.birth_routine = number["backward"]


def guessed_before_its_gradient_is_there(role):
    del guesses(role)[0].waits[:]


def made_again_before_it_is_read(role):
    for read in copies_in(role, [redo(role).name], "nvme_read"):
        for command in again(role):
            forget(command, read.signals[0])


def the_step_waits_for_the_tail(role):
    """A command before the tail waits for an event that only the tail signals."""
    event = next(event for command in redo(role).commands for event in command.signals)
    update = next(routine for routine in role.routines if routine.name == "update")
    update.commands[0].waits.add(event=event)


DEFECTS = [
    ("guessed", made_again_whatever_the_factor, "(meaning)"), ("guessed", decided_by_the_norm, "(meaning)"), ("guessed", decided_by_a_constant, "(meaning)"),
    ("guessed", one_parameter_is_not_made_again, "(coverage)"), ("guessed", made_again_without_the_factor, "(meaning)"), ("guessed", made_again_from_what_is_new, ""),
    ("guessed", new_moments_over_old_ones, ""), ("guessed", made_again_over_old_ones, "(coverage)"), ("guessed", updated_where_it_is_kept, ""),
    ("guessed", never_kept, "nothing has written"), ("larger", gradient_of_another, ""), ("guessed", a_moment_of_another, ""), ("guessed", another_rate, "(meaning)"),
    ("guessed", halves_are_not_exchanged, "(coverage)"), ("guessed", halves_of_one_another, ""), ("guessed", kept_for_the_step_alone, ""),
    ("guessed", guessed_before_its_gradient_is_there, ""), ("guessed", made_again_before_it_is_read, ""), ("guessed", the_step_waits_for_the_tail, "which could end that"),
    ("of_two", an_activation_dies_before_the_first_backward_has_read_it, "outside the life"), ("of_two", an_activation_is_born_in_the_backward_of_another_microbatch, "outside the life"), ("of_two", guessed_before_its_gradient_is_there, ""), ("of_two", made_again_over_old_ones, "(coverage)"), ("of_two", made_again_without_the_factor, "(meaning)")]


@pytest.mark.parametrize("plan, edit, sentence", DEFECTS, ids=lambda case: getattr(case, "__name__", ""))
def test_planted_defects_are_refused(plan, edit, sentence, request):
    assert sentence in verify(request.getfixturevalue(plan), edit)


def test_what_they_were_planted_into_is_proven(guessed, of_two):
    for plan in (guessed, of_two):
        verify(plan, nothing, code=0)


def nothing(role):
    assert len(again(role)) == len(guesses(role)) > 1 and next_of(role)


def test_a_tail_asks_for_all_of_its_number(tools, guessed, tmp_path):
    """Four bytes of a float64 are never 1: the tail would always run."""
    broken = read_plan(guessed)
    asked = step_of(broken.roles[0]).tail.unless_one
    assert asked.dtype == FLOAT64
    asked.dtype = FLOAT32
    assert "in another type than it has" in tools.refused("ds-opt", "verify", write_plan(tmp_path / "broken.dsplan", broken))
