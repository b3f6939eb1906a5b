//===- MovementTest.cpp - what a plan moves beside the least, by hand ------===//
#include "compiler/report/Transfers.h"
#include "compiler/report/movement/MovedBytes.h"
#include "compiler/report/movement/StepTensors.h"
#include "compiler/scheduling/TensorUses.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ds::report {
namespace {

using namespace plan::proto;
using scheduling::TensorUse;
using scheduling::UsedTensor;

constexpr uint32_t compute = 0, copies = 1, hostCompute = 2; // queues

/// Bytes [begin, begin + bytes) of a buffer.
struct Part {
  uint32_t buffer;
  int64_t bytes;
  Operand::Access access;
  uint64_t begin = 0;
};

/// One rank, whose commands run one after another: each waits for the one before it.
class PlanWriter {
public:
  PlanWriter() {
    Role &role = *plan_.add_roles();
    role.set_name("main");
    role.mutable_ranks()->Add(0);
    role.mutable_ranks()->Add(0);
    for (const auto &[name, kind] :
         {std::pair("compute", Queue::COMPUTE), {"copies", Queue::COPY_OUT}, {"host", Queue::HOST}}) {
      Queue &queue = *role.add_queues();
      queue.set_name(name);
      queue.set_kind(kind);
    }
    for (const char *space : {"device", "host"})
      role.add_arenas()->set_space(space);
    role.add_routines()->set_name("all");
    role.add_programs()->set_name("step");
    role.mutable_programs(0)->add_calls();
  }

  uint32_t buffer(const std::string &space, int64_t bytes, Buffer::Scope scope = Buffer::CALL) {
    Buffer &buffer = *role().add_buffers();
    buffer.set_arena(space == "host" ? 1 : 0);
    buffer.set_bytes(uint64_t(bytes));
    buffer.set_scope(scope);
    buffer.set_slots(1);
    return uint32_t(role().buffers_size() - 1);
  }

  /// Another buffer, which takes turns with `of`.
  uint32_t nextOf(uint32_t of) {
    Buffer &next = *role().add_buffers();
    next = role().buffers(int(of));
    next.set_next_of(of);
    return uint32_t(role().buffers_size() - 1);
  }

  void kernel(std::initializer_list<Part> parts, uint32_t queue = compute) {
    KernelCommand &kernel = *command(queue).mutable_kernel();
    for (const Part &part : parts)
      set(*kernel.add_operands(), part);
  }

  void copy(uint32_t from, uint32_t to, int64_t bytes) {
    CopyCommand &copy = *command(copies).mutable_copy();
    set(*copy.mutable_source(), {from, bytes, Operand::READ});
    set(*copy.mutable_target(), {to, bytes, Operand::WRITE});
  }

  void grant(uint64_t bytes) { plan_.mutable_machine()->set_device_memory(bytes); }

  void link(double bytesPerSecond) {
    Link &link = *plan_.mutable_machine()->add_links();
    link.set_between("device-host");
    link.set_bytes_per_second(bytesPerSecond);
  }

  StepTensors tensors() const { return stepTensors(plan_, plan_.roles(0)); }
  std::optional<MovedBytes> moved() const { return movedBytes(plan_, plan_.roles(0)); }
  const Plan &plan() const { return plan_; }

private:
  Role &role() { return *plan_.mutable_roles(0); }

  Command &command(uint32_t queue) {
    role().add_events();
    const auto event = uint32_t(role().events_size() - 1);
    Command &command = *role().mutable_routines(0)->add_commands();
    command.set_queue(queue);
    command.add_signals(event);
    if (event > 0)
      command.add_waits()->set_event(event - 1);
    return command;
  }

  static void set(Operand &operand, const Part &part) {
    operand.set_buffer(part.buffer);
    operand.set_byte_offset(part.begin);
    operand.set_dtype(DTYPE_U8);
    operand.add_shape(part.bytes);
    operand.set_access(part.access);
  }

  Plan plan_;
};

/// Tensors with uses, as "bytes: moment moment host device".
std::vector<std::string> described(const StepTensors &step) {
  std::vector<std::string> lines;
  for (const UsedTensor &tensor : step.tensors) {
    std::string line = std::to_string(tensor.bytes) + (tensor.origin == UsedTensor::Made   ? ":"
                                                       : tensor.origin == UsedTensor::Kept ? " kept:"
                                                                                           : " copied:");
    for (const TensorUse &use : tensor.uses)
      line += " " + (use.by == TensorUse::Compute  ? std::to_string(use.moment)
                     : use.by == TensorUse::Device ? "device"
                                                   : "host");
    if (!tensor.uses.empty())
      lines.push_back(line);
  }
  std::ranges::sort(lines);
  return lines;
}

/// An activation of 100 bytes leaves while 60 others are used, and comes back into another buffer.
PlanWriter activation() {
  PlanWriter writer;
  const uint32_t made = writer.buffer("device", 100), there = writer.buffer("host", 100),
                 back = writer.buffer("device", 100), scratch = writer.buffer("device", 60);
  writer.kernel({{made, 100, Operand::WRITE}});
  writer.copy(made, there, 100);
  writer.kernel({{scratch, 60, Operand::SCRATCH}});
  writer.copy(there, back, 100);
  writer.kernel({{back, 100, Operand::READ}});
  return writer;
}

TEST(StepTensors, FollowsATensorThroughCopies) {
  const StepTensors step = activation().tensors();
  EXPECT_EQ(described(step), (std::vector<std::string>{"100: 0 2", "60: 1"}));
  EXPECT_EQ(step.used, (std::vector<int64_t>{100, 60, 100}));
}

TEST(StepTensors, WhatIsWrittenInPlaceIsAnotherTensor) {
  PlanWriter writer;
  const uint32_t moments = writer.buffer("device", 8, Buffer::PLAN),
                 constant = writer.buffer("device", 4, Buffer::PLAN);
  writer.kernel({{moments, 8, Operand::READ}, {constant, 4, Operand::READ}});
  writer.kernel({{moments, 8, Operand::READ_WRITE}});
  writer.kernel({{constant, 4, Operand::READ}});
  const StepTensors step = writer.tensors();
  EXPECT_EQ(described(step), (std::vector<std::string>{"4 kept: 0 2", "8: 1 0 1"}))
      << "made by 1, read by the next step";
  EXPECT_EQ(step.used, (std::vector<int64_t>{12, 8, 4})) << "in place: once";
}

TEST(StepTensors, ANextValueIsFoundByTheNextStep) {
  PlanWriter writer;
  const uint32_t moments = writer.buffer("host", 8, Buffer::PLAN), next = writer.nextOf(moments),
                 near = writer.buffer("device", 8);
  writer.copy(moments, near, 8);
  writer.kernel({{near, 8, Operand::READ_WRITE}});
  writer.copy(near, next, 8);
  EXPECT_EQ(described(writer.tensors()), (std::vector<std::string>{"8: 0 0"})) << "made, and read by the next step";
}

TEST(StepTensors, PartsOfABufferAreTensorsOfTheirOwn) {
  PlanWriter writer;
  const uint32_t bucket = writer.buffer("host", 10, Buffer::PLAN), near = writer.buffer("device", 10);
  writer.copy(bucket, near, 10);
  writer.kernel({{near, 6, Operand::READ}});
  writer.kernel({{near, 4, Operand::READ, 6}});
  EXPECT_EQ(described(writer.tensors()), (std::vector<std::string>{"4 kept: 1", "6 kept: 0"}));
}

TEST(StepTensors, TheHostMakesAWeightThatTheDeviceReads) {
  PlanWriter writer;
  const uint32_t weight = writer.buffer("device", 8, Buffer::PLAN), there = writer.buffer("host", 8);
  writer.kernel({{weight, 8, Operand::READ}});
  writer.copy(weight, there, 8);
  writer.kernel({{there, 8, Operand::READ_WRITE}}, hostCompute);
  writer.copy(there, weight, 8);
  EXPECT_EQ(described(writer.tensors()), (std::vector<std::string>{"8: host 0 host"}));
  writer.grant(1000);
  EXPECT_EQ(writer.moved()->moved, 16u);
  EXPECT_EQ(writer.moved()->least, 8u) << "the host could keep what it made";
  EXPECT_EQ(writer.moved()->forced, 8u);
}

TEST(Movement, IsBesideTheLeast) {
  PlanWriter writer = activation();
  writer.grant(130);
  const MovedBytes moved = *writer.moved();
  EXPECT_EQ(moved.room, 130u);
  EXPECT_EQ(moved.moved, 200u);
  EXPECT_EQ(moved.least, 60u) << "30 bytes out and in";
  EXPECT_EQ(moved.forced, 0u);
  writer.grant(159);
  EXPECT_EQ(writer.moved()->least, 2u);
  writer.grant(160);
  EXPECT_EQ(writer.moved()->least, 0u);
  writer.grant(99);
  EXPECT_EQ(writer.moved(), std::nullopt) << "the activation itself has no room";
}

TEST(Movement, WhatFitsBesideComputeNeedNotBeSeen) {
  PlanWriter fast = activation(), slow = activation();
  for (PlanWriter *writer : {&fast, &slow})
    writer->grant(130);
  fast.link(1e15);
  slow.link(1);
  const auto least = [](const PlanWriter &writer) {
    return leastExposed(writer.plan(), writer.plan().roles(0), *writer.moved());
  };
  EXPECT_EQ(least(fast), 0);
  EXPECT_NEAR(least(slow), 30, 0.1) << "30 bytes either way, both at once, a byte a second";
  EXPECT_GE(transferTimes(slow.plan(), slow.plan().roles(0))->exposed(), least(slow));
  EXPECT_EQ(movementTable(slow.plan()).rows().size(), 2u);
}

} // namespace
} // namespace ds::report
