//===- CallRules.cpp - kernels' own checks of their calls -----------------===//
#include "compiler/check/meaning/CallRules.h"

#include "compiler/check/meaning/Mismatch.h"
#include "core/Error.h"
#include "core/Sha256.h"
#include "kernels/KernelTable.h"
#include "kernels/elementwise/elementwise_ptx.h"
#include "runtime/plan/run/Invocations.h"

#include <cstring>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ds::check {

namespace {

/// Calls visit(role, command) for each command that runs a kernel, and says of its errors where it stands.
template <typename Visit> void forEachKernel(const proto::Plan &plan, Visit visit) {
  for (const proto::Role &role : plan.roles())
    for (const proto::Routine &routine : role.routines())
      for (int i = 0; i < routine.commands_size(); ++i)
        try {
          if (routine.commands(i).has_kernel())
            visit(role, routine.commands(i));
        } catch (const Error &error) {
          throw Mismatch{"role " + role.name() + ", routine " + routine.name() + ", command " + std::to_string(i) +
                         ": " + error.what()};
        }
}

proto::Operand::Access accessOf(const kernels::CallLayout &layout, size_t operand) {
  constexpr proto::Operand::Access accesses[] = {proto::Operand::READ, proto::Operand::WRITE,
                                                 proto::Operand::READ_WRITE};
  return operand < layout.size() ? accesses[size_t(layout[operand].access)] : proto::Operand::SCRATCH;
}

void requireAccesses(const proto::KernelCommand &kernel, const kernels::Invocation &call) {
  const kernels::CallLayout layout(call);
  for (int i = 0; i < kernel.operands_size(); ++i)
    if (const auto access = accessOf(layout, size_t(i)); kernel.operands(i).access() != access)
      throw Error("operand " + std::to_string(i) + " of kernel " + kernel.kernel() + " is said to be " +
                  proto::Operand::Access_Name(kernel.operands(i).access()) + ", but the kernel's row says " +
                  proto::Operand::Access_Name(access));
}

/// The greatest power of two up to 16 that divides an operand's address, of every rank and slot.
uint64_t alignmentOf(const proto::Role &role, const proto::Operand &operand) {
  const proto::Buffer &buffer = role.buffers(int(operand.buffer()));
  uint64_t result = std::gcd<uint64_t>(16, buffer.offset());
  for (const uint64_t offset : buffer.slot_offsets())
    result = std::gcd(result, offset);
  return std::gcd(std::gcd(result, operand.byte_offset()), operand.rank_stride());
}

/// Of the plan's SHA-256: whoever edits a plan does not choose what is run.
uint64_t seedOf(const proto::Plan &plan) {
  const std::string text = plan.SerializeAsString(), digest = sha256(std::as_bytes(std::span(text)));
  uint64_t seed = 0;
  std::memcpy(&seed, digest.data(), sizeof seed);
  return seed;
}

} // namespace

void requireCalls(const proto::Plan &plan) {
  const bool onGpu = plan.machine().device() == "cuda";
  forEachKernel(plan, [&](const proto::Role &role, const proto::Command &command) {
    const bool onHost = role.queues(int(command.queue())).kind() == proto::Queue::HOST;
    const kernels::Invocation call = plan::invocationOf(command.kernel());
    kernels::requireCall(call, onGpu && !onHost ? kernels::Device::Cuda : kernels::Device::Cpu);
    requireAccesses(command.kernel(), call);
  });
}

void requireCodes(const proto::Plan &plan) {
  if (plan.codes().empty())
    return;
  const uint64_t seed = seedOf(plan);
  std::set<std::string> known; // what a code must compute, and where it may count on its operands to lie
  forEachKernel(plan, [&](const proto::Role &role, const proto::Command &command) {
    if (!command.kernel().has_code())
      return;
    proto::KernelCommand form = command.kernel();
    std::vector<uint64_t> alignments;
    for (proto::Operand &operand : *form.mutable_operands()) {
      alignments.push_back(alignmentOf(role, operand));
      operand.set_buffer(0);
      operand.set_byte_offset(alignments.back());
      operand.set_rank_stride(0);
      operand.set_communicator(0);
    }
    if (!known.insert(form.SerializeAsString()).second)
      return;
    const kernels::Invocation call = plan::invocationOf(plan, form, /*rank=*/0);
    if (const auto difference = kernels::differenceOf(call, plan.machine().isa(), alignments, seed))
      throw Error("code " + std::to_string(form.code()) + " (" + std::string(call.code->name) + "): " + *difference);
  });
}

} // namespace ds::check
