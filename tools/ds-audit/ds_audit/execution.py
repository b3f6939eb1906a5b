"""Runs a program on all ranks, a command at a time, in a random order that queues and events allow."""

import collections
import functools
import random

import numpy

from .elementwise import Tensor
from .kernels import ROWS, Place, call
from .plans import Refusal, attributes_of, count_of, dtype_of, shape_of
from .ranks import UNWRITTEN, ZERO

READ, WRITE, READ_WRITE, SCRATCH = 1, 2, 3, 4  # Operand.Access
ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, BROADCAST, ALL_TO_ALL = 1, 2, 3, 4, 5
COMPUTE = 1  # Queue.Kind
WHIMS = 0.1  # of all choices: not the preferred queue but any


Instance = collections.namedtuple("Instance", "rank queue text microbatch command")  # one command of one call on one rank


class Run:
    def __init__(self, world, ranks, data, algebra, program, step, first_sample, order):
        self.world, self.ranks, self.data, self.algebra = world, ranks, data, algebra
        self.name, self.step, self.first_sample = program, step, first_sample
        self.random = random.Random(f"{order} {program} {step}")
        self.buffered = order % 2 == 1  # whether a message may leave before its receiver waits for it
        self.queues = {}   # (rank, queue) -> what is left to do, the last first
        self.events = {}   # (rank, event) -> count
        self.messages = {}  # (channel, sender, receiver) -> what was sent
        self.commands = 0
        for rank in ranks:
            rank.forget()
            self.issue(rank, tail=False)
        self.priority = {key: self.priority_of(key, order) for key in self.queues}
        self.order = order

    def program_of(self, rank):
        for program in rank.role.programs:
            if program.name == self.name:
                return program
        raise Refusal(f"role {rank.role.name} has no program {self.name}")

    def issue(self, rank, tail):
        """The calls of a program's tail, or those before it."""
        program = self.program_of(rank)
        first = program.tail.first_call if program.HasField("tail") else len(program.calls)
        for number, one in enumerate(program.calls):
            if (number >= first) != tail:
                continue
            routine = rank.role.routines[one.routine]
            for index, command in enumerate(routine.commands):
                text = (f"program {self.name}, rank {rank.number}, call {number} (routine {routine.name}, micro-batch {one.microbatch}), "
                        f"command {index} ({self.describe(command)})")
                self.queues.setdefault((rank.number, command.queue), []).append(Instance(rank, command.queue, text, one.microbatch, command))
        for instances in self.queues.values():
            if instances and instances[0].rank is rank:
                instances.reverse()

    def describe(self, command):
        kind, ops = command.kernel.kernel or command.WhichOneof("kind"), self.world.plan.reference.ops
        names = [ops[i].name for i in command.reference if i < len(ops)]
        return f"{kind} of {names[0]}" if names else str(kind)

    def priority_of(self, key, order):
        """Compute first in the first order, last in the second; then any."""
        computes = self.ranks[key[0]].role.queues[key[1]].kind == COMPUTE
        return (computes if order == 0 else not computes if order == 1 else 0, self.random.random())

    # ---- order

    def run(self):
        self.execute_all()
        if self.goes_on():
            for rank in self.ranks:
                self.issue(rank, tail=True)
            self.priority |= {key: self.priority_of(key, self.order) for key in self.queues if key not in self.priority}
            self.execute_all()
        for rank in self.ranks:
            commands = (command for one in self.program_of(rank).calls for command in rank.role.routines[one.routine].commands)
            rank.exchange({command.copy.target.buffer for command in commands if command.HasField("copy")})

    def goes_on(self):
        """Whether the program has a tail, and what that asks for is not 1; all ranks have the same there."""
        tails = [(rank, self.program_of(rank).tail) for rank in self.ranks if self.program_of(rank).HasField("tail")]
        asked = {int(rank.read(tail.unless_one, 0).data.item()) for rank, tail in tails}
        if len(asked) > 1 or len(tails) not in (0, len(self.ranks)):
            raise Refusal(f"not all ranks run the tail of program {self.name}, or none of them")
        return bool(asked - {1})

    def execute_all(self):
        while any(self.queues.values()):
            keys = sorted((key for key, left in self.queues.items() if left), key=self.priority.get, reverse=True)
            if self.random.random() < WHIMS:
                self.random.shuffle(keys)
            for key in keys:
                group = self.ready(self.queues[key][-1])
                if group:
                    break
            else:
                waiting = self.queues[keys[0]][-1]
                raise Refusal(f"{waiting.text} never starts: no command of any rank can")
            self.execute(group)

    def may_start(self, instance):
        return all(self.events.get((instance.rank.number, wait.event), 0) >= instance.microbatch + 1 - wait.delay
                   for wait in instance.command.waits)

    def ready(self, instance):
        """The commands that can now run as one: this, all ranks' of a collective, or both ends of a message."""
        if not self.may_start(instance):
            return None
        kind = instance.command.WhichOneof("kind")
        if kind == "collective":
            return self.meeting(instance)
        if kind == "receive":
            return [instance] if self.messages.get(self.line(instance, instance.command.receive.channel)) else None
        if kind == "send" and not self.buffered:
            line = self.line(instance, instance.command.send.channel)
            heads = self.heads(line[2], lambda other: other.command.WhichOneof("kind") == "receive" and other.command.receive.channel == line[0])
            return [instance] if heads else None
        return [instance]

    def heads(self, rank, matches):
        return [left[-1] for (number, _), left in self.queues.items()
                if number == rank and left and matches(left[-1]) and self.may_start(left[-1])]

    def line(self, instance, channel):
        sender, receiver = self.world.ends(channel, instance.rank.number)
        own = sender if instance.command.WhichOneof("kind") == "send" else receiver
        if own != instance.rank.number:
            raise Refusal(f"{instance.text}: its rank is not at this end of channel {channel}")
        return channel, sender, receiver

    def meeting(self, instance):
        wanted, kind, group = instance.command.collective.communicator, instance.rank.role.queues[instance.queue].kind, []
        for rank in self.world.group(wanted, instance.rank.number):
            heads = self.heads(rank, lambda other: other.command.WhichOneof("kind") == "collective"
                               and other.command.collective.communicator == wanted and other.rank.role.queues[other.queue].kind == kind)
            if not heads:
                return None
            group.append(heads[0])
        return group

    def execute(self, group):
        for instance in group:
            instance.rank.log.append(instance.text)
        try:
            getattr(self, group[0].command.WhichOneof("kind"))(group)
        except Refusal as refusal:
            raise Refusal(f"{group[0].text}: {refusal}") from None
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Refusal(f"{group[0].text}: cannot be executed ({error})") from None
        for instance in group:
            self.commands += 1
            self.queues[instance.rank.number, instance.queue].pop()
            for event in instance.command.signals:
                key = (instance.rank.number, event)
                self.events[key] = max(self.events.get(key, 0), instance.microbatch + 1)

    # ---- commands

    def kernel(self, group):
        rank, microbatch, kernel = group[0].rank, group[0].microbatch, group[0].command.kernel
        if kernel.kernel not in ROWS:
            raise Refusal(f"ds-audit knows no kernel {kernel.kernel}")
        reads, writes, scratches = ([operand for operand in kernel.operands if operand.access in access]
                                    for access in ((READ, READ_WRITE), (WRITE, READ_WRITE), (SCRATCH,)))
        require_places(rank, kernel.kernel, reads, writes, scratches, microbatch)
        results = [(dtype_of(operand), shape_of(operand)) for operand in writes]
        place = Place(self.step, microbatch * self.world.data_ranks + rank.data_rank)
        inputs = [rank.read(operand, microbatch) for operand in reads]
        values = call(self.algebra, kernel.kernel, inputs, attributes_of(kernel), results, place)
        writer = len(rank.log) - 1
        for operand in scratches:
            rank.mark(operand, microbatch, UNWRITTEN, writer)
        for operand, value in zip(writes, values):
            rank.write(operand, microbatch, value, writer)

    def fill(self, group):
        rank = group[0].rank
        rank.mark(group[0].command.fill.target, group[0].microbatch, ZERO, len(rank.log) - 1)

    def copy(self, group):
        rank, copy, microbatch = group[0].rank, group[0].command.copy, group[0].microbatch
        require_alike(copy.source, copy.target)
        require_places(rank, "elementwise", [copy.source], [copy.target], [], microbatch)
        rank.write(copy.target, microbatch, rank.read(copy.source, microbatch), len(rank.log) - 1)

    def feed(self, group):
        rank, feed, training = group[0].rank, group[0].command.feed, self.world.plan.training
        microbatch = group[0].microbatch * self.world.data_ranks + rank.data_rank
        require_alike(self.world.plan.inputs[feed.input], feed.target)
        value = self.data.batch(feed.input, self.first_sample + microbatch * training.micro_batch_size)
        rank.write(feed.target, group[0].microbatch, value, len(rank.log) - 1)

    def send(self, group):
        rank, send = group[0].rank, group[0].command.send
        values = [rank.read(source, group[0].microbatch) for source in send.sources]
        self.messages.setdefault(self.line(group[0], send.channel), []).append(values)

    def receive(self, group):
        rank, receive = group[0].rank, group[0].command.receive
        values = self.messages[self.line(group[0], receive.channel)].pop(0)
        types = [(dtype_of(target), shape_of(target)) for target in receive.targets]
        if types != [(value.dtype, value.data.shape) for value in values]:
            raise Refusal("what was sent has other types or shapes than what is received")
        for target, value in zip(receive.targets, values):
            rank.write(target, group[0].microbatch, value, len(rank.log) - 1)

    def collective(self, group):
        commands = [instance.command.collective for instance in group]
        if len({(command.kind, len(command.parts)) for command in commands}) > 1:
            raise Refusal("other ranks enter another collective")
        for parts in zip(*(command.parts for command in commands)):
            self.part(commands[0].kind, group, parts)

    def part(self, kind, group, parts):
        sources, ranks = [], len(group)
        for index, (instance, part) in enumerate(zip(group, parts)):
            require_slices(kind, index, instance, part)
            source = instance.rank.read(part.source, instance.microbatch)
            sources.append(source.data.ravel())
            if (source.dtype, source.data.size) != (dtype_of(parts[0].source), sources[0].size) or part.accumulate != parts[0].accumulate:
                raise Refusal("other ranks enter it with other types, sizes or sums")
        for instance, part in zip(group, parts):
            if part.HasField("scratch"):
                instance.rank.mark(part.scratch, instance.microbatch, UNWRITTEN, len(instance.rank.log) - 1)
        for index, (instance, part) in enumerate(zip(group, parts)):
            data = combined(self.algebra, kind, index, ranks, sources, dtype_of(part.source))
            if dtype_of(part.target) != dtype_of(part.source) or count_of(shape_of(part.target)) != data.size:
                raise Refusal(f"its target has other types or sizes than the {data.size} elements that arrive")
            if part.accumulate and kind in (REDUCE_SCATTER, ALL_REDUCE):
                data = total(self.algebra, [instance.rank.read(part.target, instance.microbatch).data.ravel(), data], dtype_of(part.target))
            instance.rank.write(part.target, instance.microbatch, Tensor(data, dtype_of(part.target)), len(instance.rank.log) - 1)


def combined(algebra, kind, index, ranks, sources, dtype):
    """What a rank's target receives."""
    if kind in (REDUCE_SCATTER, ALL_TO_ALL) and sources[0].size % ranks:
        raise Refusal(f"{sources[0].size} elements have no {ranks} equal slices")
    own = slice(index * (sources[0].size // ranks), (index + 1) * (sources[0].size // ranks))
    slices = [source[own] for source in sources]
    if kind in (ALL_GATHER, ALL_TO_ALL):
        return numpy.concatenate(sources if kind == ALL_GATHER else slices)
    if kind in (ALL_REDUCE, REDUCE_SCATTER):
        return total(algebra, sources if kind == ALL_REDUCE else slices, dtype)
    if kind != BROADCAST:
        raise Refusal(f"there is no collective of kind {kind}")
    return sources[0]


def total(algebra, parts, dtype):
    return functools.reduce(algebra.add if dtype.is_float else numpy.add, parts)


# ---- where operands may lie

def overlap(a, b):
    return a[0] == b[0] and a[1] < b[1] + b[2] and b[1] < a[1] + a[2]


def require_alike(source, target):
    if (source.dtype, list(source.shape)) != (target.dtype, list(target.shape)):
        raise Refusal("its two ends have different types or shapes")


def require_places(rank, kernel, reads, writes, scratches, microbatch):
    """A result lies apart from what a kernel reads, but where the kernel reads each element before it writes that one."""
    for index, write in enumerate([*writes, *scratches]):
        place = rank.locate(write, microbatch)
        for position, read in enumerate(reads):
            other = rank.locate(read, microbatch)
            if not overlap(place, other) or read is write:
                continue
            may = index < len(writes) and (kernel == "elementwise" or index in ROWS[kernel].results_over and position in ROWS[kernel].over)
            if not may or place != other or dtype_of(read).width != dtype_of(write).width:
                raise Refusal(f"{rank.name(write)} overlaps {rank.name(read)}, which the kernel still reads")
        for other in [*writes, *scratches][:index]:
            if overlap(place, rank.locate(other, microbatch)):
                raise Refusal(f"{rank.name(write)} overlaps {rank.name(other)}, which the kernel writes as well")


def require_slices(kind, index, instance, part):
    """Source and target lie apart, or are one, or one is this rank's slice of the other."""
    rank, microbatch = instance.rank, instance.microbatch
    source, target = (rank.locate(operand, microbatch) for operand in (part.source, part.target))
    if not overlap(source, target) or source == target and kind != ALL_TO_ALL:
        return
    own = {ALL_GATHER: (target, source), REDUCE_SCATTER: (source, target)}.get(kind)
    if own is None or own[1][1] != own[0][1] + index * own[1][2]:
        raise Refusal(f"{rank.name(part.target)} overlaps {rank.name(part.source)}, but not in this rank's slice alone")
