//===- NcclTransportTest.cpp - ranks that talk by NCCL, with a fake one ---===//
//
// Each rank is a thread with a transport, a TCP control plane, a GPU and a stream of its own. What NCCL itself does is
// only modelled (FakeNccl.h); how it is called, waited for, watched and aborted is ours.
//
//===----------------------------------------------------------------------===//
#include "runtime/comm/nccl/NcclTransport.h"

#include "core/DType.h"
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/Transport.h"
#include "runtime/comm/tcp/TcpControlPlane.h"
#include "test/shim/FakeNccl.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace ds::test {
namespace {

using namespace std::chrono_literals;
using runtime::Collective;
using runtime::CollectiveKind;
using runtime::CollectivePart;
using runtime::Transport;
using shim::fakeNccl;

constexpr uint32_t ranks = 3;
// Before the first call of CUDA, as in a run by NCCL.
[[maybe_unused]] const int environment =
    ::setenv("DS_FAKE_CUDA_GPUS", "3", 1) + ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);

/// Memory of the GPU that is current, which the fake lets the host touch.
template <typename T> struct GpuMemory {
  using value_type = T;
  T *allocate(size_t count) {
    void *memory = nullptr;
    (void)cudaMalloc(&memory, count * sizeof(T));
    return static_cast<T *>(memory);
  }
  void deallocate(T *memory, size_t) { (void)cudaFree(memory); }
  bool operator==(const GpuMemory &) const = default;
};
using Elements = std::vector<int64_t, GpuMemory<int64_t>>;

class Stream {
public:
  Stream() { (void)cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  void finish() { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << cudaGetErrorString(cudaGetLastError()); }
  void *get() const { return stream_; }

private:
  cudaStream_t stream_ = nullptr;
};
using Body = std::function<void(Transport &, uint32_t rank, Stream &)>;

std::byte *bytes(Elements &elements) { return reinterpret_cast<std::byte *>(elements.data()); }
int64_t value(uint32_t rank, uint64_t i) { return int64_t(rank + 1) * 1000 + int64_t(i); }
int64_t summed(uint64_t i) { return value(0, i) + value(1, i) + value(2, i); }

uint16_t nextPort() {
  static std::atomic<uint16_t> port = uint16_t(20000 + ::getpid() % 20000);
  return ++port;
}

/// Runs the body on every rank.
void onEveryRank(const Body &body) {
  shim::resetFakeNccl();
  const runtime::StoreAddress address{"127.0.0.1", nextPort()};
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      (void)cudaSetDevice(int(rank));
      Stream stream;
      auto transport =
          runtime::makeNcclTransport(std::make_unique<runtime::TcpControlPlane>(address, rank, ranks, 30s), int(rank));
      body(*transport, rank, stream);
    });
  for (std::thread &thread : threads)
    thread.join();
}

std::unique_ptr<runtime::Communicator> everybody(Transport &transport, uint32_t rank, uint32_t key = 0) {
  return transport.communicator(rank, {0, 1, 2}, key);
}

void run(runtime::Communicator &communicator, Stream &stream, CollectiveKind kind, const CollectivePart &part) {
  const Status status = communicator.run({kind, {&part, 1}, "the test", stream.get()});
  EXPECT_TRUE(status.ok()) << status.message();
  stream.finish();
}

TEST(NcclTransport, CarriesOutEveryCollective) {
  onEveryRank([](Transport &transport, uint32_t rank, Stream &stream) {
    Elements all(6); // outlives its registration
    {
      const auto communicator = everybody(transport, rank), other = everybody(transport, rank, 1);
      Elements source = {value(rank, 0), value(rank, 1)}, scratch(2);
      run(*communicator, stream, CollectiveKind::AllGather, {bytes(source), bytes(all), 2, DType::I64});
      EXPECT_EQ(all, (Elements{1000, 1001, 2000, 2001, 3000, 3001}));
      run(*other, stream, CollectiveKind::Broadcast, {bytes(source), bytes(source), 2, DType::I64});
      EXPECT_EQ(source, (Elements{1000, 1001}));
      for (const bool accumulate : {false, true}) {
        const std::span<std::byte> small(bytes(scratch), 2 * sizeof(int64_t));
        Elements whole(9), slice(3, 5), sums(9, 5);
        for (uint64_t i = 0; i < 9; ++i)
          whole[i] = value(rank, i);
        run(*communicator, stream, CollectiveKind::ReduceScatter,
            {bytes(whole), bytes(slice), 9, DType::I64, accumulate, small});
        run(*communicator, stream, CollectiveKind::AllReduce,
            {bytes(whole), bytes(sums), 9, DType::I64, accumulate, small});
        for (uint64_t i = 0; i < 9; ++i) {
          EXPECT_EQ(sums[i], summed(i) + (accumulate ? 5 : 0)) << i << accumulate;
          if (i / 3 == rank) {
            EXPECT_EQ(slice[i % 3], sums[i]);
          }
        }
      }
      transport.registerMemory(rank, {bytes(all), 48});
    }
    transport.finish();
  });
  EXPECT_EQ(fakeNccl().destroyed, 2 * int(ranks));
  EXPECT_EQ(fakeNccl().aborted, 0);
}

/// Both directions between neighbours, ends asked for in the order of keys.
TEST(NcclTransport, CarriesMessages) {
  onEveryRank([](Transport &transport, uint32_t rank, Stream &stream) {
    {
      std::vector<std::unique_ptr<runtime::SendingEnd>> sending(4);
      std::vector<std::unique_ptr<runtime::ReceivingEnd>> receiving(4);
      for (uint32_t key = 0; key < 4; ++key) { // 0 to 1, 1 to 0, 1 to 2, 2 to 1
        const uint32_t from = key / 2 + key % 2, to = key / 2 + 1 - key % 2;
        if (rank == from)
          sending[key] = transport.sendingEnd(from, to, key, "line");
        if (rank == to)
          receiving[key] = transport.receivingEnd(from, to, key, "line");
      }
      for (uint32_t key = 0; key < 4; ++key) {
        Elements message = {int64_t(key), 7}, got(2);
        if (sending[key]) {
          const std::span<const std::byte> parts[] = {{bytes(message), 8}, {}, {bytes(message) + 8, 8}};
          EXPECT_TRUE(sending[key]->send(parts, "the test", stream.get()).ok());
          stream.finish();
          EXPECT_EQ(sending[key]->sentBytes(), 16u);
        }
        if (receiving[key]) {
          const std::span<std::byte> parts[] = {{bytes(got), 8}, {}, {bytes(got) + 8, 8}};
          EXPECT_TRUE(receiving[key]->receive(parts, "the test", stream.get()).ok());
          stream.finish();
          EXPECT_EQ(got, message);
        }
      }
      for (uint32_t key = 0; key < 4; ++key) { // the two ends leave together
        sending[key].reset();
        receiving[key].reset();
      }
    }
    transport.finish();
  });
}

/// What the first failure was, once it has come.
std::string awaitStop(Transport &transport) {
  const auto text = std::make_shared<std::string>();
  const auto there = std::make_shared<std::atomic<bool>>(false);
  transport.onStop([=](const Status &status) {
    *text = status.message();
    *there = true;
  });
  for (const auto end = std::chrono::steady_clock::now() + 20s; !*there && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  transport.onStop({});
  return *text;
}

/// NCCL would wait for ever; the streams must come to an end all the same.
TEST(NcclTransport, EndsTheRunWhenARankDoesNotCome) {
  testing::internal::CaptureStderr();
  onEveryRank([](Transport &transport, uint32_t rank, Stream &stream) {
    const auto communicator = everybody(transport, rank);
    Elements source(2), all(6);
    const CollectivePart part{bytes(source), bytes(all), 2, DType::I64};
    run(*communicator, stream, CollectiveKind::AllGather, part); // the first one connects, for which hosts meet
    transport.setTimeout(rank == 0 ? 200ms : 30s);
    const Collective collective{CollectiveKind::AllGather, {&part, 1}, "h.0", stream.get()};
    if (rank != 2) {
      EXPECT_TRUE(communicator->run(collective).ok()); // enqueued
    }
    EXPECT_EQ(awaitStop(transport),
              "rank 0 waited 0.2 s in all_gather of h.0 (ranks 0, 1, 2): one of the others stands still or is slower "
              "than --collective-timeout allows; each says where it stands");
    stream.finish();
    EXPECT_FALSE(communicator->run(collective).ok());
  });
  EXPECT_EQ(fakeNccl().aborted, int(ranks));
  const std::string notes = testing::internal::GetCapturedStderr();
  EXPECT_NE(
      notes.find("note: rank 1 was stopped by another rank's failure; it stands in all_gather of h.0 (ranks 0, 1, "
                 "2, number 2 there)\n"),
      std::string::npos)
      << notes;
  EXPECT_NE(notes.find("note: rank 2 was stopped by another rank's failure; it stands in no collective or message\n"),
            std::string::npos)
      << notes;
}

TEST(NcclTransport, EndsTheRunWithAnErrorOfNccl) {
  onEveryRank([](Transport &transport, uint32_t rank, Stream &stream) {
    const auto communicator = everybody(transport, rank);
    EXPECT_FALSE(transport.anyOf(false));
    if (rank == 1)
      fakeNccl().failingRank = 1;
    EXPECT_EQ(awaitStop(transport), "rank 1, start of the first collective (ranks 0, 1, 2): NCCL says remote error: "
                                    "the fake was told to fail");
  });
}

TEST(NcclTransport, StopsWithAFailureOfARank) {
  onEveryRank([](Transport &transport, uint32_t rank, Stream &stream) {
    const auto communicator = everybody(transport, rank);
    EXPECT_FALSE(transport.anyOf(false)); // all have joined
    if (rank == 1)
      transport.stop(Status::failure("rank 1 ran out of luck"));
    EXPECT_EQ(awaitStop(transport), "rank 1 ran out of luck");
    EXPECT_TRUE(transport.anyOf(false));
    for (const auto end = std::chrono::steady_clock::now() + 20s;
         fakeNccl().aborted < int(ranks) && std::chrono::steady_clock::now() < end;)
      std::this_thread::sleep_for(1ms);
    Elements memory(4);
    EXPECT_THROW(transport.registerMemory(rank, {bytes(memory), 32}), Error);
  });
}

TEST(NcclTransport, RefusesAnOldNccl) {
  shim::resetFakeNccl();
  fakeNccl().version = 21000;
  EXPECT_THROW((void)runtime::makeNcclTransport(nullptr, 0), Error);
}

} // namespace
} // namespace ds::test
