//===- FeedCommand.cpp - a micro-batch's part of a graph input ------------===//
#include "core/Status.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/Arena.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Run.h"
#include "runtime/executor/Storage.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace ds::runtime {
namespace {

/// Micro-batches of the longest run of the role.
uint64_t maxMicrobatches(const plan::proto::Role &role) {
  uint64_t most = 0;
  for (const plan::proto::Program &program : role.programs())
    for (const plan::proto::Call &call : program.calls())
      most = std::max<uint64_t>(most, call.microbatch() + 1);
  return most;
}

/// Micro-step k of data rank r takes samples [(k * d + r) * m, (k * d + r + 1) * m) of the run, cf. Run::again. Where
/// the device's memory is not the host's, every micro-batch of a run has its place in staging memory, so that a
/// recorded run copies from where the host has written anew.
class FeedCommand final : public Command {
public:
  FeedCommand(const CommandContext &context, const plan::proto::FeedCommand &feed)
      : input_(feed.input()), position_(context.position), samples_(context.plan.training().micro_batch_size()),
        target_(context.storage.operand(feed.target())), bytes_(operandBytes(feed.target())),
        staging_(context.device.createStaging(maxMicrobatches(context.role) * bytes_)) {}

  Status stage(const Call &call) noexcept override {
    const Run &run = *call.run;
    const uint64_t first = position_.globalMicrobatch(call.microbatch) * samples_; // in the run
    if (run.again == 0)
      return run.data->read(input_, run.firstSample + first, samples_, hostTarget(call));
    for (uint64_t i = 0; i < samples_; ++i)
      if (Status status = run.data->read(input_, run.firstSample + (first + i) % run.again, 1,
                                         hostTarget(call) + i * (bytes_ / samples_));
          !status.ok())
        return status;
    return Status::success();
  }

  Status run(const Call &call, Queue &queue) noexcept override {
    if (const Status status = stage(call); !status.ok() || !staging_)
      return status;
    return queue.copy(target_.at(call.microbatch), hostTarget(call), bytes_);
  }

private:
  std::byte *hostTarget(const Call &call) const noexcept {
    return staging_ ? staging_->base() + call.microbatch * bytes_ : target_.at(call.microbatch);
  }

  const uint32_t input_;
  const plan::RankPosition position_;
  const uint64_t samples_; // of one micro-batch
  const Address target_;
  const uint64_t bytes_; // of one micro-batch
  const std::unique_ptr<Arena> staging_;
};

} // namespace

std::unique_ptr<Command> makeFeedCommand(const CommandContext &context, const plan::proto::FeedCommand &feed) {
  return std::make_unique<FeedCommand>(context, feed);
}

} // namespace ds::runtime
