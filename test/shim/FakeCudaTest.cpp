// What of device cuda no other device has, over the fake runtime.
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RecordedRun.h"
#include "runtime/device/Task.h"
#include "runtime/device/cpu/NvmeArena.h"
#include "runtime/plugins/LoadCuda.h"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

class FunctionTask final : public Task {
public:
  explicit FunctionTask(std::function<Status(Queue &)> function) : function_(std::move(function)) {}
  Status run(const Call &, Queue &queue) noexcept override { return function_(queue); }

private:
  std::function<Status(Queue &)> function_;
};

/// Two queues: one fills a row, the other copies it behind an event. Ten fills, so that DS_FAKE_CUDA_FAULT has its
/// tenth thing.
class FakeCuda : public testing::Test {
protected:
  void submit(uint8_t value) {
    value_ = value;
    written_.reset();
    b_->submit(second_, {});
    a_->submit(first_, {});
  }
  void finish() {
    a_->finish();
    b_->finish();
  }
  std::vector<std::byte> copied() {
    std::vector<std::byte> read(32);
    device_->read(read, arena_->base() + 32);
    return read;
  }
  /// Submits a run and records it; the failure, if there is one.
  Status recorded(uint8_t value, std::unique_ptr<RecordedRun> &run) {
    if (const Status status = device_->beginRecording(); !status.ok())
      return status;
    submit(value);
    finish();
    return device_->endRecording(run);
  }

  const std::unique_ptr<Device> device_ = loadCuda().makeDevice({}, {});
  const std::unique_ptr<Arena> arena_ = device_->createArena("device", 64, 64);
  const std::unique_ptr<Queue> a_ = device_->createQueue({.name = "a"}), b_ = device_->createQueue({.name = "b"});
  uint8_t value_ = 0;
  FunctionTask fill_{[this](Queue &queue) {
    for (int i = 0; i < 10; ++i)
      queue.fill(arena_->base(), value_, 32);
    return device_->failure();
  }};
  FunctionTask copy_{[this](Queue &queue) { return queue.copy(arena_->base() + 32, arena_->base(), 32); }};
  Event &written_ = device_->createEvent();
  const CommandList first_ = {{&fill_, {}, {&written_}}}, second_ = {{&copy_, {{&written_, 0}}, {}}};
};

TEST_F(FakeCuda, ARunThatCannotBeRecordedIsEnqueued) {
  for (const auto &[refused, why] :
       {std::pair{"capture", "a fill cannot be captured"},
        std::pair{"graph", "the end of a CUDA graph: CUDA says cudaErrorMemoryAllocation"}}) {
    ::setenv("DS_FAKE_CUDA_FAULT", refused, 1);
    std::unique_ptr<RecordedRun> run;
    const Status status = recorded(3, run);
    ::unsetenv("DS_FAKE_CUDA_FAULT");
    EXPECT_NE(std::string(status.message()).find(why), std::string::npos) << status.message();
    EXPECT_EQ(run, nullptr);
    EXPECT_TRUE(device_->failure().ok()) << device_->failure().message();
    submit(5);
    finish();
    EXPECT_EQ(copied(), std::vector<std::byte>(32, std::byte(5))) << refused;
    EXPECT_TRUE(device_->failure().ok()) << device_->failure().message();
    ASSERT_TRUE(recorded(7, run).ok());
    ASSERT_TRUE(run->launch().ok());
    finish();
    EXPECT_EQ(copied(), std::vector<std::byte>(32, std::byte(7))) << "the next one can";
  }
}

TEST_F(FakeCuda, GraphsCanBeTurnedOff) {
  EXPECT_TRUE(device_->records());
  for (const auto &[value, records] : {std::pair{"0", false}, {"1", true}, {"", true}}) {
    ::setenv("DS_CUDA_GRAPH", value, 1);
    EXPECT_EQ(loadCuda().makeDevice({}, {})->records(), records) << value;
  }
  ::unsetenv("DS_CUDA_GRAPH");
}

/// From the GPU to a file and back, over three queues; and the host's own reads and writes.
TEST(FakeCudaFile, IsReadAndWrittenBesideStreams) {
  const auto device = loadCuda().makeDevice({.rank = 3}, NvmePlace{.folder = ".", .rank = 3, .options = {}});
  const auto near = device->createArena("device", 64, 64), host = device->createArena("host", 64, 64),
             file = device->createArena("nvme", 8192, 4096);
  EXPECT_FALSE(device->isMainMemory("nvme"));
  EXPECT_EQ(device->allocatedBytes("nvme"), 8192u);
  EXPECT_EQ(device->note().rfind("rank 3 keeps 8192 bytes in a file of .: ", 0), 0u) << device->note();
  FunctionTask leave([&](Queue &queue) {
    queue.fill(near->base(), 5, 32);
    return queue.copy(host->base(), near->base(), 32);
  });
  FunctionTask write([&](Queue &queue) { return queue.copy(file->base() + 100, host->base(), 32); });
  FunctionTask read([&](Queue &queue) { return queue.copy(host->base() + 32, file->base() + 100, 32); });
  FunctionTask come([&](Queue &queue) { return queue.copy(near->base() + 32, host->base() + 32, 32); });
  Event &left = device->createEvent(), &written = device->createEvent(), &there = device->createEvent();
  const CommandList evicts = {{&leave, {}, {&left}}}, writes = {{&write, {{&left, 0}}, {&written}}},
                    reads = {{&read, {{&written, 0}}, {&there}}}, fetches = {{&come, {{&there, 0}}, {}}};
  const auto evict = device->createQueue({.name = "evict"}), fetch = device->createQueue({.name = "fetch"}),
             out = device->createQueue({.name = "nvme_write", .onHost = true}),
             in = device->createQueue({.name = "nvme_read", .onHost = true});
  fetch->submit(fetches, {});
  in->submit(reads, {});
  out->submit(writes, {});
  evict->submit(evicts, {});
  for (const auto &queue : {evict.get(), out.get(), in.get(), fetch.get()})
    queue->finish();
  ASSERT_TRUE(device->failure().ok()) << device->failure().message();
  std::vector<std::byte> seen(32);
  device->read(seen, near->base() + 32);
  EXPECT_EQ(seen, std::vector<std::byte>(32, std::byte(5)));
  device->write(file->base() + 200, std::vector<std::byte>(32, std::byte(8)));
  device->read(seen, file->base() + 200);
  EXPECT_EQ(seen, std::vector<std::byte>(32, std::byte(8)));
  EXPECT_THROW((void)loadCuda().makeDevice({}, {})->createArena("nvme", 64, 64), Error) << "no folder";
}

TEST_F(FakeCuda, SwitchesTakeNoOtherValue) {
  for (const std::string name : {"DS_CUDA_GRAPH", "DS_CUDA_STRICT"}) {
    ::setenv(name.c_str(), "off", 1);
    try {
      (void)loadCuda().makeDevice({}, {});
      ADD_FAILURE() << name << " was taken";
    } catch (const Error &error) {
      EXPECT_EQ(error.what(), "the environment variable " + name + " is 'off', which is none of 0, 1");
    }
    ::unsetenv(name.c_str());
  }
}

} // namespace
} // namespace ds::runtime
