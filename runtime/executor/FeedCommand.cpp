//===- FeedCommand.cpp - a micro-batch's part of a graph input ------------===//
#include "runtime/core/Status.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/Queue.h"
#include "runtime/device/Task.h"
#include "runtime/executor/Command.h"
#include "runtime/executor/Run.h"
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <memory>

namespace ds::runtime {
namespace {

/// Micro-step k of data rank r takes samples [(k * d + r) * m, (k * d + r + 1) * m) of the run.
class FeedCommand final : public Command {
public:
  FeedCommand(const CommandContext &context, const plan::proto::FeedCommand &feed)
      : input_(feed.input()), place_(context.place), samples_(context.plan.training().micro_batch_size()),
        target_(context.storage.operand(feed.target())) {}

  Status run(const Call &call, Queue &queue) noexcept override {
    const uint64_t first = call.run->firstSample + place_.globalMicrobatch(call.microbatch) * samples_;
    return call.run->data->read(input_, first, samples_, target_.at(call.microbatch));
  }

private:
  const uint32_t input_;
  const RankPlace place_;
  const uint64_t samples_; // of one micro-batch
  const Address target_;
};

} // namespace

std::unique_ptr<Command> makeFeedCommand(const CommandContext &context, const plan::proto::FeedCommand &feed) {
  return std::make_unique<FeedCommand>(context, feed);
}

} // namespace ds::runtime
