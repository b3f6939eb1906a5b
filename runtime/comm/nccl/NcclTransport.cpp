//===- NcclTransport.cpp - ranks that are processes with a GPU each -------===//
#include "runtime/comm/nccl/NcclTransport.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/nccl/NcclChannel.h"
#include "runtime/comm/nccl/NcclCommunicator.h"
#include "runtime/comm/nccl/NcclConnection.h"
#include "runtime/comm/nccl/NcclSteps.h"
#include "runtime/comm/nccl/NcclVersion.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <functional>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <pthread.h>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// How long a process that has failed waits for NCCL to let go before it ends without.
constexpr std::chrono::seconds abortTime{10};

std::string rankList(const std::vector<uint32_t> &ranks) {
  std::string text = "ranks";
  for (size_t i = 0; i < ranks.size() && i <= 16; ++i)
    text += (i == 0 ? " " : ", ") + (i < 16 ? std::to_string(ranks[i]) : "...");
  return text;
}

} // namespace

NcclTransport::NcclTransport(std::unique_ptr<ControlPlane> control, int gpu)
    : control_(std::move(control)), gpu_(gpu), timeout_(std::chrono::minutes(10)), watchdog_([this] { watch(); }) {
  ::pthread_setname_np(watchdog_.native_handle(), "ds-nccl-watch");
  control_->onStop([this](const Status &status) { (void)failure_.report(status); });
}

NcclTransport::~NcclTransport() {
  control_->onStop({});
  done_ = true;
  watchdog_.join();
  Patience patience(abortTime);
  while (aborting_ && *aborting_ && !patience.over())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

std::unique_ptr<Communicator> NcclTransport::communicator(uint32_t rank, const std::vector<uint32_t> &members,
                                                          uint32_t) {
  const auto index = uint32_t(std::ranges::find(members, rank) - members.begin());
  return std::make_unique<NcclCommunicator>(std::make_unique<NcclConnection>(*this, members, index, rankList(members)));
}

// Each channel has a communicator of its own, since its messages keep no order with those of others.

std::unique_ptr<SendingEnd> NcclTransport::sendingEnd(uint32_t from, uint32_t to, uint32_t, const std::string &name) {
  return std::make_unique<NcclSendingEnd>(std::make_unique<NcclConnection>(
      *this, std::vector{from, to}, 0, "channel " + name + " to rank " + std::to_string(to)));
}

std::unique_ptr<ReceivingEnd> NcclTransport::receivingEnd(uint32_t from, uint32_t to, uint32_t,
                                                          const std::string &name) {
  return std::make_unique<NcclReceivingEnd>(std::make_unique<NcclConnection>(
      *this, std::vector{from, to}, 1, "channel " + name + " from rank " + std::to_string(from)));
}

void NcclTransport::registerMemory(uint32_t, std::span<std::byte> memory) {
  if (memory.empty())
    return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (NcclConnection *connection : connections_)
    connection->registerMemory(memory);
}

void NcclTransport::setTimeout(std::chrono::milliseconds timeout) noexcept {
  timeout_ = timeout;
  control_->setTimeout(timeout);
}

void NcclTransport::stop(const Status &status) noexcept {
  mine_ = mine_ || !stopped();
  control_->stop(status); // which reports it here, too
}

void NcclTransport::add(NcclConnection &connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  connections_.push_back(&connection);
}

void NcclTransport::remove(NcclConnection &connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase(connections_, &connection);
}

void NcclTransport::watch() noexcept {
  (void)cudaSetDevice(gpu_);
  bool told = false;
  for (; !done_ && !stopped(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    if (const Status status = examineAll(); !status.ok())
      stop(status);
    const std::atomic<bool> *requested = stopRequested_;
    if (requested != nullptr && *requested && !std::exchange(told, true))
      printWhereItStands("asked to end");
  }
  if (!stopped())
    return;
  if (!mine_)
    printWhereItStands("stopped by another rank's failure");
  abortAll();
}

Status NcclTransport::examineAll() noexcept {
  const RunningClock::Time now = clock_.now();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (NcclConnection *connection : connections_)
    if (Status status = connection->examine(now); !status.ok())
      return status;
  return Status::success();
}

/// All in one group: each is told to end before the first is freed, for freeing waits for the whole GPU. On a thread
/// that may stay behind, since NCCL can wait there for ranks that no longer are.
void NcclTransport::abortAll() noexcept {
  std::vector<ncclComm_t> communicators;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (NcclConnection *connection : connections_)
      if (ncclComm_t communicator = connection->takeAway(); communicator != nullptr)
        communicators.push_back(communicator);
  }
  aborting_ = std::make_shared<std::atomic<bool>>(true);
  std::thread([aborting = aborting_, communicators = std::move(communicators), gpu = gpu_] {
    (void)cudaSetDevice(gpu);
    (void)ncclGroupStart();
    for (ncclComm_t communicator : communicators)
      (void)ncclCommAbort(communicator);
    (void)ncclGroupEnd();
    *aborting = false;
  }).detach();
}

void NcclTransport::printWhereItStands(const char *event) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string inside, text;
  for (const NcclConnection *connection : connections_)
    if (connection->describe(text))
      inside += (inside.empty() ? "" : "; ") + text;
  std::fprintf(stderr, "note: rank %u was %s; it stands in %s\n", localRanks()[0], event,
               inside.empty() ? "no collective or message" : inside.c_str());
}

std::unique_ptr<Transport> makeNcclTransport(std::unique_ptr<ControlPlane> control, int gpu) {
  // In a recording NCCL would register what registerMemory has registered already, and for that its ranks meet on the
  // host, one queue after another: which first is not the same on every rank.
  (void)::setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
  if (const std::string refusal = refuseNccl(ncclVersion(), NCCL_VERSION_CODE); !refusal.empty())
    throw Error(refusal);
  return std::make_unique<NcclTransport>(std::move(control), gpu);
}

} // namespace ds::runtime
