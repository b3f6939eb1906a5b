"""Bugs to plant in the compiler's passes, in a copy of the sources. Draws must find each.

A text stands once in its file. None is of what a plan and one rank's have in common (differentiation, the optimizer's formulas): no run beside one
rank shows that.
"""

PASSES = "compiler/passes"
PLANTED = {  # name: (file, what it does, a text, what stands there instead)
    "collective-not-awaited": (
        f"{PASSES}/plan/OrderQueues.cpp", "compute goes on beside a collective whose result it reads",
        "    for (const UnderWay &other : due_)\n      command.addWait(other.done);\n    due_.clear();\n    lastCompute_ = command;",
        "    for (const UnderWay &other : due_)\n      if (!other.isOn(\"collective\"))\n        command.addWait(other.done);\n"
        "    due_.clear();\n    lastCompute_ = command;"),
    "other-queue-not-awaited": (
        f"{PASSES}/plan/OrderQueues.cpp", "a copy back does not wait for the copy away of the same bytes",
        "if (!other.isOn(queue) && (other.meets(command)", "if (!other.isOn(queue) && !other.isOn(evictQueue) && (other.meets(command)"),
    "compute-not-awaited": (
        f"{PASSES}/plan/OrderQueues.cpp", "what is put on the queue of collectives does not wait for compute",
        "    command.addWait(ready->second);\n    for (ArrayRef<UnderWay> others",
        "    if (queue != \"collective\")\n      command.addWait(ready->second);\n    for (ArrayRef<UnderWay> others"),
    "offset-behind-a-full-block": (
        f"{PASSES}/zero/LayOutBuckets.cpp", "in a bucket of three, what follows a parameter of whole blocks lies on its last one",
        "      end += llvm::alignTo(parameter.getTensorType().getNumElements(), block);",
        "      end += llvm::alignTo(parameter.getTensorType().getNumElements(), block) -\n"
        "             (plan.parameters.size() > 2 && parameter.getTensorType().getNumElements() % block == 0 ? block : 0);"),
    "lone-bucket-not-reduced": (
        f"{PASSES}/zero/InsertReductions.cpp", "a bucket of one member is not summed over the ranks with three micro-batches and more",
        "if (bucket.isSharded() || !isGradient(bucket, symbols) || !isAddedTo(bucket.getSymNameAttr()))",
        "if (bucket.isSharded() || !isGradient(bucket, symbols) || !isAddedTo(bucket.getSymNameAttr()) ||\n"
        "          (bucket.getMembers().size() == 1 && microbatches > 2))"),
    "packed-on-its-neighbour": (
        f"{PASSES}/zero/InsertReductions.cpp", "the third gradient that is packed lies where the second does",
        "        offsets.push_back(offsetOf(accumulate, buckets));",
        "        offsets.push_back(offsets.size() == 2 ? offsets.back() : offsetOf(accumulate, buckets));"),
    "loss-of-three-ranks": (
        f"{PASSES}/zero/InsertReductions.cpp", "three ranks do not sum their losses",
        "      if (variable.getKind() != train::VariableKind::Metric)",
        "      if (variable.getKind() != train::VariableKind::Metric || ranks_ == 3)"),
    "narrow-sum-replaced": (
        f"{PASSES}/zero/NarrowReductions.cpp", "a sum in 16 bits of a bucket of one member replaces those of earlier micro-batches",
        "    if (accumulate) {", "    if (accumulate && bucket.getMembers().size() > 1) {"),
    "reused-of-the-bucket-before": (
        f"{PASSES}/zero/ElideRedundantGathers.cpp", "what is gathered again is taken of the bucket before, where that is as large",
        "      gone.getResult(0).replaceAllUsesWith(uses.gathers[source[i]].whole);",
        "      const size_t at = source[i], before = at > 0 ? at - 1 : at;\n"
        "      const bool alike = uses.gathers[before].whole.getType() == gone.getResult(0).getType();\n"
        "      gone.getResult(0).replaceAllUsesWith(uses.gathers[alike ? before : at].whole);"),
    "reduced-too-early": (
        f"{PASSES}/zero/AdvanceReductions.cpp", "with two micro-batches gradients are summed over the ranks after each",
        "    if (microbatches != 1)", "    if (microbatches > 2)"),
    "groups-in-one-bucket": (
        f"{PASSES}/zero/PlanBuckets.cpp", "parameters that are updated otherwise share a bucket",
        "stagesOf(parameter.getSymNameAttr()), updates_.lookup(parameter.getSymNameAttr())}];",
        "stagesOf(parameter.getSymNameAttr()), 0}];"),
    "gather-forgets-its-update": (
        f"{PASSES}/zero/ShardOptimizer.cpp", "with ZeRO 1 and 2 a rank keeps the others' old slices of a bucket of one member",
        "    if (!bucket.isSharded()) {\n      Value own",
        "    if (!bucket.isSharded() && members.size() > 1) {\n      Value own"),
    "joined-against-order": (
        f"{PASSES}/zero/CombineCollectives.cpp", "two collectives that become one exchange their results",
        "    first->replaceAllUsesWith(both->getResults().take_front(split));\n    second->replaceAllUsesWith(both->getResults().drop_front(split));",
        "    first->replaceAllUsesWith(first->getResultTypes() == second->getResultTypes() ? both->getResults().drop_front(split)\n"
        "                                                                                  : both->getResults().take_front(split));\n"
        "    second->replaceAllUsesWith(first->getResultTypes() == second->getResultTypes() ? both->getResults().take_front(split)\n"
        "                                                                                   : both->getResults().drop_front(split));"),
    "tie-of-three-stages": (
        f"{PASSES}/pipeline/JoinStages.cpp", "a parameter of three stages and more is not summed over them",
        "      if (roles.size() < 2 || !gradient)", "      if (roles.size() != 2 || !gradient)"),
    "norm-of-the-first-partial": (
        f"{PASSES}/pipeline/JoinStages.cpp", "of another stage's partial sums of squares the first is taken for all",
        "                                       owner * length + offsets[index]));",
        "                                       owner * length + (owner == 0 ? offsets[index] : 0)));"),
    "last-feed-left-out": (
        f"{PASSES}/pipeline/ScheduleCalls.cpp", "the last micro-batch's data are not fed",
        "      if (task.kind == scheduling::TaskKind::Forward && task.microbatch + 1 < microbatches)",
        "      if (task.kind == scheduling::TaskKind::Forward && task.microbatch + 2 < microbatches)"),
    "operand-not-dead": (
        f"{PASSES}/plan/ReuseDyingOperands.cpp", "a result overwrites an operand that is read once more",
        "      return use.position <= uses_.positionOf(command) && onCompute(use.command);",
        "      return use.position <= uses_.positionOf(command) + 1 && onCompute(use.command);"),
    "life-too-short": (
        f"{PASSES}/plan/AssignOffsets.cpp", "a buffer's bytes are another's while its last command runs",
        "      int64_t first = span.first.time(), last = span.last.time() + 1;", "      int64_t first = span.first.time(), last = span.last.time();"),
    "vector-stays-on-the-host": (
        f"{PASSES}/offload/RunOnHost.cpp", "what the host makes of a vector does not come back",
        "    if (kernel.writes(index) && kernel.getAccess(index) != plan::Access::Scratch)",
        "    if (kernel.writes(index) && kernel.getAccess(index) != plan::Access::Scratch && type.getRank() != 1)"),
    "piece-of-the-piece-before": (
        f"{PASSES}/offload/SplitUpdates.cpp", "the second piece of an update and those behind it begin an element early",
        "      offsets[index] += begin * type.getElementTypeBitWidth() / 8;",
        "      offsets[index] += std::max<int64_t>(begin - 1, 0) * type.getElementTypeBitWidth() / 8;"),
    "read-before-it-is-written": (
        f"{PASSES}/offload/ReadAhead.cpp", "state is read from its file before an update of the same step has written it",
        "        return other && isBefore && conflict(other, command);",
        "        return other && isBefore && conflict(other, command) && !other.isOnQueue(\"nvme_write\") && !isa<plan::CopyOp>(user);"),
    "another-tensor-comes-back": (
        f"{PASSES}/offload/OffloadActivations.cpp", "a transfer back from a file is left out",
        "      held = dist::TransferOp::create(b, load.getLoc(), load.getType(), held, nvme, host);", "      held = load.getResult();"),
}
