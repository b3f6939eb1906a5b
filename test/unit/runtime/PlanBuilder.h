//===- PlanBuilder.h - small plans by hand --------------------------------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"
#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::test {

namespace proto = ds::plan::proto;

/// A plan for the cpu, of one rank until it is said otherwise; what is added goes to the role added last. Buffers are
/// placed one after another, 64-byte aligned, never shared.
class PlanBuilder {
public:
  struct Tensor {
    uint32_t buffer;
    DType dtype;
    Shape shape;
  };

  explicit PlanBuilder(uint64_t microBatch = 1, uint64_t accumulation = 1);

  uint32_t queue(const std::string &name, proto::Queue::Kind kind = proto::Queue::COMPUTE);
  uint32_t event(const std::string &name);
  uint32_t routine(const std::string &name);
  uint32_t program(const std::string &name);

  /// A buffer of its own for one tensor; `slots` > 1 makes its scope SLOT.
  Tensor tensor(const std::string &name, DType dtype, const Shape &shape, proto::Buffer::Scope scope,
                uint32_t slots = 1);
  /// A variable, filled with `value`, and the buffer that holds it.
  Tensor variable(const std::string &name, DType dtype, const Shape &shape, double value,
                  proto::Variable::Kind kind = proto::Variable::PARAMETER);
  /// A graph input; shape[0] is the micro-batch.
  uint32_t input(const std::string &name, DType dtype, const Shape &shape);

  /// Makes it a plan for `ranks` data-parallel ranks of one role, with communicator 0 over them.
  void ranks(uint32_t ranks);
  /// Lays variables (indices) end to end, each at a multiple of `unit` elements; returns the bucket's index.
  uint32_t bucket(const std::string &name, const std::vector<uint32_t> &variables, uint64_t unit);
  /// The buffer that holds a bucket or this rank's part of it, as one tensor.
  Tensor bucketTensor(uint32_t bucket, bool shard);
  /// A variable without a buffer of its own.
  uint32_t bareVariable(const std::string &name, DType dtype, const Shape &shape, double value,
                        proto::Variable::Kind kind = proto::Variable::PARAMETER);
  /// The gradient of a parameter, likewise.
  uint32_t gradientOf(uint32_t parameter);

  /// The access of each operand, in order: 'r', 'w', 'm' (read and write) or 's' (scratch).
  proto::Command &kernel(uint32_t routine, uint32_t queue, const std::string &kernel, const std::string &accesses,
                         const std::vector<Tensor> &operands);
  proto::Command &fill(uint32_t routine, uint32_t queue, const Tensor &target);
  proto::Command &copy(uint32_t routine, uint32_t queue, const Tensor &source, const Tensor &target);
  /// One part over communicator 0; scratch where the kind sums. Change it for slices.
  proto::Command &collective(uint32_t routine, uint32_t queue, proto::CollectiveCommand::Kind kind,
                             const Tensor &source, const Tensor &target);
  proto::Command &feed(uint32_t routine, uint32_t queue, uint32_t input, const Tensor &target);

  void call(uint32_t program, uint32_t routine, uint32_t microbatch = 0);
  void metric(uint32_t program, const std::string &name, const Tensor &source);
  /// When a buffer of another scope than PLAN is born and dies.
  void life(const Tensor &tensor, uint32_t program, uint32_t birthRoutine, uint32_t birthCommand, uint32_t deathRoutine,
            uint32_t deathCommand);
  /// A reference op that the command implements, for names in errors.
  void implements(proto::Command &command, const std::string &name);

  /// Another role, for ranks `first` to `last`.
  void addRole(const std::string &name, uint32_t first, uint32_t last);
  /// A channel along an axis of the world.
  uint32_t channel(const std::string &name, uint32_t axis, uint32_t from, uint32_t to);
  proto::Command &send(uint32_t routine, uint32_t queue, uint32_t channel, const Tensor &source);
  proto::Command &receive(uint32_t routine, uint32_t queue, uint32_t channel, const Tensor &target);
  /// The buffer, in this role too, of a variable that another role holds already.
  Tensor held(const std::string &variable);

  proto::Role &role() { return *plan.mutable_roles(plan.roles_size() - 1); }

  proto::Plan plan;

private:
  proto::Command &command(uint32_t routine, uint32_t queue);
};

/// Says that ranks along axis data, if there are several, have other micro-batches of an input.
void dealOut(const proto::Plan &plan, proto::Input &input);

/// Waits of a command, in place: wait(command, event, delay).
void wait(proto::Command &command, uint32_t event, uint32_t delay = 0);
void signal(proto::Command &command, uint32_t event);

/// Makes a sum add onto its target.
void accumulate(proto::Command &collective);
/// An attribute of a kernel, to be given its value.
proto::Attribute &attribute(proto::Command &kernel, const char *name);
/// Makes the program of an elementwise command one instruction on float32; `operands` are registers of its inputs.
void setInstruction(proto::Command &elementwise, int64_t opcode, const std::vector<int64_t> &operands,
                    proto::DType type = proto::DTYPE_F32);

proto::Operand operandOf(const PlanBuilder::Tensor &tensor, proto::Operand::Access access);

} // namespace ds::test
