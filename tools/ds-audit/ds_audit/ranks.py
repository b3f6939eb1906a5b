"""The ranks of a plan: where each stands in the mesh, and its memory, in which an element is read as it was written."""

import numpy

from .elementwise import Tensor
from .placement import Piece, batch_axes, window
from .plans import MOST_BYTES, MOST_RANKS, Refusal, count_of, dtype_of, shape_of

PLAN_SCOPE = 1  # Buffer.Scope
UNWRITTEN, ZERO, REST = 0, 254, 255  # tags of bytes; an element's first byte has its type's number, the others REST


class World:
    def __init__(self, plan):
        self.plan = plan
        self.sizes = tuple(axis.size for axis in plan.world.axes)
        self.size = count_of(self.sizes)
        self.roles = self.roles_by_rank()
        self.batch_axes, training = batch_axes(plan), plan.training
        self.data_ranks = count_of(self.sizes[axis] for axis in self.batch_axes)
        if training.train_batch_size != training.micro_batch_size * training.accumulation_steps * self.data_ranks:
            raise Refusal(f"a step has {training.train_batch_size} samples, not {training.accumulation_steps} micro-batches of "
                          f"{training.micro_batch_size} on {self.data_ranks} data-parallel ranks")

    def roles_by_rank(self):
        if not 0 < self.size <= MOST_RANKS:
            raise Refusal(f"the plan has {self.size} ranks; ds-audit executes 1 to {MOST_RANKS}")
        roles = {}
        for role in self.plan.roles:
            for first, last in zip(role.ranks[::2], role.ranks[1::2]):
                for rank in range(first, min(last, MOST_RANKS) + 1):
                    if rank in roles:
                        raise Refusal(f"rank {rank} has two roles")
                    roles[rank] = role
        if sorted(roles) != list(range(self.size)):
            raise Refusal(f"the mesh has {self.size} ranks, the roles have {len(roles)}")
        return roles

    def coordinates(self, rank):
        return list(numpy.unravel_index(rank, self.sizes))

    def data_rank(self, rank):
        """Its number among the ranks that have other micro-batches."""
        coordinates, number = self.coordinates(rank), 0
        for axis in self.batch_axes:
            number = number * self.sizes[axis] + int(coordinates[axis])
        return number

    def group(self, communicator, rank):
        """Ranks whose coordinates differ on the communicator's axes alone, ordered."""
        axes, own = self.plan.communicators[communicator].axes, self.coordinates(rank)
        return [other for other in range(self.size)
                if all(a == b for axis, (a, b) in enumerate(zip(self.coordinates(other), own)) if axis not in axes)]

    def ends(self, channel, rank):
        """The ranks that send and receive on a channel's line through `rank`."""
        line, found = self.plan.channels[channel], []
        for at in (getattr(line, "from"), line.to):
            coordinates = self.coordinates(rank)
            coordinates[line.axis] = at
            found.append(int(numpy.ravel_multi_index(coordinates, self.sizes)))
        return tuple(found)


class Memory:
    """One arena: the element that begins at a byte, what kind of byte it is, and who wrote it."""

    def __init__(self, size):
        self.values = numpy.zeros(size, numpy.int64)
        self.tags = numpy.zeros(size, numpy.uint8)
        self.writers = numpy.zeros(size, numpy.int32)


class Rank:
    def __init__(self, world, number):
        self.world, self.plan, self.number, self.role = world, world.plan, number, world.roles[number]
        self.data_rank = world.data_rank(number)
        self.memories = [Memory(arena.bytes) for arena in self.role.arenas]
        self.kept = [numpy.zeros(arena.bytes, bool) for arena in self.role.arenas]
        self.log = ["the first values"]  # who wrote, by number
        for buffer in self.role.buffers:
            if buffer.scope == PLAN_SCOPE and not buffer.HasField("next_of"):
                self.kept[buffer.arena][buffer.offset:buffer.offset + buffer.bytes] = True

    def forget(self):
        """Between runs only buffers of scope plan keep their bytes."""
        for memory, kept in zip(self.memories, self.kept):
            memory.tags[~kept] = UNWRITTEN

    def exchange(self, written):
        """What buffers and their nexts hold, where a run has written these."""
        for buffer in (self.role.buffers[index] for index in sorted(written)):
            if not buffer.HasField("next_of"):
                continue
            memory, other = self.memories[buffer.arena], self.role.buffers[buffer.next_of]
            if (other.arena, other.bytes) != (buffer.arena, buffer.bytes):
                raise Refusal(f"buffer {buffer.name} cannot take the place of buffer {other.name}, which is of another size or arena")
            a, b = (slice(one.offset, one.offset + one.bytes) for one in (buffer, other))
            for array in (memory.values, memory.tags, memory.writers):
                array[a], array[b] = array[b].copy(), array[a].copy()

    # ---- addresses

    def locate(self, operand, microbatch):
        """(arena, first byte, bytes)."""
        buffer, width = self.role.buffers[operand.buffer], dtype_of(operand).width
        size = count_of(shape_of(operand)) * width
        within = operand.byte_offset
        if operand.rank_stride:
            within += self.world.group(operand.communicator, self.number).index(self.number) * operand.rank_stride
        if within + size > buffer.bytes:
            raise Refusal(f"bytes {within} to {within + size} are outside of buffer {buffer.name}, which has {buffer.bytes}")
        slot = microbatch % max(buffer.slots, 1)
        offset = buffer.slot_offsets[slot - 1] if slot else buffer.offset
        if offset + buffer.bytes > len(self.memories[buffer.arena].tags):
            raise Refusal(f"buffer {buffer.name} does not lie in its arena")
        return buffer.arena, offset + within, size

    # ---- elements

    def read(self, operand, microbatch) -> Tensor:
        arena, begin, size = self.locate(operand, microbatch)
        return Tensor(self.elements(arena, begin, size, dtype_of(operand), self.name(operand)).reshape(shape_of(operand)), dtype_of(operand))

    def elements(self, arena, begin, size, dtype, name):
        memory = self.memories[arena]
        tags = memory.tags[begin:begin + size].reshape(-1, dtype.width)
        right = (tags[:, 0] == dtype.number) & (tags[:, 1:] == REST).all(axis=1)
        wrong = ~(right | (tags == ZERO).all(axis=1))
        if wrong.any():
            element = int(wrong.argmax())
            at = begin + element * dtype.width
            raise Refusal(f"element {element} of {name} is no {dtype.name} that was written there; its byte was last written by "
                          f"{self.writer(arena, at)}")
        return memory.values[begin:begin + size:dtype.width].copy()

    def writer(self, arena, byte):
        memory = self.memories[arena]
        return "nothing in this run" if memory.tags[byte] == UNWRITTEN else self.log[memory.writers[byte]]

    def write(self, operand, microbatch, tensor, writer):
        arena, begin, size = self.locate(operand, microbatch)
        self.put(arena, begin, tensor.data, dtype_of(operand), writer)

    def put(self, arena, begin, data, dtype, writer):
        memory, end = self.memories[arena], begin + data.size * dtype.width
        memory.values[begin:end] = 0
        memory.values[begin:end:dtype.width] = data.ravel()
        memory.tags[begin:end] = REST
        memory.tags[begin:end:dtype.width] = dtype.number
        memory.writers[begin:end] = writer

    def mark(self, operand, microbatch, tag, writer):
        """Bytes that are zero of any type, or nothing that may be read."""
        arena, begin, size = self.locate(operand, microbatch)
        memory = self.memories[arena]
        memory.values[begin:begin + size] = 0
        memory.tags[begin:begin + size] = tag
        memory.writers[begin:begin + size] = writer

    def name(self, operand):
        return f"buffer {self.role.buffers[operand.buffer].name}"

    # ---- variables

    def held(self):
        """(buffer, variable, the rank's piece of it, a slice of that, byte in the arena) of all variables in buffers of scope plan."""
        coordinates = self.world.coordinates(self.number)
        for buffer in self.role.buffers:
            if buffer.scope != PLAN_SCOPE or not (buffer.HasField("variable") or buffer.HasField("bucket")):
                continue
            if buffer.HasField("variable"):
                variable = self.plan.variables[buffer.variable]
                piece = Piece(variable, coordinates)
                kept = window(variable, self.world, self.number, piece.count)
                self.require_bytes(buffer, (kept.stop - kept.start) * dtype_of(variable).width)
                yield buffer, buffer.variable, piece, kept, buffer.offset
                continue
            bucket = self.plan.buckets[buffer.bucket]
            width, kept = dtype_of(bucket).width, window(bucket, self.world, self.number, bucket.elements)
            self.require_bytes(buffer, (kept.stop - kept.start) * width)
            for member in bucket.members:
                piece, begin = Piece(self.plan.variables[member.variable], coordinates), member.element
                first, last = max(kept.start, begin), min(kept.stop, begin + piece.count)
                if first < last:
                    yield buffer, member.variable, piece, slice(first - begin, last - begin), buffer.offset + (first - kept.start) * width

    def require_bytes(self, buffer, size):
        if buffer.bytes != size:
            raise Refusal(f"buffer {buffer.name} has {buffer.bytes} bytes, but holds {size} by the placement of what lies there")

    def load(self, reference):
        """First values; what lies between a bucket's members is zero."""
        for buffer in self.role.buffers:
            if buffer.scope == PLAN_SCOPE and buffer.HasField("bucket"):
                self.memories[buffer.arena].tags[buffer.offset:buffer.offset + buffer.bytes] = ZERO
        for buffer, variable, piece, kept, byte in self.held():
            value = reference.value(variable, self.data_rank)
            self.put(buffer.arena, byte, piece.of(value.data)[kept], value.dtype, 0)


def make_ranks(world):
    """Every rank with its memory, which is refused before it is made where it would be too much."""
    total = sum(arena.bytes for role in world.roles.values() for arena in role.arenas)
    if total > MOST_BYTES:
        raise Refusal(f"the arenas of all ranks have {total} bytes; ds-audit executes plans of up to {MOST_BYTES}")
    for role in world.plan.roles:
        for buffer in role.buffers:
            places = [buffer.offset, *buffer.slot_offsets]
            if buffer.arena >= len(role.arenas) or max(places) + buffer.bytes > role.arenas[buffer.arena].bytes:
                raise Refusal(f"buffer {buffer.name} of role {role.name} does not lie in an arena")
            if len(places) != max(buffer.slots, 1):
                raise Refusal(f"buffer {buffer.name} of role {role.name} has {buffer.slots} slots and {len(places)} offsets")
    return [Rank(world, number) for number in range(world.size)]
