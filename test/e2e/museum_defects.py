"""The planted defects of the bug museum (docs/museum): a function for each exhibit, which breaks a right plan in place.

PLANS says what they are planted in; plan_edits.py finds and changes parts of a plan.
"""

import plan_edits as edits
from plan_edits import at

SMALL = {"reduce_bucket_size": 3000, "stage3_prefetch_bucket_size": 3000, "stage3_param_persistence_threshold": 10}
STAGES = {"pipeline": {"stages": 2, "schedule": "1f1b", "chunks": 1}}
DROPOUT = '''
import torch, torch.nn as nn, torch.nn.functional as F

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = nn.Linear(8, 16), nn.Linear(16, 8), nn.Dropout(0.5)

    def forward(self, x):
        return x + self.drop(self.second(self.drop(torch.tanh(self.first(x)))))

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x, labels):
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(x, labels)

def build():
    return Model(), (torch.randn(2, 8), torch.randint(0, 8, (2,)))
'''
# name: model, ranks, micro-batches, ZeRO stage, more of zero_optimization, deepstatic's own keys, a module to export
PLANS = {
    "accumulated": ("gpt2", 1, 3, 0, {}, {}, None),
    "staged": ("gpt2", 2, 3, 0, {}, STAGES, None),
    "staged-data": ("gpt2", 4, 2, 0, {}, STAGES, None),
    "zero1": ("gpt2", 2, 1, 1, SMALL, {}, None),
    "zero2": ("gpt2", 2, 2, 2, {**SMALL, "overlap_comm": False}, {}, None),
    "overlapped": ("gpt2", 2, 2, 2, {**SMALL, "overlap_comm": True}, {}, None),
    "zero3": ("gpt2", 2, 2, 3, SMALL, {}, None),
    "recomputed": ("dropout", 1, 2, 0, {}, {"recompute": "full"}, DROPOUT),
}
PLANS["offloaded"] = (*PLANS["zero2"][:4], {**PLANS["zero2"][4], "offload_optimizer": {"device": "cpu"}}, {}, None)
PLANS["away"] = ("dropout", 1, 2, 0, {}, {"recompute": "none", "offload": {".*": "cpu"}}, DROPOUT.replace("16", "2048"))
EXHIBITS = {}  # page: (name of a plan, defect)


def exhibit(number, plan):
    def enter(plant):
        EXHIBITS[f"{number:02}-{plant.__name__.replace('_', '-')}"] = (plan, plant)
        return plant
    return enter


def accumulations(plan):
    """(place, operand) of each write of a backward to a sum of gradients, in program order."""
    return [(place, operand) for place in edits.find(plan, lambda command: command.HasField("kernel"))
            for operand in edits.operands(at(plan, place))
            if edits.phase(plan, place) == "BACKWARD" and edits.writes(operand) and operand.dtype == edits.FLOAT
            and edits.category(plan, place, operand) == "GRADIENTS" and edits.buffer(plan, place, operand).scope != 4]


def reductions(plan):
    """Collectives that sum gradients over the ranks."""
    return [place for place in edits.collectives(plan, "REDUCE_SCATTER", "ALL_REDUCE") if edits.touches_gradients(plan, place)]


@exhibit(1, "accumulated")
def torchtitan_1733(plan):
    place, operand = accumulations(plan)[-1]
    edits.scale(plan, place, operand, 0.25, after=True)


@exhibit(2, "staged")
def torchtitan_2972(plan):
    edits.set_loss_scale(plan, 1.0)


@exhibit(3, "staged")
def torchtitan_596(plan):
    for place in edits.kernels(plan, "global_norm"):
        kernel = at(plan, place).kernel
        gathered = kernel.operands[0].buffer
        own = next(edits.size(part.source) for other in edits.collectives(plan, "ALL_GATHER") if other.role == place.role
                   for part in at(plan, other).collective.parts if part.target.buffer == gathered)
        blocks = edits.attribute(at(plan, place), "blocks").integers.values
        for number in reversed(range(len(blocks))):
            if kernel.operands[number].byte_offset // own != place.role:  # the other stage's sums
                del kernel.operands[number], blocks[number]


@exhibit(4, "staged-data")
def deepspeed_7773(plan):
    edits.set_loss_scale(plan, edits.loss_scale(plan)[1] * plan.training.accumulation_steps)


@exhibit(5, "staged")
def deepspeed_8152(plan):
    received = {operand.buffer for place in edits.find(plan, lambda command: command.HasField("receive")) if place.role == 0
                for operand in at(plan, place).receive.targets if edits.size(operand) > 8}
    place, operand = next((place, operand) for place in edits.find(plan, lambda command: command.HasField("kernel")) if place.role == 0
                          for operand in at(plan, place).kernel.operands
                          if edits.phase(plan, place) == "BACKWARD" and operand.buffer in received)
    edits.scale(plan, place, operand, 0.5)


@exhibit(6, "accumulated")
def areal_1273(plan):
    edits.set_loss_scale(plan, edits.loss_scale(plan)[1] ** 2)


@exhibit(7, "zero2")
def megatron_3023(plan):
    place = reductions(plan)[0]
    edits.scale(plan, place, at(plan, place).collective.parts[0].target, 0.5)


@exhibit(8, "accumulated")
def megatron_6660(plan):
    place, operand = accumulations(plan)[0]
    edits.double(plan, place, operand)


@exhibit(9, "zero2")
def megatron_7186(plan):
    part = at(plan, reductions(plan)[0]).collective.parts[0]
    assert part.accumulate
    part.accumulate, part.target.access = False, edits.WRITE


@exhibit(10, "zero2")
def deepspeed_7718(plan):
    edits.idle(plan, reductions(plan)[0])


@exhibit(11, "accumulated")
def deepspeed_8224(plan):
    names = {variable.name for variable in plan.variables}
    adds = {number for number, op in enumerate(plan.reference.ops) if op.op == "train.add" and op.name in names}
    place = next(place for place in edits.kernels(plan, "elementwise") if adds & set(at(plan, place).reference))
    program = edits.attribute(at(plan, place), "program").integers.values
    program[0], program[3] = edits.COPY, -1


@exhibit(12, "staged")
def piper_25(plan):
    received = {(place.role, operand.buffer) for place in edits.find(plan, lambda command: command.HasField("receive"))
                for operand in at(plan, place).receive.targets if operand.shape}
    edits.idle(plan, next(place for place in edits.kernels(plan, "elementwise") if edits.phase(plan, place) == "UPDATE"
                          for operand in at(plan, place).kernel.operands
                          if edits.reads(operand) and (place.role, operand.buffer) in received))


@exhibit(13, "zero1")
def pytorch_176076(plan):
    place = next(place for place in edits.kernels(plan, "adamw") if at(plan, place).kernel.operands[0].rank_stride)
    at(plan, place).kernel.operands[0].rank_stride = 0


def waiting_reduction(plan):
    return next(place for place in reductions(plan) if at(plan, place).waits and edits.phase(plan, place) == "BACKWARD")


@exhibit(14, "overlapped")
def deepspeed_8061(plan):
    at(plan, waiting_reduction(plan)).ClearField("waits")


@exhibit(15, "overlapped")
def deepspeed_7898(plan):
    fed = next(event for place in edits.find(plan, lambda command: command.HasField("feed")) for event in at(plan, place).signals)
    for wait in at(plan, waiting_reduction(plan)).waits:
        wait.event, wait.delay = fed, 0


def waits_for_reductions(plan):
    """(place, wait) of kernels of the backward that wait for a reduction."""
    ended = {event for place in reductions(plan) for event in at(plan, place).signals}
    return [(place, wait) for place in edits.find(plan, lambda command: command.HasField("kernel"))
            if edits.phase(plan, place) == "BACKWARD" for wait in at(plan, place).waits if wait.event in ended]


@exhibit(16, "overlapped")
def deepspeed_5545(plan):
    for place, wait in waits_for_reductions(plan):
        at(plan, place).waits.remove(wait)


def sent(plan):
    """The buffers that two reductions read whole."""
    held = []
    for place in reductions(plan):
        one = edits.buffer(plan, place, at(plan, place).collective.parts[0].source)
        if one not in held:
            held.append(one)
    return held


@exhibit(17, "overlapped")
def deepspeed_7188(plan):
    first, second = sent(plan)[:2]
    second.offset = first.offset


@exhibit(18, "overlapped")
def megatron_5222(plan):
    for _, wait in waits_for_reductions(plan):
        wait.delay += 1


@exhibit(19, "overlapped")
def deepspeed_7965(plan):
    place = reductions(plan)[0]
    life = edits.buffer(plan, place, at(plan, place).collective.parts[0].source).lives[0]
    assert life.death_routine == place.routine
    life.death_command = place.index - 1


@exhibit(20, "zero2")
def pytorch_180889(plan):
    shards = [edits.buffer(plan, place, at(plan, place).collective.parts[0].target) for place in reductions(plan)]
    shards[1].offset = shards[0].offset


def change_mask(plan, repeated):
    """The mask of a dropout in the backward: of one that repeats the forward's, or of its gradient."""
    dropouts = edits.kernels(plan, "dropout")
    forward = {op for place in dropouts if edits.phase(plan, place) == "FORWARD" for op in at(plan, place).reference}
    place = next(place for place in dropouts if edits.phase(plan, place) == "BACKWARD"
                 and forward.issuperset(at(plan, place).reference) == repeated)
    edits.attribute(at(plan, place), "op_id").integer += 1000


@exhibit(21, "recomputed")
def pytorch_190758(plan):
    change_mask(plan, repeated=True)


@exhibit(22, "recomputed")
def olmo_828(plan):
    change_mask(plan, repeated=False)


@exhibit(23, "zero3")
def deepspeed_8262(plan):
    calls = edits.step(plan.roles[edits.split_role(plan)]).calls
    for call in reversed(calls[:-1]):
        if call.microbatch == 1:
            calls.remove(call)


def pair_of_collectives(plan, role, alike):
    """Two that follow each other in a routine of the role and are, or are not, alike on the wire."""
    def wire(place):
        collective = at(plan, place).collective
        return collective.kind, [edits.size(part.source) for part in collective.parts]
    places = [place for place in edits.find(plan, lambda command: command.HasField("collective")) if place.role == role]
    return next((a, b) for a, b in zip(places, places[1:]) if a.routine == b.routine and (wire(a) == wire(b)) == alike)


def swap(plan, pair):
    first, second = (at(plan, place).collective for place in pair)
    kept = type(first)()
    kept.CopyFrom(first)
    first.CopyFrom(second)
    second.CopyFrom(kept)


@exhibit(24, "zero2")
def nccl_296(plan):
    swap(plan, pair_of_collectives(plan, edits.split_role(plan), alike=False))


@exhibit(25, "zero3")
def nccl_531(plan):
    role = edits.split_role(plan)
    part = next(at(plan, place).collective.parts[0] for place in edits.collectives(plan, "ALL_GATHER") if place.role == role)
    part.source.shape[0] //= 2
    part.target.shape[0] //= 2


@exhibit(26, "zero3")
def megatron_2252(plan):
    swap(plan, pair_of_collectives(plan, edits.split_role(plan), alike=True))


@exhibit(27, "accumulated")
def transformers_24088(plan):
    place = edits.kernels(plan, "increment")[0]
    again = type(at(plan, place))()
    again.CopyFrom(at(plan, place))
    again.ClearField("waits")
    again.ClearField("signals")
    edits.insert(plan, edits.Place(place.role, place.routine, place.index + 1), again)


@exhibit(28, "accumulated")
def te_1524(plan):
    edits.attribute(at(plan, edits.kernels(plan, "attention")[0]), "causal").integer = 0


@exhibit(29, "staged")
def torchtitan_550(plan):
    edits.idle(plan, next(place for place in edits.kernels(plan, "elementwise") if edits.phase(plan, place) == "METRIC"))


@exhibit(30, "accumulated")
def megatron_deepspeed_452(plan):
    commands = [at(plan, place).kernel for place in edits.kernels(plan, "clip_factor")]
    for one in [one for holder in [*commands, *plan.reference.ops] for one in holder.attributes if one.name == "max_norm"]:
        one.number *= 10


@exhibit(31, "offloaded")
def deepspeed_7981(plan):
    """What is added to has come from host memory, and is in no buffer of gradients."""
    part = at(plan, edits.collectives(plan, "REDUCE_SCATTER")[0]).collective.parts[0]
    assert part.accumulate
    part.accumulate, part.target.access = False, edits.WRITE


@exhibit(32, "away")
def pytorch_180665(plan):
    role = plan.roles[0]
    for routine in role.routines:
        copies = [command for command in routine.commands if role.queues[command.queue].name == "evict"]
        ended = {event for command in copies for event in command.signals}
        early = [command for command in routine.commands if any(wait.event in ended for wait in command.waits)]
        for command in early[:-1]:  # the last waits for all
            early[-1].waits.extend(wait for wait in command.waits if wait.event in ended)
            kept = [wait for wait in command.waits if wait.event not in ended]
            del command.waits[:]
            command.waits.extend(kept)
