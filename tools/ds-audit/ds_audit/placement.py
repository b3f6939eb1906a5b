"""Which elements of a tensor a rank holds, by the tensor's placement. Along an axis of the mesh that it names, ranks have shards, terms of
one sum, or values of their own; along all others, the same. A window is a range of a rank's piece laid flat."""

import numpy

from .plans import Refusal, count_of, shape_of


def batch_axes(plan):
    """Axes along which micro-batches are dealt out, which are those along which inputs vary."""
    stated = [message.placement for message in plan.inputs]
    axes = [[axis.axis for axis in placement.axes] for placement in stated]
    if any(not axis.varies for placement in stated for axis in placement.axes) or any(one != axes[0] for one in axes):
        raise Refusal("inputs are dealt out along different axes, or are cut otherwise than by micro-batches")
    if axes and any(axis >= len(plan.world.axes) for axis in axes[0]):
        raise Refusal(f"inputs are dealt out along axes {axes[0]} of a mesh of {len(plan.world.axes)}")
    return axes[0] if axes else []


def require_own(plan, own):
    """What forward changes varies as micro-batches do, and nothing else does."""
    batch = batch_axes(plan)
    for index, variable in enumerate(plan.variables):
        others = [(axis.axis, axis.WhichOneof("how")) for axis in variable.placement.axes if not axis.HasField("shard")]
        if others != [(axis, "varies") for axis in batch if index in own]:
            varies = [axis for axis, how in others if how == "varies"]
            raise Refusal(f"the placement of variable {variable.name} says that it varies along axes {varies}; micro-batches are dealt out "
                          f"along {batch} and {'change' if index in own else 'do not change'} it")


class Piece:
    """What of a variable the rank at some coordinates has: some indices of each dimension. `count`: of its elements."""

    def __init__(self, variable, coordinates):
        self.shape, self.index = shape_of(variable), ...
        self.sizes = self.shape
        if cuts := [axis for axis in variable.placement.axes if axis.HasField("shard")]:
            kept = [numpy.arange(size) for size in self.shape]
            for axis in cuts:
                self.cut(variable, kept, axis, coordinates)
            self.index, self.sizes = numpy.ix_(*kept), [indices.size for indices in kept]
        self.count = count_of(self.sizes)

    def cut(self, variable, kept, axis, coordinates):
        """Of the indices that are kept so far of the dimensions, those of a shard."""
        try:
            part, dimension = int(coordinates[axis.axis]) // axis.shard.repeat, axis.shard.dimension
            blocks = [numpy.arange(block.size) + block.offset + part * block.stride for block in axis.shard.blocks]
            kept[dimension] = numpy.take(kept[dimension], numpy.concatenate(blocks))
        except (IndexError, ValueError, ZeroDivisionError) as error:
            raise Refusal(f"variable {variable.name} has no such shard along axis {axis.axis}: {error}") from None

    def of(self, whole):
        """Its elements of an array of all, flat; without a copy where it is all of them."""
        return whole.reshape(self.shape)[self.index].reshape(-1)

    def mark(self, whole, kept):
        """Makes a slice of the piece's elements true."""
        flat = self.of(whole)
        flat[kept] = True
        whole.reshape(self.shape)[self.index] = flat.reshape(self.sizes)


def window(message, world, rank, count):
    """The slice that a rank keeps of the `count` elements of a piece."""
    if not message.placement.HasField("window"):
        return slice(0, count)
    stated = message.placement.window
    group = world.group(stated.communicator, rank)
    if stated.stride != stated.count or stated.count * len(group) != count:
        raise Refusal(f"windows of {stated.count} elements every {stated.stride} on {len(group)} ranks are not the {count} of {message.name}")
    first = group.index(rank) * stated.count
    return slice(first, first + stated.count)
