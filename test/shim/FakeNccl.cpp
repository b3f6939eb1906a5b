//===- FakeNccl.cpp - communicators and groups of the fake NCCL -----------===//
#include "test/shim/FakeNccl.h"

#include "test/shim/FakeNcclGroup.h"
#include "test/shim/FakeNcclKernel.h"
#include "test/shim/FakeNcclMisuse.h"
#include "test/shim/Streams.h"
#include "test/shim/nccl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

namespace shim {

FakeNccl &fakeNccl() {
  static FakeNccl fake{NCCL_VERSION_CODE, -1, 0, 0, 0};
  return fake;
}

void resetFakeNccl() {
  fakeNccl().version = NCCL_VERSION_CODE;
  fakeNccl().failingRank = -1;
  fakeNccl().aborted = fakeNccl().destroyed = fakeNccl().refused = 0;
}

namespace {

using Stage = ncclComm::Stage;

thread_local std::string lastSentence;

std::map<ncclComm_t, std::unique_ptr<ncclComm>> &communicators() {
  static auto *const all =
      new std::map<ncclComm_t, std::unique_ptr<ncclComm>>; // outlives whatever ends with the process
  return *all;
}

bool hasNcclFault(std::string_view name) {
  const char *named = std::getenv("DS_FAKE_NCCL_FAULT");
  return named != nullptr && named == name;
}

/// A misuse.
ncclResult_t refuse(ncclResult_t code, const std::string &sentence) {
  lastSentence = sentence;
  ++fakeNccl().refused;
  return code;
}

/// The same, of a call whose code a caller may pass over.
ncclResult_t refuseAloud(ncclResult_t code, const std::string &sentence) {
  std::fprintf(stderr, "the fake NCCL refuses: %s\n", sentence.c_str());
  return refuse(code, sentence);
}

/// The group that a thread has begun.
struct OpenGroup {
  int depth = 0;
  ncclResult_t failed = ncclSuccess;
  std::map<ncclComm_t, std::pair<std::vector<NcclOperation>, cudaStream_t>> work;

  ~OpenGroup() {
    if (depth > 0)
      (void)refuseAloud(ncclInvalidUsage, "a thread has ended in a group that it began: ncclGroupEnd is missing");
  }
};
thread_local OpenGroup openGroup;

ncclResult_t checkOutsideGroup(const char *call) {
  return openGroup.depth == 0 ? ncclSuccess
                              : refuseAloud(ncclInvalidUsage,
                                            std::string(call) + " in a group that this thread began and has not ended");
}

/// One that can be asked about.
ncclResult_t checkExists(ncclComm_t communicator, const char *call) {
  if (communicator == nullptr || !communicators().contains(communicator))
    return refuseAloud(ncclInvalidArgument, std::string(call) + " of what is no communicator");
  if (communicator->isGone())
    return refuseAloud(ncclInvalidArgument, std::string(call) + " of a communicator that was " +
                                                (communicator->stage == Stage::Aborted ? "aborted" : "destroyed"));
  return ncclSuccess;
}

/// Everybody that is not gone is told when a process has ended, unless he has left all the others behind.
void lookForDead(ncclComm &one) {
  if (one.stage == Stage::Finalized || hasNcclFault("silent"))
    return;
  if (const int dead = one.group.dead(); dead >= 0)
    (void)one.fail(ncclRemoteError, "the process of rank " + std::to_string(dead) + " has ended");
}

/// Whether the communicator takes calls.
ncclResult_t checkReady(ncclComm_t communicator, const char *call) {
  if (const ncclResult_t code = checkExists(communicator, call); code != ncclSuccess)
    return code;
  if (communicator->error != ncclSuccess)
    return communicator->error;
  if (communicator->stage == Stage::Finalizing || communicator->stage == Stage::Finalized)
    return refuseAloud(ncclInvalidUsage, std::string(call) + " after ncclCommFinalize");
  if (communicator->stage != Stage::Idle)
    return refuseAloud(ncclInvalidArgument,
                       std::string(call) +
                           " while the call before is in progress: ncclCommGetAsyncError says when it is not");
  return ncclSuccess;
}

ncclResult_t check(ncclComm_t communicator, const NcclOperation &operation, cudaStream_t stream) {
  if (const ncclResult_t code = checkReady(communicator, "a call"); code != ncclSuccess)
    return code;
  if (const auto misuse = misuseOfCall(*communicator, operation, stream))
    return refuse(misuse->code, misuse->sentence);
  const auto open = openGroup.work.find(communicator);
  if (open != openGroup.work.end() && open->second.second != stream)
    return refuse(ncclInvalidUsage,
                  "calls of one communicator and one group on two streams, which the fake does not know");
  return ncclSuccess;
}

/// A call outside of a group is a group of its own.
ncclResult_t call(ncclComm_t communicator, cudaStream_t stream, const NcclOperation &operation) {
  (void)ncclGroupStart();
  std::unique_lock lock(runtime().mutex);
  const ncclResult_t code = check(communicator, operation, stream);
  lock.unlock();
  if (code != ncclSuccess && openGroup.failed == ncclSuccess)
    openGroup.failed = code;
  if (code == ncclSuccess && operation.call.count > 0) {
    openGroup.work[communicator].first.push_back(operation);
    openGroup.work[communicator].second = stream;
  }
  const ncclResult_t end = ncclGroupEnd();
  return code != ncclSuccess ? code : end;
}

/// Gives the stream what the group's end left to NCCL.
void enqueue(ncclComm &one) {
  one.stage = Stage::Idle;
  ++one.given;
  std::vector<NcclOperation> operations = std::move(one.operations);
  if (one.given == 5 && hasNcclFault("mismatch"))
    --operations[0].call.count;
  if (!isLive(one.stream))
    return (void)one.fail(ncclUnhandledCudaError, "the stream of a group was destroyed before NCCL had enqueued it");
  if (one.stream->capture != one.capture)
    return (void)one.fail(ncclInvalidUsage, std::string("a capture of the stream of a group ") +
                                                (one.capture ? "ended" : "began") + " before NCCL had enqueued it");
  const auto kernel = std::make_shared<NcclKernel>(one, std::move(operations), one.stream->capture != nullptr);
  Work work{kernel->name().c_str(), [kernel] { kernel->run(); },           kernel->addresses(),
            /*onAnyDevice=*/true,   [kernel] { return kernel->mayRun(); }, &one};
  if (giveTo(*one.stream, std::move(work)) != cudaSuccess)
    (void)one.fail(ncclUnhandledCudaError, lastSentenceOfThread());
}

/// A first call with a peer makes a connection, for which both hosts must have made it; then a thread of NCCL's gives
/// the stream what was called, into a capture too.
void lookAtEnqueueing(ncclComm &one) {
  const uint64_t peers = NcclKernel(one, one.operations, false).peers();
  if ((peers & ~one.connected) != 0) {
    one.group.wantConnections(peers);
    if (!one.group.areConnected(peers))
      return;
    one.connected |= peers;
  }
  if (one.looks-- <= 0)
    std::thread([&one] { enqueue(one); }).join(); // NCCL's own: the caller's device and errors are not this thread's
}

void lookAtJoining(ncclComm &one) {
  if (!one.group.allJoined())
    return;
  if (const std::string why = one.group.sharedGpu(); !why.empty())
    (void)one.fail(ncclInvalidUsage, why);
  else if (one.looks-- <= 0)
    one.stage = Stage::Idle;
}

void lookAtFinalizing(ncclComm &one) {
  const NodePointer last = runtime().turns[&one];
  if ((!last || last->done) && one.group.allFinalized())
    one.stage = Stage::Finalized;
}

/// What the communicator answers now.
ncclResult_t look(ncclComm &one) {
  if (fakeNccl().failingRank == one.rank)
    (void)one.fail(ncclRemoteError, "the fake was told to fail");
  lookForDead(one);
  if (one.error == ncclSuccess && one.stage == Stage::Joining)
    lookAtJoining(one);
  else if (one.error == ncclSuccess && one.stage == Stage::Enqueueing)
    lookAtEnqueueing(one);
  else if (one.error == ncclSuccess && one.stage == Stage::Finalizing)
    lookAtFinalizing(one);
  if (one.error != ncclSuccess)
    return one.error;
  return one.stage == Stage::Idle || one.stage == Stage::Finalized ? ncclSuccess : ncclInProgress;
}

/// What the group has for a communicator begins to be enqueued.
void hand(ncclComm &one, std::vector<NcclOperation> operations, cudaStream_t stream) {
  one.operations = std::move(operations);
  one.stream = stream;
  one.capture = isLive(stream) ? stream->capture : nullptr;
  one.stage = Stage::Enqueueing;
  one.looks = 2;
}

const std::byte *in(const void *source) { return static_cast<const std::byte *>(source); }
std::byte *out(void *target) { return static_cast<std::byte *>(target); }

} // namespace

} // namespace shim

using namespace shim;

ncclResult_t ncclGetVersion(int *version) {
  *version = fakeNccl().version;
  return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
  static constexpr const char *texts[] = {"no error",       "unhandled cuda error", "unhandled system error",
                                          "internal error", "invalid argument",     "invalid usage",
                                          "remote error",   "in progress"};
  return texts[result];
}

const char *ncclGetLastError(ncclComm_t communicator) {
  const std::lock_guard lock(runtime().mutex);
  if (communicator != nullptr && communicators().contains(communicator) && communicator->error != ncclSuccess)
    return communicator->sentence.c_str();
  return lastSentence.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  const std::string name = NcclGroup::make();
  std::snprintf(id->internal, sizeof id->internal, "%s", name.c_str());
  return name.empty() ? refuse(ncclSystemError, "no file in memory for a communicator") : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *made, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  if (const ncclResult_t code = checkOutsideGroup("ncclCommInitRankConfig"); code != ncclSuccess)
    return code;
  if (ranks < 1 || ranks > mostMembers || rank < 0 || rank >= ranks)
    return refuse(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  if (config == nullptr || config->blocking != 0)
    return refuse(ncclInvalidArgument, "the fake knows communicators only that do not block");
  goOnAlone();
  const std::lock_guard lock(runtime().mutex);
  if (unsafe("ncclCommInitRankConfig") != cudaSuccess) // it allocates
    return refuse(ncclUnhandledCudaError, lastSentenceOfThread());
  auto communicator = std::make_unique<ncclComm>();
  communicator->rank = rank;
  communicator->ranks = ranks;
  communicator->gpu = currentDevice();
  communicator->looks = 2;
  if (const std::string why = communicator->group.join(id.internal, rank, ranks, communicator->gpu); !why.empty())
    return refuse(ncclInvalidUsage, why);
  *made = communicator.get();
  communicators()[*made] = std::move(communicator);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *state) {
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkExists(communicator, "ncclCommGetAsyncError"); code != ncclSuccess)
    return code;
  *state = look(*communicator);
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t communicator, void *buffer, size_t bytes, void **handle) {
  if (const ncclResult_t code = checkOutsideGroup("ncclCommRegister"); code != ncclSuccess)
    return code;
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkReady(communicator, "ncclCommRegister"); code != ncclSuccess)
    return code;
  if (const auto misuse = misuseOfBuffer(*communicator, buffer, bytes, "the memory to register"))
    return refuse(misuse->code, misuse->sentence);
  static uintptr_t handles = 0;
  *handle = reinterpret_cast<void *>(++handles);
  communicator->registrations[*handle] = buffer;
  return ncclSuccess;
}

ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle) {
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkExists(communicator, "ncclCommDeregister"); code != ncclSuccess)
    return code;
  const auto found = communicator->registrations.find(handle);
  if (found == communicator->registrations.end())
    return refuseAloud(ncclInvalidArgument, "ncclCommDeregister of what is not registered, or was given back before");
  const bool freed = allocationAt(found->second)->freed;
  communicator->registrations.erase(found);
  return freed ? refuseAloud(ncclInvalidUsage, "registered memory was freed before ncclCommDeregister") : ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  if (const ncclResult_t code = checkOutsideGroup("ncclCommFinalize"); code != ncclSuccess)
    return code;
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkReady(communicator, "ncclCommFinalize"); code != ncclSuccess)
    return code;
  if (!communicator->registrations.empty())
    return refuseAloud(ncclInvalidUsage, "ncclCommFinalize while memory is registered: ncclCommDeregister is missing");
  communicator->group.finalize();
  communicator->stage = ncclComm::Stage::Finalizing;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  if (const ncclResult_t code = checkOutsideGroup("ncclCommDestroy"); code != ncclSuccess)
    return code;
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkExists(communicator, "ncclCommDestroy"); code != ncclSuccess)
    return code;
  if (communicator->stage != ncclComm::Stage::Finalized)
    return refuseAloud(ncclInvalidUsage, "ncclCommDestroy before ncclCommFinalize has ended");
  communicator->stage = ncclComm::Stage::Destroyed;
  communicator->group.leave();
  ++fakeNccl().destroyed;
  return ncclSuccess;
}

/// Also within a group, and also while kernels spin: those end.
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(runtime().mutex);
  if (const ncclResult_t code = checkExists(communicator, "ncclCommAbort"); code != ncclSuccess)
    return code;
  communicator->stage = ncclComm::Stage::Aborted;
  communicator->group.leave();
  ++fakeNccl().aborted;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++openGroup.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (openGroup.depth == 0)
    return refuse(ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--openGroup.depth > 0)
    return ncclSuccess;
  const auto work = std::exchange(openGroup.work, {});
  if (const ncclResult_t failed = std::exchange(openGroup.failed, ncclSuccess); failed != ncclSuccess)
    return failed;
  const std::lock_guard lock(runtime().mutex);
  for (const auto &[communicator, given] : work)
    hand(*communicator, given.first, given.second);
  return work.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclAllGather(const void *source, void *target, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::AllGather, type, -1, -1, count}, in(source), out(target)});
}
ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::ReduceScatter, type, operation, -1, count}, in(source), out(target)});
}
ncclResult_t ncclAllReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::AllReduce, type, operation, -1, count}, in(source), out(target)});
}
ncclResult_t ncclBroadcast(const void *source, void *target, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::Broadcast, type, -1, root, count}, in(source), out(target)});
}
ncclResult_t ncclReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t communicator, cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::Reduce, type, operation, root, count}, in(source), out(target)});
}
ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::Send, type, -1, peer, count}, in(source), nullptr});
}
ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return call(communicator, stream, {{NcclCall::Receive, type, -1, peer, count}, nullptr, out(target)});
}
