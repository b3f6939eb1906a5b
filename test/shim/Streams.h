//===- Streams.h - the fake runtime's own objects -------------------------===//
#pragma once

#include "test/shim/FakeRuntime.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace shim {

/// Something that runs once all that it is behind has run.
struct Node {
  std::shared_ptr<const Work> work; ///< nullptr: a place in a stream
  int device;
  size_t unmet = 0;
  bool done = false;
  double milliseconds = 0; ///< when it was done
  std::vector<std::shared_ptr<Node>> next{};
};
using NodePointer = std::shared_ptr<Node>;

struct Captured {
  std::shared_ptr<const Work> work;
  int device;
  std::set<size_t> after;
};

struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool ended = false, invalid = false;
  std::string why{}; ///< it is invalid
  std::vector<Captured> nodes{};
};

struct Allocation {
  size_t bytes;
  int device; ///< -1: pinned memory of the host
  bool freed = false;
};

struct LoadedPtx;

/// All of it is guarded by one mutex, which work holds while it runs.
struct Runtime {
  Runtime();

  std::mutex mutex;
  std::map<uintptr_t, Allocation> allocations; ///< also those that were freed: no address is used twice
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::vector<std::shared_ptr<Capture>> captures; ///< under way
  std::vector<NodePointer> ready;
  std::map<const void *, NodePointer> turns; ///< the last of each
  std::set<std::string> loaded;              ///< kernels that have been launched
  std::set<std::pair<int, int>> peers;
  std::map<cudaLibrary_t, std::shared_ptr<LoadedPtx>> libraries;
  uint64_t seed;
  std::mt19937_64 random;
  cudaError_t broken = cudaSuccess; ///< an error of a kernel or a copy, which ends all devices
  std::string sentence{};
  std::string moduleLoading; ///< CUDA_MODULE_LOADING at the first call of the process, or "lazily"
  uint64_t done = 0, graphs = 0, calls = 0;
  double milliseconds = 0; ///< that all work so far took, one after the other
};
Runtime &runtime();
/// Whether DS_FAKE_CUDA_FAULT is it.
bool hasFault(const char *name);

/// Remembers the error for cudaGetLastError.
cudaError_t told(cudaError_t error);
/// The same, of a misuse that the sentence explains.
cudaError_t told(cudaError_t error, const std::string &sentence);
inline cudaError_t toldInvalid(const Capture &capture) { return told(cudaErrorStreamCaptureInvalidated, capture.why); }

/// Of the calling thread.
int &currentDevice();

// With the mutex held.
bool isLive(cudaStream_t stream);
/// The allocation that the address lies in, or nullptr.
const Allocation *allocationAt(const void *address);
/// Whether kernels of one GPU may touch it.
bool canTouch(int device, const Allocation &allocation);
NodePointer add(std::shared_ptr<const Work> work, int device, const std::vector<NodePointer> &after);
/// The same, also behind the last work of the same turn.
NodePointer addInTurn(const std::shared_ptr<const Work> &work, int device, std::vector<NodePointer> after);
/// One of those that may run next. False: there is none.
bool runOne();
/// Gives the mutex away while all that is left waits for other processes.
void runUntil(const NodePointer &node, std::unique_lock<std::mutex> &lock);
/// As many as the seed says.
void runSome();
/// As submit(), which is for who does not hold the mutex.
cudaError_t giveTo(CUstream_st &stream, Work work);
/// All devices end with this error, if it is the first.
void breakDevices(cudaError_t error, const std::string &sentence);
/// What the thread's last misuse was.
const std::string &lastSentenceOfThread();
/// Where the call may not stand beside a capture that is under way: the error, and that capture is invalid.
cudaError_t unsafe(const char *call);
cudaError_t invalidate(Capture &capture, cudaError_t error, const std::string &sentence);

} // namespace shim

struct CUstream_st {
  int device;
  shim::NodePointer tail; ///< nullptr or done: idle
  std::shared_ptr<shim::Capture> capture;
  std::set<size_t> ends; ///< of the capture: what the next thing is behind
};

struct CUevent_st {
  int device;
  bool isTimed;
  double milliseconds; ///< when it was recorded, if that was behind nothing
  shim::NodePointer node;
  std::shared_ptr<shim::Capture> capture;
  std::set<size_t> ends;
};
