//===- DeviceTest.cpp - what every device must do -------------------------===//
//
// One suite for all backends: DeviceConformance for every device, ExecutingDevice for those that carry commands out,
// RecordingDevice for those that record runs.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/Device.h"
#include "core/Error.h"
#include "core/Status.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/Event.h"
#include "runtime/device/Queue.h"
#include "runtime/device/RecordedRun.h"
#include "runtime/device/Task.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/null/NullDevice.h"
#include "runtime/plugins/LoadCuda.h"
#include "test/unit/runtime/FakeAccelerator.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

/// A task that is a function.
class FunctionTask final : public Task {
public:
  explicit FunctionTask(std::function<Status(const Call &, Queue &)> function) : function_(std::move(function)) {}
  Status run(const Call &call, Queue &queue) noexcept override { return function_(call, queue); }

private:
  std::function<Status(const Call &, Queue &)> function_;
};

Status nothing(const Call &, Queue &) { return Status::success(); }
Status wobble(const Call &call, Queue &) {
  std::this_thread::sleep_for(std::chrono::microseconds(call.microbatch * 7919 % 300));
  return Status::success();
}

struct Backend {
  const char *name;
  std::unique_ptr<Device> (*make)(std::string &why); // nullptr: this machine has none, and why
};

class DeviceConformance : public testing::TestWithParam<Backend> {
protected:
  void SetUp() override {
    std::string why;
    device = GetParam().make(why);
    if (!device)
      GTEST_SKIP() << why;
  }

  std::unique_ptr<Queue> queue(const char *name, size_t depth = 64, int workers = 1) {
    return device->createQueue({.name = name, .workers = workers, .depth = depth});
  }

  std::unique_ptr<Device> device;
};

class ExecutingDevice : public DeviceConformance {};
class RecordingDevice : public DeviceConformance {};

TEST_P(DeviceConformance, ArenasAreAlignedAndOfTheSizeAskedFor) {
  for (const uint64_t alignment : {1u, 64u, 4096u, 2u << 20})
    for (const uint64_t bytes : {0u, 1u, 4097u, 1u << 20}) {
      const auto arena = device->createArena("device", bytes, alignment);
      EXPECT_EQ(arena->bytes(), bytes);
      EXPECT_NE(arena->base(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->base()) % alignment, 0u);
    }
}

TEST_P(DeviceConformance, AnArenaIsNotTouchedBeforeItIsUsed) {
  const auto arena = device->createArena("device", uint64_t(64) << 20, 4096);
  EXPECT_EQ(arena->touchedBytes(), 0u);
  const std::array<std::byte, 3> three{};
  device->write(arena->base() + 8190, three);
  const bool counted = device->executes() && device->isMainMemory("device");
  EXPECT_GE(arena->touchedBytes(), counted ? 2 * 4096u : 0u);
  EXPECT_LE(arena->touchedBytes(), counted ? 4u << 20 : 0u); // huge pages
}

TEST_P(ExecutingDevice, CountsWhatIsAllocated) {
  const auto first = device->createArena("device", 1000, 64);
  {
    const auto second = device->createArena("device", 24, 64);
    const auto host = device->createArena("host", 7, 64);
    EXPECT_EQ(device->allocatedBytes("device"), 1024u);
    EXPECT_EQ(device->allocatedBytes("host"), 7u);
  }
  EXPECT_EQ(device->allocatedBytes("device"), 1000u);
  EXPECT_EQ(device->allocatedBytes("host"), 0u);
}

TEST_P(ExecutingDevice, RefusesSpacesItDoesNotHave) { EXPECT_THROW((void)device->createArena("tape", 1, 1), Error); }

TEST_P(ExecutingDevice, ReadsWhatWasWritten) {
  const auto arena = device->createArena("device", 4, 4);
  const std::array<std::byte, 4> in = {std::byte(1), std::byte(2), std::byte(3), std::byte(4)};
  std::array<std::byte, 4> out{};
  device->write(arena->base(), in);
  device->read(out, arena->base());
  EXPECT_EQ(in, out);
}

TEST_P(ExecutingDevice, AQueueKeepsItsOrder) {
  std::vector<uint64_t> order;
  FunctionTask first([&](const Call &call, Queue &) {
    order.push_back(2 * call.microbatch);
    return Status::success();
  });
  FunctionTask second([&](const Call &call, Queue &) {
    order.push_back(2 * call.microbatch + 1);
    return Status::success();
  });
  const CommandList list = {{&first, {}, {}}, {&second, {}, {}}};
  const auto q = queue("q", 4); // more submissions than fit: the host waits
  for (uint64_t m = 0; m < 50; ++m)
    q->submit(list, {.microbatch = m});
  q->finish();
  ASSERT_EQ(order.size(), 100u);
  for (uint64_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(order[i], i);
}

TEST_P(DeviceConformance, SignalsRaiseAndNeverLower) {
  FunctionTask task(nothing);
  Event &event = device->createEvent();
  const CommandList list = {{&task, {}, {&event}}};
  const auto q = queue("q");
  q->submit(list, {.microbatch = 4});
  q->submit(list, {.microbatch = 1});
  q->finish();
  EXPECT_EQ(event.value(), 5u);
  event.reset();
  EXPECT_EQ(event.value(), 0u);
  EXPECT_TRUE(device->failure().ok());
}

TEST_P(DeviceConformance, AWaitWithADelayLooksBack) {
  // The consumer of micro-batch m needs the producer of m - 2 only, so 0 and 1 run before anything is produced.
  FunctionTask task(wobble);
  Event &produced = device->createEvent(), &consumed = device->createEvent();
  const CommandList producer = {{&task, {}, {&produced}}}, consumer = {{&task, {{&produced, 2}}, {&consumed}}};
  const auto p = queue("producer"), c = queue("consumer");
  c->submit(consumer, {.microbatch = 0});
  c->submit(consumer, {.microbatch = 1});
  c->finish();
  EXPECT_TRUE(device->failure().ok());
  EXPECT_EQ(consumed.value(), 2u);
  c->submit(consumer, {.microbatch = 2});
  p->submit(producer, {.microbatch = 0});
  p->finish();
  c->finish();
  EXPECT_EQ(consumed.value(), 3u);
}

TEST_P(DeviceConformance, AWaitMayBeSubmittedBeforeItsSignal) {
  FunctionTask task(wobble);
  Event &there = device->createEvent(), &back = device->createEvent();
  const CommandList first = {{&task, {{&back, 1}}, {&there}}}, second = {{&task, {{&there, 0}}, {&back}}};
  const auto a = queue("a"), b = queue("b");
  for (uint64_t m = 0; m < 40; ++m)
    b->submit(second, {.microbatch = m});
  for (uint64_t m = 0; m < 40; ++m)
    a->submit(first, {.microbatch = m});
  a->finish();
  b->finish();
  EXPECT_TRUE(device->failure().ok());
  EXPECT_EQ(there.value(), 40u);
  EXPECT_EQ(back.value(), 40u);
}

TEST_P(ExecutingDevice, EventsOrderQueues) {
  // Two queues add and double in turns; any other order gives another number.
  for (int round = 0; round < 20; ++round) {
    uint64_t value = 0;
    FunctionTask add([&](const Call &call, Queue &) {
      std::this_thread::sleep_for(std::chrono::microseconds((call.microbatch + uint64_t(round)) * 37 % 100));
      value += 1;
      return Status::success();
    });
    FunctionTask twice([&](const Call &call, Queue &) {
      std::this_thread::sleep_for(std::chrono::microseconds((call.microbatch + uint64_t(round)) * 53 % 100));
      value *= 2;
      return Status::success();
    });
    Event &added = device->createEvent(), &doubled = device->createEvent();
    const CommandList adds = {{&add, {{&doubled, 1}}, {&added}}}, doubles = {{&twice, {{&added, 0}}, {&doubled}}};
    const auto a = queue("a"), b = queue("b");
    for (uint64_t m = 0; m < 20; ++m) {
      a->submit(adds, {.microbatch = m});
      b->submit(doubles, {.microbatch = m});
    }
    a->finish();
    b->finish();
    EXPECT_EQ(value, (uint64_t(1) << 21) - 2);
  }
}

TEST_P(ExecutingDevice, FillsAndCopies) {
  const auto device1 = device->createArena("device", 64, 64), host = device->createArena("host", 64, 64);
  FunctionTask fill([&](const Call &, Queue &q) {
    q.fill(device1->base(), 0xAB, 64);
    q.fill(device1->base() + 1, 7, 0);
    return Status::success();
  });
  FunctionTask copy([&](const Call &, Queue &q) {
    q.copy(host->base() + 8, device1->base(), 16);
    q.copy(host->base() + 8, host->base() + 8, 16);
    return Status::success();
  });
  const CommandList list = {{&fill, {}, {}}, {&copy, {}, {}}};
  const auto q = queue("q");
  q->submit(list, {});
  q->finish();
  std::array<std::byte, 32> seen;
  device->read(seen, host->base());
  for (size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(seen[i], i >= 8 && i < 24 ? std::byte(0xAB) : std::byte(0));
}

TEST_P(ExecutingDevice, ChecksLookAtWhatCommandsBeforeThemMade) {
  const auto arena = device->createArena("device", 64, 64);
  uint8_t seen = 0;
  FunctionTask task([&](const Call &call, Queue &q) {
    q.fill(arena->base(), uint8_t(call.microbatch), 64);
    const std::byte *bytes = arena->base() + 63;
    const Status status = q.look(bytes, 1);
    seen = uint8_t(*bytes);
    return status;
  });
  const CommandList list = {{&task, {}, {}}};
  const auto q = queue("q");
  for (const uint8_t value : {1, 255, 7}) {
    q->submit(list, {.microbatch = value});
    q->finish();
    EXPECT_EQ(seen, value);
  }
}

/// What a queue of the host does in main memory is done when the task has returned.
TEST_P(ExecutingDevice, AQueueOfTheHostDoesItsWorkItself) {
  const auto host = device->createArena("host", 64, 64);
  FunctionTask task([&](const Call &, Queue &q) {
    q.fill(host->base(), 7, 16);
    (void)q.copy(host->base() + 16, host->base(), 16);
    EXPECT_EQ(host->base()[31], std::byte(7));
    EXPECT_EQ(q.stream(), nullptr);
    kernels::parallelFor({.parallel = q.parallel()}, 16,
                         [&](int64_t piece, int) { host->base()[piece] = std::byte(9); });
    return Status::success();
  });
  const CommandList list = {{&task, {}, {}}};
  const auto q = device->createQueue({.name = "host_compute", .workers = 2, .onHost = true});
  EXPECT_EQ(q->parallel()->workers(), 2);
  q->submit(list, {});
  q->finish();
  EXPECT_TRUE(device->failure().ok()) << device->failure().message();
  EXPECT_EQ(host->base()[15], std::byte(9));
  EXPECT_EQ(host->base()[31], std::byte(7));
}

/// A number goes to the device and back, and the host adds one to it; any other order gives another number. The host's
/// waits are all submitted first.
TEST_P(ExecutingDevice, EventsOrderTheHostAndTheDevice) {
  constexpr uint64_t rounds = 50;
  const auto near = device->createArena("device", 64, 64), away = device->createArena("host", 128, 64);
  std::byte *sent = away->base(), *back = away->base() + 64;
  FunctionTask pass([&](const Call &, Queue &q) {
    const Status status = q.copy(near->base(), sent, 64);
    return status.ok() ? q.copy(back, near->base(), 64) : status;
  });
  FunctionTask add([&](const Call &, Queue &) {
    for (int i = 0; i < 64; ++i)
      sent[i] = std::byte(uint8_t(back[i]) + 1);
    return Status::success();
  });
  Event &passed = device->createEvent(), &added = device->createEvent();
  const CommandList passes = {{&pass, {{&added, 1}}, {&passed}}}, adds = {{&add, {{&passed, 0}}, {&added}}};
  const auto q = queue("q");
  const auto host = device->createQueue({.name = "host_compute", .onHost = true, .depth = 64});
  const std::vector<std::byte> zeros(64);
  device->write(sent, zeros);
  for (uint64_t m = 0; m < rounds; ++m)
    host->submit(adds, {.microbatch = m});
  for (uint64_t m = 0; m < rounds; ++m)
    q->submit(passes, {.microbatch = m});
  host->finish();
  q->finish();
  EXPECT_TRUE(device->failure().ok()) << device->failure().message();
  EXPECT_EQ(std::vector<std::byte>(sent, sent + 64), std::vector<std::byte>(64, std::byte(rounds)));
}

/// The device may be ahead of the host by more signals than an event keeps apart.
TEST_P(ExecutingDevice, TheHostWaitsForEachOfManySignals) {
  constexpr uint64_t rounds = 40;
  const auto near = device->createArena("device", 64, 64), away = device->createArena("host", rounds * 64, 64);
  FunctionTask make([&](const Call &call, Queue &q) {
    q.fill(near->base(), uint8_t(call.microbatch + 1), 64);
    return q.copy(away->base() + call.microbatch * 64, near->base(), 64);
  });
  uint64_t right = 0;
  FunctionTask look([&](const Call &call, Queue &) {
    const std::byte *slot = away->base() + call.microbatch * 64;
    right += std::vector<std::byte>(slot, slot + 64) == std::vector<std::byte>(64, std::byte(call.microbatch + 1));
    return Status::success();
  });
  Event &made = device->createEvent();
  const CommandList makes = {{&make, {}, {&made}}}, looks = {{&look, {{&made, 0}}, {}}};
  const auto q = queue("q");
  const auto host = device->createQueue({.name = "host_compute", .onHost = true, .depth = 64});
  for (uint64_t m = 0; m < rounds; ++m) {
    host->submit(looks, {.microbatch = m});
    q->submit(makes, {.microbatch = m});
  }
  host->finish();
  q->finish();
  EXPECT_EQ(right, rounds);
}

TEST_P(ExecutingDevice, AFailureOfTheHostEndsTheDevicesQueues) {
  FunctionTask fail([](const Call &, Queue &) { return Status::failure("the host cannot"); });
  std::atomic<int> afterwards = 0;
  FunctionTask count([&](const Call &, Queue &) {
    ++afterwards;
    return Status::success();
  });
  Event &done = device->createEvent();
  const CommandList failing = {{&fail, {}, {&done}}}, waiting = {{&count, {{&done, 0}}, {}}};
  const auto q = queue("q");
  const auto host = device->createQueue({.name = "host_compute", .onHost = true});
  q->submit(waiting, {});
  host->submit(failing, {});
  q->finish();
  host->submit(waiting, {}); // dropped, not awaited
  host->finish();
  EXPECT_STREQ(device->failure().message(), "the host cannot");
  EXPECT_EQ(afterwards, 0);
}

TEST_P(RecordingDevice, LaunchesWhatWasRecorded) {
  ASSERT_TRUE(device->records());
  const auto arena = device->createArena("device", 64, 64), host = device->createArena("host", 64, 64);
  FunctionTask copy([&](const Call &, Queue &q) {
    q.copy(arena->base(), host->base(), 32);
    return Status::success();
  });
  FunctionTask spread([&](const Call &, Queue &q) {
    q.copy(arena->base() + 32, arena->base(), 32);
    return Status::success();
  });
  Event &there = device->createEvent();
  const CommandList first = {{&copy, {}, {&there}}}, second = {{&spread, {{&there, 0}}, {}}};
  const auto a = queue("a"), b = queue("b");
  ASSERT_TRUE(device->beginRecording().ok());
  b->submit(second, {});
  a->submit(first, {});
  b->finish();
  a->finish();
  std::unique_ptr<RecordedRun> run;
  ASSERT_TRUE(device->endRecording(run).ok());
  for (const uint8_t value : {3, 9}) {
    const std::vector<std::byte> written(32, std::byte(value));
    std::vector<std::byte> read(64);
    device->write(host->base(), written);
    ASSERT_TRUE(run->launch().ok());
    a->finish();
    b->finish();
    device->read(read, arena->base());
    EXPECT_EQ(read, std::vector<std::byte>(64, std::byte(value)));
  }
  EXPECT_TRUE(device->failure().ok());
}

TEST_P(ExecutingDevice, KernelsSpreadOverAsManyWorkersAsAsked) {
  if (queue("q")->parallel() == nullptr)
    GTEST_SKIP() << "kernels of " << device->name() << " have a stream";
  for (const int workers : {1, 2, 3}) {
    std::atomic<int64_t> sum = 0;
    FunctionTask task([&](const Call &, Queue &q) {
      EXPECT_EQ(q.parallel()->workers(), workers);
      kernels::parallelFor({.parallel = q.parallel()}, 100, [&](int64_t piece, int) { sum += piece; });
      return Status::success();
    });
    const CommandList list = {{&task, {}, {}}};
    const auto q = queue("q", 1, workers);
    q->submit(list, {});
    q->finish();
    EXPECT_EQ(sum, 4950);
  }
}

TEST_P(ExecutingDevice, TheFirstFailureEndsEveryQueue) {
  std::atomic<int> afterwards = 0;
  FunctionTask fail([](const Call &call, Queue &) {
    return call.microbatch == 3 ? Status::failure("micro-batch %d is bad", 3) : Status::success();
  });
  FunctionTask count([&](const Call &call, Queue &) {
    afterwards += call.microbatch >= 3;
    return Status::success();
  });
  Event &done = device->createEvent();
  const CommandList failing = {{&fail, {}, {&done}}}, waiting = {{&count, {{&done, 0}}, {}}};
  const auto a = queue("a"), b = queue("b");
  for (uint64_t m = 0; m < 30; ++m) {
    b->submit(waiting, {.microbatch = m});
    a->submit(failing, {.microbatch = m});
  }
  a->finish();
  b->finish();
  EXPECT_STREQ(device->failure().message(), "micro-batch 3 is bad");
  EXPECT_EQ(afterwards, 0);
  b->submit(waiting, {.microbatch = 9}); // dropped, not awaited
  b->finish();
  EXPECT_EQ(afterwards, 0);
}

/// As when another rank fails while the host hands a run to this one.
TEST_P(ExecutingDevice, AFailureOutlastsTheResetOfEvents) {
  FunctionTask task(nothing);
  Event &never = device->createEvent();
  const CommandList waiting = {{&task, {{&never, 0}}, {}}};
  const auto q = queue("q");
  q->submit(waiting, {.microbatch = 0}); // waits before the failure
  device->fail(Status::failure("elsewhere"));
  never.reset();
  q->submit(waiting, {.microbatch = 1}); // and after it
  q->finish();
  EXPECT_STREQ(device->failure().message(), "elsewhere");
}

class PatientDevice : public ExecutingDevice {
protected:
  /// What a device says on which `list` has been submitted, and whose queue waits no longer than 100 ms.
  std::string failureOf(const CommandList &list) {
    const auto q =
        device->createQueue({.name = "in", .depth = 4, .rank = 3, .patience = std::chrono::milliseconds(100)});
    q->submit(list, {});
    q->finish();
    return device->failure().message();
  }
};

TEST_P(PatientDevice, SaysWhichEventDoesNotCome) {
  FunctionTask task(nothing);
  const CommandList list = {{&task, {}, {}, "first"}, {&task, {{&device->createEvent(), 0}}, {}, "feed of x"}};
  EXPECT_EQ(failureOf(list),
            "rank 3: nothing has moved for 0.1 s; queue in waits for an event that lets it begin feed of x");
}

TEST_P(PatientDevice, SaysWhichTaskDoesNotEnd) {
  FunctionTask slow([&](const Call &, Queue &) {
    while (device->failure().ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::success();
  });
  EXPECT_EQ(failureOf({{&slow, {}, {}, "feed of x"}}),
            "rank 3: nothing has moved for 0.1 s; queue in has not come out of feed of x");
}

/// The one that waits is not to blame.
TEST_P(PatientDevice, SaysWhichOtherQueueHoldsItUp) {
  FunctionTask task(nothing);
  FunctionTask slow([&](const Call &, Queue &) {
    while (device->failure().ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::success();
  });
  Event &ready = device->createEvent();
  const CommandList feed = {{&slow, {}, {&ready}, "feed of x"}};
  const auto other = device->createQueue({.name = "io", .rank = 3});
  ready.raisedBy(*other->standing());
  other->submit(feed, {});
  EXPECT_EQ(failureOf({{&task, {{&ready, 0}}, {}, "h.0"}}),
            "rank 3: nothing has moved for 0.1 s; queue io has not come out of feed of x");
}

/// Each task is shorter than the queue's patience, all of them are longer.
TEST_P(PatientDevice, WaitsForWhatGoesOn) {
  FunctionTask brief([&](const Call &, Queue &) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Status::success();
  });
  EXPECT_EQ(failureOf(CommandList(30, {&brief, {}, {}})), "");
}

template <typename D> std::unique_ptr<Device> make(std::string &) { return std::make_unique<D>(); }
std::unique_ptr<Device> makeFake(std::string &) {
  static test::FakeCounts counts;
  return test::fakeAccelerator(counts);
}
const Backend fake{"fake", makeFake}, cpu{"cpu", make<CpuDevice>}, null{"null", make<NullDevice>};
std::string nameOf(const testing::TestParamInfo<Backend> &info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Backends, DeviceConformance, testing::Values(cpu, null), nameOf);
INSTANTIATE_TEST_SUITE_P(Backends, ExecutingDevice, testing::Values(cpu), nameOf);
INSTANTIATE_TEST_SUITE_P(Backends, PatientDevice, testing::Values(cpu), nameOf);
INSTANTIATE_TEST_SUITE_P(Backends, RecordingDevice, testing::Values(fake), nameOf);

#ifdef DS_HAS_CUDA
std::unique_ptr<Device> makeCuda(std::string &why) {
  const CudaLibrary *library = findCuda(why);
  if (library == nullptr)
    return nullptr;
  why = library->info().unusable;
  return why.empty() ? library->makeDevice({}, {}) : nullptr;
}
const Backend cuda{"cuda", makeCuda};

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance, testing::Values(cuda), nameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, ExecutingDevice, testing::Values(cuda), nameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, PatientDevice, testing::Values(cuda), nameOf);
INSTANTIATE_TEST_SUITE_P(Cuda, RecordingDevice, testing::Values(cuda), nameOf);
#endif

TEST(NullDevice, FailsWhereARealOneWouldHang) {
  NullDevice device;
  FunctionTask task(nothing);
  Event &never = device.createEvent();
  const CommandList list = {{&task, {}, {}}, {&task, {{&never, 0}}, {}}};
  const auto q = device.createQueue({.name = "compute"});
  q->submit(list, {.index = 8});
  q->finish();
  EXPECT_STREQ(device.failure().message(), "queue compute would wait for ever before its command 1 of call 8");
}

TEST(CpuArenaDeathTest, GuardPagesStopStrayAccesses) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CpuDevice device;
  const auto arena = device.createArena("device", 4096, 64);
  EXPECT_DEATH(arena->base()[4096] = std::byte(1), "");
  EXPECT_DEATH(arena->base()[-1] = std::byte(1), "");
}

} // namespace
} // namespace ds::runtime
