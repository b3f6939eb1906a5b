//===- Effects.h - which bytes a command reads and writes --------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <cstdint>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// An operand and how it is used; `Scratch` leaves nothing that can be read.
struct Effect {
  const proto::Operand *operand;
  bool reads, writes, scratch;
};

/// In the order of the command's operands; a collective's parts one after another.
std::vector<Effect> effectsOf(const proto::Command &command);

uint64_t elementBytes(proto::DType dtype);
uint64_t byteCount(const proto::Operand &operand);

/// Whether a collective adds up what ranks bring.
bool sums(const proto::CollectiveCommand &collective);

/// Whether a kernel changes operand 0, a parameter, by operand 1, its gradient.
bool isOptimizer(const proto::Command &command);
/// Whether such a kernel runs it. Its variables are the parameter, the gradient and the state, in any order.
bool isOptimizer(const proto::ReferenceOp &op);
/// Which operand of such an op is the factor of its gradients, `clip`.
int clipOperandOf(const proto::ReferenceOp &op);

} // namespace ds::check
