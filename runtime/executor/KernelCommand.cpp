//===- KernelCommand.cpp - runs a kernel of kernels/Kernels.inc -----------===//
#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/run/Invocations.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

class KernelCommand final : public Command {
public:
  KernelCommand(const CommandContext &context, const plan::proto::KernelCommand &kernel, std::string where)
      : plan_(context.plan), command_(kernel), where_(std::move(where)), position_(context.position),
        caller_(context.caller), build_(context.build), factory_(context.kernels->find(kernel.kernel())),
        pointers_(size_t(kernel.operands_size())) {
    if (factory_ == nullptr)
      throw Error(where_ + ": there is no kernel " + kernel.kernel() +
                  " for this device; use the ds-run that belongs to "
                  "the ds-opt which compiled the plan");
    for (const plan::proto::Operand &operand : kernel.operands())
      addresses_.push_back(context.storage.operand(operand));
  }

  void initialize() override {
    try {
      kernel_ = factory_(plan::invocationOf(plan_, command_, position_.rank), build_);
    } catch (const Error &error) {
      throw Error(where_ + " (kernel " + command_.kernel() + "): " + error.what());
    }
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    for (size_t i = 0; i < addresses_.size(); ++i)
      pointers_[i] = addresses_[i].at(call.microbatch);
    const kernels::CallContext context{.parallel = queue.parallel(),
                                       .stream = queue.stream(),
                                       .caller = caller_,
                                       .seed = call.run->seed,
                                       .step = call.run->step,
                                       .microbatch = position_.globalMicrobatch(call.microbatch)};
    const Status status = kernel_->execute(context, pointers_);
    return status.ok() ? status : named(status);
  }

  Status refusal(int64_t value) const noexcept override { return named(kernel_->refusal(value)); }

private:
  Status named(const Status &status) const noexcept {
    return Status::failure("rank %u, %s (kernel %s): %s", position_.rank, where_.c_str(), command_.kernel().c_str(),
                           status.message());
  }

  const plan::proto::Plan &plan_;
  const plan::proto::KernelCommand &command_;
  const std::string where_;
  const plan::RankPosition position_;
  const uint32_t caller_;
  const kernels::BuildOptions build_;
  const kernels::Factory factory_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::vector<Address> addresses_;
  std::vector<void *> pointers_; // of the call being run; a command runs on one queue only
};

} // namespace

std::unique_ptr<Command> makeKernelCommand(const CommandContext &context, const plan::proto::KernelCommand &kernel,
                                           std::string where) {
  return std::make_unique<KernelCommand>(context, kernel, std::move(where));
}

} // namespace ds::runtime
