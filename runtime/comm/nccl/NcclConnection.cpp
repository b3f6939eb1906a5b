//===- NcclConnection.cpp - one communicator of NCCL ----------------------===//
#include "runtime/comm/nccl/NcclConnection.h"

#include "core/Error.h"
#include "core/RunningClock.h"
#include "core/Status.h"
#include "runtime/comm/cuda/Progress.h"
#include "runtime/comm/nccl/NcclTransport.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <mutex>
#include <nccl.h>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// How long the members of a communicator that is no longer needed wait for each other before they leave it.
constexpr std::chrono::seconds farewellTime{10};

/// The state of a communicator once NCCL has done what it was told, or ncclInProgress when `giveUp` holds first.
template <typename GiveUp> ncclResult_t awaitNccl(ncclComm_t communicator, GiveUp &&giveUp) noexcept {
  ncclResult_t state = ncclInProgress;
  for (uint32_t looks = 0;; ++looks) {
    if (const ncclResult_t code = ncclCommGetAsyncError(communicator, &state); code != ncclSuccess)
      return code;
    if (state != ncclInProgress || giveUp())
      return state;
    if (looks > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

} // namespace

NcclConnection::NcclConnection(NcclTransport &transport, std::vector<uint32_t> members, uint32_t index,
                               std::string name)
    : transport_(transport), members_(std::move(members)), index_(index), name_(std::move(name)) {
  if (const cudaError_t error = cudaSetDevice(transport_.gpu()); error != cudaSuccess)
    throw Error("rank " + std::to_string(rank()) + " cannot use GPU " + std::to_string(transport_.gpu()) +
                ": CUDA says " + cudaGetErrorString(error));
  void *progress = nullptr;
  if (const cudaError_t error = cudaHostAlloc(&progress, sizeof(Progress), cudaHostAllocDefault); error != cudaSuccess)
    throw Error("rank " + std::to_string(rank()) +
                ": CUDA gives no memory that host and GPU share: " + cudaGetErrorString(error));
  progress_ = new (progress) Progress{};
  try {
    connect();
  } catch (...) { // the destructor will not run
    (void)cudaFreeHost(progress_);
    throw;
  }
  transport_.add(*this);
}

NcclConnection::~NcclConnection() {
  transport_.remove(*this);
  finalize();
  (void)cudaFreeHost(progress_);
}

/// The first member draws the id by which the members find each other.
void NcclConnection::connect() {
  ncclUniqueId id{};
  if (index_ == 0)
    if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess)
      throw Error(failure("start", "the communicator", code).message());
  for (const uint32_t member : members_)
    transport_.control().copy(members_[0], member, std::as_writable_bytes(std::span(id.internal)));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t code = ncclCommInitRankConfig(&communicator_, int(members_.size()), id, int(index_), &config);
  Patience patience(transport_.timeout());
  if (code == ncclInProgress)
    code = awaitNccl(communicator_, [&] { return transport_.stopped() || patience.over(); });
  if (code == ncclSuccess)
    return;
  const Status why = transport_.stopped() ? transport_.failure() : failure("start", "the communicator", code);
  if (communicator_ != nullptr)
    (void)ncclCommAbort(std::exchange(communicator_, nullptr));
  if (code == ncclInProgress && !transport_.stopped())
    throw Error(
        "rank " + std::to_string(rank()) + " waited " + std::to_string(transport_.timeout().count() / 1000) +
        " s for the others of " + name_ +
        " to join NCCL's communicator; one of those stands still or is slower than --collective-timeout allows");
  throw Error(why.message());
}

/// Members leave together; who waits for one that has gone leaves alone.
void NcclConnection::finalize() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (communicator_ == nullptr)
    return;
  (void)cudaSetDevice(transport_.gpu());
  for (void *registration : registrations_)
    (void)ncclCommDeregister(communicator_, registration);
  Patience patience(farewellTime);
  ncclResult_t code = ncclInProgress;
  if (!transport_.stopped()) { // else it may be in the midst of a call, where NCCL does not finalize
    code = ncclCommFinalize(communicator_);
    if (code == ncclInProgress)
      code = awaitNccl(communicator_, [&] { return transport_.stopped() || patience.over(); });
  }
  (void)(code == ncclSuccess ? ncclCommDestroy(communicator_) : ncclCommAbort(communicator_));
  communicator_ = nullptr;
}

void NcclConnection::registerMemory(std::span<std::byte> memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (communicator_ == nullptr) // it was aborted meanwhile
    throw Error(transport_.failure().message());
  void *registration = nullptr;
  ncclResult_t code = ncclCommRegister(communicator_, memory.data(), memory.size(), &registration);
  if (code == ncclInProgress)
    code = awaitNccl(communicator_, [&] { return transport_.stopped(); });
  if (code != ncclSuccess)
    throw Error(std::string(failure("registration", "memory", code).message()) +
                "; NCCL_LOCAL_REGISTER=0 does without it");
  if (registration != nullptr) // else NCCL has no use for it
    registrations_.push_back(registration);
}

Status NcclConnection::begin(const StreamCall &call) noexcept {
  if (communicator_ == nullptr || transport_.stopped())
    return transport_.failure();
  return checkCuda(markBegun(progress_, names_.number(call.verb, call.what), call.stream), call);
}

Status NcclConnection::end(const StreamCall &call) noexcept {
  return checkCuda(markDone(progress_, call.stream), call);
}

Status NcclConnection::accept(ncclResult_t code, const StreamCall &call) const noexcept {
  return code == ncclSuccess || code == ncclInProgress ? Status::success() : failure(call.verb, call.what, code);
}

Status NcclConnection::settle(ncclResult_t code, const StreamCall &call) const noexcept {
  Patience patience(transport_.timeout());
  if (code == ncclInProgress)
    code = awaitNccl(communicator_, [&] { return transport_.stopped() || patience.over(); });
  if (code == ncclSuccess)
    return Status::success();
  if (transport_.stopped())
    return transport_.failure();
  return failure(call.verb, call.what, code);
}

Status NcclConnection::checkCuda(cudaError_t code, const StreamCall &call) const noexcept {
  if (code == cudaSuccess)
    return Status::success();
  return Status::failure("rank %u, %s of %s (%s): CUDA says %s", rank(), call.verb, call.what, name_.c_str(),
                         cudaGetErrorString(code));
}

Status NcclConnection::failure(const char *verb, const char *what, ncclResult_t code) const noexcept {
  if (code == ncclInProgress)
    return Status::failure("rank %u waited %.3g s in %s of %s (%s): one of the others stands still or is slower than "
                           "--collective-timeout allows; each says where it stands",
                           rank(), double(transport_.timeout().count()) / 1000, verb, what, name_.c_str());
  const char *detail = ncclGetLastError(communicator_);
  return Status::failure("rank %u, %s of %s (%s): NCCL says %s%s%.250s", rank(), verb, what, name_.c_str(),
                         ncclGetErrorString(code), detail != nullptr && *detail != '\0' ? ": " : "",
                         detail != nullptr ? detail : "");
}

Status NcclConnection::examine(RunningClock::Time now) noexcept {
  const CallNames::Name &name = names_[progress_->call];
  if (overdue_.look(progress_->begun, progress_->done, now, transport_.timeout()))
    return failure(name.verb, name.what.data(), ncclInProgress);
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || communicator_ == nullptr)
    return Status::success(); // its queue's thread looks by itself
  ncclResult_t state = ncclSuccess;
  if (const ncclResult_t code = ncclCommGetAsyncError(communicator_, &state); code != ncclSuccess)
    state = code;
  if (state == ncclSuccess || state == ncclInProgress)
    return Status::success();
  const bool any = progress_->begun > 0;
  return failure(any ? name.verb : "start", any ? name.what.data() : "the first collective", state);
}

bool NcclConnection::describe(std::string &text) const {
  const uint64_t begun = progress_->begun, done = progress_->done;
  const CallNames::Name &name = names_[progress_->call];
  text = std::string(name.verb) + " of " + name.what.data() + " (" + name_ + ", number " + std::to_string(begun) +
         " there)";
  return begun > done;
}

ncclComm_t NcclConnection::takeAway() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(communicator_, nullptr);
}

} // namespace ds::runtime
