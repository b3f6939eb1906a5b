//===- Spawn.cpp - a test's body on every rank ----------------------------===//
#include "test/conformance/Spawn.h"

#include "runtime/comm/LoadMpi.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

bool underMpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

/// Under mpirun all tests share one transport, and rank 0 alone prints.
class Processes final : public testing::Environment {
public:
  static std::unique_ptr<runtime::Transport> transport;

  void SetUp() override {
    if (!underMpirun())
      return;
    transport = runtime::loadMpiTransport();
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
const testing::Environment *const processes = testing::AddGlobalTestEnvironment(new Processes);

void spawnThreads(uint32_t n, const RankBody &body) {
  runtime::InProcessTransport transport(n);
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

uint32_t mostRanks() { return underMpirun() ? Processes::transport->ranks() : 8; }

void spawn(uint32_t n, const RankBody &body) {
  if (!underMpirun())
    return spawnThreads(n, body);
  if (const uint32_t rank = Processes::transport->localRanks()[0]; rank < n)
    body(*Processes::transport, rank);
  Processes::transport->requireEqual("the test", n); // one test after another
}

} // namespace ds::test
