// What of device cuda no other device has, over the fake runtime.
#include "core/Error.h"
#include "core/Status.h"
#include "runtime/device/Device.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RecordedRun.h"
#include "runtime/device/Task.h"
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

  const std::unique_ptr<Device> device_ = loadCuda().makeDevice({});
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
    EXPECT_EQ(loadCuda().makeDevice({})->records(), records) << value;
  }
  ::unsetenv("DS_CUDA_GRAPH");
}

TEST_F(FakeCuda, SwitchesTakeNoOtherValue) {
  for (const std::string name : {"DS_CUDA_GRAPH", "DS_CUDA_STRICT"}) {
    ::setenv(name.c_str(), "off", 1);
    try {
      (void)loadCuda().makeDevice({});
      ADD_FAILURE() << name << " was taken";
    } catch (const Error &error) {
      EXPECT_EQ(error.what(), "the environment variable " + name + " is 'off', which is none of 0, 1");
    }
    ::unsetenv(name.c_str());
  }
}

} // namespace
} // namespace ds::runtime
