//===- InProcessTransport.cpp - ranks that are threads of one process -----===//
#include "runtime/comm/inprocess/InProcessTransport.h"

#include "core/Status.h"
#include "runtime/comm/Arrivals.h"
#include "runtime/comm/inprocess/InProcessChannel.h"
#include "runtime/comm/inprocess/InProcessGroup.h"
#include "runtime/device/QueueStanding.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

Holder whoHoldsUp(const std::vector<const QueueStanding *> &queues) {
  const QueueStanding *holder = holderOf(queues);
  return holder == nullptr ? Holder{} : Holder{"rank " + std::to_string(holder->rank()), holder->sentence()};
}

InProcessTransport::InProcessTransport(uint32_t ranks, MakeByteMover makeMover)
    : localRanks_(ranks), makeMover_(std::move(makeMover)), timeout_(std::chrono::minutes(10)) {
  std::iota(localRanks_.begin(), localRanks_.end(), 0);
}

InProcessTransport::~InProcessTransport() = default;

std::unique_ptr<Communicator> InProcessTransport::communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                                               uint32_t key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<InProcessGroup> &group = groups_[{members, key}];
  if (!group)
    group = std::make_unique<InProcessGroup>(*this, members);
  return group->join(rank);
}

InProcessChannel &InProcessTransport::channel(uint32_t from, uint32_t to, uint32_t key, const std::string &name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<InProcessChannel> &channel = channels_[{from, to, key}];
  if (!channel)
    channel = std::make_unique<InProcessChannel>(*this, from, to, name);
  return *channel;
}

std::unique_ptr<SendingEnd> InProcessTransport::sendingEnd(uint32_t from, uint32_t to, uint32_t key,
                                                           const std::string &name) {
  return channel(from, to, key, name).sendingEnd();
}

std::unique_ptr<ReceivingEnd> InProcessTransport::receivingEnd(uint32_t from, uint32_t to, uint32_t key,
                                                               const std::string &name) {
  return channel(from, to, key, name).receivingEnd();
}

void InProcessTransport::onStop(std::function<void(const Status &)> callback) {
  const std::lock_guard<std::mutex> lock(mutex_);
  callback_ = std::move(callback);
}

void InProcessTransport::stop(const Status &status) noexcept {
  if (!guard_.report(status))
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (callback_)
    callback_(status);
}

} // namespace ds::runtime
