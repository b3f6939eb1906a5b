//===- ThreadPoolTest.cpp - pieces on workers -----------------------------===//
#include "runtime/device/cpu/ThreadPool.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

using runtime::ThreadPool;

void each(ThreadPool &pool, int64_t pieces, int maxWorkers, const std::function<void(int64_t, int)> &body) {
  pool.run(
      pieces, maxWorkers,
      [](void *state, int64_t piece, int worker) {
        (*static_cast<std::function<void(int64_t, int)> *>(state))(piece, worker);
      },
      const_cast<std::function<void(int64_t, int)> *>(&body));
}

TEST(ThreadPool, RunsEveryPieceOnce) {
  for (int workers : {1, 2, 3, 5}) {
    ThreadPool pool(workers);
    for (int64_t pieces : {0, 1, 2, 3, 17, 1000}) {
      std::vector<std::atomic<int>> runs(size_t(pieces) + 1);
      each(pool, pieces, 0, [&](int64_t piece, int worker) {
        ++runs[size_t(piece)];
        ASSERT_LT(worker, workers);
      });
      for (int64_t i = 0; i < pieces; ++i)
        EXPECT_EQ(runs[size_t(i)], 1) << workers << " workers, piece " << i << " of " << pieces;
    }
  }
}

TEST(ThreadPool, KeepsToMaxWorkers) {
  ThreadPool pool(4);
  for (int most : {1, 2, 3}) {
    std::atomic<int> highest = 0;
    each(pool, 500, most, [&](int64_t, int worker) {
      int seen = highest;
      while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {
      }
    });
    EXPECT_LT(highest, most);
  }
}

TEST(ThreadPool, SpreadsOverWorkers) {
  ThreadPool pool(2);
  std::atomic<int> seen = 0; // a bit a worker; each waits until the other has come
  each(pool, 2, 0, [&](int64_t, int worker) {
    seen |= 1 << worker;
    while (seen != 3)
      std::this_thread::yield();
  });
  EXPECT_EQ(seen, 3);
}

TEST(ThreadPool, HoldsThroughManySmallJobs) {
  ThreadPool pool(3);
  for (int job = 0; job < 20000; ++job) {
    std::atomic<int64_t> sum = 0;
    const int64_t pieces = job % 7 + 2;
    each(pool, pieces, 0, [&](int64_t piece, int) { sum += piece + job; });
    ASSERT_EQ(sum, pieces * (pieces - 1) / 2 + pieces * job) << job;
  }
}

TEST(ThreadPool, WakesHelpersThatSleep) {
  ThreadPool pool(2);
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1)); // longer than a worker looks before it sleeps
    std::atomic<int> done = 0;
    each(pool, 64, 0, [&](int64_t, int) { ++done; });
    EXPECT_EQ(done, 64);
  }
}

} // namespace
} // namespace ds::test
