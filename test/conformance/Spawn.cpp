//===- Spawn.cpp - a test's body on every rank ----------------------------===//
#include "test/conformance/Spawn.h"

#include "runtime/comm/Transport.h"
#include "runtime/comm/inprocess/InProcessTransport.h"
#include "runtime/core/Status.h"

#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace ds::test {

uint32_t mostRanks() { return 8; }

void spawn(uint32_t n, const RankBody &body) {
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

} // namespace ds::test
