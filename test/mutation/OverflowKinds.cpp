//===- OverflowKinds.cpp - float16 steps that overflow ----------------------===//
//
// overflow-applied is a compiler that forgets the guard, so its reference program lacks it, too: only OverflowRules.cpp
// can refuse that. skip-by-own-gradients leaves the reference program as it is: its norm is of all ranks.
//
//===----------------------------------------------------------------------===//
#include "kernels/KernelTable.h"
#include "test/mutation/Kinds.h"

#include <algorithm>

namespace ds::mutation {

namespace {

bool scalesLoss(const proto::Plan &plan) {
  return std::ranges::any_of(
      plan.variables(), [](const proto::Variable &variable) { return variable.name() == "optimizer::loss_scale"; });
}

/// An update takes the factor of clipping itself, which is neither divided by the scale nor 0 after an overflow.
std::string overflowApplied(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, isOptimizer));
  if (!place || !scalesLoss(plan))
    return "";
  const proto::Routine &routine = routineAt(plan, *place);
  const auto clip = std::ranges::find_if(
      routine.commands(), [](const proto::Command &command) { return isKernel(command, "clip_factor"); });
  if (clip == routine.commands().end())
    return "";
  proto::Command &update = at(plan, *place);
  const kernels::KernelRow &row = *kernels::findKernel(update.kernel().kernel());
  const proto::ReferenceOp &factor = plan.reference().ops(int(clip->reference(0)));
  proto::ReferenceOp &wanted = *plan.mutable_reference()->mutable_ops(int(update.reference(0)));
  wanted.set_operands(int(row.clip()), factor.results(0));
  proto::Operand &operand = *update.mutable_kernel()->mutable_operands(wanted.variables_size() + int(row.clip()));
  operand = clip->kernel().operands(1);
  operand.set_access(proto::Operand::READ);
  return describe(plan, *place) + " is made although gradients overflow";
}

/// A gather of the parts before `first`. Of the others a rank has its own alone, which stands first among zeros.
std::vector<proto::Command> gatherFewer(const proto::Command &gather, int first) {
  std::vector<proto::Command> commands;
  if (first > 0) {
    auto &kept = *commands.emplace_back(gather).mutable_collective()->mutable_parts();
    kept.DeleteSubrange(first, kept.size() - first);
  }
  for (int i = first; i < gather.collective().parts_size(); ++i) {
    const proto::CollectivePart &part = gather.collective().parts(i);
    *commands.emplace_back().mutable_fill()->mutable_target() = part.target();
    proto::CopyCommand &copy = *commands.emplace_back().mutable_copy();
    *copy.mutable_source() = part.source();
    *copy.mutable_target() = part.target();
    *copy.mutable_target()->mutable_shape() = part.source().shape();
  }
  for (proto::Command &command : commands) {
    command.set_queue(gather.queue());
    command.clear_signals();
  }
  *commands.front().mutable_waits() = gather.waits();
  *commands.back().mutable_signals() = gather.signals();
  return commands;
}

/// Sums of squares of a rank's gradients are not gathered, so each rank skips by its own.
std::string skipByOwnGradients(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) {
    return isCollective(command, proto::CollectiveCommand::ALL_GATHER) &&
           command.collective().parts(0).source().dtype() == proto::DTYPE_F64;
  }));
  if (!place || !scalesLoss(plan))
    return "";
  const std::string text = describe(plan, *place) + " gathers less: each rank skips by its own gradients";
  const proto::Command gather = at(plan, *place);
  const std::vector<proto::Command> commands =
      gatherFewer(gather, int(random.below(size_t(gather.collective().parts_size()))));
  at(plan, *place) = commands.front();
  for (size_t i = 1; i < commands.size(); ++i)
    insert(plan, {place->role, place->routine, place->command + int(i)}, commands[i]);
  for (const proto::CollectivePart &part : gather.collective().parts())
    for (proto::Life &life :
         *plan.mutable_roles(place->role)->mutable_buffers(int(part.source().buffer()))->mutable_lives())
      if (life.death_routine() == uint32_t(place->routine) && life.death_command() == uint32_t(place->command))
        life.set_death_command(uint32_t(place->command) + uint32_t(commands.size()) - 1);
  return text;
}

} // namespace

std::vector<Kind> overflowKinds() {
  return {{"overflow-applied", true, overflowApplied}, {"skip-by-own-gradients", true, skipByOwnGradients}};
}

} // namespace ds::mutation
