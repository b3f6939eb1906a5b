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

/// The sums of squares of a rank's gradients are not gathered, so each rank skips by its own: what it has stands first
/// among zeros.
std::string skipByOwnGradients(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) {
    return isCollective(command, proto::CollectiveCommand::ALL_GATHER) && command.collective().parts_size() == 1 &&
           command.collective().parts(0).source().dtype() == proto::DTYPE_F64;
  }));
  if (!place || !scalesLoss(plan))
    return "";
  const std::string text = describe(plan, *place) + " left out: each rank skips by its own gradients";
  proto::Command &gather = at(plan, *place);
  const proto::Operand own = gather.collective().parts(0).source(), all = gather.collective().parts(0).target();
  proto::Command copy;
  copy.set_queue(gather.queue());
  *copy.mutable_copy()->mutable_source() = own;
  *copy.mutable_copy()->mutable_target() = own;
  copy.mutable_copy()->mutable_target()->set_buffer(all.buffer());
  copy.mutable_copy()->mutable_target()->set_byte_offset(all.byte_offset());
  copy.mutable_copy()->mutable_target()->set_access(proto::Operand::WRITE);
  copy.mutable_signals()->Swap(gather.mutable_signals()); // when it has finished
  *gather.mutable_fill()->mutable_target() = all;
  for (proto::Life &life : *plan.mutable_roles(place->role)->mutable_buffers(int(own.buffer()))->mutable_lives())
    if (life.death_routine() == uint32_t(place->routine) && life.death_command() == uint32_t(place->command))
      life.set_death_command(uint32_t(place->command) + 1);
  insert(plan, {place->role, place->routine, place->command + 1}, copy);
  return text;
}

} // namespace

std::vector<Kind> overflowKinds() {
  return {{"overflow-applied", true, overflowApplied}, {"skip-by-own-gradients", true, skipByOwnGradients}};
}

} // namespace ds::mutation
