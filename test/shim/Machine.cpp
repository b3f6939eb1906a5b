//===- Machine.cpp - a block's threads as fibers --------------------------===//
//
// A fiber is a stack, entered once by makecontext; every further switch is a _setjmp and a _longjmp, which make no
// system call. A thread that ends leaves its fiber to the next one: without barriers one fiber runs a whole grid.
//
//===----------------------------------------------------------------------===//
#include "test/shim/Machine.h"

#include "test/shim/Shadow.h"
#include "test/shim/cuda_runtime.h"

#include <algorithm>
#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

namespace {

constexpr unsigned mostThreads = 1024, warpLanes = 32;
constexpr size_t stackBytes = size_t(256) << 10;

struct Fiber {
  std::jmp_buf registers;
  bool entered = false;
  int thread = -1; ///< that runs on it
};

enum class State : uint8_t { Ready, AtBarrier, AtShuffle, Ended };

struct Thread {
  State state = State::Ready;
  int fiber = -1;
  bool odd = false; ///< the buffer of its next shuffle
};

/// Two buffers in turn: no lane is more than one shuffle ahead of another.
struct Exchange {
  unsigned mask = 0, arrived = 0;
  const void *place = nullptr;
  std::byte values[warpLanes][16];
};

struct Machine {
  std::byte *stackMemory = nullptr;
  Fiber fibers[mostThreads];
  std::vector<int> freeFibers;
  Thread threads[mostThreads];
  Exchange exchanges[mostThreads / warpLanes][2];
  std::vector<int> ready;
  std::vector<uint64_t> blocks;
  int count = 0, running = -1, atBarrier = 0, ended = 0;
  const void *barrierPlace = nullptr; ///< of those who wait
  const Launch *launch = nullptr;
  std::jmp_buf scheduler;
  ucontext_t schedulerContext, entry;
  std::mt19937_64 random{1};
  uint64_t seed = 0;
  Counts counts;
  bool failed = false;
  char message[512] = "";
};

Machine machine;

void forgetFibers() {
  machine.freeFibers.clear();
  for (int f = int(mostThreads); f-- > 0;) {
    machine.fibers[f].entered = false;
    machine.freeFibers.push_back(f);
  }
}

void setThread(int thread) {
  machine.running = thread;
  now.thread = uint16_t(thread);
  const auto t = unsigned(thread);
  threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
}

/// The calling fiber stops; the scheduler goes on.
void suspend() {
  now.inKernel = false;
  if (_setjmp(machine.fibers[machine.threads[machine.running].fiber].registers) == 0)
    _longjmp(machine.scheduler, 1);
}

/// The first function on a fiber's stack.
void enterFiber() {
  for (;;) {
    now.inKernel = true;
    machine.launch->thread(machine.launch->arguments);
    now.inKernel = false;
    machine.threads[machine.running].state = State::Ended;
    suspend();
  }
}

/// Runs the thread until it waits or ends.
void resume(int thread) {
  Thread &own = machine.threads[thread];
  if (own.fiber < 0) {
    own.fiber = machine.freeFibers.back();
    machine.freeFibers.pop_back();
  }
  Fiber &fiber = machine.fibers[own.fiber];
  setThread(thread);
  if (_setjmp(machine.scheduler) != 0)
    return;
  if (fiber.entered) {
    now.inKernel = true; // enterFiber sets it itself
    _longjmp(fiber.registers, 1);
  }
  fiber.entered = true;
  ::getcontext(&machine.entry);
  machine.entry.uc_stack.ss_sp = machine.stackMemory + size_t(own.fiber) * stackBytes;
  machine.entry.uc_stack.ss_size = stackBytes;
  machine.entry.uc_link = nullptr;
  ::makecontext(&machine.entry, enterFiber, 0);
  ::setcontext(&machine.entry);
}

/// Takes the next thread by the seed: the lists are kept with the highest first, so that the last is the lowest.
int takeReady() {
  std::vector<int> &ready = machine.ready;
  if (machine.seed > 1)
    std::swap(ready[machine.random() % ready.size()], ready.back());
  const int thread = ready.back();
  ready.pop_back();
  return thread;
}

void makeReady(int first, int count) {
  for (int i = 0; i < count; ++i) {
    const int thread = machine.seed == 1 ? first + i : first + count - 1 - i;
    machine.threads[thread].state = State::Ready;
    machine.ready.push_back(thread);
  }
}

const char *describe(State state) {
  return state == State::AtBarrier   ? "waits at a barrier"
         : state == State::AtShuffle ? "waits at a shuffle"
                                     : "has ended";
}

/// Nobody can go on, and not everybody has ended: who waits, if possible at a shuffle, and who of its warp, or else of
/// the block, does not.
void reportDivergence() {
  const auto find = [](int begin, int end, auto condition) {
    for (int t = begin; t < end; ++t)
      if (condition(machine.threads[t].state))
        return t;
    return -1;
  };
  const auto is = [](State wanted) { return [wanted](State state) { return state == wanted; }; };
  int waiting = find(0, machine.count, is(State::AtShuffle)), other = -1;
  if (waiting >= 0) {
    const int warp = waiting - waiting % int(warpLanes);
    other = find(warp, std::min(warp + int(warpLanes), machine.count), std::not_fn(is(State::AtShuffle)));
  } else {
    waiting = find(0, machine.count, is(State::AtBarrier));
  }
  const State own = machine.threads[waiting].state;
  if (other < 0)
    other = find(0, machine.count, std::not_fn(is(own)));
  const char *rest = other < 0 ? "no other thread comes" : describe(machine.threads[other].state);
  std::snprintf(machine.message, sizeof machine.message, "thread %d %s and %s%s: threads diverge", waiting,
                describe(own), other < 0 ? "" : ("thread " + std::to_string(other) + " ").c_str(), rest);
  machine.failed = true;
}

void runBlock() {
  now.block = ++now.interval;
  poisonShared();
  machine.atBarrier = machine.ended = 0;
  for (int t = 0; t < machine.count; ++t)
    machine.threads[t] = {};
  for (auto &pair : machine.exchanges)
    pair[0].arrived = pair[1].arrived = 0;
  machine.ready.clear();
  makeReady(0, machine.count);
  while (!machine.failed) {
    while (!machine.ready.empty() && !machine.failed) {
      Thread &thread = machine.threads[takeReady()];
      resume(int(&thread - machine.threads));
      if (thread.state == State::Ended) {
        ++machine.ended;
        machine.freeFibers.push_back(thread.fiber);
      }
    }
    if (machine.failed || machine.ended == machine.count)
      return;
    if (machine.atBarrier < machine.count)
      return reportDivergence();
    machine.atBarrier = 0;
    ++now.interval;
    makeReady(0, machine.count);
  }
}

/// What a GPU would refuse.
const char *refusalOf(const dim3 &grid, const dim3 &block) {
  if (uint64_t(block.x) * block.y * block.z > mostThreads || block.z > 64)
    return "a block has at most 1,024 threads, and 64 in z";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0)
    return "a grid has at least one block, and a block one thread";
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535)
    return "a grid has at most 65,535 blocks in y and in z";
  return nullptr;
}

void orderBlocks() {
  machine.blocks.resize(size_t(gridDim.x) * gridDim.y * gridDim.z);
  for (size_t i = 0; i < machine.blocks.size(); ++i)
    machine.blocks[i] = machine.seed == 1 ? machine.blocks.size() - 1 - i : i;
  if (machine.seed > 1)
    std::shuffle(machine.blocks.begin(), machine.blocks.end(), machine.random);
}

void nameFailure(const Launch &launch) {
  const std::string what = machine.message;
  std::snprintf(machine.message, sizeof machine.message, "%s, block (%u, %u, %u): %s",
                kernelName(launch.kernel).c_str(), blockIdx.x, blockIdx.y, blockIdx.z, what.c_str());
}

std::mutex oneLaunch; // threads of the host share one machine

} // namespace

std::string kernelName(std::string_view pretty) {
  constexpr std::string_view before = "kernel = "; // clang has a & behind it
  size_t at = pretty.find(before);
  at = at == std::string_view::npos ? 0 : pretty.find_first_not_of('&', at + before.size());
  const size_t end = pretty.find_first_of("<,];", at);
  const size_t colon = pretty.rfind("::", end);
  if (colon != std::string_view::npos && colon > at)
    at = colon + 2;
  return std::string(pretty.substr(at, end - at));
}

void fail(const char *format, ...) {
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(machine.message, sizeof machine.message, format, values);
  va_end(values);
  machine.failed = true;
  now.inKernel = false;
  _longjmp(machine.scheduler, 1); // what lies on the fibers is lost
}

void run(const Launch &launch) {
  const std::lock_guard lock(oneLaunch);
  if (machine.failed) // as on a GPU, nothing runs behind a failure that nobody asked about
    return;
  if (!machine.stackMemory) {
    machine.stackMemory = static_cast<std::byte *>(::mmap(nullptr, mostThreads * stackBytes, PROT_READ | PROT_WRITE,
                                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (machine.stackMemory == MAP_FAILED) {
      std::perror("stacks cannot be mapped");
      std::abort();
    }
    setStacks(machine.stackMemory, mostThreads * stackBytes);
    forgetFibers();
  }
  gridDim = launch.grid;
  blockDim = launch.block;
  blockIdx = {0, 0, 0};
  if (const char *why = refusalOf(gridDim, blockDim)) {
    std::snprintf(machine.message, sizeof machine.message, "%s", why);
    machine.failed = true;
    return nameFailure(launch);
  }
  setArguments(launch.arguments, launch.argumentBytes);
  machine.launch = &launch;
  machine.count = int(blockDim.x * blockDim.y * blockDim.z);
  ++machine.counts.launches;
  now.launch = ++now.interval;
  orderBlocks();
  for (const uint64_t block : machine.blocks) {
    blockIdx = {unsigned(block % gridDim.x), unsigned(block / gridDim.x % gridDim.y),
                unsigned(block / gridDim.x / gridDim.y)};
    runBlock();
    ++machine.counts.blocks;
    machine.counts.threads += machine.count;
    if (machine.failed) {
      forgetFibers();
      return nameFailure(launch);
    }
  }
}

void barrier() {
  const void *const place = __builtin_return_address(0);
  if (machine.atBarrier++ == 0)
    machine.barrierPlace = place;
  else if (machine.barrierPlace != place)
    fail("thread %d waits at another barrier of the kernel than others: threads diverge", machine.running);
  machine.threads[machine.running].state = State::AtBarrier;
  suspend();
}

int lane() { return machine.running % int(warpLanes); }

void exchange(unsigned mask, const void *value, size_t bytes, int source, void *result) {
  const int thread = machine.running, own = lane(), first = thread - own;
  const void *const place = __builtin_return_address(0);
  Thread &state = machine.threads[thread];
  Exchange &meeting = machine.exchanges[thread / int(warpLanes)][state.odd];
  state.odd = !state.odd;
  if (!(mask >> own & 1))
    fail("thread %d shuffles with a mask, %#x, that does not name it", thread, mask);
  if (first + int(warpLanes) - std::countl_zero(mask) > machine.count)
    fail("thread %d shuffles with lanes that the block of %d threads does not have", thread, machine.count);
  if (meeting.arrived == 0) {
    meeting.mask = mask;
    meeting.place = place;
  } else if (meeting.mask != mask || meeting.place != place) {
    fail("thread %d shuffles at another place of the kernel than the other lanes of its warp: threads diverge", thread);
  }
  std::memcpy(meeting.values[own], value, bytes);
  meeting.arrived |= 1u << own;
  if (meeting.arrived == mask) {
    meeting.arrived = 0;
    for (int l = 0; l < int(warpLanes); ++l)
      if ((mask >> l & 1) && l != own)
        makeReady(first + l, 1);
  } else {
    state.state = State::AtShuffle;
    suspend();
  }
  if (source >= 0 && source < int(warpLanes) && (meeting.mask >> source & 1))
    std::memcpy(result, meeting.values[source], bytes);
  else
    std::memset(result, 0xff, bytes); // undefined
}

uint32_t compareAndSwap(uint32_t *address, uint32_t compare, uint32_t value) {
  checkAtomic(address, sizeof(uint32_t));
  const uint32_t before = *address;
  if (before == compare)
    *address = value;
  return before;
}

void setOrder(uint64_t seed) {
  machine.seed = seed;
  machine.random.seed(seed);
}

const Counts &counts() {
  machine.counts.accesses = accesses();
  return machine.counts;
}

const char *failure() { return machine.failed ? machine.message : nullptr; }
void forgetFailure() { machine.failed = false; }

} // namespace shim
