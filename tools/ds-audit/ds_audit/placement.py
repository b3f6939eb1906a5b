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


def piece(variable, coordinates):
    """Numbers of the elements of the whole variable that the rank at these coordinates has, flat, in the piece's order."""
    elements = numpy.arange(count_of(shape_of(variable))).reshape(shape_of(variable))
    for axis in variable.placement.axes:
        if not axis.HasField("shard"):
            continue
        try:
            part, blocks = int(coordinates[axis.axis]) // axis.shard.repeat, axis.shard.blocks
            kept = [numpy.arange(block.size) + block.offset + part * block.stride for block in blocks]
            elements = numpy.take(elements, numpy.concatenate(kept), axis=axis.shard.dimension)
        except (IndexError, ValueError, ZeroDivisionError) as error:
            raise Refusal(f"variable {variable.name} has no such shard along axis {axis.axis}: {error}") from None
    return elements.ravel()


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
