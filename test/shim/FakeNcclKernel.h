//===- FakeNcclKernel.h - what a group of calls does on a stream ----------===//
#pragma once

#include "test/shim/FakeNcclGroup.h"
#include "test/shim/nccl.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shim {

struct Capture;

/// A call with its addresses, which are this member's own.
struct NcclOperation {
  NcclCall call;
  const std::byte *source;
  std::byte *target;
};

/// The calls of one group for one communicator, as NCCL makes one kernel of them. It begins when its stream comes to
/// it, and ends once every member that it is for has come to the same; meanwhile it spins and other streams go on. It
/// reads sources when it begins; targets are then full of 0xff until it ends. Whoever writes either meanwhile, or lets
/// it begin with calls that are not the others', has misused NCCL.
class NcclKernel {
public:
  NcclKernel(ncclComm &communicator, std::vector<NcclOperation> operations, bool captured);
  /// Whether it can end.
  bool mayRun();
  void run();
  /// "a kernel of NCCL (all_gather of 4 uint8)".
  const std::string &name() const { return name_; }
  std::vector<const void *> addresses() const;
  /// Ranks that it meets, as bits.
  uint64_t peers() const;

private:
  struct Meeting {
    std::vector<size_t> operations;
    std::map<int, NcclMessage> messages; ///< of all members that it is of
  };

  void begin();
  bool haveArrived() const;
  NcclMessage messageOf(const Meeting &meeting) const;
  /// Why the calls of a meeting are not one, or "".
  std::string mismatch(int peer, const Meeting &meeting) const;
  std::vector<std::byte> result(const NcclOperation &operation, const Meeting &meeting, size_t index) const;
  std::string overwritten() const;

  ncclComm &communicator_;
  const std::vector<NcclOperation> operations_;
  const bool captured_;
  const std::string name_;
  std::map<int, Meeting> meetings_; ///< by peer; that of all members by the own rank
  std::vector<std::vector<std::byte>> sources_;
  bool begun_ = false;
};

} // namespace shim

/// Guarded by the runtime's mutex. Stays for ever: streams may still be in it after an abort.
struct ncclComm {
  enum class Stage { Joining, Idle, Enqueueing, Finalizing, Finalized, Destroyed, Aborted };

  shim::NcclGroup group;
  int rank = 0, ranks = 0, gpu = 0;
  Stage stage = Stage::Joining;
  int looks = 0; ///< that still answer ncclInProgress
  ncclResult_t error = ncclSuccess;
  std::string sentence;                         ///< of the error
  std::map<void *, const void *> registrations; ///< by handle, the memory
  uint64_t connected = 0;                       ///< peers, as bits
  uint64_t given = 0;                           ///< groups
  // What was given and is enqueued when NCCL has come so far.
  std::vector<shim::NcclOperation> operations;
  cudaStream_t stream = nullptr;
  std::shared_ptr<shim::Capture> capture; ///< of the stream when the group was made, if it was captured

  bool isGone() const { return stage == Stage::Destroyed || stage == Stage::Aborted; }
  /// Remembers the first error, which is the end of the communicator.
  ncclResult_t fail(ncclResult_t code, const std::string &why);
};
