"""Finding and changing parts of a plan (plan_files.py reads and writes them). Commands are those of routines that a step calls."""

import copy
import dataclasses
import struct

MULTIPLY, ADD, COPY, CONSTANT, FLOAT, BYTE = 12, 10, 1, 0, 7, 2  # ElementwiseProgram.h, core/DType.h
NUMBER_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 4, 8: 8, 9: 2}  # bytes of an element, by dtype
READ, WRITE, READ_WRITE, SCRATCH = 1, 2, 3, 4


@dataclasses.dataclass(frozen=True)
class Place:
    """A command of a routine of a role: numbers, which stay right while messages are changed."""
    role: int
    routine: int
    index: int


def at(plan, place):
    return plan.roles[place.role].routines[place.routine].commands[place.index]


def phase(plan, place) -> str:
    routine = plan.roles[place.role].routines[place.routine]
    return routine.DESCRIPTOR.fields_by_name["phase"].enum_type.values_by_number[routine.phase].name


def step(role):
    return next(program for program in role.programs if program.name == "step")


def find(plan, wanted) -> list:
    """Places of the step's commands for which wanted(command) is true."""
    return [Place(r, number, index) for r, role in enumerate(plan.roles) for number in sorted({call.routine for call in step(role).calls})
            for index, command in enumerate(role.routines[number].commands) if wanted(command)]


def kernels(plan, name) -> list:
    return find(plan, lambda command: command.kernel.kernel == name)


def collectives(plan, *kinds) -> list:
    names = plan.DESCRIPTOR.file.message_types_by_name["CollectiveCommand"].enum_types_by_name["Kind"].values_by_name
    numbers = [names[kind].number for kind in kinds]
    return find(plan, lambda command: command.HasField("collective") and command.collective.kind in numbers)


def operands(command) -> list:
    """Every operand, in the order of the command."""
    body = getattr(command, command.WhichOneof("kind"))
    if hasattr(body, "operands"):
        return list(body.operands)
    if hasattr(body, "parts"):
        return [operand for part in body.parts for operand in (part.source, part.target)]
    return [operand for name in ("source", "target") if hasattr(body, name) for operand in [getattr(body, name)]] + \
        list(getattr(body, "sources", [])) + list(getattr(body, "targets", []))


def size(operand) -> int:
    count = NUMBER_SIZES[operand.dtype]
    for dim in operand.shape:
        count *= dim
    return count


def buffer(plan, place, operand):
    return plan.roles[place.role].buffers[operand.buffer]


def category(plan, place, operand) -> str:
    held = buffer(plan, place, operand)
    return held.DESCRIPTOR.fields_by_name["category"].enum_type.values_by_number[held.category].name


def touches_gradients(plan, place) -> bool:
    return any(category(plan, place, operand) == "GRADIENTS" for operand in operands(at(plan, place)))


def reads(operand) -> bool:
    return operand.access in (READ, READ_WRITE)


def writes(operand) -> bool:
    return operand.access in (WRITE, READ_WRITE)


def attribute(command, name):
    return next(one for one in command.kernel.attributes if one.name == name)


def insert(plan, place, command):
    """Before the command of that place; lives keep naming the commands that they named."""
    role = plan.roles[place.role]
    role.routines[place.routine].commands.insert(place.index, command)
    for held in role.buffers:
        for life in held.lives:
            life.birth_command += life.birth_routine == place.routine and life.birth_command > place.index
            life.death_command += life.death_routine == place.routine and life.death_command >= place.index


def idle(plan, place):
    """The command does nothing any more, with the same waits and signals."""
    command, role = at(plan, place), plan.roles[place.role]
    outlives = [number for number, held in enumerate(role.buffers) if held.scope == 1 and held.category == 3]  # optimizer state
    command.ClearField("reference")
    command.fill.Clear()
    target = command.fill.target
    target.buffer, target.dtype, target.access = outlives[0], 2, WRITE
    target.shape.append(0)


def in_place(plan, place, operand, program, constants, after=False):
    """An elementwise program over one operand, before the command of that place (then it waits, no longer that command) or after it."""
    command = copy.deepcopy(at(plan, place))
    command.ClearField("signals")
    command.ClearField("reference")
    (command if after else at(plan, place)).ClearField("waits")
    command.kernel.Clear()
    command.kernel.kernel = "elementwise"
    for access in (READ, WRITE):
        one = command.kernel.operands.add()
        one.CopyFrom(operand)
        one.access = access
    attributes = {name: command.kernel.attributes.add(name=name) for name in ("program", "constants", "results")}
    attributes["program"].integers.values.extend(program)
    attributes["constants"].numbers.values.extend(constants)
    attributes["results"].integers.values.append(len(program) // 5)
    insert(plan, Place(place.role, place.routine, place.index + after), command)


def scale(plan, place, operand, factor, after=False):
    in_place(plan, place, operand, [CONSTANT, FLOAT, 0, -1, -1, MULTIPLY, FLOAT, 0, 1, -1], [factor], after)


def double(plan, place, operand):
    in_place(plan, place, operand, [ADD, FLOAT, 0, 0, -1], [])


def split_role(plan) -> int:
    """Ranks 0 to n-2 and the last one become two roles that run the same; the number of the second."""
    role = plan.roles[0]
    assert len(plan.roles) == 1 and len(role.ranks) == 2 and role.ranks[0] < role.ranks[1]
    last = plan.roles.add()
    last.CopyFrom(role)
    last.name, last.ranks[0] = "last", role.ranks[1]
    role.ranks[1] -= 1
    return 1


def loss_scale(plan):
    """The constant that the gradient of the loss begins with, and its value: 1 / (micro-batches of all ranks)."""
    for place in kernels(plan, "cross_entropy_grad"):
        held = buffer(plan, place, at(plan, place).kernel.operands[3])
        if held.HasField("variable"):
            source = plan.variables[held.variable].source
            return source, struct.unpack("<f", source.literal)[0]
    raise AssertionError("no constant scales the loss")


def set_loss_scale(plan, value):
    loss_scale(plan)[0].literal = struct.pack("<f", value)


def update_in_halves(plan, kernel):
    """The first matrix that an optimizer's kernel updates, with its gradient and two moments, is updated by two calls instead."""
    place = next(place for place in kernels(plan, kernel) if len(at(plan, place).kernel.operands[0].shape) == 2)
    commands = plan.roles[place.role].routines[place.routine].commands
    command, other = at(plan, place), copy.deepcopy(at(plan, place))
    for first, second in zip(command.kernel.operands[:4], other.kernel.operands[:4]):
        elements = first.shape[0] * first.shape[1]
        first.shape[:], second.shape[:] = [elements // 2], [elements - elements // 2]
        second.byte_offset += elements // 2 * NUMBER_SIZES[first.dtype]
    del command.signals[:], other.waits[:]
    commands.insert(place.index + 1, other)
    for life in [life for held in plan.roles[place.role].buffers for life in held.lives]:
        life.birth_command += life.birth_routine == place.routine and life.birth_command > place.index
        life.death_command += life.death_routine == place.routine and life.death_command >= place.index


def give_workspaces(role, kernels, size=1 << 20):
    """Lets all calls of these kernels have one workspace of `size` bytes, behind what else lies in device memory."""
    index = next(i for i, arena in enumerate(role.arenas) if arena.space == "device")
    arena = role.arenas[index]
    offset = -(-arena.bytes // 64) * 64
    arena.bytes = offset + size
    workspace = role.buffers.add(name="workspace of a CPU", arena=index, offset=offset, bytes=size, slots=1)
    workspace.scope, workspace.category = workspace.CALL, workspace.WORKSPACE
    for r, routine in enumerate(role.routines):
        users = [c for c, command in enumerate(routine.commands) if command.kernel.kernel in kernels]
        for c in users:
            operands = routine.commands[c].kernel.operands
            if operands[-1].access == SCRATCH:
                del operands[-1]
            operands.add(buffer=len(role.buffers) - 1, shape=[size], access=SCRATCH, dtype=BYTE)
        for p, program in enumerate(role.programs):
            if users and any(call.routine == r for call in program.calls):
                workspace.lives.add(program=p, birth_routine=r, birth_command=users[0], death_routine=r, death_command=users[-1])


def said_to_be_for_a_cpu(plan):
    """A plan for GPUs whose commands a CPU runs, too: ops that only such plans have, in runs of a machine without a GPU."""
    plan.machine.device, plan.machine.isa, plan.machine.threads = "cpu", "", 1
    del plan.codes[:]
    for role in plan.roles:
        for routine in role.routines:
            for command in routine.commands:
                if command.HasField("kernel"):
                    command.kernel.ClearField("code")
        for program in role.programs:
            program.captured = False
        give_workspaces(role, {"layer_norm_grad", "rms_norm_grad"})  # which these need on a CPU
    return plan
