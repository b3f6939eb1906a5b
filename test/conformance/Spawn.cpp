//===- Spawn.cpp - a test's body on every rank ----------------------------===//
#include "test/conformance/Spawn.h"

#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/ByteMover.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/GpuVerdicts.h"
#include "runtime/plugins/CudaLibrary.h"
#include "runtime/plugins/LoadCuda.h"
#include "runtime/plugins/LoadMpi.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::test {
namespace {

using runtime::CudaRank;

bool underMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }
bool onGpus() { return std::getenv("DS_TEST_GPU") != nullptr; }

constexpr uint32_t maxThreads = 8;

CudaRank place(uint32_t rank) {
  const auto variable = [](const char *name) {
    const char *text = std::getenv(name);
    return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
  };
  return {.rank = rank,
          .index = underMpirun() ? 0 : rank,
          .ranks = underMpirun() ? 1 : maxThreads,
          .process = runtime::localProcess(variable)};
}

/// Why ranks cannot be on GPUs here, or "".
std::string whyNoGpu() {
  std::string why;
  const runtime::CudaLibrary *cuda = runtime::findCuda(why);
  if (cuda == nullptr)
    return why;
  const runtime::CudaInfo info = cuda->info();
  const uint32_t processes = place(0).process.count;
  if (info.unusable.empty() && info.gpus.size() < processes)
    return "NCCL needs a GPU for each of " + std::to_string(processes) + " processes, and there are " +
           std::to_string(info.gpus.size());
  return info.unusable;
}

/// Under mpirun all tests share one transport, and rank 0 alone prints.
class Processes final : public testing::Environment {
public:
  static std::unique_ptr<runtime::Transport> transport;
  static bool stopped; // by a test: nothing but the end can follow

  void SetUp() override {
    if (!underMpirun())
      return;
    transport = runtime::loadMpiTransport(std::chrono::minutes(10));
    if (onGpus() && whyNoGpu().empty()) {
      const CudaRank mine = place(transport->localRanks()[0]);
      transport = runtime::loadCuda().makeNccl(std::move(transport), mine);
    }
    testing::TestEventListeners &listeners = testing::UnitTest::GetInstance()->listeners();
    if (transport->localRanks()[0] != 0)
      delete listeners.Release(listeners.default_result_printer());
  }
  void TearDown() override {
    if (transport)
      transport->finish();
    transport.reset();
  }
};

std::unique_ptr<runtime::Transport> Processes::transport;
bool Processes::stopped = false;
const testing::Environment *const processes = testing::AddGlobalTestEnvironment(new Processes);

void spawnThreads(uint32_t n, const RankBody &body) {
  std::vector<CudaRank> places;
  for (uint32_t rank = 0; rank < n; ++rank)
    places.push_back(place(rank));
  runtime::InProcessTransport transport(n, onGpus() ? runtime::loadCuda().makeMovers(places) : runtime::makeHostMover);
  std::exception_ptr first;
  std::mutex mutex;
  const auto run = [&](uint32_t rank) {
    try {
      body(transport, rank);
    } catch (...) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!first)
        first = std::current_exception();
      transport.stop(Status::failure("rank %u threw", rank));
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < n; ++rank)
    threads.emplace_back(run, rank);
  for (std::thread &thread : threads)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

} // namespace

Workplace::Workplace(uint32_t rank) {
  if (onGpus())
    device_ = runtime::loadCuda().makeDevice(place(rank), {});
  else
    device_ = std::make_unique<runtime::CpuDevice>();
  device_->enter();
  arena_ = device_->createArena("device", uint64_t(64) << 20, 256);
  queue_ = device_->createQueue({.name = "test"});
}

Workplace::~Workplace() { queue_->finish(); }

std::byte *Workplace::copyIn(std::span<const std::byte> bytes) {
  queue_->finish();
  std::byte *target = arena_->base() + used_;
  used_ += (bytes.size() + 255) / 256 * 256;
  if (used_ > arena_->bytes())
    throw Error("the test holds more than its arena");
  if (!bytes.empty())
    device_->write(target, bytes);
  return target;
}

void Workplace::copyOut(std::span<std::byte> bytes, const std::byte *held) {
  queue_->finish();
  if (!bytes.empty())
    device_->read(bytes, held);
}

bool ranksMeetOnTheHost() { return !onGpus() || !underMpirun(); }

uint32_t maxRanks() { return underMpirun() ? Processes::transport->ranks() : maxThreads; }

void spawn(uint32_t n, const RankBody &body) {
  if (onGpus())
    if (const std::string why = whyNoGpu(); !why.empty())
      GTEST_SKIP() << why;
  if (!underMpirun())
    return spawnThreads(n, body);
  if (const uint32_t rank = Processes::transport->localRanks()[0]; rank < n)
    body(*Processes::transport, rank);
  if (!Processes::stopped)
    Processes::transport->requireEqual("the test", n); // one test after another
}

void spawnLast(uint32_t n, const RankBody &body) {
  Processes::stopped = true;
  spawn(n, body);
}

} // namespace ds::test
